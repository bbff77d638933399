"""Tab completion of the options of `%%agent` and the subcommands of `%agent`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbagent.app.options import names
from nbagent.app.reports import COMMANDS
from nbagent.core.limits import PRESETS
from nbagent.core.policy import Mode

_VALUES = {
    "--mode": [str(m) for m in Mode],
    "--preset": list(PRESETS),
    "-m": ["opus", "sonnet", "haiku", "human"],
    "--model": ["opus", "sonnet", "haiku", "human"],
    "--pace": ["500ms", "1s", "2s"],
    "--break": ["think", "act", "observe", "done", "call_ended", "tool:run_python"],
    "mode": [str(m) for m in Mode],
    "web": ["on", "off", "search", "fetch"],
    "model": ["opus", "sonnet", "haiku", "fable", "opusplan"],
}


KEYS = ("%%agent", "%agent", "%%ask", "%ask")
"""How a line begins that is completed here."""


def complete(line: str) -> list[str]:
    """Return what may stand at the end of `line` (a first line up to the cursor)."""
    words = line.split(" ")
    before = words[-2] if len(words) > 1 else ""
    if before in _VALUES:
        return _VALUES[before]
    if line.lstrip().startswith(("%%", "%ask")):
        return names()
    return list(COMMANDS) if len(words) == 2 else []


def install(shell: Any) -> Callable[[], None]:
    """Install the completer for `%%agent` and `%agent`; return what takes it out again."""

    def completer(_: Any, event: Any) -> list[str]:
        return complete(event.line[: len(event.line)])

    for key in KEYS:
        shell.set_hook("complete_command", completer, str_key=key)

    def uninstall() -> None:
        hooks = getattr(shell, "strdispatchers", {}).get("complete_command")
        for key in KEYS:
            chain = getattr(hooks, "strs", {}).get(key)
            if hooks is not None and chain is not None:  # the hook was made a method of the shell
                chain.chain[:] = [item for item in chain.chain if getattr(item[1], "__func__", None) is not completer]
                if not chain.chain:
                    del hooks.strs[key]

    return uninstall
