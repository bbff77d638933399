"""A measured table: the same replies with the same slips, once as lines of text and once as tool blocks.

Nothing in it is written down as a result. Each reply is played to a ReAct loop (`react`) and to the real loop
(`nbagent.core.loop`), with a tool that keeps what it was given; then what ran is compared with what was meant. Read `count`.
"""

from __future__ import annotations

import csv
import html
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

from nbagent.core.events import CallEnded, Event
from nbagent.core.messages import Block, Json, Usage, reply_events
from nbagent.core.ports import Request
from nbagent.core.tools import Call, Tool, tool
from nbagent.models.scripted import ScriptedModel, Turn
from nbagent.teach.bench import bench
from nbagent.teach.react import Reader, Step, careful, parse, react, written

Where = Callable[[str], str]


def counter(path: Path) -> Where:
    """Return the tool of both forms: it counts the rows of a CSV file for which all conditions hold, one `column == value` a line."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    def count(where: str) -> str:
        wanted = [line.partition("==") for line in where.splitlines() if "==" in line]
        return str(sum(all(row.get(c.strip()) == value.strip() for c, _, value in wanted) for row in rows))

    return count


def some_steps(path: Path) -> list[Step]:
    """Return the calls that are played: a count for each value of a few columns, and for each pair of species and island."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    single = sorted(
        {(column, row[column]) for row in rows for column in ("species", "island", "sex", "year") if row[column]}
    )
    pairs = sorted({(row["species"], row["island"]) for row in rows})
    steps = [
        Step(f"I count the rows with {column} {value}.", "count", f"{column} == {value}") for column, value in single
    ]
    return steps + [Step(f"I count {s} on {i}.", "count", f"species == {s}\nisland == {i}") for s, i in pairs]  # fmt: skip


# ── slips ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Told:
    """One reply with a slip in it: what was meant, as lines of text, and as blocks.

    `raw` are the inputs of the calls as the model wrote them, for all of one tool, `tool`; `said` is the text before them.
    """

    meant: tuple[Step, ...]
    text: str
    said: str
    raw: tuple[str, ...]
    tool: str = "count"
    cut: bool = False

    def events(self) -> list[Json]:
        """The raw events of the reply with blocks, as a server sends them: the JSON of an input just as it was written."""
        blocks: list[Block] = [{"type": "text", "text": self.said}]
        blocks += [
            {"type": "tool_use", "id": f"toolu_{n}", "name": self.tool, "input": {}} for n in range(len(self.raw))
        ]
        events = reply_events(blocks, "max_tokens" if self.cut else None)
        for event in events:
            if event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
                event["delta"]["partial_json"] = self.raw[event["index"] - 1]
        return events


def _json(text: object) -> str:
    return json.dumps({"where": text})


def _plain(step: Step) -> Told:
    return Told((step,), written(step), step.thought, (_json(step.input),))


def _in_text(change: Callable[[str], str]) -> Callable[[Step], Told]:
    """A slip in what is text: it hits the lines of the one form, and the text before the call in the other."""

    def slip(step: Step) -> Told:
        told = _plain(step)
        return replace(told, text=change(told.text), said=change(told.said))

    return slip


def _in_input(change: Callable[[str], str], *, meant: bool) -> Callable[[Step], Told]:
    """A change of the input, in both forms; `meant`: it is what the model wants, and no slip at all."""

    def slip(step: Step) -> Told:
        changed = replace(step, input=change(step.input))
        return replace(_plain(changed), meant=(changed if meant else step,))

    return slip


def _one_line(text: str) -> str:
    return text.replace("\nInput: ", ": ", 1)


def _as_function(text: str) -> str:
    head, found, given = text.partition("\nInput: ")
    return f"{head}({given})" if found else text


def _own_observation(text: str) -> str:
    return f"{text}\nObservation: 12\nThought: Now I know.\nAnswer: 12"


def _two_calls(step: Step) -> Told:
    second = replace(step, input="year == 2008")
    return Told(
        (step, second), f"{written(step)}\n{written(second)}", step.thought, (_json(step.input), _json(second.input))
    )


def _json_inside(step: Step) -> Told:
    inside = replace(step, input=_json(step.input))
    return replace(_plain(step), text=written(inside), raw=(_json({"where": step.input}),))


def _lost_quote(step: Step) -> Told:
    quoted = replace(step, input=f'"{step.input}')
    return replace(_plain(step), text=written(quoted), raw=(_json(step.input).replace('"}', "}"),))


def _other_tool(step: Step) -> Told:
    return replace(_plain(step), text=written(replace(step, tool="count_rows")), tool="count_rows")


def _cut_off(step: Step) -> Told:
    told = _plain(step)
    return replace(told, text=told.text[:-3], raw=(told.raw[0][:-5],), cut=True)


SLIPS: Mapping[str, Callable[[Step], Told]] = {
    "as it was asked for": _plain,
    "a friendly word before it": _in_text("Sure, I can do that.\n{}".format),
    "a colon in the thought": _in_text(lambda text: text.replace("I count", "Next: I count", 1)),
    "a colon in the input": _in_input(lambda given: f"{given}\nnote == seen: 14:30", meant=True),
    "an empty line in the input": _in_input(lambda given: f"{given}\n\nyear == 2008", meant=True),
    "a code fence that belongs to the input": _in_input(lambda given: f"{given}\n```\na note\n```", meant=True),
    "a stray colon after the tool's name": _in_text(lambda text: text.replace("count\n", "count:\n", 1)),
    "name and input on one line": _in_text(_one_line),
    "written like a function": _in_text(_as_function),
    "labels in bold": _in_text(lambda text: text.replace("Action:", "**Action:**").replace("Input:", "**Input:**")),
    "labels in small letters": _in_text(lambda text: text.replace("Action:", "action:").replace("Input:", "input:")),
    "a full-width colon, as in Chinese": _in_text(lambda text: text.replace("Action:", "Action：")),
    "a code fence around it all": _in_text("```\n{}\n```".format),
    "a code fence around the input": _in_input("```\n{}\n```".format, meant=False),
    "a line of the input that looks like a label": _in_input(lambda given: f"{given}\nAnswer: of both years", meant=True),
    "an observation that the model made up": _in_text(_own_observation),
    "two calls in one reply": _two_calls,
    "JSON inside the input": _json_inside,
    "a quotation mark lost": _lost_quote,
    "a tool that is not there": _other_tool,
    "cut off at the output limit": _cut_off,
}  # fmt: skip
"""What models do to a format, by name. The first six are no slips: nothing is wrong with them."""


# ── playing them ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Wire:
    """A model that answers first with the raw events that it was given, then with a last word."""

    name = "wire"

    def __init__(self, events: Sequence[Json]) -> None:
        self._replies = [events, reply_events([{"type": "text", "text": "Done."}])]

    def cost(self, usage: Usage) -> float | None:  # noqa: ARG002 - the port's signature
        """Return None: it has no price."""
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Json]:  # noqa: ARG002 - the port's signature
        """Yield the events of the next reply."""
        for event in self._replies.pop(0):
            yield event


def _keeping(ran: list[str], count: Where) -> Tool:
    async def kept(_: Call, where: str) -> str:
        """Count the rows for which all conditions hold.

        Args:
            where: The conditions, one `column == value` a line.
        """
        ran.append(where)
        return count(where)

    return tool(name="count")(kept)


def _outcome(told: Told, ran: Sequence[str], *, heard: bool) -> str:
    if list(ran) == [step.input for step in told.meant]:
        return "right"
    return "told" if heard and not ran else "wrong"


async def in_text(told: Told, count: Where, read: Reader = parse) -> str:
    """Play a reply to the ReAct loop: `right`, `told` (nothing ran, and the model hears why) or `wrong` (nobody hears of it)."""
    ran: list[str] = []

    def kept(where: str) -> str:
        ran.append(where)
        return count(where)

    model = ScriptedModel([Turn(told.text, "max_tokens" if told.cut else None), "Answer: done"])
    async with aclosing(react(model, "How many?", {"count": kept}, read=read)) as happened:
        heard = [one for one in [each async for each in happened] if one.kind == "told"]
    return _outcome(told, ran, heard=bool(heard))


async def in_blocks(told: Told, count: Where) -> str:
    """Play the same reply with tool blocks to the real loop; returns what `in_text` returns."""
    ran: list[str] = []
    events: list[Event] = await bench(_Wire(told.events()), [_keeping(ran, count)]).collect("How many?")
    refused = [event for event in events if isinstance(event, CallEnded) and event.status != "ok"]
    return _outcome(told, ran, heard=bool(refused))


FORMS = ("text", "careful text", "blocks")


@dataclass(frozen=True, slots=True)
class Table:
    """How many replies came through, by slip and form: each a count of right, told and wrong. Shows itself as a table."""

    replies: int
    rows: Mapping[str, Mapping[str, Counter[str]]]

    def total(self, form: str, outcome: str) -> int:
        """How many replies of all slips had this outcome in this form."""
        return sum(row[form][outcome] for row in self.rows.values())

    def __repr__(self) -> str:
        lines = [f"{'(right, told, wrong)':<45}" + "".join(f"{form:>16}" for form in FORMS)]
        lines += [
            f"{slip:<45}" + "".join(f"{'  '.join(str(row[f][o]) for o in _OUTCOMES):>16}" for f in FORMS)
            for slip, row in self.rows.items()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f'<th style="text-align:left">{form}</th>' for form in ("", *FORMS))
        body = "".join(
            f'<tr><td style="text-align:left">{html.escape(slip)}</td>{"".join(map(_cell, (row[f] for f in FORMS)))}</tr>'
            for slip, row in self.rows.items()
        )
        last = "".join(_cell(Counter({o: self.total(f, o) for o in _OUTCOMES})) for f in FORMS)
        return f'<table style="table-layout:fixed;width:100%"><tr>{head}</tr>{body}<tr><td style="text-align:left"><b>all</b></td>{last}</tr></table>'


_OUTCOMES = ("right", "told", "wrong")
_MARKS = {"right": "✓", "told": "↩", "wrong": "✗"}


def _cell(found: Counter[str]) -> str:
    said = "<br>".join(f"{_MARKS[one]} {found[one]} {one}" for one in _OUTCOMES if found[one])
    return f'<td style="text-align:left">{f"<b>{said}</b>" if found["wrong"] else said}</td>'


async def count(steps: Iterable[Step], where: Where, slips: Mapping[str, Callable[[Step], Told]] = SLIPS) -> Table:
    """Play every call with every slip in each form, and count what came of it."""
    steps = list(steps)
    rows: dict[str, dict[str, Counter[str]]] = {}
    for name, slip in slips.items():
        row = rows[name] = {form: Counter[str]() for form in FORMS}
        for told in map(slip, steps):
            row["text"][await in_text(told, where)] += 1
            row["careful text"][await in_text(told, where, careful)] += 1
            row["blocks"][await in_blocks(told, where)] += 1
    return Table(len(steps), rows)
