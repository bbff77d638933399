"""The options of `%%agent` and the parsing of its line: options first, the rest of the line is prompt, literally."""

from __future__ import annotations

import argparse
import builtins
import difflib
import keyword
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from nbagent.app.stepping import breakpoints, pace
from nbagent.config import STALE
from nbagent.core.errors import ConfigError
from nbagent.core.limits import PRESETS
from nbagent.core.policy import Mode


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"%%agent: {message}. See %%agent? for the options.")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options of a `%%agent` line."""
    made = _Parser(prog="%%agent", add_help=False, allow_abbrev=False)
    made.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        help="opus, sonnet, haiku, any id of your server, or ENDPOINT/ID; human: you are the model",
    )
    made.add_argument("--fallback", dest="fallback_model", metavar="MODEL", help="asked when the model is overloaded; with "
                      "-m human, where nobody is there")  # fmt: skip
    made.add_argument("--mode", choices=[*map(str, Mode), "auto"], metavar="MODE", help=", ".join(Mode))
    turns = made.add_mutually_exclusive_group()
    turns.add_argument("--max-turns", type=int, metavar="N", help="stop after N turns")
    named = ", ".join(f"{name} = {count} turns" for name, count in PRESETS.items())
    turns.add_argument("--preset", choices=list(PRESETS), metavar="PRESET", help=named)
    spend = made.add_mutually_exclusive_group()
    spend.add_argument("--budget", type=float, metavar="USD", help="stop when this many US dollars are spent")
    spend.add_argument("--budget-tokens", type=int, metavar="N", help="stop when this many tokens are used")
    made.add_argument("--timeout", type=float, metavar="S", help="stop the run after S seconds")
    made.add_argument("--cell-timeout", type=float, metavar="S", help="seconds that a cell of the agent's "
                      "may take: then you are asked in JupyterLab, and it is interrupted elsewhere")  # fmt: skip
    made.add_argument("--cell-patience", type=float, metavar="S", help="seconds after which the agent may think while its "
                      "cell goes on (60; 0: it waits for the end)")  # fmt: skip
    made.add_argument("--again", action="store_true", help="ask the model again, though this cell has a finished run")
    made.add_argument("--stale", choices=STALE, metavar="WHAT", help="of a finished run whose inputs have changed: ask "
                      "(where nobody is there: fail), show its answer, or rerun")  # fmt: skip
    whence = made.add_mutually_exclusive_group()
    whence.add_argument("--new", action="store_true", help="begin a new session instead of going on with the last one")
    whence.add_argument("--continue", action="store_true", dest="go_on", help="go on in this notebook's last session, also "
                      "where that is not done by itself: in a job, in a terminal")  # fmt: skip
    whence.add_argument(
        "--session", metavar="ID", help="run in that session, for this cell only; %%agent sessions lists them"
    )
    whence.add_argument("--fork", nargs="?", const="", metavar="ID[@N]", help="run in a branch of its own, for this cell "
                      "only: of this notebook's conversation, or of session ID after its first N prompts (--fork=ID@N)")  # fmt: skip
    made.add_argument("--background", action="store_true", help="go on while you work: the cell returns at once, and its "
                      "panel lives on; in a branch of this notebook's conversation (%%agent agents lists, stops, watches)")  # fmt: skip
    made.add_argument("--name", type=_label, metavar="WORD", help="what the agent in the background is called")
    made.add_argument("--tools", metavar="A,B", help="offer only these tools; * may stand in a name")
    made.add_argument("--ask", action="store_true", help="only answer: nothing is changed or run and nobody is asked, as in "
                      "an %%%%ask cell")  # fmt: skip
    made.add_argument(
        "--step", action="store_true", help="rest after every event until Next is pressed (Enter, where you type)"
    )
    made.add_argument("--pace", type=pace, metavar="TIME", help="wait so long after every event, such as 1s or 500ms")
    made.add_argument("--break", type=breakpoints, dest="breaks", metavar="WHERE", help="rest there, with commas between: a state "
                      "(act), the type of an event (call_ended), or a tool that is about to run (tool:run_python)")  # fmt: skip
    made.add_argument("--dry-run", action="store_true", help="show what this cell would send, and send nothing")
    _taping(made)
    made.add_argument("--trace", action="store_true", help="show the loop, too, while it runs and in the record: states, "
                      "transcript, requests, cost by turn, source lines (%%agent trace: of a finished run)")  # fmt: skip
    made.add_argument("--out", type=_name, metavar="VAR", help="keep the answer in this variable, too")
    return made


def _taping(made: argparse.ArgumentParser) -> None:
    """Add the options that record a run or play one."""
    tape = made.add_mutually_exclusive_group()
    tape.add_argument(
        "--record", metavar="FILE", help="keep what is asked and what the model streams in FILE (docs/replay.md)"
    )
    tape.add_argument(
        "--replay", metavar="FILE", help="ask no model: play FILE, and stop where the run departs from it"
    )
    tape.add_argument("--replay-loose", metavar="FILE", help="play FILE whatever is asked")
    made.add_argument("--recorded-pace", action="store_true", help="replay as fast as the model was, not at once")
    made.add_argument("--recorded-results", action="store_true", help="in a replay: run nothing, each call gives what it "
                      "gave when it was recorded")  # fmt: skip


NO_SETTINGS = frozenset(
    {
        "new",
        "out",
        "again",
        "go_on",
        "session",
        "fork",
        "tools",
        "dry_run",
        "background",
        "name",
        "ask",
        "step",
        "pace",
        "breaks",
        "record",
        "replay",
        "replay_loose",
        "recorded_pace",
        "recorded_results",
        "trace",
    }
)
"""Options that are no settings."""

_POINT = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}(?:@\d+)?|@\d+")
"""What is the value of --fork without a =, and no word of the prompt."""


_LONGEST = 40

_TAKEN = frozenset({"get_ipython", "In", "Out", "exit", "quit", "display", "__builtins__", "__name__"})
"""Names that a kernel does not work without, or whose value people count on."""


def _name(text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a name for a variable")
    if text in _TAKEN or hasattr(builtins, text):
        raise argparse.ArgumentTypeError(f"{text!r} is a name of Python's or IPython's own; choose another")
    return text


def _label(text: str) -> str:
    if not text.isprintable() or not text.strip() or len(text) > _LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a name: one word of {_LONGEST} characters at most")
    return text


def names() -> list[str]:
    """Return every option as it is written."""
    return [text for action in parser()._actions for text in action.option_strings]  # noqa: SLF001  (no public list)


def parse(line: str) -> tuple[dict[str, Any], str]:
    """Return the options given in `line` and the prompt that follows them; raise `ConfigError` with one line."""
    words = line.split()
    takes_value = {t for a in parser()._actions if a.nargs not in (0, "?") for t in a.option_strings}  # noqa: SLF001
    count = 0
    while count < len(words) and words[count].startswith("-") and len(words[count]) > 1:
        name = words[count].partition("=")[0]
        if name not in names():
            raise ConfigError(_unknown(name, names()))
        point = words[count] == "--fork" and count + 1 < len(words) and _POINT.fullmatch(words[count + 1])
        count += 2 if point or (name in takes_value and "=" not in words[count]) else 1
    given = vars(parser().parse_args(words[:count]))
    rest = line.split(None, count)
    prompt = rest[count] if count < len(rest) else ""
    return {key: value for key, value in given.items() if value is not None and value is not False}, prompt.strip()


def _unknown(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1, 0.5)
    hint = f"Did you mean {near[0]}?" if near else "See %%agent? for the options."
    return f"%%agent: there is no option {name}. {hint}"


def describe() -> str:
    """Return the options as text for `%%agent?`."""
    return parser().format_help()
