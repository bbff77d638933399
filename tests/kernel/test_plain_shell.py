"""The kernel port over a plain IPython shell, as in a terminal: no ipykernel, standard streams that cannot be patched."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from nbagent.core.errors import Interrupted
from nbagent.core.tools import Call
from nbagent.jupyter.flood import Flood
from nbagent.jupyter.interrupts import OWNER
from nbagent.jupyter.kernel import ShellKernel
from nbagent.jupyter.outputs import Outputs, clean_bundle
from nbagent.tools.python import tools as python_tools

pytestmark = pytest.mark.slow


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    settings = Config()
    settings.HistoryManager.enabled = False  # no database, no thread that writes it
    made = InteractiveShell(config=settings)
    yield made
    made.atexit_operations()
    atexit.unregister(made.atexit_operations)


def text_file() -> io.TextIOWrapper:
    """A standard stream whose methods cannot be replaced, as in a terminal."""
    return io.TextIOWrapper(io.BytesIO(), write_through=True)


async def test_streams_that_cannot_be_patched_are_captured_and_put_back(shell: InteractiveShell) -> None:
    with contextlib.redirect_stdout(text_file()) as file:
        ran = await ShellKernel(shell).run("print('hello')\n1 + 1", emit=lambda _: None, timeout=60)
        assert sys.stdout is file
        print("after")
    assert [o["output_type"] for o in ran.outputs] == ["stream", "execute_result"]
    assert file.buffer.getvalue() == b"after\n"


async def test_each_output_is_emitted_as_it_is_kept(shell: InteractiveShell) -> None:
    seen: list[dict] = []
    ran = await ShellKernel(shell).run("print('a')\nprint('b')\n'c'", emit=seen.append, timeout=60)
    assert "".join(o.get("text", "") for o in seen) == ran.outputs[0]["text"] == "a\nb\n"
    assert seen[-1] == ran.outputs[-1]


async def test_empty_code_runs_and_has_no_number(shell: InteractiveShell) -> None:
    ran = await ShellKernel(shell).run("  \n", emit=lambda _: None, timeout=60)
    assert (ran.status, ran.outputs, ran.number) == ("ok", (), None)


async def test_a_cancelled_caller_sees_awaiting_code_end_first(shell: InteractiveShell) -> None:
    started = asyncio.Event()
    shell.user_ns.update(started=started, ended=[])
    code = "import asyncio\nstarted.set()\ntry:\n    await asyncio.sleep(600)\nfinally:\n    ended.append(1)"
    task = asyncio.create_task(ShellKernel(shell).run(code, emit=lambda _: None, timeout=None))
    await asyncio.wait_for(started.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shell.user_ns["ended"] == [1]
    assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []


async def test_an_interrupt_that_the_code_catches_still_stops_the_agent(shell: InteractiveShell) -> None:
    code = "import signal\nprint('part')\ntry:\n    signal.raise_signal(2)\nexcept KeyboardInterrupt:\n    done = True"
    with pytest.raises(Interrupted) as stop:
        await ShellKernel(shell).run(code, emit=lambda _: None, timeout=60)
    assert stop.value.output == "part\n"
    assert shell.user_ns["done"] is True


async def test_a_loop_that_catches_every_interrupt_ends_after_one_of_the_persons(shell: InteractiveShell) -> None:
    code = (
        "import signal, threading\nend = threading.Event()\nsignal.raise_signal\nfirst = True\nwhile True:\n  try:\n"
        "    signal.raise_signal(2) if first else end.wait(90)\n  except KeyboardInterrupt:\n    first = False"
    )
    began = time.monotonic()
    with pytest.raises(Interrupted):
        await ShellKernel(shell).run(code, emit=lambda _: None, timeout=None)
    assert time.monotonic() - began < 60


async def test_two_runs_at_once_wait_for_each_other(shell: InteractiveShell) -> None:
    kernel = ShellKernel(shell)
    code = "import asyncio\nprint('{0}1')\nawait asyncio.sleep(0)\nprint('{0}2')"
    first, second = await asyncio.gather(
        *(kernel.run(code.format(name), emit=lambda _: None, timeout=60) for name in "ab")
    )
    assert [r.outputs[0]["text"] for r in (first, second)] == ["a1\na2\n", "b1\nb2\n"]


async def test_the_context_of_the_caller_is_not_marked(shell: InteractiveShell) -> None:
    await ShellKernel(shell).run("1", emit=lambda _: None, timeout=60)
    assert OWNER.get() is None


async def test_scratch_sees_copies_and_the_person_keeps_theirs(shell: InteractiveShell) -> None:
    shell.user_ns.update(value=1, items=[1])
    ran = await ShellKernel(shell).scratch("value = 2; items.append(value); extra = 3; value", timeout=60)
    assert ran.outputs[0]["data"]["text/plain"] == "2"
    assert shell.user_ns["value"] == 1
    assert shell.user_ns["items"] == [1, 2]
    assert "extra" not in shell.user_ns


async def test_a_semicolon_keeps_a_scratch_value_quiet(shell: InteractiveShell) -> None:
    assert (await ShellKernel(shell).scratch("1 + 1;", timeout=60)).outputs == ()


async def test_what_emit_prints_is_no_output_of_the_code(shell: InteractiveShell) -> None:
    with contextlib.redirect_stdout(text_file()) as file:
        ran = await ShellKernel(shell).run("print('x')", emit=lambda _: print("debug"), timeout=60)
    assert ran.outputs[0]["text"] == "x\n"
    assert b"debug" in file.buffer.getvalue()


async def test_what_the_code_prints_while_an_output_is_passed_on_is_an_output_too(shell: InteractiveShell) -> None:
    """Row 39: the helper thread passes on what came before, and the code prints on meanwhile."""
    passing, printed = threading.Event(), threading.Event()

    def emit(output: dict) -> None:
        if "helper" in output.get("text", ""):
            passing.set()
            printed.wait(0.5)  # the code may have to wait until this is over

    shell.user_ns.update(passing=passing, printed=printed)
    code = "print('at once')\nprint('helper')\nassert passing.wait(20)\nprint('meanwhile')\nprinted.set()"
    with contextlib.redirect_stdout(text_file()) as file:
        ran = await ShellKernel(shell).run(code, emit=emit, timeout=60)
    assert (ran.status, ran.outputs[0]["text"]) == ("ok", "at once\nhelper\nmeanwhile\n")
    assert file.buffer.getvalue() == b""


def test_too_many_rich_outputs_are_counted_and_errors_stay() -> None:
    outputs = Outputs(None)
    for n in range(700):
        outputs.add({"output_type": "display_data", "data": {"text/plain": str(n)}, "metadata": {}})
    outputs.add({"output_type": "error", "ename": "E", "evalue": "", "traceback": []})
    kept = outputs.close()
    assert sum(o["output_type"] == "display_data" for o in kept) == 500
    assert sum(o["output_type"] == "error" for o in kept) == 1
    assert kept[-1]["text"] == "[200 more outputs left out]\n"


def test_an_error_after_a_flood_stands_after_its_tail() -> None:
    outputs = Outputs(None)
    outputs.write("stdout", "x" * 3_000_000)
    outputs.add({"output_type": "error", "ename": "E", "evalue": "", "traceback": []})
    assert [o["output_type"] for o in outputs.close()] == ["stream", "error"]


def test_the_whole_of_a_flood_is_in_the_file_that_is_named(tmp_path: Path) -> None:
    """Row 61: what is left out of the cell can still be looked up; the last ten floods are kept, readable by their owner."""
    folder = tmp_path / ".nbagent" / "outputs"
    for n in range(12):
        outputs = Outputs(None, Flood(folder))
        for part in ("first ", "x" * 999_999 + "\ud800", "y" * 1_000_000, f"last {n}"):
            outputs.write("stdout", part)
        text = outputs.close()[0]["text"]
    assert len(text) < 1_200_000 and "last 11" in text
    files = sorted(folder.glob("*.txt"), key=lambda path: path.stat().st_mtime_ns)
    assert len(files) == 10 and files[-1].stat().st_mode & 0o777 == 0o600
    named = next(path for path in files if str(path) in text)
    assert named.read_text("utf-8") == "first " + "x" * 999_999 + "\ufffd" + "y" * 1_000_000 + "last 11"


def test_a_flood_that_can_not_be_kept_is_cut_all_the_same(tmp_path: Path) -> None:
    """Row 61: a folder that can't be written costs the file, not the run; nothing is kept of what is no flood."""
    (tmp_path / ".nbagent").write_text("a file")
    outputs = Outputs(None, Flood(tmp_path / ".nbagent" / "outputs"))
    outputs.write("stdout", "z" * 3_000_000)
    assert "left out here …]" in outputs.close()[0]["text"]
    small = Outputs(None, Flood(tmp_path / "none"))
    small.write("stdout", "z" * 1000)
    small.close()
    assert not (tmp_path / "none").exists()


def test_a_clear_that_waits_clears_at_the_next_output() -> None:
    outputs = Outputs(None)
    outputs.write("stdout", "old")
    outputs.add({"output_type": "clear_output", "wait": True})
    outputs.write("stdout", "new")
    assert [o["text"] for o in outputs.close()] == ["new"]


def test_bundles_become_json() -> None:
    bundle = clean_bundle({"image/png": b"\x00\x01", "text/plain": "a\ud800", "application/json": {"k": (1, object())}})
    assert bundle == {"image/png": "AAE=", "text/plain": "a�", "application/json": {"k": [1, "<object>"]}}


def test_representations_of_excess_size_are_left_out() -> None:
    bundle = clean_bundle({"text/html": "h" * 3_000_000, "text/plain": "p" * 3_000_000})
    assert "text/html" not in bundle
    assert len(bundle["text/plain"]) < 60_000
    assert "characters left out" in bundle["text/plain"]


async def test_the_model_reads_a_syntax_error_without_colours(shell: InteractiveShell) -> None:
    """Row 42: what the model reads of it."""
    (run_python,) = python_tools(ShellKernel(shell), timeout=60)
    result = await run_python.run(Call("c", lambda _: None, lambda _: None), {"code": "x = 1\ndef f(:"})
    text = result.content[0]["text"]
    assert result.is_error
    assert "SyntaxError" in text
    assert "def f(:" in text
    assert "\x1b" not in text


async def test_a_rebound_magic_name_or_builtin_does_not_break_running(shell: InteractiveShell) -> None:
    """Row 57: we use our own references."""
    shell.user_ns.update(print=None, display=None, input=1, get_ipython=None, sys=None, list=3)
    ran = await ShellKernel(shell).run("value = 7\nvalue", emit=lambda _: None, timeout=60)
    assert ran.outputs[-1]["data"]["text/plain"] == "7"


async def test_stopped_code_ends_its_own_processes_and_not_those_of_others_in_the_group(
    shell: InteractiveShell,
) -> None:
    """Row 46: another program of the same process group may start processes meanwhile; they are its own."""
    other = _other_program()
    assert other.stdin is not None and other.stdout is not None
    shell.user_ns.update(go=other.stdin, told=other.stdout)
    code = (
        "import signal, subprocess\nmine = subprocess.Popen(['sleep', '60'])\n"
        "go.write('x\\n')\nstarted = int(told.readline())\nsignal.raise_signal(2)"
    )
    try:
        with pytest.raises(Interrupted):
            await ShellKernel(shell).run(code, emit=lambda _: None, timeout=60)
        assert shell.user_ns["mine"].wait(20) == -signal.SIGKILL
        os.kill(shell.user_ns["started"], 0)
    finally:
        other.communicate("end\n", timeout=30)


def _other_program() -> subprocess.Popen[str]:
    command = [sys.executable, "-c", OTHER]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


OTHER = """
import subprocess
input()
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
input()
child.kill()
child.wait()
"""
