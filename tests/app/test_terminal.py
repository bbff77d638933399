"""Plain terminal IPython: a task is typed, an approval is typed, the answer is text."""

from __future__ import annotations

import os
import signal
import sys

import pexpect
import pytest

from tests.support.messages_server import MessagesServer, calls, say

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(90)]


@pytest.fixture
def server():
    with MessagesServer() as running:
        yield running
        running.assert_clean()


@pytest.fixture
def terminal(server, tmp_path):
    env = {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "test", "TERM": "dumb"}
    arguments = ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"]
    shell = pexpect.spawn(sys.executable, arguments, env=env, encoding="utf-8", timeout=30, cwd=str(tmp_path))
    shell.expect(r"In \[1\]: ")
    shell.sendline("%load_ext nbagent")
    shell.expect(r"In \[2\]: ")
    yield shell
    shell.kill(signal.SIGKILL)
    shell.wait()  # `close` alone gives a process a tenth of a second to be gone
    shell.close()


def type_cell(shell, *lines: str) -> None:
    for line in (*lines, "", ""):
        shell.sendline(line)


def test_a_typed_yes_runs_what_was_shown_and_the_answer_is_the_cells_value(server, terminal):
    server.push(calls("run_python", text="I look.", code="print(6 * 7)"))
    server.push(say("It is 42, I computed it."))
    type_cell(terminal, "%%agent", "what is 6 times 7?")
    terminal.expect("print\\(6 \\* 7\\)")
    terminal.expect("y = yes")
    terminal.sendline("y")
    terminal.expect("It is 42, I computed it.")
    terminal.expect(r"In \[3\]: ")
    terminal.sendline("_.stop_reason, _.text")
    terminal.expect_exact("('end_turn', 'It is 42, I computed it.')")


def test_typed_words_deny_and_reach_the_model(server, terminal):
    server.push(calls("run_python", code="print(6 * 7)"))
    server.push(say("As you wish."))
    type_cell(terminal, "%%agent", "what is 6 times 7?")
    terminal.expect("y = yes")
    terminal.sendline("do it in your head")
    terminal.expect("As you wish.")
    result = server.requests[1].body["messages"][-1]["content"][0]["content"][0]["text"]
    assert "do it in your head" in result


def test_the_card_is_shown_once(server, terminal):
    server.push(calls("run_python", code="print('only once')"))
    type_cell(terminal, "%%agent", "go")
    terminal.expect("y = yes")
    shown = terminal.before
    terminal.sendline("n")
    terminal.expect(r"In \[3\]: ")
    assert shown.count("│ print('only once')") == 1
