"""Ctrl-C on a terminal ends the run, not the terminal: a sentence, no traceback, and the next run works."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.core.rig import check_transcript
from tests.failures.room import NOT_FOR_PEOPLE, transcripts
from tests.support.messages_server import MessagesServer, Reply, Silence, calls
from tests.support.turns import wait_until

pytestmark = pytest.mark.kernel

ROOT = Path(__file__).parents[2]


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, folder: Path, server: MessagesServer, *command: str) -> None:
        env = {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk", "PYTHONPATH": str(ROOT)}
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.text = ""
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65_536)
            except OSError:  # the terminal is gone
                data = b""
            with self._changed:
                self.text += data.decode("utf-8", "replace")
                self._changed.notify_all()
            if not data:
                return

    def until(self, part: str, timeout: float = 60) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: part in self.text, timeout), f"no {part!r} in:\n{self.text}"

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        os.kill(self.process.pid, signal.SIGINT)

    def end(self, timeout: float = 60, *, shows_errors_of_code: bool = False) -> int:
        code = self.process.wait(timeout)
        self._thread.join(5)
        os.close(self._master)
        for part in () if shows_errors_of_code else NOT_FOR_PEOPLE[:3]:
            assert part not in self.text, self.text
        return code


@pytest.fixture
def server():
    with MessagesServer() as server:
        yield server
        server.assert_clean()


def test_an_interrupt_of_a_silent_stream_ends_ask_with_a_sentence(tmp_path, server):
    server.push(Silence())
    terminal = Terminal(tmp_path, server, "-m", "nbagent", "ask", "hello")
    server.wait_for_requests(1, 60)
    terminal.interrupt()
    terminal.until("Stopped by you.", 20)
    assert terminal.end() == 1


def test_an_interrupt_at_the_question_ends_ask_and_nothing_runs(tmp_path, server):
    server.push(calls("shell", command="touch made"))
    terminal = Terminal(tmp_path, server, "-m", "nbagent", "ask", "hello")
    terminal.until("y = yes")
    terminal.interrupt()
    terminal.until("Stopped by you.")
    assert terminal.end() == 1
    assert not (tmp_path / "made").exists()


def test_the_time_limit_holds_while_a_question_is_open_on_a_terminal(tmp_path, server):
    server.push(calls("shell", command="touch made"))
    terminal = Terminal(tmp_path, server, "-m", "nbagent", "ask", "--timeout", "20", "hello")
    terminal.until("y = yes")
    terminal.until("time limit")
    assert terminal.end() == 1
    assert not (tmp_path / "made").exists()


def test_an_interrupt_of_code_ends_the_run(tmp_path, server):
    server.push(
        calls("run_python", code="print('now'); open('begun', 'w').close(); import time\nwhile True: time.sleep(0.01)")
    )
    terminal = Terminal(tmp_path, server, "-m", "nbagent", "ask", "--mode", "bypass", "hello")
    terminal.until("run_python")
    terminal.until("look: print('now')")
    wait_until((tmp_path / "begun").exists)
    terminal.interrupt()
    terminal.until("Stopped by you.")
    assert terminal.end() == 1


SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("%load_ext nbagent")
shell.run_cell("%%agent\\nfirst")
print("NEXT", flush=True)
shell.run_cell("%%agent\\nsecond")
shell.run_cell("print(_.text.upper(), 1)")
"""


def test_after_an_interrupt_the_next_cell_of_a_terminal_ipython_works(tmp_path, server):
    """Row 38: the first run is over, so the second is not refused and nothing of the first goes on."""
    server.push(Reply("a word, then silence", hang_after=4))
    terminal = Terminal(tmp_path, server, "-c", SHELL)
    server.wait_for_requests(1, 60)
    terminal.until("a word")
    terminal.interrupt()
    terminal.until("Stopped by you.")
    terminal.until("NEXT")
    server.push("here again")
    terminal.until("HERE AGAIN 1")
    assert terminal.end() == 0


def test_a_time_limit_of_code_on_a_terminal_stops_the_code_not_the_run(tmp_path, server):
    server.push(calls("run_python", code="while True: pass"), "it took too long")
    command = ("-m", "nbagent", "ask", "--mode", "bypass", "hello")
    os.environ["NBAGENT_CELL_TIMEOUT"] = "0.5"
    try:
        terminal = Terminal(tmp_path, server, *command)
    finally:
        del os.environ["NBAGENT_CELL_TIMEOUT"]
    terminal.until("it took too long")
    assert "Stopped by you" not in terminal.text
    assert terminal.end(shows_errors_of_code=True) == 0


def test_an_interrupted_command_is_answered_in_the_transcript(tmp_path, server):
    server.push(calls("shell", command="touch begun; sleep 60"))
    terminal = Terminal(tmp_path, server, "-m", "nbagent", "ask", "--mode", "bypass", "hello")
    terminal.until("$ touch begun; sleep 60")
    wait_until((tmp_path / "begun").exists)
    terminal.interrupt()
    assert terminal.end() == 1
    (messages,) = transcripts(tmp_path)
    check_transcript(messages)
    assert "Interrupted" in str(messages[-1])
