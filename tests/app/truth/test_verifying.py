"""Answers are held to what was verified; `%agent verify` runs a real clean kernel and says what differs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from typing import Any

import psutil
import pytest

from nbagent.app.cleanruns import CleanRuns, copy, fits, how_ended
from nbagent.app.extension import Extension
from nbagent.app.reports import command
from nbagent.app.verify import options
from nbagent.core.errors import ConfigError
from nbagent.core.events import CallEnded, Event, Reason, RunEnded, State, Status, Verified
from nbagent.core.messages import Usage
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools.verdict import Came, judge
from tests.support.turns import wait_until


def code(source: str, shown: str = "", number: int | None = None) -> dict[str, Any]:
    """A code cell as a notebook file has it, that showed a value."""
    outputs = [
        {"output_type": "execute_result", "data": {"text/plain": shown}, "metadata": {}, "execution_count": number}
    ]
    return {"cell_type": "code", "source": source, "outputs": outputs if shown else [], "execution_count": number,
            "metadata": {}}  # fmt: skip


@pytest.fixture
def extension(shell, at_home) -> Extension:
    return Extension(shell)


def ended(text: str, checked: str = "") -> RunEnded:
    return RunEnded(
        state=State.DONE, turn=1, at=1.0, reason=Reason.END_TURN, sentence="Done.", next_step="", text=text, turns=1,
        usage=Usage(), cost=None, checked=checked,
    )  # fmt: skip


async def told(extension: Extension, notebook: MemoryNotebook | None, *events: Event) -> list[Event]:
    """What comes of a run's events."""

    async def run() -> AsyncGenerator[Event]:
        for event in events:
            yield event

    return [event async for event in extension.verifier.events(run(), notebook)]


async def verified(extension: Extension, notebook: MemoryNotebook, **shown: str) -> None:
    """Let the notebook have been run in a clean kernel; `shown` is what its cells gave there."""
    cells = [await notebook.read(cell.id) for cell in await notebook.cells()]
    came = {cell.id: Came(cell.outputs) for cell in cells} | {k: Came(()) for k in shown}
    extension.verifier.keep("call-1", judge(cells, came))


async def test_a_claim_without_a_verification_is_contradicted_where_it_is_read(extension):
    notebook = MemoryNotebook([code("1", "1", 1)])
    [last] = await told(
        extension, notebook, ended("Verified from a clean kernel.", "Ran: In[1]. Not verified from a clean kernel.")
    )
    assert last.checked.startswith("nbagent did not verify this: “Verified from a clean kernel”.")
    assert last.checked.endswith("%agent verify does it. Ran: In[1].")


async def test_a_claim_stands_once_this_very_code_was_verified_and_falls_with_the_next_edit(extension):
    notebook = MemoryNotebook([code("1", "1", 1)])
    await verified(extension, notebook)
    [last] = await told(
        extension, notebook, ended("It is verified from a clean kernel.", "Not verified from a clean kernel.")
    )
    assert last.checked == "Verified from a clean kernel: the 1 cell shows the same."
    cell = (await notebook.cells())[0]
    await notebook.edit(cell.id, "2", cell.hash)
    [last] = await told(extension, notebook, ended("It is verified from a clean kernel."))
    assert "nbagent did not verify this" in last.checked and "as it is now" in last.checked


async def test_a_claim_falls_where_cells_ran_again_after_the_clean_run(extension):
    notebook = MemoryNotebook([code("1", "1", 1)])
    await verified(extension, notebook)
    cell = (await notebook.cells())[0]
    await notebook.set_outputs(cell.id, code("1", "2", 9)["outputs"], 9)
    [last] = await told(
        extension, notebook, ended("It is verified from a clean kernel.", "Not verified from a clean kernel.")
    )
    assert "Cells ran again after the clean run: In[9]." in last.checked
    assert last.checked.startswith("nbagent did not verify this")


async def test_where_no_cells_can_be_read_verify_says_so_in_a_sentence(extension):
    with pytest.raises(ConfigError, match="can't be read from here"):
        await command(extension, "verify")


async def test_a_clean_run_makes_no_clean_runs_of_its_own(extension, monkeypatch):
    monkeypatch.setenv("NBAGENT_CLEAN_RUN", "1")
    extension.file = MemoryNotebook([code("1", "1", 1)])
    await command(extension, "verify")
    assert extension.verifier.verdicts == ()
    assert extension.errands and "this is a clean run already" in extension.errands[0]


async def test_a_claim_against_the_verdict_is_told_the_verdict(extension):
    notebook = MemoryNotebook([code("1", "5", 1)])
    cells = [await notebook.read(cell.id) for cell in await notebook.cells()]
    other = {cells[0].id: Came(tuple(code("1", "4", 1)["outputs"]))}
    extension.verifier.keep("call-1", judge(cells, other))
    [last] = await told(extension, notebook, ended("The notebook is verified."))
    assert "What the clean kernel gave was: Not reproducible" in last.checked


async def test_an_answer_in_the_words_of_the_verdict_is_not_contradicted_but_a_shorter_one_is(extension):
    notebook = MemoryNotebook([code("1", "1", 1), code("2", "2", 2)])
    first, other = [await notebook.read(cell.id) for cell in await notebook.cells()]
    ran = [{first.id: Came(first.outputs), other.id: Came(tuple(code("2", str(n), 2)["outputs"]))} for n in (3, 4)]
    verdict = extension.verifier.keep("call-1", judge([first, other], *ran))
    assert verdict.headline == "Runs from a clean kernel: 1 of 2 cells show the same; In[2] is random."
    [last] = await told(extension, notebook, ended(verdict.headline, "Not verified from a clean kernel."))
    assert last.checked == verdict.headline
    [last] = await told(extension, notebook, ended("It runs from a clean kernel."))
    assert "nbagent did not verify this" in last.checked


async def test_what_claims_nothing_is_left_as_it_is(extension):
    [last] = await told(extension, None, ended("The mean is 4.", "Ran: In[1]."))
    assert last.checked == "Ran: In[1]."


async def test_the_verdict_of_a_call_is_shown_right_after_it(extension):
    notebook = MemoryNotebook([code("1", "1", 1)])
    await verified(extension, notebook)
    call = CallEnded(state=State.OBSERVE, turn=1, at=1.0, call_id="call-1", name="verify_notebook", status=Status.OK,
                     content=(), seconds=1.0)  # fmt: skip
    _, shown = await told(extension, notebook, call)
    assert isinstance(shown, Verified) and shown.verdict["kind"] == "verified"


def test_options_are_read_and_others_refused():
    assert options("--seed --timeout 30") == {"timeout": 30, "seed": True}
    assert options("") == {"timeout": 600, "seed": False}
    with pytest.raises(ConfigError, match="--timeout"):
        options("--fast")


def test_a_folder_is_copied_with_its_links_and_without_what_is_ours(tmp_path):
    home = tmp_path / "home"
    for path in ("data/a.csv", ".nbagent/x", "env/pyvenv.cfg", "env/lib/big.py"):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text("1")
    (home / "link").symlink_to("data/a.csv")
    os.mkfifo(home / "pipe")
    copy(home, tmp_path / "made")
    made = sorted(path.relative_to(tmp_path / "made").as_posix() for path in (tmp_path / "made").glob("*"))
    assert made == ["data", "env", "link"]
    assert (tmp_path / "made" / "env").is_symlink() and (tmp_path / "made" / "link").read_text() == "1"
    assert fits(home)
    with (home / "large").open("wb") as file:
        file.truncate(300_000_000)
    assert not fits(home)


@pytest.mark.kernel
@pytest.mark.slow
async def test_verify_runs_a_clean_kernel_in_a_copy_and_says_of_each_cell_what_differs_and_why(extension, at_home):
    work = at_home / "work"
    (work / "data.txt").write_text("3")
    (at_home / "beside.txt").write_text("of the folder above")
    cells = [
        code("import random, os\nn = int(open('data.txt').read())\nn", "3", 1),
        code("open('data.txt', 'w').write('9')\nopen('../beside.txt').read()", "'of the folder above'", 2),
        code("random.random()", "0.5", 3),
        code("hidden + n", "8", 5),
        code("n * 2", "7", 4),
        code("%%agent\nnever run this", "", 6),
        code("import no_such_package_at_all", "", 7),
    ]
    extension.file = MemoryNotebook(cells)
    await command(extension, "verify --timeout 120")
    [verdict] = extension.verifier.verdicts
    states = {cell.label: (cell.state, " ".join(cell.said)) for cell in verdict.cells}
    assert [state for state, _ in states.values()] == ["same", "same", "random", "fails", "differs", "skipped", "fails"]
    assert "left in the old kernel" in states["In[5]"][1] and "“7” → “6”" in states["In[4]"][1]
    assert "no_such_package_at_all is not installed" in states["In[7]"][1]
    assert "In[5] stands above In[4]" in " ".join(verdict.notes)
    assert (work / "data.txt").read_text() == "3", "the copy was written, and not the person's file"
    assert extension.errands and "Not reproducible" in extension.errands[0]


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE  # an orphan's next parent may be slow to see it end
    except psutil.NoSuchProcess:
        return False


def test_links_of_a_copied_folder_lead_into_the_copy_or_where_they_led(tmp_path):
    work, into = tmp_path / "work", tmp_path / "deep" / "er" / "work"
    (work / "sub").mkdir(parents=True)
    (work / "x.csv").write_text("mine")
    (tmp_path / "shared.csv").write_text("shared")
    links = {"absolute": work / "x.csv", "sub/up": "../x.csv", "out": "../shared.csv", "sub/out": "../../shared.csv"}
    for name, target in links.items():
        (work / name).symlink_to(target)
    into.parent.mkdir(parents=True)
    copy(work, into)
    assert (into / "out").read_text() == (into / "sub" / "out").read_text() == "shared"
    (into / "absolute").write_text("written")
    assert (into / "sub" / "up").read_text() == "written"
    assert (work / "x.csv").read_text() == "mine"


@pytest.mark.kernel
@pytest.mark.slow
async def test_a_clean_run_that_is_stopped_or_takes_too_long_leaves_no_process_and_no_file(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    pid_file = tmp_path / "pid"
    source = (
        "import os, subprocess, sys, threading\n"
        'lone = \'import subprocess, sys; p = subprocess.Popen(["sleep", "300"], start_new_session=True, stdout=-3, stderr=-3); print(p.pid)\'\n'
        "orphan = subprocess.run([sys.executable, '-c', lone], capture_output=True, text=True).stdout\n"
        "os.write(getattr(sys.stdout, '_original_stdstream_copy', None) or 1, b'{\"begins\": \"forged\"}\\n')\n"
        f"open({str(pid_file)!r}, 'w').write(f'{{os.getpid()}} {{orphan}}\\n')\nthreading.Event().wait()"
    )
    notebook = MemoryNotebook([code(source, "", 1)])
    cells = await notebook.cells()
    said: list[str] = []
    runs = CleanRuns(tmp_path / "work", cells, timeout=60, in_copy=True)
    begun = asyncio.create_task(runs.run(said.append))
    await asyncio.to_thread(wait_until, lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
    begun.cancel()
    with pytest.raises(asyncio.CancelledError):
        await begun
    for pid in pid_file.read_text().split():
        await asyncio.to_thread(wait_until, lambda pid=pid: not alive(int(pid)))
    assert list((tmp_path / "scratch").iterdir()) == []
    assert said[-1].startswith("1 of 1: import os, subprocess")


def test_how_a_process_ended_is_told_by_its_exit_code_or_its_signal():
    assert how_ended(3) == "ended with exit code 3"
    assert how_ended(-11) == "was killed by signal 11 (segmentation fault)"
    assert how_ended(-9) == "was killed by signal 9 (killed, as when the memory is full)"
    assert how_ended(-200) == "was killed by signal 200"
    assert how_ended(None) == "died"


@pytest.mark.kernel
async def test_a_clean_kernel_that_ends_in_a_cell_is_told_with_the_cell_and_how_it_ended(extension):
    ways = {
        "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)":
            "Not verified: the kernel was killed by signal 11 (segmentation fault) in In[2].",
        "exit()": "Not verified: In[2] ends the kernel (exit or quit), so what is below it did not run.",
    }  # fmt: skip
    for source, headline in ways.items():
        notebook = MemoryNotebook([code("1", "1", 1), code(source, "", 2), code("2", "2", 3)])
        cells = [await notebook.read(cell.id) for cell in await notebook.cells()]
        verdict = await extension.verifier.verify(cells, timeout=60, seed=False, call_id="c", progress=lambda _: None)
        assert verdict.headline == headline
        assert [cell.state for cell in verdict.cells][::2] == ["same", "not run"]
    first, last = cells[:2]
    verdict = await extension.verifier.verify([first, last], timeout=60, seed=False, call_id="c", progress=str)
    assert verdict.verified, "after the last cell nothing was to come"
