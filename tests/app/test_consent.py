"""What a notebook asks for beyond the person's settings: one answer counts for the kernel, whichever it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from nbagent.app.consent import consented
from nbagent.app.extension import Extension
from nbagent.app.place import Place
from nbagent.core.errors import ConfigError
from nbagent.core.events import Event, Noted, QuestionAsked
from nbagent.core.policy import Mode
from tests.core.rig import Person


@dataclass
class Screen:
    events: list[Event] = field(default_factory=list)

    def show(self, event: Event) -> None:
        self.events.append(event)


async def finish(_: int) -> None:
    raise AssertionError("no run ends here")


@pytest.mark.parametrize(("said", "mode"), [("Yes, in this kernel", Mode.BYPASS), ("No, go on without", Mode.DEFAULT)])
async def test_an_answer_counts_for_the_kernel_and_the_next_cell_does_not_ask(
    said: str, mode: Mode, shell: Any, at_home: Path
) -> None:
    extension, screen = Extension(shell), Screen()
    place = Place(screen, Person(replies=[said]), None, finish)
    wider = replace(extension.settings(), mode=Mode.BYPASS)
    modes = [(await consented(extension, wider, place)).mode for _ in range(2)]
    assert modes == [mode, mode]
    assert sum(isinstance(one, QuestionAsked) for one in screen.events) == 1
    notes = [one.text for one in screen.events if isinstance(one, Noted)]
    assert [note[:44] for note in notes] == ["Goes on without the mode bypass: you said no"] * (mode is Mode.DEFAULT)
    nobody = Place(screen, Person(present=False), None, finish)
    more = replace(wider, allow=("shell(ls)",))
    with pytest.raises(ConfigError, match="needs a person's yes"):
        await consented(extension, more, nobody)


async def test_a_question_that_was_closed_is_no_answer(shell: Any, at_home: Path) -> None:
    extension, screen = Extension(shell), Screen()
    wider = replace(extension.settings(), mode=Mode.BYPASS)
    place = Place(screen, Person(replies=["", "Yes, in this kernel"]), None, finish)
    assert [(await consented(extension, wider, place)).mode for _ in range(2)] == [Mode.DEFAULT, Mode.BYPASS]
