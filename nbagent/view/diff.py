"""A change of text as HTML: line numbers, colours of the language, changed words marked, long equal parts folded.

It needs no script, and of a stylesheet only the looks of `Paint`, so that the live card and the record show the same.
Knows nothing of calls. Read `diff_html`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from nbagent.core.diff import CONTEXT, Row, rows, stretches
from nbagent.view.code import LIVE, Paint, coloured_lines, piece_html
from nbagent.view.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Line = Sequence[tuple[str, str]]
    """One line of code as pieces, each with the name of its look."""

_ROW = 30  # what a line takes up beside its text, when there is a limit
_LOOKS = {"+": "ins", "-": "del", " ": "same"}


def diff_html(
    old: str,
    new: str,
    language: str = "",
    paint: Paint = LIVE,
    *,
    context: int = CONTEXT,
    limit: int | None = None,
    line: int = 1,
) -> str:
    """Return the change from `old` to `new`: before each line its numbers in both, and - or + where it goes or comes.

    Unchanged lines far from any change are in folds that can be opened. `limit`: about how many characters are shown; the
    other lines are only counted; with it, folds are not filled. `line`: the number of the first line in its file; 0: not
    known, then no line has a number.
    """
    every = rows(old, new)
    if all(row.sign == " " for row in every):
        return f"<pre {paint.attr('pre')}>{paint.span('skip', 'no change')}</pre>"
    draw = _Drawing.of(every, coloured_lines(old, language), coloured_lines(new, language), paint, line)
    parts: list[str] = []
    drawn, size = 0, 0
    for seen, part in stretches(every, context):
        if not seen:
            parts.append(draw.fold(part, len(parts), filled=limit is None))
            drawn += len(part)
            continue
        fit = part if limit is None else list(_within(part, limit - size))
        size += sum(len(row.text) + _ROW for row in part)
        drawn += len(fit)
        parts.append(draw.lines(fit))
        if len(fit) < len(part):
            parts.append(draw.said(f"… {count(len(every) - drawn, 'more line')} of this change"))
            break
    return draw.whole("".join(parts))


def _within(part: Sequence[Row], room: int) -> Iterator[Row]:
    """The first rows of `part` that take up to `room` characters."""
    size = 0

    def fits(row: Row) -> bool:
        nonlocal size
        size += len(row.text) + _ROW
        return size <= room

    return takewhile(fits, part)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What drawing rows needs: the coloured lines of both texts, and the width of the numbers (0: no such column).

    `above` is how many lines of the file stand above both.
    """

    before: Sequence[Line]
    after: Sequence[Line]
    paint: Paint
    old_width: int
    new_width: int
    above: int

    @classmethod
    def of(
        cls, every: Sequence[Row], before: Sequence[Line], after: Sequence[Line], paint: Paint, line: int
    ) -> _Drawing:
        """Numbers take as much room as the greatest needs; a text that is not there has no column."""
        old = max((row.old or 0 for row in every), default=0)
        new = max((row.new or 0 for row in every), default=0)
        widths = (len(str(last + line - 1)) if last and line else 0 for last in (old, new))
        return cls(before, after, paint, *widths, above=line - 1)

    def whole(self, inner: str) -> str:
        """The parts together; in the live view a line that wraps goes on beside its numbers."""
        if self.paint.styles is not None:
            return f"<div>{inner}</div>"
        gutter = sum(width + 1 for width in (self.old_width, self.new_width) if width) + 2
        return f'<div class="nbagent-diff" style="--nb-gutter:{gutter}ch">{inner}</div>'

    def pre(self, inner: str) -> str:
        """Rows, as text that keeps its blanks."""
        return f"<pre {self.paint.attr('rows')}>{inner}</pre>"

    def said(self, text: str) -> str:
        """A line that is not of the texts."""
        return self.pre(self.paint.span("skip", text))

    def fold(self, part: Sequence[Row], number: int, *, filled: bool) -> str:
        """Unchanged lines, folded; only their number where they are not to be `filled` in."""
        text = f"… {count(len(part), 'unchanged line')}"
        if not filled:
            return self.said(text)
        name = f' data-fold="same-{number}"' if self.paint.styles is None else ""
        return f"<details{name}><summary>{self.paint.span('skip', text)}</summary>{self.lines(part)}</details>"

    def lines(self, part: Sequence[Row]) -> str:
        """Rows, each with its numbers and its sign."""
        return self.pre("".join(self._row(row) for row in part))

    def _row(self, row: Row) -> str:
        line = self.before[row.old - 1] if row.old and row.sign == "-" else self.after[(row.new or 1) - 1]
        both = (row.old, self.old_width), (row.new, self.new_width)
        numbers = "".join(f"{n + self.above if n else '':>{width}} " for n, width in both if width)
        inner = self.paint.span("no", f"{numbers}{row.sign} ") + self._text(line, row)
        return self.paint.span(_LOOKS[row.sign], f"{inner}\n")

    def _text(self, line: Line, row: Row) -> str:
        """The coloured text of a row, its changed stretches marked."""
        done: list[str] = []
        marked: list[str] = []
        mark = "ins-w" if row.sign == "+" else "del-w"
        at = 0
        marks = [*row.marks]
        for look, text in line:
            stop = at + len(text)
            while at < stop:
                start, end = marks[0] if marks else (stop, stop)
                piece = text[at - stop :][: (end if start <= at else start) - at]
                (marked if start <= at else done).append(piece_html(look, piece, self.paint))
                at += len(piece)
                if marks and at == end:
                    done.append(self.paint.span(mark, "".join(marked)))
                    marked = []
                    marks.pop(0)
        return "".join(done)
