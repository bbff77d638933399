"""Reads a line that a person types while the loop goes on turning: the time limit, Stop and an interrupt hold meanwhile.

`input()` keeps the thread until the line is there. So the front end is asked as `input()` asks it, with a request on the
kernel's stdin channel, and the answer is looked for between turns of the loop; a terminal hands a line over when it is
whole, and is looked at likewise. A Windows console can't be looked at so: there the read blocks, and its prompt says it.
Must not know what is asked. Read `from_front_end`.
"""

from __future__ import annotations

import asyncio
import select
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from nbagent.jupyter.interrupts import reading

Read = Callable[[str], Awaitable[str]]
"""Shows a prompt and returns the line without its end; raises EOFError, OSError or RuntimeError where nobody can type."""

EVERY = 0.05
"""Seconds between two looks."""
END = "\x04"
"""What front ends send when the person closes the input in place of a line."""
BLOCKS = "(time limits wait for this answer) "


def from_front_end(shell: Any) -> Read:
    """Return what asks the front end that sent the cell which runs now."""
    kernel = shell.kernel
    parent, ident = kernel.get_parent("shell"), kernel._parent_ident["shell"]  # noqa: SLF001  (as input() finds them)

    async def read(prompt: str) -> str:
        sys.stdout.flush()  # what is asked about comes before the question
        sys.stderr.flush()
        while _reply(kernel) is not None:  # to a question that nobody waits for any more
            pass
        content = {"prompt": prompt, "password": False}
        request = kernel.session.send(kernel.stdin_socket, "input_request", content, parent, ident=ident)
        asked = request["header"]["msg_id"]
        while (reply := _reply(kernel)) is None or _parent(reply) not in {"", asked}:
            if reply is None:
                await asyncio.sleep(EVERY)
        value = (reply.get("content") or {}).get("value")
        if not isinstance(value, str) or value == END:
            raise EOFError
        return value

    return read


def _reply(kernel: Any) -> Any:
    """Return the next message on the stdin channel, None where there is none."""
    try:
        return kernel.session.recv(kernel.stdin_socket)[1]
    except ValueError:  # not signed with the kernel's key, or sent twice: it counts for nothing
        return {"parent_header": {"msg_id": "nobody's"}}


def _parent(reply: Any) -> str:
    """The question that a reply says it answers: an input box of an earlier one may still stand there. "" in consoles."""
    return str((reply.get("parent_header") or {}).get("msg_id") or "")


async def from_terminal(prompt: str) -> str:
    """Ask on this process's terminal; see `Read`."""
    if sys.platform == "win32":
        with reading():
            return input(BLOCKS + prompt)  # noqa: ASYNC250  (see above)
    print(prompt, end="", flush=True)  # noqa: T201  (a terminal shows text)
    try:
        while not select.select([sys.stdin], [], [], 0)[0]:
            await asyncio.sleep(EVERY)
    except asyncio.CancelledError:
        print()  # noqa: T201  (what follows begins a line of its own)
        raise
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")
