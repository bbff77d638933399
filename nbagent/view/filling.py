"""What fills a model's context window, as a picture: a bar with its legend in HTML, and the same as plain text.

Pure; no script, no stylesheet, nothing from the network; it reads well on light and dark, narrow and wide, and without
any styles at all. Must not know who counted. Read `picture`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nbagent.view.text import escape, one_line, tokens

COLORS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#d55e00", "#7f7f00", "#8c6bb1", "#999999")
"""One for each part, in order: to be told apart with any eyes, on light and dark; the legend has their order, too."""

_WIDTH = 50
_LEAST = 0.4
_MARKS = "█▓▒░▚▞▙▛▟"


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that fills the window. `counted`: by the server, else estimated from its characters."""

    name: str
    tokens: int
    counted: bool = False


def picture(parts: Sequence[Part], window: int | None, *, note: str, model: str) -> dict[str, str]:
    """Return a MIME bundle: text/html and text/plain; without a known `window` shares are of what is used.

    `note` says who counted, and what happens when it is full.
    """
    shown = [part for part in parts if part.tokens > 0]
    used = sum(part.tokens for part in shown)
    whole = max(window or used, used, 1)
    head = _head(used, window, model)
    rows = [*((part.name, part.tokens, part.counted) for part in shown)]
    if window is not None:
        rows.append(("Free", max(window - used, 0), True))
    return {
        "text/html": _html(head, rows, whole, note, free=window is not None),
        "text/plain": _plain(head, rows, whole, note, free=window is not None),
    }


def _head(used: int, window: int | None, model: str) -> str:
    of = (
        f" of {tokens(window)} tokens ({used / window:.0%})"
        if window
        else " tokens; how large the window is, is not known"
    )
    return f"Context of {one_line(model, 80)}: {tokens(used)}{of}"


def _size(count: int, *, counted: bool) -> str:
    return tokens(count) if counted else f"≈ {tokens(count)}"


def _html(head: str, rows: Sequence[tuple[str, int, bool]], whole: int, note: str, *, free: bool) -> str:
    bar: list[str] = []
    legend: list[str] = []
    for place, (name, count, counted) in enumerate(rows):
        empty = free and place == len(rows) - 1
        color = "transparent" if empty else COLORS[place % len(COLORS)]
        share = count / whole
        said = f"{name}: {_size(count, counted=counted)} tokens, {share:.1%}"
        if share > 0:
            width = max(share * 100, _LEAST)
            bar.append(
                f'<span title="{escape(said)}" style="flex:{width:.2f} 0 0;min-width:2px;height:100%;'
                f'box-sizing:border-box;border-right:1px solid rgba(128,128,128,.6);background:{color}"></span>'
            )
        mark = f'<span style="display:inline-block;width:.8em;height:.8em;border:1px solid #888;background:{color}"></span>'
        legend.append(
            f'<tr><td style="text-align:left">{mark} {escape(name)}</td>'
            f'<td style="text-align:right">{escape(_size(count, counted=counted))}</td>'
            f'<td style="text-align:right">{share:.1%}</td></tr>'
        )
    spoken = "; ".join(f"{name} {count / whole:.0%}" for name, count, _ in rows)
    return (
        f'<div style="max-width:44em"><p><b>{escape(head)}</b></p>'
        f'<div role="img" aria-label="{escape(f"{head}. {spoken}")}" style="display:flex;height:1.6em;'
        f'border:1px solid #888;border-radius:3px;overflow:hidden">{"".join(bar)}</div>'
        f'<table style="border-collapse:collapse;margin:.5em 0"><thead><tr><th style="text-align:left">Part</th>'
        f'<th style="text-align:right">Tokens</th><th style="text-align:right">Share</th></tr></thead>'
        f"<tbody>{''.join(legend)}</tbody></table><p><small>{escape(note)}</small></p></div>"
    )


def _plain(head: str, rows: Sequence[tuple[str, int, bool]], whole: int, note: str, *, free: bool) -> str:
    marks = [_MARKS[place % len(_MARKS)] for place in range(len(rows))]
    if free:
        marks[-1] = "·"
    bar = "".join(
        mark * (max(1, round(count / whole * _WIDTH)) if count else 0)
        for mark, (_, count, _) in zip(marks, rows, strict=True)
    )
    longest = max((len(name) for name, _, _ in rows), default=0)
    lines = [
        f"{mark} {name:<{longest}}  {_size(count, counted=counted):>8}  {count / whole:>6.1%}"
        for mark, (name, count, counted) in zip(marks, rows, strict=True)
    ]
    return "\n".join([head, f"[{bar[:_WIDTH].ljust(_WIDTH, '·' if free else ' ')}]", *lines, note])
