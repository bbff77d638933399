"""The house keeps its shape: arrows point inward only, heavy packages stay lazy, boundaries stay few.

DESIGN's layer table is `LAYERS` and `THIRD_PARTY` below; a new file or package has to be put into them on purpose.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.source import PACKAGE, ROOT, Import, files, functions, imports, short, tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def listed(problems: list[str]) -> str:
    """One problem a line, for a failure that can be read."""
    return "\n" + "\n".join(problems)


# ── arrows between our own parts ─────────────────────────────────────────────────────────────────────────────────────

OUTSIDE = {"__init__.py", "__main__.py", "cli.py", "config.py", "pytest_plugin.py"}
EDGES = {"models", "tools", "extend", "prompt", "esm"}
HOSTS = {"jupyter", "headless", "view", "teach"}


def _part(file: str) -> str:
    """The part of the house that a file belongs to: core, an edge, a host, or outside."""
    if file in OUTSIDE or file.startswith("app/"):
        return "outside"
    folder, slash, _ = file.partition("/")
    return folder if slash else "outside"


def _allowed(part: str) -> set[str]:
    if part == "core":
        return {"core"}
    if part in EDGES:
        return {"core", part}
    if part in HOSTS:
        return {"core", *EDGES, part}
    return {"core", *EDGES, *HOSTS, "outside"}


def _target(module: str) -> str:
    path = "/".join(module.split(".")[1:])
    if not path:
        return "outside"
    return _part(f"{path}/__init__.py" if (PACKAGE / path).is_dir() else f"{path}.py")


def _all_imports() -> Iterator[Import]:
    for path in files():
        yield from imports(path)


def test_every_file_belongs_to_a_part_of_the_house() -> None:
    known = {"core", "outside", *EDGES, *HOSTS}
    strays = [short(path) for path in files() if _part(short(path)) not in known]
    assert not strays, listed(strays)
    loose = [path.name for path in PACKAGE.glob("*.py") if path.name not in OUTSIDE]
    assert loose == [], "files beside the package's parts must be named in OUTSIDE"


def test_arrows_point_inward_only() -> None:
    wrong = [
        f"{found}: {_part(found.file)} must not know {_target(found.module)}"
        for found in _all_imports()
        if found.top == "nbagent" and _target(found.module) not in _allowed(_part(found.file))
    ]
    assert not wrong, listed(wrong)


# ── arrows to other people's packages ────────────────────────────────────────────────────────────────────────────────

EAGER, LAZY = False, True
THIRD_PARTY: dict[str, dict[str, bool]] = {
    # package → where it may be imported (a file, a folder with its slash, or "outside") → whether only in functions
    "IPython": {"jupyter/": EAGER, "app/": EAGER, "outside": LAZY},
    "PIL": {"tools/results.py": LAZY, "tools/images.py": LAZY, "tools/sameimages.py": LAZY},
    "anthropic": {"models/anthropic.py": LAZY, "models/clients.py": LAZY, "models/platforms.py": LAZY, "tools/workspace.py": LAZY,
                  "tools/workspace_root.py": LAZY, "tools/search.py": LAZY, "extend/memory.py": LAZY},
    "anywidget": {"jupyter/": EAGER, "view/timelinewidget.py": EAGER, "view/tray.py": EAGER,
                  "view/loopview/panel.py": EAGER},
    "comm": {"jupyter/": EAGER},
    "duckdb": {"tools/data/query.py": LAZY, "tools/data/sqlasked.py": LAZY},
    "httpx": {"models/": LAZY},
    "httpx2": {"models/": LAZY, "extend/mcp_connect.py": LAZY, "extend/mcp_words.py": LAZY},
    "ipykernel": {"jupyter/": EAGER},
    "ipywidgets": {"jupyter/": EAGER, "view/widget.py": EAGER, "view/cards.py": EAGER, "view/questioncard.py": EAGER,
                   "view/humancard.py": EAGER, "view/steppanel.py": EAGER,
                   "view/tray.py": EAGER},
    "draw_plotly": {"tools/data/draw.py": LAZY},  # beside it: both are run as files, in a process of their own
    "numpy": {"tools/data/draw_plotly.py": LAZY},
    "kaleido": {"tools/data/draw.py": LAZY},
    "matplotlib": {"tools/data/draw_plotly.py": LAZY},
    "vl_convert": {"tools/data/draw.py": LAZY},
    "jupyter_client": {"headless/": EAGER, "outside": LAZY},
    "jupyter_ui_poll": {"jupyter/": EAGER},
    "jupyter_core": {"headless/": EAGER, "tools/servers.py": LAZY},
    "markdown_it": {"view/": EAGER},
    "jsonschema": {"extend/mcp_schema.py": LAZY},
    "mcp": {"extend/mcp_client.py": LAZY, "extend/mcp_connect.py": LAZY, "extend/mcp_offers.py": LAZY,
            "extend/mcp_words.py": LAZY, "outside": LAZY},
    "nbclient": {"headless/": EAGER, "outside": LAZY},
    "nbconvert": {"outside": LAZY},
    "nbformat": {"headless/": EAGER, "outside": LAZY, "tools/keeping.py": LAZY},
    "pandas": {"app/maptable.py": LAZY},
    "papermill": {"headless/": LAZY},
    "openpyxl": {"tools/data/heads_excel.py": LAZY},
    "pyarrow": {"tools/data/heads_arrow.py": LAZY, "tools/data/opening.py": LAZY},
    "pathspec": {"tools/pathrules.py": LAZY},
    "platformdirs": {"extend/": EAGER, "outside": EAGER},
    "psutil": {"headless/offspring.py": LAZY, "jupyter/commands.py": LAZY, "tools/server_kernels.py": LAZY},
    "pytest": {"pytest_plugin.py": EAGER},
    "pydantic": {"core/tools.py": LAZY, "app/mapfields.py": LAZY, "extend/mcp_client.py": LAZY, "extend/mcp_offers.py": LAZY},
    "pygments": {"view/": EAGER},
    "referencing": {"extend/mcp_schema.py": LAZY},
    "reactivex": {"teach/carriers/reactive.py": LAZY, "teach/against_reactive.py": LAZY},
    "rich": {"headless/report.py": EAGER, "view/terminal.py": EAGER, "outside": EAGER},
    "traitlets": {"app/": EAGER, "jupyter/": EAGER, "view/timelinewidget.py": EAGER, "view/tray.py": EAGER, "headless/": EAGER},
    "tornado": {"jupyter/": EAGER},
    "tree_sitter": {"tools/commandline.py": LAZY},
    "tree_sitter_bash": {"tools/commandline.py": LAZY},
    "typer": {"outside": EAGER},
    "yaml": {"extend/frontmatter.py": LAZY},
    "zstandard": {"tools/data/opening.py": LAZY},
    "zmq": {"headless/page.py": EAGER},
}  # fmt: skip


def _permission(found: Import) -> bool | None:
    """Whether an import must be lazy; None where it may not be at all."""
    places = THIRD_PARTY.get(found.top, {})
    for place, lazy in places.items():
        if found.file == place or (place.endswith("/") and found.file.startswith(place)):
            return lazy
        if place == "outside" and _part(found.file) == "outside":
            return lazy
    return None


def test_other_packages_are_imported_only_where_the_table_says() -> None:
    wrong: list[str] = []
    for found in _all_imports():
        if found.top in {"nbagent", "__future__"} or found.top in sys.stdlib_module_names or found.typing_only:
            continue
        lazy = _permission(found)
        if lazy is None:
            wrong.append(f"{found}: not in the table")
        elif lazy and not found.lazy:
            wrong.append(f"{found}: only inside a function")
    assert not wrong, listed(wrong)


# ── importing does nothing ───────────────────────────────────────────────────────────────────────────────────────────

IMPORT_ALL = """
import json, os, signal, sys, threading
before = dict(env=dict(os.environ), handler=repr(signal.getsignal(signal.SIGINT)), hook=sys.excepthook,
              out=sys.stdout.write, here=os.listdir("."))
import importlib
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(dict(
    heavy=sorted({m.partition(".")[0] for m in sys.modules} & set(json.loads(sys.argv[2]))),
    threads=[t.name for t in threading.enumerate() if t is not threading.main_thread()],
    env=sorted(set(os.environ.items()) ^ set(before["env"].items())),
    changed=[n for n, same in dict(
        sigint=repr(signal.getsignal(signal.SIGINT)) == before["handler"], excepthook=sys.excepthook is before["hook"],
        files=os.listdir(".") == before["here"]).items() if not same])))
"""
HEAVY = [
    "PIL",
    "anthropic",
    "duckdb",
    "google",
    "httpx",
    "httpx2",
    "matplotlib",
    "mcp",
    "numpy",
    "pandas",
    "papermill",
    "pathspec",
    "polars",
    "tree_sitter",
    "tree_sitter_bash",
    "yaml",
]


def _import_in_fresh_interpreter(modules: list[str], watched: list[str]) -> dict[str, list[str]]:
    command = [sys.executable, "-c", IMPORT_ALL, json.dumps(modules), json.dumps(watched)]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    found: dict[str, list[str]] = json.loads(out.stdout)
    return found


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.slow
def test_importing_every_module_has_no_effect_and_loads_nothing_heavy() -> None:
    modules = [_module(path) for path in files() if path.name != "__main__.py"]
    assert _import_in_fresh_interpreter(modules, HEAVY) == {"heavy": [], "threads": [], "env": [], "changed": []}


def test_importing_nbagent_loads_no_part_of_jupyter() -> None:
    watched = [*HEAVY, "IPython", "ipywidgets", "anywidget", "nbformat", "nbclient", "pydantic", "rich", "typer"]
    assert _import_in_fresh_interpreter(["nbagent"], watched)["heavy"] == []


LOAD_EXTENSION = """
import json, sys, threading
watched, seen = set(json.loads(sys.argv[1])), []

def note(event, args):
    if event == "import" and args[0].partition(".")[0] in watched and threading.current_thread() is main:
        seen.append(args[0])

from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
main = threading.main_thread()
sys.addaudithook(note)
shell.run_line_magic("load_ext", "nbagent")
print(json.dumps(sorted(set(seen))))
"""


def test_loading_the_extension_imports_nothing_heavy_where_the_person_waits() -> None:
    """A thread may warm up the client afterwards; the main thread must not import it."""
    command = [sys.executable, "-W", "error", "-c", LOAD_EXTENSION, json.dumps(HEAVY)]
    out = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout) == []


def test_the_core_loads_the_standard_library_only() -> None:
    modules = [_module(path) for path in files(PACKAGE / "core")]
    watched = sorted(set(THIRD_PARTY) | set(HEAVY))
    assert _import_in_fresh_interpreter(modules, watched)["heavy"] == []


# ── few boundaries, no hidden state ──────────────────────────────────────────────────────────────────────────────────

BROAD = {
    # file → the functions in it that may catch anything, and why
    "core/calls.py": {"_one": "tool dispatch: whatever a tool raises becomes its call's result"},
    "extend/hooks.py": {"*": "hook dispatch: a hook that fails closes the gate"},
    "app/magics.py": {"*": "the magic: a failure becomes a sentence in the cell"},
}
HELPERS: dict[str, set[str]] = {
    # tiny helpers where other people's code may raise anything
    "core/calls.py": {"_said"},  # an exception's own __str__
    "core/dispatch.py": {"_decided"},  # what a tool says of its call
    "jupyter/capture.py": {"safe_str"},  # an exception's own __str__
    "jupyter/kernel.py": {"_transformed", "transformed", "_result_of"},  # other extensions; __str__ of what was raised
    "jupyter/notebook.py": {"_sent"},  # the transport below a person's print
    "teach/composing.py": {"_advanced"},  # whatever an inner generator raises goes to the one above it
    "teach/exercises.py": {"_verdict"},  # a learner's answer
    "tools/data/describers.py": {"attempt"},  # __repr__ and properties of any object, describers of other people
    "tools/fingerprints.py": {"_guarded"},  # what libraries do with half-made objects
    "view/widget.py": {"_guarded"},  # what a click asked for
}
HELPER_LINES = 15


def _broad_excepts(path: Path) -> Iterator[tuple[str, int, int]]:
    """Functions with an `except:`, `except Exception` or `except BaseException`: name, line, length."""
    owners = {}  # node → the innermost function around it: inner functions come after outer ones
    for name, function in functions(path):
        owners.update(dict.fromkeys(ast.walk(function), (name, function)))
    for node, (name, function) in owners.items():
        broad = isinstance(node, ast.ExceptHandler) and _is_broad(node)
        suppress = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress")
        if broad or (suppress and _names_broad(node.args)):
            yield name, node.lineno, (function.end_lineno or 0) - function.lineno + 1


def _is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    cleanup = bool(handler.body) and isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None
    return _names_broad(kinds) and not cleanup  # one that ends in a bare `raise` lets everything through


def _names_broad(kinds: list[ast.expr]) -> bool:
    return any(ast.unparse(kind) in {"Exception", "BaseException"} for kind in kinds)


def test_only_the_named_boundaries_catch_everything() -> None:
    wrong: list[str] = []
    for path in files():
        file = short(path)
        allowed, helpers = BROAD.get(file, {}), HELPERS.get(file, set())
        for name, line, length in _broad_excepts(path):
            last = name.rpartition(".")[2]
            if "*" in allowed or last in allowed:
                continue
            if ("*" in helpers or last in helpers) and length <= HELPER_LINES:
                continue
            wrong.append(f"nbagent/{file}:{line} {name} catches everything ({length} lines)")
    assert not wrong, listed(wrong)


def test_nothing_uses_global_names_as_state() -> None:
    found = [
        f"{short(path)}:{node.lineno}"
        for path in files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Global)
    ]
    assert not found, listed(found)


# ── tests keep to the rules too ──────────────────────────────────────────────────────────────────────────────────────

TESTS = ROOT / "tests"
SLOW_ON_PURPOSE = {"tests/support/messages_wire.py"}  # a server that paces its stream: no test waits by it


def _imported_from_nbagent(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nbagent"):
            names |= {(n.asname or n.name) for n in node.names}
        elif isinstance(node, ast.Import):
            names |= {(n.asname or n.name.partition(".")[0]) for n in node.names if n.name.startswith("nbagent")}
    return names


def _is_sleep(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if name not in {"time.sleep", "asyncio.sleep", "sleep"}:
        return False
    gives_way = name != "time.sleep" and call.args and ast.unparse(call.args[0]) == "0"
    return not gives_way


@pytest.mark.slow
def test_no_test_sleeps() -> None:
    """Code of cells that a test runs in a kernel is text and may sleep: it is what is interrupted."""
    found = [
        f"{short(path)}:{node.lineno} {ast.unparse(node)}"
        for path in files(TESTS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and _is_sleep(node) and short(path) not in SLOW_ON_PURPOSE
    ]
    assert not found, listed(found)


@pytest.mark.slow
def test_no_test_patches_our_own_code() -> None:
    found: list[str] = []
    for path in files(TESTS):
        ours = _imported_from_nbagent(path)
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module == "unittest.mock" and "patch" in ast.unparse(node):
                found.append(f"{short(path)}:{node.lineno} {ast.unparse(node)}")  # a MagicMock as data is fine
            if not isinstance(node, ast.Call) or not node.args:
                continue
            method = ast.unparse(node.func)
            target = ast.unparse(node.args[0])
            patched = target.strip("'\"").split(".")[0] in {"nbagent", *ours} or target.split(".")[0] in ours
            if method.startswith("mock.patch") or (
                method in {"monkeypatch.setattr", "monkeypatch.delattr", "monkeypatch.setitem"} and patched
            ):
                found.append(f"{short(path)}:{node.lineno} {ast.unparse(node)}")
    assert not found, listed(found)


@pytest.mark.slow
def test_no_test_skips() -> None:
    found = [
        f"{short(path)}:{node.lineno} {ast.unparse(node)}"
        for path in files(TESTS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) in {"pytest.skip", "pytest.importorskip", "pytest.mark.skip", "pytest.mark.skipif"}
    ]
    assert not found, listed(found)


def bound_at_the_top(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module binds by a definition or a plain assignment."""
    if isinstance(node, ast.ClassDef) or (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and "overload" not in map(ast.unparse, node.decorator_list)
    ):
        yield node.name
    for target in (
        node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    ):
        yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


@pytest.mark.slow
def test_no_name_of_a_module_is_bound_twice() -> None:
    """The second would stand for the first everywhere, in what was written for the first too."""
    found = [
        f"{short(path)}: {name}"
        for path in [*files(PACKAGE), *files(TESTS)]
        for name, times in Counter(name for node in tree(path).body for name in bound_at_the_top(node)).items()
        if times > 1
    ]
    assert not found, listed(found)


def test_a_name_that_is_bound_twice_would_be_found() -> None:
    module = ast.parse("A = 1\ndef a(): pass\nB, (C, *D) = 1, (2, 3)\nA: int = 2\nx.y = 3")
    assert [name for node in module.body for name in bound_at_the_top(node)] == ["A", "a", "B", "C", "D", "A"]


@pytest.mark.parametrize("statement", ["time.sleep(0)", "asyncio.sleep(0.1)", "sleep(1)"])
def test_a_sleep_would_be_found(statement: str) -> None:
    call = ast.parse(statement, mode="eval").body
    assert isinstance(call, ast.Call)
    assert _is_sleep(call)


def test_giving_way_to_other_tasks_is_no_sleep() -> None:
    call = ast.parse("asyncio.sleep(0)", mode="eval").body
    assert isinstance(call, ast.Call)
    assert not _is_sleep(call)
