"""Two branches side by side: answers, calls, turns, cost and cells; as HTML that needs nothing, Markdown and plain text.

In a narrow place the columns stand below each other; colours are the page's own, so light and dark both read well; what
folds is `<details>`, which the keyboard opens. Everything of others is escaped and bounded. Read `compared`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nbagent.core.shown import visible_plain
from nbagent.view import outline
from nbagent.view.code import RECORD
from nbagent.view.fold import ViewModel
from nbagent.view.markdown import to_html
from nbagent.view.record_text import neutral_markdown
from nbagent.view.text import clip, count, duration, escape, money, one_line, tokens, without_ansi

ANSWER = 12_000
"""Characters of one answer that are shown."""

CALLS = 60
_BORDER = "border:1px solid #8888;border-radius:4px;padding:.3em .8em"
_CELL = "border:1px solid #8888;padding:.2em .6em;text-align:left;vertical-align:top"


@dataclass(frozen=True, slots=True)
class Side:
    """One branch: its session, its name ("" for none), the only tools that it had (() for all), and its runs since they part."""

    session: str
    name: str
    tools: tuple[str, ...]
    runs: tuple[ViewModel, ...]

    @property
    def head(self) -> str:
        """What it is called."""
        return _plain(f"{self.name} ({self.session})" if self.name else self.session, 120)


def compared(one: Side, other: Side, since: str, prompts: int) -> dict[str, str]:
    """Return the comparison as a MIME bundle. `since` is the last prompt that both have, `prompts` how many those are."""
    rows = [(label, a, b) for (label, a), (_, b) in zip(facts(one), facts(other), strict=True)]
    after = f"Both go on after {count(prompts, 'prompt')}" + (f", the last one “{_plain(since, 120)}”" if since else "")
    said = f"{after}." if prompts else "They have no prompt in common."
    return {
        "text/html": _html(one, other, rows, said),
        "text/markdown": _markdown(one, other, rows, said),
        "text/plain": _text(one, other, rows, said),
    }


def facts(side: Side) -> list[tuple[str, str]]:
    """Return what can be told of a branch in a word or two, by label, in one order."""
    ended = [run.ended for run in side.runs if run.ended is not None]
    calls = [call for run in side.runs for call in outline.calls(run)]
    costs = [end.cost for end in ended]
    failed = sum(call.status in {"error", "invalid", "denied"} for call in calls)
    cells = dict.fromkeys(cell for end in ended for cell in end.cells)
    models = dict.fromkeys(run.model for run in side.runs if run.model)
    reasons = dict.fromkeys(str(run.ended.reason) if run.ended else "cut off" for run in side.runs)
    spent = "?" if any(cost is None for cost in costs) else money(sum(cost or 0.0 for cost in costs))
    return [
        ("Model", _plain(", ".join(models), 120) or "–"),
        ("Tools", _plain(", ".join(side.tools), 200) or "all"),
        ("Ended", _plain(", ".join(reasons), 80) or "no run yet"),
        ("Runs", str(len(side.runs))),
        ("Turns", str(sum(end.turns for end in ended))),
        ("Calls", f"{len(calls)}" + (f", {failed} failed" if failed else "")),
        ("Cells changed", str(len(cells))),
        ("Tokens", tokens(sum(end.usage.total for end in ended))),
        ("Cost", spent),
        ("Time", duration(sum(run.at for run in side.runs))),
    ]


def _plain(text: str, limit: int) -> str:
    return visible_plain(one_line(without_ansi(text), limit), spaces=False)


def _answer(run: ViewModel) -> str:
    text, _ = outline.answer(run)
    return clip(text.strip(), ANSWER) or outline.ending(run)[0]


def _calls(run: ViewModel) -> list[str]:
    found = outline.calls(run)
    lines = [outline.line(call) for call in found[:CALLS]]
    return [*lines, *([f"… {count(len(found) - CALLS, 'more call')}"] if len(found) > CALLS else [])]


# ── HTML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _html(one: Side, other: Side, rows: Sequence[tuple[str, str, str]], said: str) -> str:
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(side.head)}</th>' for side in (one, other))
    body = "".join(
        f'<tr><th scope="row" style="{_CELL}">{escape(label)}</th>'
        + "".join(f'<td style="{_CELL};overflow-wrap:anywhere">{_differs(text, a != b)}</td>' for text in (a, b))
        + "</tr>"
        for label, a, b in rows
    )
    table = (
        '<table style="border-collapse:collapse;max-width:100%"><thead><tr>'
        f'<td style="{_CELL}"></td>{head}</tr></thead><tbody>{body}</tbody></table>'
    )
    sides = "".join(_column(side) for side in (one, other))
    return (
        f'<div style="padding-left:.5em"><p>{escape(said)}</p>{table}'
        f'<div style="display:flex;flex-wrap:wrap;gap:1em;margin-top:1em">{sides}</div></div>'
    )


def _differs(text: str, differs: bool) -> str:
    return f"<b>{escape(text)}</b>" if differs else escape(text)


def _column(side: Side) -> str:
    runs = "".join(_run(run) for run in side.runs) or "<p><i>No run yet.</i></p>"
    return (
        f'<section aria-label="{escape(side.head)}" style="flex:1 1 20em;min-width:0;{_BORDER}">'
        f"<p><b>{escape(side.head)}</b></p>{runs}</section>"
    )


def _run(run: ViewModel) -> str:
    prompt = f"<blockquote>{escape(_plain(run.prompt, 600))}</blockquote>" if run.prompt.strip() else ""
    lines = _calls(run)
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    calls = (
        f"<details><summary>{count(len(outline.calls(run)), 'call')}</summary><ul>{listed}</ul></details>"
        if lines
        else ""
    )
    return f'{prompt}<div style="overflow-wrap:anywhere">{to_html(_answer(run), RECORD)}</div>{calls}'


# ── Markdown and text ────────────────────────────────────────────────────────────────────────────────────────────────


def _markdown(one: Side, other: Side, rows: Sequence[tuple[str, str, str]], said: str) -> str:
    table = [f"| | {_cell(one.head)} | {_cell(other.head)} |", "|---|---|---|"]
    table += [f"| {label} | {_cell(a)} | {_cell(b)} |" for label, a, b in rows]
    parts = [_cell(said), "\n".join(table)]
    for side in (one, other):
        parts.append(f"### {_cell(side.head)}")
        for run in side.runs:
            parts.append("> " + _cell(_plain(run.prompt, 600)))
            parts.append(neutral_markdown(visible_plain(without_ansi(_answer(run)), spaces=False)))
            parts += ["\n".join(f"- {_cell(line)}" for line in lines)] if (lines := _calls(run)) else []
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    for char in "\\|`*_<[":
        text = text.replace(char, f"\\{char}")
    return text


def _text(one: Side, other: Side, rows: Sequence[tuple[str, str, str]], said: str) -> str:
    table = [("", one.head, other.head), *rows]
    widths = [max(len(row[column]) for row in table) for column in (0, 1)]
    lines = [said, "", *(f"{a.ljust(widths[0])}  {b.ljust(widths[1])}  {c}".rstrip() for a, b, c in table)]
    for side in (one, other):
        lines += ["", f"── {side.head} "]
        for run in side.runs:
            lines += [f"> {_plain(run.prompt, 600)}", visible_plain(without_ansi(_answer(run)), spaces=False)]
            lines += [f"  {line}" for line in _calls(run)]
    return "\n".join(lines)
