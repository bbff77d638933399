"""Calls that the model's server carries out itself, such as a web search: what a run reports of them.

They come inside a reply, with their results, so nothing is run or asked here and nothing is answered. Pure but for the
run's clock. Read `served`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nbagent.core.events import CallEnded, CallStarted, Event, Status
from nbagent.core.messages import Block, Json, text_block
from nbagent.core.ports import Preview
from nbagent.core.run import Run

SEARCH, FETCH = "web_search", "web_fetch"
SERVED = (SEARCH, FETCH)
"""Names of the tools that a server runs."""

FOUND = frozenset({"web_search_result", "web_fetch_result"})
"""Types of the blocks in a `CallEnded` that stand for one page each: `title`, `url`, `age`."""

_SHOWN = 2_000
_CALL, _RESULT = "server_tool_use", "_tool_result"


def is_result(block: Block) -> bool:
    """Whether a block of a reply holds what a server's tool brought."""
    return str(block.get("type")).endswith(_RESULT) and bool(block.get("tool_use_id"))


def served(run: Run, closed: Sequence[Block]) -> Event | None:
    """Return what the block of a reply that has just ended (`closed`: it, or nothing) says of a call of the server's."""
    for block in closed:
        if block.get("type") == _CALL:
            name, given = str(block.get("name")), block.get("input")
            shown: Json = given if isinstance(given, dict) else {}
            title = title_of(name, shown)
            run.calls_made.append(title)
            event = run.event(CallStarted, call_id=str(block.get("id")), name=name, input=shown, title=title,
                              preview=Preview().to_json())  # fmt: skip
            run.served[event.call_id] = event.at
            return event
        if is_result(block):
            return _ended(run, block)
    return None


def title_of(name: str, given: Json) -> str:
    """Return a short line on a call of a server's tool."""
    match name:
        case "web_search":
            return f"search the web: {given.get('query', '')}"
        case "web_fetch":
            return f"read the page {given.get('url', '')}"
        case _:
            return name.replace("_", " ")


def _ended(run: Run, block: Block) -> CallEnded:
    call_id, name = str(block["tool_use_id"]), str(block["type"]).removesuffix(_RESULT)
    content, error = readable(block)
    event = run.event(
        CallEnded,
        call_id=call_id,
        name=name,
        status=Status.ERROR if error else Status.OK,
        content=content,
        seconds=0.0,
        summary=error or _summary(content),
    )
    began = run.served.pop(call_id, event.at)
    return run.event(
        CallEnded, call_id=call_id, name=name, status=event.status, content=content,
        seconds=round(event.at - began, 4), summary=event.summary,
    )  # fmt: skip


def readable(block: Block) -> tuple[tuple[Block, ...], str]:
    """Return what a result brought, for people: a block a page and the text of a page read; and what went wrong, if so.

    What is sealed for the server stays in the transcript only.
    """
    content: Any = block.get("content")
    if isinstance(content, dict) and (code := content.get("error_code")):
        said = f"The server could not do it: {str(code).replace('_', ' ')}."
        return (text_block(said),), said
    found = content if isinstance(content, list) else [content]
    pages = [one for one in found if isinstance(one, dict) and one.get("type") in FOUND]
    return tuple(shown for page in pages for shown in _page(page)), ""


def _page(page: Json) -> list[Block]:
    document: Any = page.get("content")
    document = document if isinstance(document, dict) else {}
    shown: Block = {
        "type": str(page["type"]),
        "title": str(page.get("title") or document.get("title") or ""),
        "url": str(page.get("url") or ""),
        "age": str(page.get("page_age") or ""),
    }
    source: Any = document.get("source")
    text = str(source.get("data") or "") if isinstance(source, dict) and source.get("type") == "text" else ""
    return [shown, *([text_block(text[:_SHOWN] + ("…" if len(text) > _SHOWN else ""))] if text.strip() else [])]


def _summary(content: Sequence[Block]) -> str:
    pages = [block for block in content if block.get("type") in FOUND]
    if len(pages) == 1:
        return str(pages[0]["title"] or pages[0]["url"])
    return f"{len(pages)} pages" if pages else "nothing found"
