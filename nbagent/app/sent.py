"""`%agent sent` and `%%agent --dry-run`: what was sent to a model, word for word, and what would be.

A session's file has each message once; a request is all of them up to a point, so nothing is kept twice. Read `sent`,
then `requests_of`.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json, Message
from nbagent.core.ports import Request
from nbagent.core.shown import visible_plain
from nbagent.models.dialect import Dialect, request_body

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

NOTHING = "Nothing was sent in this kernel yet. %%agent --dry-run shows what a cell would send."
HOW = "%agent sent [--session | --raw N]"
_LONG = 20_000
_PER_TOKEN = 4  # characters, roughly


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: number `number` of its session, from 1; `new` messages of `count` in all; `who` sent it, "" the agent."""

    number: int
    run: str
    model: str
    host: str
    system: str
    tools: Sequence[Json]
    messages: Sequence[Message]
    new: int
    who: str = ""

    @property
    def size(self) -> int:
        """Characters of the whole request as JSON."""
        return sum(
            len(json.dumps(part, ensure_ascii=False)) for part in (self.system, list(self.tools), list(self.messages))
        )

    def body(self) -> Json:
        """Return the request's body as it goes to the server."""
        return body_of(self.model, self.host, self.system, self.tools, self.messages)


def body_of(model: str, host: str, system: str, tools: Sequence[Json], messages: Sequence[Message]) -> Json:
    """Return the body of a request to `host`."""
    dialect = Dialect.of(model, home=host == "api.anthropic.com")
    return request_body(model, Request(system, tuple(tools), messages), dialect)


def sent(extension: Extension, rest: str) -> str:
    """Carry out `%agent sent`: show the requests of the last run, of the session, or one of them as JSON."""
    words = rest.split()
    if extension.last is None:
        return NOTHING
    found = list(requests_of(extension.last.store.path))
    found = found or list(_in_memory(extension))
    if not found:
        return NOTHING
    if words[:1] == ["--raw"] and len(words) == 2:
        return json.dumps(_numbered(found, words[1]).body(), indent=2, ensure_ascii=False)
    if words and words != ["--session"]:
        raise ConfigError(f"{HOW}: there is no {rest!r}.")
    last = found[-1].run if not words else ""
    shown = [one for one in found if not last or one.run == last]
    shown += [
        one
        for path in _children(extension.last.store.path)
        for one in requests_of(path, path.stem)
        if not last or one.run.startswith(last)
    ]
    display_requests(shown)
    return ""


def requests_of(path: Path, who: str = "") -> Iterator[Sent]:
    """Yield the requests of a session's file, in order; a line that can't be read is passed over."""
    system, run, messages, known = "", "", list[Message](), 0
    tools: Sequence[Json] = ()
    number = 0
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError:
        return
    for line in lines:
        try:
            record: Any = json.loads(line) if line.strip() else None
        except ValueError:
            continue
        match record:
            case {"type": "session", "system": str(system), "tools": list(tools)}:
                pass
            case {"type": "message", "message": dict(message)}:
                messages.append(message)
            case {"type": "event", "event": {"type": "run_started", "run_id": str(run)}}:
                pass
            case {"type": "event", "event": {"type": "request_sent", "model": model} as event}:
                number += 1
                yield Sent(
                    number,
                    run,
                    str(model),
                    str(event.get("host") or ""),
                    system,
                    tools,
                    tuple(messages),
                    len(messages) - known,
                    who,
                )
                known = len(messages)
            case _:
                pass


def _children(path: Path) -> list[Path]:
    return sorted((path.with_suffix("") / "agents").glob("*.jsonl"))


def _in_memory(extension: Extension) -> Iterator[Sent]:
    """Yield what can be told of a session that has no file: its last request."""
    assert extension.last is not None
    session = extension.last.session
    asked = [n for n, message in enumerate(session.transcript) if message["role"] == "assistant"]
    if asked:
        yield Sent(len(asked), "", "", "", session.system, session.tools, session.transcript[: asked[-1]], asked[-1])


def _numbered(found: Sequence[Sent], word: str) -> Sent:
    for one in found:
        if str(one.number) == word:
            return one
    raise ConfigError(f"{HOW}: there is no request {word!r}. There are 1 to {len(found)}.")


# ── shown ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def display_requests(shown: Sequence[Sent], head: str = "") -> None:
    """Show requests below the running cell."""
    from IPython.display import display

    display({"text/plain": text_of(shown, head), "text/html": html_of(shown, head)}, raw=True)


def title_of(one: Sent) -> str:
    """Return the line that heads a request."""
    who = f" of subagent {one.who}" if one.who else ""
    where = f" to {one.host}" if one.host else ""
    new = f"{one.new} new message{'s' * (one.new != 1)} of {len(one.messages)}"
    return f"Request {one.number}{who}{where}, {one.model}: {new}, {one.size:,} characters (about {one.size // _PER_TOKEN:,} tokens)"


def text_of(shown: Sequence[Sent], head: str = "") -> str:
    """Return requests as plain text; system, tools and earlier messages only once."""
    parts = [head] if head else []
    before: Sent | None = None
    for one in shown:
        parts.append(title_of(one))
        parts += [f"── {name}\n{text}" for name, text in _parts(one, before)]
        before = one
    return visible_plain("\n\n".join(parts))


def html_of(shown: Sequence[Sent], head: str = "") -> str:
    """Return requests as HTML that folds; all of it is data and escaped."""
    parts = [f"<p>{html.escape(head)}</p>"] if head else []
    before: Sent | None = None
    for one in shown:
        inner = "".join(
            f"<details><summary>{html.escape(name)} ({len(text):,} characters)</summary>"
            f'<pre style="white-space: pre-wrap">{html.escape(visible_plain(text[:_LONG]))}{_cut(text)}</pre></details>'
            for name, text in _parts(one, before)
        )
        opened = " open" if one is shown[-1] else ""
        parts.append(
            f"<details{opened}><summary><b>{html.escape(title_of(one))}</b></summary><div style='margin-left: 1em'>{inner}</div></details>"
        )
        before = one
    return f"<div>{''.join(parts)}</div>"


def _cut(text: str) -> str:
    return f"\n… {len(text) - _LONG:,} more characters: %agent sent --raw N" if len(text) > _LONG else ""


def _parts(one: Sent, before: Sent | None) -> Iterator[tuple[str, str]]:
    same = before is not None and before.who == one.who and before.system == one.system
    if not same:
        yield "system", one.system
        yield f"tools: {len(one.tools)}", "\n\n".join(_tool(tool) for tool in one.tools)
        if earlier := one.messages[: len(one.messages) - one.new]:
            yield f"messages before this run: {len(earlier)}", "\n\n".join(_message(m) for m in earlier)
    for message in one.messages[len(one.messages) - one.new :]:
        yield f"{message['role']}{' (the reply before)' * (message['role'] == 'assistant')}", _message(message)


def _tool(tool: Json) -> str:
    arguments = json.dumps(tool.get("input_schema", {}).get("properties", {}), ensure_ascii=False)
    return f"{tool.get('name')}: {tool.get('description', '')}\n{arguments}"


def _message(message: Message) -> str:
    content: Any = message["content"]
    blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return "\n".join(_block(block) for block in blocks)


def _block(block: Json) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image"}:
            return f"[image, {len(json.dumps(block)):,} characters]"
        case {"type": "tool_use", "name": name, "input": given}:
            return f"[call {name}] {json.dumps(given, ensure_ascii=False)}"
        case {"type": "tool_result", "content": list(content)}:
            return "[result] " + "\n".join(_block(inner) for inner in content)
        case _:
            return json.dumps(block, ensure_ascii=False)
