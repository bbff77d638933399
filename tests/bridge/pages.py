"""Doubles of the pages at the other end of the bridge: each has the cells of one notebook and answers as a page does.

They answer at once or, with `thread`, from a thread of their own, as a kernel's subshell does. Read `Pages.send`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import nbformat

from nbagent.headless.document import Document, Refusal

Json = dict[str, Any]


def document(*sources: str, path: str = "work.ipynb", current: str | None = "cell-0") -> Document:
    """Return a document with code cells cell-0, cell-1, …"""
    cells = [nbformat.v4.new_code_cell(source, id=f"cell-{n}") for n, source in enumerate(sources)]
    made = Document(cells, path=path, save=lambda: None, shown=lambda _cell, _output: None)
    made.current = current
    return made


class Page:
    """One page: `deaf` hears nothing any more, `mute` does what it is told but its answers are lost."""

    def __init__(self, name: str, shows: Document | None, *, interactive: bool = True, session: str = "") -> None:
        self.name = name
        self.session = session
        self.document = shows
        self.interactive = interactive
        self.running = True
        self.deaf = False
        self.mute: set[str] = set()
        self.lose: set[int] = set()
        self.heard: list[Json] = []

    def answer(self, request: Json) -> Json | None:
        if self.deaf or request.get("v") != 1 or (request["op"] != "hello" and request.get("page") != self.name):
            return None
        self.heard.append(request)
        if request["op"] == "outputs" and request["seq"] in self.lose:
            self.lose.discard(request["seq"])
            return None
        reply: Json = {"ok": True, "result": {}}
        try:
            if self.document is not None:
                reply["result"] = self.document.perform(request)
            if request["op"] == "hello":
                reply["result"] = {"document": False, **reply["result"], "interactive": self.interactive}
                reply["result"] |= {"running": self.running, "session": self.session}
        except Refusal as refusal:
            reply = {"ok": False, "error": str(refusal), "code": refusal.code, "more": {"cell": refusal.cell}}
        if "id" not in request or request["op"] in self.mute:
            return None
        return {"v": 1, "page": self.name, "id": request["id"], **reply}

    def ops(self, *without: str) -> list[str]:
        """What it was told to do, hellos left out."""
        return [request["op"] for request in self.heard if request["op"] not in ("hello", *without)]


class Pages:
    """The channel to all pages that show the notebook; `times` is how often each answer comes."""

    def __init__(self, *pages: Page, thread: bool = False, times: int = 1) -> None:
        self.pages = list(pages)
        self.times = times
        self.sent: list[Json] = []
        self.closed = False
        self._thread = thread
        self._receive: Callable[[Json], None] = lambda _: None

    def send(self, content: Json) -> None:
        self.sent.append(content)
        for page in list(self.pages):
            reply = page.answer(content)
            for _ in range(self.times if reply is not None else 0):
                self.say(reply)

    def say(self, content: Any) -> None:
        """Let the kernel hear a message from a page."""
        if not self._thread:
            self._receive(content)
            return
        teller = threading.Thread(target=self._receive, args=(content,))
        teller.start()
        teller.join()

    def on_message(self, receive: Callable[[Json], None]) -> None:
        self._receive = receive

    def close(self) -> None:
        self.closed = True
