"""The tray of one kernel follows the runs under way: it is there once something waits, and forgets a run that is over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from nbagent.app.extension import Extension
from nbagent.app.tray import KernelTray
from nbagent.app.underway import LiveRun, Underway
from nbagent.core import events as ev
from nbagent.core.run import Stop
from nbagent.jupyter.desk import Click, Desk, Said
from tests.view.events_fixture import until
from tests.view.person import Person, settle


async def _nothing(_: Click) -> Said:
    return Said()


class Kernel:
    """The runs of a kernel, with the desk of its pages, and the tray that follows them."""

    def __init__(self, page, *, desk: bool = True) -> None:
        self.page = page
        self.underway = Underway()
        self.desk = Desk(SimpleNamespace(), _nothing) if desk else None
        self.extension: Any = SimpleNamespace(underway=self.underway, desk=self.desk)
        self.tray = KernelTray(cast("Extension", self.extension))
        self.people: list[Person] = []

    def begins(
        self, name: str, prompt: str = "", *, agent: str = "", background: bool = True
    ) -> tuple[LiveRun, Person]:
        person = Person(self.page)
        self.people.append(person)
        run = LiveRun(f"run-{name}", name, prompt, f"cell-{name}", Stop(), background=background, agent=agent)
        run.view = person.view
        return self.underway.add(run), person

    @property
    def entries(self) -> list[dict]:
        return [] if self.tray.tray is None else self.tray.tray.bar.entries

    def close(self) -> None:
        self.tray.close()
        if self.desk is not None:
            self.desk.close()
        for person in self.people:
            person.view.close()


@pytest.fixture
async def kernel(page):
    made = Kernel(page)
    yield made
    made.close()


async def test_the_tray_is_made_and_hung_when_something_waits_for_the_first_time(kernel):
    _, person = kernel.begins("a")
    assert kernel.tray.tray is None
    assert kernel.desk.widget.tray == ""
    person.shows(until(ev.ApprovalAsked))
    await settle()
    assert kernel.desk.widget.tray == kernel.tray.tray.widget.model_id
    assert [(e["cell"], e["background"]) for e in kernel.entries] == [("cell-a", True)]


async def test_a_run_that_is_over_waits_no_more_and_is_followed_no_more(kernel):
    run, person = kernel.begins("a")
    _, other = kernel.begins("b", background=False)
    for each in (person, other):
        each.shows(until(ev.ApprovalAsked))
    await settle()
    assert [e["background"] for e in kernel.entries] == [True, False]
    kernel.underway.remove(run)
    assert [e["cell"] for e in kernel.entries] == ["cell-b"]
    other.shows([ev.ApprovalAnswered(state=ev.State.ACT, turn=1, at=1.0, call_id="c2", approved=True)])
    await settle()
    assert kernel.entries == []
    person.shows(until(ev.QuestionAsked))
    await settle()
    assert kernel.entries == []


async def test_a_view_that_comes_later_is_followed_from_then_on(kernel):
    run = kernel.underway.add(LiveRun("run-a", "a", "", "", Stop()))
    run.view = Person(kernel.page).view
    kernel.people.append(SimpleNamespace(view=run.view))
    kernel.underway.changed()
    for event in until(ev.ApprovalAsked):
        run.view.show(event)
    await settle()
    assert len(kernel.entries) == 1


async def test_who_asks_is_said_once_where_the_name_is_how_the_prompt_begins(kernel):
    names = {"plain": ("Plot sales…", "Plot sales by month", ""), "named": ("plots", "Plot sales by month", ""),
             "agent": ("find dates", "Find where dates are read", "Explore")}  # fmt: skip
    for name, prompt, agent in names.values():
        _, person = kernel.begins(name, prompt, agent=agent)
        person.shows(until(ev.ApprovalAsked))
    await settle()
    assert [e["who"] for e in kernel.entries] == ["Plot sales by month", "plots", "Explore"]


async def test_where_no_page_has_the_notebook_there_is_no_tray(page):
    kernel = Kernel(page, desk=False)
    _, person = kernel.begins("a")
    person.shows(until(ev.ApprovalAsked))
    await settle()
    assert kernel.tray.tray is None
    kernel.close()
