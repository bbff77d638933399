"""Turns a `%%agent` cell, and a cell of `%agent` lines, into awaiting lines that the kernel's own loop runs.

A magic that returns a coroutine is not awaited by IPython; code with a top-level await is. Outputs then land in the
right cell, Run All keeps its order, and variables are touched on the main thread only.
"""

from __future__ import annotations

import inspect

MAGICS = ("agent", "ask")
PASSING = frozenset(
    {"", "agents", "allow", "context", "deny", "doctor", "help", "history", "hooks", "mode", "prompt", "sessions"}
    | {"status", "stop", "todos", "traceback"}
)
"""The commands that run no code and change no variables: they need not wait for code that runs."""
_MAGIC_CALLS = frozenset({"run_line_magic", "run_cell_magic"})


class Transform:
    """IPython's cleanup transformer of agent cells.

    It says that it has side effects, which it has not: IPython then leaves it out when it asks whether a cell that is
    being typed in a terminal is complete, and a `%%agent` cell ends with an empty line as every cell magic does.
    """

    has_side_effects = True

    def __call__(self, lines: list[str]) -> list[str]:
        """Rewrite a cell whose first line of code is `%%agent …`, or all of whose lines are `%agent …`; leave others alone.

        Blank lines and comments may stand before it. The body is passed on literally; an empty one as a line break, since
        IPython refuses cell magics without a body before we could say anything helpful.
        """
        code = [i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")]
        if not code:
            return lines
        if all(_is_line(lines[i]) for i in code):
            if _inside_magic():  # such as %time, which can't await what it runs
                return lines
            return [_awaiting(line) if i in code else line for i, line in enumerate(lines)]
        first = code[0]
        text = lines[first].strip()
        name, _, rest = text.removeprefix("%%").partition(" ")
        if not text.startswith("%%") or name not in MAGICS:
            return lines
        body = "".join(lines[first + 1 :]) or "\n"
        return [f"await get_ipython().run_cell_magic({name!r}, {rest.strip()!r}, {body!r})\n"]


def passes_by(code: str) -> bool:
    """Whether a cell is nothing but `%agent` lines of `PASSING`: `%agent stop` gets through while an agent's code awaits."""
    lines = [line for line in code.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    words = [line.split() for line in lines if _is_line(line)]
    return bool(lines) and len(words) == len(lines) and all("".join(word[1:2]) in PASSING for word in words)


def _is_line(line: str) -> bool:
    """Whether a line is a command; `%agent?` is IPython's question for help, `%agent explore where is x?` one of ours."""
    name, _, rest = line.strip().partition(" ")
    asks_for_help = rest.strip() in {"?", "??"}
    return name.startswith("%") and name[1:] in MAGICS and not asks_for_help


def _inside_magic() -> bool:
    """Whether another magic has this code transformed, not the kernel a cell."""
    frame = inspect.currentframe()  # nothing else tells who asks
    while frame is not None:
        if frame.f_code.co_name in _MAGIC_CALLS and frame.f_globals.get("__name__", "").startswith("IPython."):
            return True
        frame = frame.f_back
    return False


def _awaiting(line: str) -> str:
    """A line magic that may have to wait; without a body, which tells it from a cell magic (see `AgentMagics.agent`)."""
    name, _, rest = line.strip().removeprefix("%").partition(" ")
    return f"await get_ipython().run_cell_magic({name!r}, {rest.strip()!r}, None)\n"


transform = Transform()
