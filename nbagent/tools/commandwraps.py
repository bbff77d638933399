"""Commands that only run another one: what they run, seen as if it stood there alone.

`timeout 5 git log` is `git log`; a rule that allows looks at what is really run, one that denies at every layer. What is
run by a shell (`bash -c '…'`, `eval …`) is read as a line of its own. Read `unwrapped`, then `layers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbagent.tools.commandline import Part
from nbagent.tools.commandwords import Word

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash"})
RUNNERS = frozenset(
    {
        *(
            "sudo",
            "doas",
            "su",
            "env",
            "xargs",
            "parallel",
            "watch",
            "exec",
            "eval",
            "setsid",
            "ionice",
            "chrt",
            "taskset",
        ),
        *(
            "chroot",
            "unshare",
            "nsenter",
            "flock",
            "script",
            "strace",
            "ltrace",
            "gdb",
            "busybox",
            "toybox",
            "ssh",
            "coproc",
        ),
        *(
            "time",
            "timeout",
            "nice",
            "nohup",
            "stdbuf",
            "command",
            "builtin",
            "noglob",
            "find",
            "fd",
            "rlwrap",
            "unbuffer",
        ),
        *(
            "expect",
            "screen",
            "tmux",
            "at",
            "batch",
            "firejail",
            "proot",
            "runuser",
            "systemd-run",
            "!",
            "then",
            "do",
            "else",
        ),
        *("trap", "caffeinate", "arch", "prlimit", "setarch", "torsocks", "proxychains", "dbus-run-session"),
    }
)
"""Commands that may run what stands behind them: a rule that denies looks at every word of theirs as a beginning."""
_SAFE_VARIABLE = re.compile(
    r"\A(?:LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR|CI|NODE_ENV|DEBUG|VERBOSE|RUST_LOG|"
    r"RUST_BACKTRACE|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|PYTHONIOENCODING|PYTHONUTF8|"
    r"PYTEST_DISABLE_PLUGIN_AUTOLOAD|OMP_NUM_THREADS|MKL_NUM_THREADS|OPENBLAS_NUM_THREADS|CUDA_VISIBLE_DEVICES|"
    r"SOURCE_DATE_EPOCH)\Z"
)
_DURATION = re.compile(r"\A\d+(?:\.\d+)?[smhd]?\Z")
_NUMBER = re.compile(r"\A[+-]?\d+\Z")
_MOST = 8
MOST_LAYERS = 24
"""Words of a command that runs another which are looked at as its beginning; a longer one can't be seen through."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A command without what was wrapped around it.

    `asks`: why it can't be told what is run, "" where it can; `open_ended`: more arguments come from elsewhere.
    """

    words: tuple[Word, ...]
    asks: str = ""
    open_ended: bool = False


def is_safe_variable(name: str) -> bool:
    """Whether a variable changes only how a command speaks, never what it runs."""
    return _SAFE_VARIABLE.match(name) is not None


def unwrapped(part: Part) -> Bare:
    """Return what a part really runs, the documented wrappers taken away: those with options that are not known ask."""
    for name, value in part.assignments:
        if not is_safe_variable(name) or not value.literal:
            return Bare(part.words, f"the variable {name} may change what is run")
    words, open_ended = part.words, False
    for _ in range(_MOST):
        if not words or not words[0].literal:
            return Bare(words, "" if not words else "the command's name is only known when it runs")
        name = words[0].text
        if name not in _WRAPPERS:
            return Bare(words, open_ended=open_ended)
        rest = _WRAPPERS[name](words[1:])
        if rest is None:
            return Bare(words, open_ended=open_ended)
        if name == "env" and (why := _set_by_env(words[1:], rest)):
            return Bare(words, why)
        words, open_ended = rest, open_ended or name == "xargs"
    return Bare(words, "it is wrapped too often")


def layers(words: Sequence[Word]) -> Iterator[tuple[Word, ...]]:
    """Yield a command and, where it may run what stands behind it, all that this could be."""
    yield tuple(words)
    if words and _runs(words):
        for at in range(1, min(len(words), MOST_LAYERS)):
            yield tuple(words[at:])


def texts_of_shells(words: Sequence[Word]) -> Iterator[str | None]:
    """Yield what a command gives to a shell as text; None where that is only known when it runs."""
    if len(words) >= MOST_LAYERS and any(_base(word) in RUNNERS | SHELLS for word in words[1:]) and _runs(words):
        yield None
    for one in layers(words):
        name = _base(one[0]) if one and one[0].literal else ""
        if name in SHELLS or name in {"su", "script", "flock", "watch", "runuser", "trap", "parallel", "busybox"}:
            given = [word for word in one[1:] if not word.text.startswith("-")]
            has_text = any(re.match(r"\A-[A-Za-z]*c", word.text) for word in one[1:])
            if name in SHELLS and (has_text or not given):
                yield from (word.text if word.literal else None for word in given) if given else (None,)
            elif name not in SHELLS:
                yield from (word.text if word.literal else None for word in given)
                yield " ".join(word.text for word in given)
        elif name in {"eval", "ssh", "xargs", "env"}:
            whole = one[1:]
            yield " ".join(word.text for word in whole) if all(word.literal for word in whole) else None
            yield from (word.text for word in whole if word.literal and " " in word.text)


def _runs(words: Sequence[Word]) -> bool:
    return words[0].literal and _base(words[0]) in RUNNERS | SHELLS


def _base(word: Word) -> str:
    return word.text.rpartition("/")[2]


def _timeout(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if text in {"-k", "--kill-after", "-s", "--signal"}:
            at += 2
        elif re.fullmatch(r"--(?:foreground|preserve-status|verbose)|-v|--(?:kill-after|signal)=\w+|-[ks]\w+", text):
            at += 1
        else:
            return None
    return words[at + 1 :] or None if at < len(words) and _DURATION.match(words[at].text) else None


def _nice(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    if words and words[0].text in {"-n", "--adjustment"}:
        return words[2:] or None if len(words) > 1 and _NUMBER.match(words[1].text) else None
    if words and re.fullmatch(r"-n?[+-]?\d+|--adjustment=[+-]?\d+", words[0].text):
        return words[1:] or None
    return _plain(words)


def _stdbuf(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        if not re.fullmatch(r"-[ioe](?:[0L]|\d+[KMG]?)?|--(?:input|output|error)=(?:[0L]|\d+[KMG]?)", words[at].text):
            return None
        at += 2 if len(words[at].text) == 2 else 1  # -o L
    return words[at:] or None if at else None


def _plain(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    """Take away a wrapper that is known without options."""
    return words if words and not words[0].text.startswith("-") else None


def _time(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    return _plain(words[1:] if words and words[0].text == "-p" else words)


def _env(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    at = 0
    while at < len(words) and "=" in words[at].text and not words[at].text.startswith("-"):
        at += 1
    return _plain(words[at:])


def _set_by_env(words: Sequence[Word], rest: Sequence[Word]) -> str:
    for one in words[: len(words) - len(rest)]:
        name = one.text.partition("=")[0]
        if not is_safe_variable(name) or not one.literal:
            return f"the variable {name} may change what is run"
    return ""


_WRAPPERS = {
    "timeout": _timeout,
    "time": _time,
    "nice": _nice,
    "nohup": _plain,
    "stdbuf": _stdbuf,
    "command": _plain,
    "builtin": _plain,
    "noglob": _plain,
    "env": _env,
    "xargs": _plain,
}
