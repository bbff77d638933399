"""A solution for the broken notebook: it reads each cell, follows the names, asks the kernel for what is gone. Read `solve`."""

from __future__ import annotations

import ast
import builtins
import difflib
import re
from dataclasses import dataclass

from tests.analysis.solving import Steps, look, use

_CELL = re.compile(r"^\d+\. (\S+) (code|markdown)\b(.*)$", re.MULTILINE)
_COLUMN = re.compile(r"KeyError: ['\"](.+?)['\"]")


@dataclass(frozen=True)
class Read:
    """A cell as it was read: its id, source and what it showed."""

    id: str
    source: str
    shown: str

    @property
    def made(self) -> set[str]:
        """The names that it defines."""
        found = {node.id for node in self._nodes(ast.Name) if isinstance(node.ctx, ast.Store)}
        found |= {node.name for node in self._nodes(ast.FunctionDef)}
        return found | {
            (one.asname or one.name).split(".")[0]
            for node in self._nodes(ast.Import, ast.ImportFrom)
            for one in node.names
        }

    @property
    def used(self) -> set[str]:
        """The names that it reads from elsewhere."""
        inside = {arg.arg for node in self._nodes(ast.arguments) for arg in node.args}
        names = {node.id for node in self._nodes(ast.Name) if isinstance(node.ctx, ast.Load)}
        return names - inside - self.made - set(dir(builtins))

    def _nodes(self, *kinds: type) -> list:
        return [node for node in ast.walk(ast.parse(self.source)) if isinstance(node, kinds)]


def solve() -> Steps:
    """Read all, put back what is gone, move what stands too low, correct what fails, run all."""
    listed = yield from use("read_notebook", "I read the notebook.")
    cells: list[Read] = []
    for found in _CELL.finditer(listed):
        if found[2] == "code" and "agent's own" not in found[3]:
            text = yield from use("read_cell", cell=found[1])
            source, _, shown = text.partition("source:\n")[2].partition("\n\nOutputs")
            if not source.startswith("%"):
                cells.append(Read(found[1], source.strip("\n"), shown))
    for place, cell in enumerate(cells):
        above = {name for other in cells[:place] for name in other.made}
        for name in sorted(cell.used - above):
            below = next((other for other in cells[place + 1 :] if name in other.made), None)
            if below is not None:
                yield from use(
                    "move_cell", f"`{name}` is used above the cell that defines it.", cell=below.id, before=cell.id
                )
            else:
                value = yield from look(f"found = {name}")
                yield from use("add_cell", f"The cell that defined `{name}` is gone: the kernel still has its value.",
                               source=f"{name} = {value!r}", before=cell.id)  # fmt: skip
    for cell in cells:
        wrong = _COLUMN.search(cell.shown)
        if wrong:
            table = next(name for name in re.findall(r"(\w+)\.groupby", cell.source))
            columns = yield from look(f"found = [str(name) for name in {table}.columns]")
            near = {name.strip().lower(): name for name in columns}
            right = near[difflib.get_close_matches(wrong[1].strip().lower(), near, n=1, cutoff=0.5)[0]]
            source = cell.source.replace(f'"{wrong[1]}"', f'"{right}"')
            yield from use(
                "edit_cell",
                f"There is no column {wrong[1]!r}; {right!r} is meant.",
                cell=cell.id,
                source=source,
                run=True,
            )
    yield from use("read_notebook")
    ran = yield from use("run_all", "I run it from top to bottom.")
    assert "error" not in ran.lower(), ran
    yield from use("read_notebook")
    verified = yield from use("verify_notebook", "And in a clean kernel.")
    assert "not reproducible" not in verified.lower(), verified
    return "It runs from top to bottom now, verified from a clean kernel; what I changed is said above each change."
