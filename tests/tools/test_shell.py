"""The shell tool in real shells: what comes back, what never stays behind, what a child is not given."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import ToolError
from nbagent.core.messages import plain_text
from nbagent.core.tools import Kind
from nbagent.tools import shell
from nbagent.tools.processes import run_command
from nbagent.tools.readonly import only_looks
from tests.tools.calling import Calling


@pytest.fixture
def call(tmp_path):
    return Calling(shell.tools(tmp_path))


def alive(pid):
    """Whether a process lives (a zombie that nobody has reaped does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(") ")[2][0] not in "ZX"


# a shell with a child and a grandchild that writes its pid to a fifo and then does nothing for a long time
FAMILY = "sh -c 'sh -c \"echo \\$\\$ > ready; exec sleep 1000\" | cat'"


@pytest.fixture
def ready(tmp_path):
    """A fifo; reading it blocks until the grandchild has written its pid."""
    os.mkfifo(tmp_path / "ready")
    return lambda: asyncio.wait_for(asyncio.to_thread(lambda: int((tmp_path / "ready").read_text())), 20)


async def test_output_and_exit_code_come_back(call, tmp_path):
    (tmp_path / "a.txt").write_text("hello\n")
    result = await call("shell", command="cat a.txt; echo oh >&2; exit 3")
    said = plain_text(list(result.content))
    assert said.startswith("exit code 3")
    assert "hello\noh" in said
    assert (result.is_error, result.summary) == (True, "exit 3")
    assert not (await call("shell", command="true")).is_error
    assert "(no output)" in await call.text("shell", command="true")


async def test_a_command_that_waits_for_input_gets_none(call):
    assert (await call.text("shell", command="cat; echo done")).endswith("done")


@pytest.mark.slow
async def test_a_time_limit_keeps_the_output_so_far_and_leaves_no_child(call, ready):
    command = f"echo begun; {FAMILY}"
    pid = asyncio.ensure_future(ready())
    result = await call("shell", command=command, timeout=1)
    assert not alive(await pid)
    said = plain_text(list(result.content))
    assert "time limit of 1 s" in said
    assert "begun" in said
    assert result.is_error


async def test_cancelling_leaves_no_child_and_no_grandchild(call, ready):
    before = threading.active_count()
    task = asyncio.ensure_future(call("shell", command=FAMILY))
    pid = await ready()
    assert alive(pid)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)
    assert threading.active_count() <= before + 1  # one of the test's own pool


@pytest.mark.slow
async def test_what_a_command_leaves_in_the_background_is_stopped_and_told(call, tmp_path):
    said = await call.text("shell", command="sleep 1000 & echo $! > pid; echo done")
    assert "background were stopped" in said
    assert "done" in said
    assert not alive(int((tmp_path / "pid").read_text()))


@pytest.mark.slow
async def test_a_process_that_left_the_group_is_told_and_not_waited_for(call, tmp_path):
    os.mkfifo(tmp_path / "ready")
    command = "setsid sh -c 'echo $$ > ready; exec sleep 1000' & cat ready > pid"
    try:
        assert "still runs" in await call.text("shell", command=command, timeout=20)
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


async def test_a_child_that_closed_its_output_is_stopped_too(call, tmp_path):
    await call("shell", command="(sleep 1000 >/dev/null 2>&1 & echo $! > pid)")
    assert not alive(int((tmp_path / "pid").read_text()))


@pytest.mark.slow
async def test_huge_output_is_kept_head_and_tail_in_bounded_memory(tmp_path):
    code = "import sys\nfor n in range(200000): sys.stdout.write(f'line {n:06d} ' + 'x' * 90 + chr(10))"
    done = await run_command([sys.executable, "-c", code], cwd=tmp_path, env=os.environ, timeout=60, limit=100_000)
    assert done.code == 0
    assert done.output.startswith("line 000000")
    assert done.output.rstrip().splitlines()[-1].startswith("line 199999")
    assert len(done.output) < 200_000
    assert done.left_out > 19_000_000
    assert f"{done.left_out} bytes left out" in done.output


async def test_bytes_that_are_no_text_come_back_as_marks(call):
    assert "a\ufffdb" in await call.text("shell", command="printf 'a\\377b'")


async def test_redrawn_lines_come_back_as_their_last_state(call):
    assert (await call.text("shell", command="printf '10%%\\r20%%\\r30%%\\n'")).endswith("\n30%")


async def test_a_killed_command_says_so(call):
    assert "killed by signal 9" in await call.text("shell", command="kill -9 $$")


async def test_many_commands_run_side_by_side(call):
    said = await asyncio.gather(*(call.text("shell", command=f"echo {n}") for n in range(8)))
    assert [text.splitlines()[-1] for text in said] == [str(n) for n in range(8)]


async def test_keys_are_not_in_a_childs_environment(tmp_path):
    given_env = {
        "PATH": os.environ["PATH"],
        "ANTHROPIC_BASE_URL": "x",
        "ANTHROPIC_API_KEY": "x",
        "OPENAI_API_KEY": "x",
        "GITHUB_TOKEN": "x",
        "MY_SECRET_THING": "x",
        "DB_PASSWORD": "x",
        "AWS_ACCESS_KEY_ID": "x",
        "BASH_ENV": "x",
        "BASH_FUNC_ls%%": "() { echo owned; }",
        "TOKENIZERS_PARALLELISM": "false",
        "HARMLESS": "1",
    }
    kept = shell.child_environment(given_env)
    assert set(given_env) & set(kept) == {"PATH", "TOKENIZERS_PARALLELISM", "HARMLESS"}


async def test_the_command_runs_without_the_keys_of_this_process(call, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-hidden")
    assert "sk-hidden" not in await call.text("shell", command="env")


@pytest.mark.parametrize("arguments", [{"command": "  "}, {"command": "a\0b"}, {"command": "x", "timeout": 0}])
async def test_what_is_no_command_is_refused_with_a_sentence(call, arguments):
    with pytest.raises(ToolError):
        await call("shell", **arguments)


async def test_a_folder_that_is_gone_is_a_sentence(tmp_path):
    call = Calling(shell.tools(tmp_path / "gone"))
    with pytest.raises(ToolError, match="could not be started"):
        await call("shell", command="true")


async def test_the_exact_command_is_shown_and_matched(call):
    assert call.preview("shell", command="rm -r x").body == "rm -r x"
    assert call.preview("shell", command="rm -r x").kind == "command"
    assert call.subject("shell", command="rm -r x") == "rm -r x"
    assert call.tools["shell"].exact
    assert call.title("shell", command="rm -r x\nmore") == "run rm -r x"


# ── commands that only look ──────────────────────────────────────────────────────────────────────────────────────────

LOOKS = [
    *(
        "ls",
        "ls -la",
        "ls sub",
        "cat a.txt",
        "cat -n a.txt",
        'cat "a.txt"',
        "head -n 5 a.txt",
        "head -5 a.txt",
        "tail a.txt",
    ),
    *("wc -l a.txt sub/b.txt", "pwd", "file a.txt", "du -sh .", "df -h", "stat a.txt"),
    *(
        "git status",
        "git status --short",
        "git log --oneline -n 5",
        "git diff",
        "git diff --stat a.txt",
        "git show HEAD",
    ),
    *("git branch -a", "git branch", "git log -3 --stat main"),
]
DOES_MORE = [
    *("", " ", "ls; rm a.txt", "ls && rm a.txt", "ls || rm a.txt", "ls | sh", "ls & rm a.txt", "ls $(rm a.txt)"),
    *(
        "ls `rm a.txt`",
        "ls\nrm a.txt",
        "ls\rrm a.txt",
        "cat a.txt > b.txt",
        "cat < a.txt",
        "cat <(rm a.txt)",
        "ls >(rm x)",
    ),
    *("cat $HOME", "cat ~/.ssh/id_rsa", "cat *", "cat ?.txt", "cat {a,b}", "ls # x", "X=1 ls", "cat 'a"),
    *(
        "rm a.txt",
        "find . -exec rm {} +",
        "sort -o a.txt a.txt",
        "tar xf a.tar --to-command=sh",
        "./ls",
        "/bin/ls",
        "env ls",
    ),
    *(
        "cat",
        "cat -x a.txt",
        "tail -f a.txt",
        "head -n",
        "head -n x a.txt",
        "pwd x",
        "file -C a.txt",
        "file -m x a.txt",
    ),
    *(
        "ls /etc",
        "cat /etc/passwd",
        "cat ../x",
        "cat sub/../../x",
        "cat out",
        "cat out/passwd",
        "cat .env",
        "cat sub/id_rsa",
    ),
    *(
        "git",
        "git push",
        "git commit",
        "git log --output=x",
        "git log --output x",
        "git -c core.pager=x log",
        "git diff --ext-diff",
    ),
    *(
        "git diff --textconv",
        "git show --textconv a.txt",
        "git branch new",
        "git branch -D main",
        "git branch -m x",
        "git -C / log",
    ),
    *(
        "git diff --no-index /etc/passwd a.txt",
        "git show HEAD:.env",
        "git log -p",
        "git log --exec=x",
        "git status x",
        "git --paginate log",
    ),
    *(
        "git diff /etc/passwd a.txt",
        "git log --format=x",
        "git grep x",
        "git config -l",
        "cat a.txt\0",
        "ls\u2028rm",
        "ls \x1b[2J",
    ),
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    root = tmp_path_factory.mktemp("ws")
    (root / "sub").mkdir()
    for name in ("a.txt", "sub/b.txt", ".env", "sub/id_rsa"):
        (root / name).write_text("x\n")
    (root / "out").symlink_to("/etc")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("command", LOOKS)
def test_a_plain_look_is_known_as_one(workspace, command):
    assert Calling(shell.tools(workspace)).kind("shell", command=command) is Kind.SHELL_READ


@pytest.mark.slow
@pytest.mark.parametrize("command", DOES_MORE)
def test_anything_else_is_not(workspace, command):
    assert Calling(shell.tools(workspace)).kind("shell", command=command) in {Kind.SHELL, Kind.PROTECTED}


@given(
    command=st.sampled_from(LOOKS), place=st.integers(0, 40), power=st.sampled_from(list(";&|<>()$`\\*?[]{}~!#\n\r\0"))
)
def test_a_letter_with_power_makes_nothing_else_of_a_look(workspace, command, place, power):
    """What is let through consists of known commands only, read by another parser than ours."""
    changed = command[:place] + power + command[place:]
    if only_looks(changed, workspace):
        assert not set(power) & set("<>()$`*?[\r\0")
        for piece in filter(str.strip, re.split(r"[;&|\n]", changed)):
            assert shlex.split(piece)[0] in {
                "ls",
                "cat",
                "head",
                "tail",
                "wc",
                "pwd",
                "file",
                "du",
                "df",
                "stat",
                "git",
            }


@pytest.mark.parametrize("command", ["kill -9 $PPID", "ls; /bin/kill 1", "pkill python", "sh -c 'kill 1'"])
def test_a_command_that_could_end_the_kernel_is_protected(command, tmp_path):
    (made,) = shell.tools(tmp_path)
    assert made.kind({"command": command, "timeout": 5.0}) is Kind.PROTECTED


@pytest.mark.parametrize(
    "command",
    ["nbagent trust yes", "yes | python -m nbagent trust", "bash -c 'nbagent run x.ipynb -o y.ipynb --mode bypass'",
     "NBAGENT_MODE=bypass nbagent ask 'go on'"],
)  # fmt: skip
def test_an_nbagent_that_would_answer_for_the_person_is_asked_about_in_every_mode(call, command):
    """Row 110: trust in a folder's files is said by a person only."""
    assert call.kind("shell", command=command) is Kind.PROTECTED
    assert call.kind("shell", command="nbagent doctor") is Kind.SHELL
