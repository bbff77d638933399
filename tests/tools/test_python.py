"""run_python: what it is asked as, what it gives back, and the look for kernel exits."""

from __future__ import annotations

from typing import Any

import pytest

from nbagent.core.ports import Ran
from nbagent.core.tools import Call, Kind
from nbagent.tools.effects import exits_kernel
from nbagent.tools.python import ran_result, tools

CALL = Call("c1", lambda _: None, lambda _: None)


class Scratch:
    """A kernel that gives a fixed result and keeps what it was asked."""

    def __init__(self, ran: Ran) -> None:
        self.ran = ran
        self.asked: list[tuple[str, float | None]] = []

    def namespace(self) -> dict[str, Any]:
        return {}

    async def run(self, code, *, emit, timeout):
        raise AssertionError("only scratch")

    async def scratch(self, code: str, *, timeout: float | None, emit: Any = None) -> Ran:
        self.asked.append((code, timeout))
        return self.ran


def printed(text: str, status: Any = "ok", note: str = "") -> Ran:
    return Ran(status, ({"output_type": "stream", "name": "stdout", "text": text},), None, 0.2, note)


async def test_code_runs_as_scratch_within_the_time_limit() -> None:
    kernel = Scratch(printed("42\n"))
    (run_python,) = tools(kernel, timeout=7)
    result = await run_python.run(CALL, run_python.validate({"code": "print(42)"}))
    assert result.content == ({"type": "text", "text": "42"},)
    assert not result.is_error
    assert kernel.asked == [("print(42)", 7)]


def test_a_time_limit_is_an_error_with_what_was_printed() -> None:
    result = ran_result(printed("so far\n", "timeout", "stopped after 5.0 s: the time limit is 5 s"))
    assert result.is_error
    assert [b["text"] for b in result.content] == ["stopped after 5.0 s: the time limit is 5 s", "so far"]
    assert result.summary == "timeout in 0.2 s"


def test_a_rule_means_exactly_this_code_and_the_person_sees_all_of_it() -> None:
    (run_python,) = tools(Scratch(printed("")), timeout=None)
    given = {"code": "\nx = 1\nx"}
    assert run_python.exact
    assert run_python.subject(given) == given["code"]
    assert run_python.preview(given).body == given["code"]
    assert run_python.title(given) == "look: x = 1 …"
    assert run_python.kind(given) is Kind.SCRATCH
    assert run_python.kind({"code": "exit()"}) is Kind.PROTECTED
    assert run_python.amend is not None
    assert run_python.amend(given, "y")["code"] == "y"


def test_code_that_reaches_beyond_the_notebook_is_asked_about_in_plain_words() -> None:
    (run_python,) = tools(Scratch(printed("")), timeout=None)
    given = {"code": "import os\nos.remove('x')\nrequests.get(u)"}
    assert run_python.kind(given) is Kind.RISKY_CODE
    assert run_python.title(given) == "look: import os …"
    assert any("x" in said and "delete" in said for said in run_python.preview(given).effects)
    assert run_python.kind({"code": "os.remove('x'); exit()"}) is Kind.PROTECTED


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "exit()", "quit", "x = 1\nexit(0)", "import os\nos._exit(1)", "from os import _exit as bye\nbye(0)",
        "import os as o\no.kill(o.getpid(), 9)", "import signal; signal.raise_signal(9)", "__import__('os')._exit(0)",
        "get_ipython().ask_exit()", "get_ipython().exit_now = True", "getattr(os, '_exit')(0)", "os.abort()",
        "os.execv('/bin/ls', [])", "import psutil; psutil.Process().kill()", "!kill -9 $PPID", "%%bash\nkill 1",
        "x = !pkill python", "%time exit()", "f = exit", "if (:\n  os._exit(1)", "from os import kill\nkill(1, 9)",
        "get_ipython().kernel.do_shutdown(False)",
    ],
)  # fmt: skip
def test_code_that_could_end_the_kernel_is_seen(code: str) -> None:
    assert exits_kernel(code)


@pytest.mark.parametrize(
    "code",
    [
        "", "print('exit()')", "# os._exit(1)", "import sys; sys.exit(1)", "df.exit = 3", "%matplotlib inline\ndf.head()",
        "!ls -la skill", "process.kill()", "early_exit = True", "%%time\nx = 1", "%%bash\nls", "os.getcwd()",
        "x = !ls", "def f(): return 'quit'", "df?",
    ],
)  # fmt: skip
def test_ordinary_code_raises_no_question(code: str) -> None:
    assert not exits_kernel(code)
