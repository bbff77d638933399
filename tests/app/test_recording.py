"""A cell is recorded and replayed in real kernels: the same cells come of it, and where the data changed it says so."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from nbagent.app.options import parse
from nbagent.app.recording import check, is_taped, played
from nbagent.config import Settings
from nbagent.core.errors import ConfigError
from nbagent.models.recording import read_recording
from tests.app.test_replay import ADDED, DATA, Play
from tests.support.messages_server import MessagesServer, Reply, calls


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--recorded-pace do it", "--recorded-pace goes with --replay"),
        ("--record a.jsonl --recorded-results do it", "--recorded-results goes with --replay"),
        ("--record a.jsonl --background do it", "can't be recorded"),
        ("--replay a.jsonl --dry-run do it", "nothing to record"),
        ("--replay a.jsonl --record b.jsonl do it", "not allowed with"),
    ],
)
def test_options_that_do_not_go_together_are_said(line: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check(parse(line)[0])


def test_a_replay_is_the_model_of_its_cell() -> None:
    given, words = parse("--replay-loose runs/a.jsonl --recorded-pace Count them")
    assert words == "Count them"
    assert is_taped(given)
    settings = played(Settings(model="sonnet", fallback_model="haiku"), given)
    assert (settings.model, settings.fallback_model) == ("replay:runs/a.jsonl", "")
    assert played(Settings(model="sonnet"), {}).model == "sonnet"


@pytest.mark.kernel
@pytest.mark.timeout(180)
async def test_a_cell_is_recorded_replayed_in_a_new_kernel_and_departs_where_its_data_changed(tmp_path: Path) -> None:
    with MessagesServer() as server:
        play = Play(
            tmp_path,
            server,
            DATA,
            "%%agent --record runs/sales.jsonl --out answer\nHow many sales?",
            "print(answer.text)",
        )
        asked = list(play.nb.cells)
        added = calls("add_cell", source=ADDED)
        first = await play.run(added, Reply("There are 4 sales, 10 in all."))
        assert play.requests == 2
        assert "recorded in runs/sales.jsonl" in str(play.agent.outputs)
        file = read_recording(tmp_path / "runs" / "sales.jsonl")
        assert [len(one.pieces) > 3 for one in file.requests] == [True, True]
        assert str(tmp_path) not in (tmp_path / "runs" / "sales.jsonl").read_text()

        def again(line: str) -> None:
            cells = [new_code_cell(cell.source, id=cell.id) for cell in asked]
            cells[2].source = f"%%agent {line} --out answer\nHow many sales?"
            play.nb.cells = new_notebook(cells=cells).cells

        again("--replay runs/sales.jsonl")
        second = await play.run()
        assert play.requests == 0
        assert [(cell["source"], cell["outputs"]) for cell in second[3:]] == [
            (c["source"], c["outputs"]) for c in first[3:]
        ]
        assert second[3]["source"] == ADDED

        play.sales(1, 2, 3)
        again("--replay-loose runs/sales.jsonl --recorded-results")
        third = await play.run()
        assert play.requests == 0
        assert "Nothing runs" in str(play.agent.outputs)
        assert "(recorded: it did not run)" in play.seen
        assert "There are 4 sales" in play.seen
        assert ADDED not in [cell["source"] for cell in third]

        again("--replay runs/sales.jsonl")
        with pytest.raises(Exception, match="departs from its recording"):
            await play.run()
        assert "at request 2, messages[2].content[0].content[1].text: recorded 'total 10', now 'total 6'" in play.seen
        server.assert_clean()


ASKED = "questions.check(first_tool={!r}, turns=2, stopped='end_turn')"


@pytest.mark.kernel
@pytest.mark.timeout(180)
async def test_a_finished_cell_becomes_a_lesson_that_runs_and_checks_its_answers(tmp_path: Path) -> None:
    with MessagesServer() as server:
        lines = "%agent record sales.jsonl --lesson lesson.ipynb\n%agent replay sales.jsonl"
        play = Play(tmp_path, server, DATA, "%%agent\nHow many sales?", lines)
        await play.run(calls("add_cell", source=ADDED), Reply("There are 4 sales, 10 in all."))
        said = str(play.nb.cells[-1].outputs)
        assert "sales.jsonl has the run “How many sales?”: 2 requests" in said
        assert "add_cell  (tool_use)" in said
        assert str(tmp_path) not in (tmp_path / "sales.jsonl").read_text("ascii")

        play.nb = nbformat.read(tmp_path / "lesson.ipynb", as_version=4)
        nbformat.validate(play.nb)
        play.nb.cells += [new_code_cell(ASKED.format("list_variables")), new_code_cell(ASKED.format("add_cell"))]
        cells = await play.run()
        assert play.requests == 0
        assert "There are 4 sales" in play.seen
        assert ADDED not in [cell["source"] for cell in cells]
        untouched, wrong, right = (str(c["outputs"]) for c in cells if c["source"].startswith("questions.check"))
        assert "Not yet" in untouched
        assert "look at the first call again" in wrong
        assert "✓ Right" in right
        server.assert_clean()
