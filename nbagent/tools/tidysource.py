"""Looks at single cells for tidying.py: their imports, their pieces, which step of an analysis they are. Pure text.

It must not know what is proposed. Read `import_lines`, then `pieces_of`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from nbagent.core.ports import Cell
from nbagent.tools.cellcode import parse, split
from nbagent.tools.cellflow import Flow
from nbagent.tools.dataflow import Dataflow
from nbagent.tools.marks import is_kept

PIECE = 4
"""Lines of a piece of a cell that is split."""


def imports_cell(cells: Sequence[Cell], flow: Dataflow) -> Cell | None:
    """Return the cell in which a notebook's imports stand: the first with several, or with nothing but imports."""
    for cell in cells:
        tree, found = split(cell.source).tree, flow[cell.id].imports
        only = tree is not None and all(isinstance(s, ast.Import | ast.ImportFrom) for s in tree.body)
        if (len(found) > 1 or (found and only)) and not cell.source.lstrip().startswith("%%"):
            return cell
    return None


def is_free_cell(cell: Cell) -> bool:
    """Whether a cell may be changed: tags and slide settings are somebody's own, and may be read by programs."""
    return (
        not cell.metadata.get("tags")
        and not cell.metadata.get("slideshow")
        and not is_kept(cell)
        and cell.metadata.get("editable") is not False
    )


_PREPARING = re.compile(
    r"\bsys\s*\.\s*(?:path|modules|meta_path)\b|\benviron\b|\bputenv\b|\bchdir\(|\b(?:matplotlib|mpl)\.use\(|\bimportlib\b|\bload_dotenv\b|"
    r"\badd(?:site|_dll_)dir|\bset_start_method\b|\bset_backend\b|\.py['\"]"
)
_PREPARING_MAGICS = frozenset(
    {
        "pip",
        "conda",
        "mamba",
        "micromamba",
        "uv",
        "cd",
        "env",
        "set_env",
        "run",
        "autoreload",
        "writefile",
        "file",
        "store",
        "dotenv",
    }
)


def prepares_imports(cell: Cell) -> bool:
    """Whether an import below a cell may need what it does: paths, environment, an installation, a module that it writes."""
    parts = split(cell.source)
    names = {name for name, _ in parts.magics} | {name for name, _, _ in parts.heads}
    return bool(parts.shell) or not names.isdisjoint(_PREPARING_MAGICS) or _PREPARING.search(cell.source) is not None


_ACTS = re.compile(
    r"(?:execute|executemany|send|post|put|patch|request|submit|start|connect|login|run|call|check_output|popen|write|save|dump|upload|download|fit|"
    r"seed|register|init|urlretrieve|urlopen|mkdir|makedirs|remove|unlink|rename|copy2?|move|commit|publish|input|sleep)(?:_\w+)?\Z",
    re.IGNORECASE,
)


_HARMLESS = frozenset({"dataclass", "cache", "lru_cache", "property", "cached_property", "staticmethod", "classmethod", "total_ordering",
                       "njit", "jit", "vectorize", "contextmanager", "wraps", "overload", "final"})  # fmt: skip
_MOVES = re.compile(
    r"(?:next|read|readlines?|recv|pop|popleft|popitem|get_nowait|sample|shuffled?|choices?|rand\w*|\w*random\w*|normal|uniform|permutation|"
    r"permuted|bootstrap|resample|train_test_split|now|time|perf_counter|uuid\d?|append|extend|insert|add|update)\Z"
)


def _called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield _last_name(node.func)


def _last_name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def acts(tree: ast.Module) -> bool:
    """Whether code does more than give names to values: a call by whose name it does, a wait, a decorator that may note its function."""
    if any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) for node in ast.walk(tree)):
        return True
    decorators = (d for node in ast.walk(tree) for d in getattr(node, "decorator_list", ()))
    return any(map(_ACTS.match, _called(tree))) or any(_last_name(d) not in _HARMLESS for d in decorators)


def moves(tree: ast.Module | None) -> bool:
    """Whether the same code may do something else when it runs again: it takes from an iterator, draws by chance, or adds to something."""
    if tree is None or acts(tree) or any(map(_MOVES.match, _called(tree))):
        return True
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While | ast.With))
    return any(
        isinstance(node, ast.AugAssign)
        or (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and _last_name(node.value) not in {"print", "display"}
        )
        for loop in loops
        for node in ast.walk(loop)
    )


def is_words(statement: ast.stmt) -> bool:
    """Whether what a comment says is rather words than code: a lone name or text, or a note such as `TODO: x`."""
    if isinstance(statement, ast.AnnAssign):
        return statement.value is None
    return isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call | ast.Await)


def plain(source: str) -> str:
    """Return what two cells that do the same have in common."""
    tree = parse(source)
    return ast.dump(tree) if tree is not None else "\n".join(line.strip() for line in source.split("\n"))


def count_lines(source: str) -> int:
    """Return how many lines have something in them."""
    return sum(1 for line in source.splitlines() if line.strip())


def listed_names(names: frozenset[str], most: int = 4) -> str:
    """Return names in a sentence."""
    shown = sorted(names)
    return ", ".join(f"`{name}`" for name in shown[:most]) + (
        f" and {len(shown) - most} more" if len(shown) > most else ""
    )


def mentions(cell: Cell, names: frozenset[str]) -> bool:
    """Whether the text of a cell names one of `names`."""
    return any(name in cell.source for name in names)


def import_lines(cell: Cell) -> dict[tuple[int, int], str]:
    """Return the top-level imports that have lines of their own, by their first and last line."""
    tree = parse(cell.source)
    lines = cell.source.splitlines()
    found: dict[tuple[int, int], str] = {}
    for statement in tree.body if tree is not None else ():
        if not isinstance(statement, ast.Import | ast.ImportFrom) or getattr(statement, "module", "") == "__future__":
            continue
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        text = "\n".join(lines[first - 1 : last])
        inner = parse(text)
        alone = statement.col_offset == 0 and inner is not None and len(inner.body) == 1
        if alone and not any(alias.name == "*" for alias in statement.names):
            found[first, last] = text.rstrip()
    return found


def without(source: str, imports: Mapping[tuple[int, int], str]) -> str:
    """Return a source without its import lines."""
    gone = {line for first, last in imports for line in range(first, last + 1)}
    kept = [line for number, line in enumerate(source.splitlines(), 1) if number not in gone]
    return "\n".join(kept).lstrip("\n")


def with_imports(home: Cell, here: Mapping[tuple[int, int], str], added: Sequence[str]) -> str:
    """Return the source of the imports cell with more of them, after its last one."""
    lines, at = home.source.splitlines(), max((last for _, last in here), default=0)
    return "\n".join([*lines[:at], *added, *lines[at:]])


def pieces_of(source: str) -> list[str]:
    """Return a cell's pieces: each begins with a comment of its own after an empty line, outside of any block."""
    tree, lines = parse(source), source.splitlines()
    if tree is None or source.lstrip().startswith("%"):
        return []
    inside = {n for s in tree.body for n in range(s.lineno + 1, (s.end_lineno or s.lineno) + 1)}
    starts = [
        n
        for n in range(2, len(lines) + 1)
        if n not in inside and lines[n - 1].startswith("#") and not lines[n - 2].strip()
    ]
    bounds = [0, *(n - 1 for n in starts), len(lines)]
    pieces = ["\n".join(lines[a:b]).strip("\n") for a, b in pairwise(bounds)]
    joined: list[str] = []
    for piece in pieces:
        if joined and (count_lines(piece) < PIECE or count_lines(joined[-1]) < PIECE):
            joined[-1] = f"{joined[-1]}\n\n{piece}"
        elif piece.strip():
            joined.append(piece)
    return joined


_STEPS = (
    ("Model", (".fit(", "train_test_split", "LinearRegression", "smf.ols", "sm.OLS", "cross_val_score")),
    ("Plots", ("plt.", "sns.", "px.", ".plot(", "alt.Chart", "go.Figure")),
    (
        "Clean the data",
        (".dropna(", ".fillna(", ".drop_duplicates(", ".astype(", ".replace(", "to_datetime(", ".rename("),
    ),
    ("Summarise", (".groupby(", ".agg(", ".pivot_table(", ".value_counts(", ".describe(", ".merge(")),
)


def step_of(flow: Flow, cell: Cell) -> str:
    """Return which step of an analysis a cell is, "" where that can't be told."""
    tree = split(cell.source).tree
    if flow.imports and tree is not None and all(isinstance(s, ast.Import | ast.ImportFrom) for s in tree.body):
        return "Setup"
    if flow.read_files or "read_" in cell.source:
        return "Load the data"
    if flow.written_files and "savefig" not in cell.source:
        return "Save the results"
    return next((name for name, signs in _STEPS if any(sign in cell.source for sign in signs)), "")
