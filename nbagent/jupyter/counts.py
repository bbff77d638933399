"""Lets an agent cell keep its own execution count although the cells that it ran counted on.

The reply to an execute request carries the counter's last number, which nested cells have moved. The counter itself is
never wound back (`In`, `Out` and `_` stay aligned); only the reply of the cell that asked for it is corrected.
Read `CellNumber`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from nbagent.jupyter.pump import own_parent


class CellNumber:
    """The wrapper of one shell's `kernel.do_execute`; the caller holds it and calls `install`, `keep` and `remove`.

    `asked` is called for each request, in its context.

    A shell without a kernel (terminal IPython) prints its own numbers: there nothing is wrapped.
    """

    def __init__(self, shell: Any, asked: Callable[[], None] = lambda: None) -> None:
        self._shell = shell
        self._asked = asked
        self._kernel = getattr(shell, "kernel", None)
        # a list of one request, so that the cell's task, which has a copy of the context, can write into it
        self._request: ContextVar[list[int] | None] = ContextVar("nbagent_request", default=None)
        self._wrapper: Any = None
        self._number = 0

    def install(self) -> None:
        """Wrap `do_execute`; a second call does nothing."""
        if self._kernel is None or self._wrapper is not None:
            return
        original = self._kernel.do_execute

        @functools.wraps(original)  # ipykernel looks at its signature
        async def do_execute(*args: Any, **kwargs: Any) -> Any:
            kept: list[int] = []
            token = self._request.set(kept)
            self._asked()
            try:
                with own_parent(self._kernel):
                    reply = await original(*args, **kwargs)
            finally:
                self._request.reset(token)
            if kept and isinstance(reply, dict) and "execution_count" in reply:
                reply["execution_count"] = kept[0]
            return reply

        self._wrapper = do_execute
        self._kernel.do_execute = do_execute

    def keep(self) -> int:
        """Call at the start of an agent cell: return its number, and have its reply carry that number."""
        number = self._number = int(self._shell.execution_count) - 1
        if (kept := self._request.get()) is not None and not kept:
            kept.append(number)
        return number

    def give(self, value: Any) -> None:
        """Call right before an agent cell returns `value`: it becomes Out of the cell's own number.

        IPython would put it under the last number, over the result of the last cell that the agent ran.
        """
        own, last, shell = self._number, int(self._shell.execution_count) - 1, self._shell
        out: dict[int, Any] = shell.user_ns["_oh"]
        there, before = last in out, out.get(last)
        if own == last:
            return

        def move(*_: Any) -> None:
            shell.events.unregister("post_run_cell", move)
            if out.get(last) is not value:
                return  # the cell has no value: it ends in a semicolon
            named = {f"_{own}": value}
            out[own] = value
            if there:
                out[last] = named[f"_{last}"] = before
            else:
                del out[last]
                shell.user_ns.pop(f"_{last}", None)
            shell.push(named, interactive=False)

        shell.events.register("post_run_cell", move)

    def remove(self) -> None:
        """Take the wrapper off; where somebody wrapped it again, it stays and changes nothing any more."""
        if (
            self._kernel is not None
            and self._wrapper is not None
            and self._kernel.__dict__.get("do_execute") is self._wrapper
        ):
            del self._kernel.do_execute
        self._wrapper = None
