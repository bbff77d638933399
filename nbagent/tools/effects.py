"""A static look at code: what it might do beyond the notebook. It may raise a question and never answers one.

Two looks come together here: `_Look`, which finds names wherever they stand, also in functions that nobody calls yet, and
foresee.py, which follows what the cell would really do. Code that hides its intent gets through both; the approval of
code is what protects. This module must not run, import or evaluate anything of the code. Read `effects`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from nbagent.core.tools import Kind
from nbagent.tools import cellcode
from nbagent.tools.dotted import Dotted
from nbagent.tools.foresee import LONGEST, Foresight, look_at, told
from nbagent.tools.signs import (
    ANSWER_MAGIC,
    ANSWER_NAMES,
    ANSWER_SETTINGS,
    ANSWER_TEXT,
    ANSWERS,
    ANY_OWNER,
    ASSUMED,
    DOUBTFUL,
    EXIT_ATTRIBUTES,
    EXIT_CALLS,
    EXIT_NAMES,
    EXIT_TEXT,
    EXITS,
    INSTALL_LOOKS,
    INSTALL_MAGICS,
    INSTALLS,
    MODULES,
    NETWORK,
    ORDER,
    READER,
    ROUGH,
    RUNS_MAGIC,
    SETTING_MAGICS,
    SHELL,
    SHELL_KILL,
    SHELL_MAGICS,
    TAKES_TEXT,
    UNSEEN,
    UNSEEN_MAGICS,
    URL,
    label_of,
    of_command,
)


def effects(code: str, namespace: Mapping[str, object] | None = None) -> frozenset[str]:
    """Return what `code` (a cell: Python, magics and `!` lines) looks as if it could do beyond the notebook.

    The labels are the plain words of this module's constants, such as "deletes files". Code that is neither Python nor
    IPython's has none. With the `namespace` of the kernel, names that other cells made are known for what they are
    (`sp` for subprocess, a table called `requests`); their values are not touched.
    """
    return _effects(code, namespace, look_at(code, namespace or {}))


def _effects(code: str, namespace: Mapping[str, object] | None, look: Foresight) -> frozenset[str]:
    if len(code) > LONGEST:
        rough = {label for pattern, label in ROUGH if pattern.search(code)}
        rough |= {label for pattern, label in ((EXIT_TEXT, EXITS), (ANSWER_TEXT, ANSWERS)) if pattern.search(code)}
        return frozenset({UNSEEN, *rough})
    return frozenset({*look.risks, *_Look(namespace).cell(code), *({EXITS} if exits_kernel(code) else ())})


def kind_of(code: str, otherwise: Kind, namespace: Mapping[str, object] | None = None) -> Kind:
    """Return the row of the policy table for running `code`: `otherwise` where its look raises no question."""
    found = effects(code, namespace)
    return Kind.PROTECTED if found & {EXITS, ANSWERS} else Kind.RISKY_CODE if found else otherwise


def in_words(found: Iterable[str]) -> str:
    """Return effects as the end of a title, " (deletes files, network)", or ""."""
    given = set(found)
    said = [label for label in ORDER if label in given]
    return f" ({', '.join(said)})" if said else ""


def hints(code: str, namespace: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what running `code` (a cell) would do, in plain words, for a person who is asked: a hint and no promise.

    Such as "deletes tmp/", "rebinds `df`" (a name of `namespace`; new names are no news), "changes `sales` in place",
    "writes out.csv". The worst come first. Nothing is run, any text is taken, and the time is bounded.
    """
    look = look_at(code, namespace)
    return told(look, _effects(code, namespace, look))


def exits_kernel(code: str) -> bool:
    """Tell whether `code` (a cell: Python, magics and `!` lines) looks as if it could end or kill the kernel.

    True for exit() and quit(), os._exit, os.kill, os.exec*, signal.raise_signal and their like, also imported by name
    or fetched with getattr, and for shell lines that kill. `sys.exit` is not among them: it only stops the code.
    """
    if len(code) > LONGEST:
        return bool(EXIT_TEXT.search(code))
    parts = cellcode.split(code)
    if any(SHELL_KILL.search(command) for command in parts.shell):
        return True
    if parts.tree is None:
        return bool(EXIT_TEXT.search(code))
    aliases = _aliases(parts.tree)
    bodies = [parts.tree, *(tree for _, rest in parts.magics if (tree := cellcode.parse(cellcode.python_of(rest))))]
    return any(_suspicious(node, aliases) for body in bodies for node in ast.walk(body))


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Map local names to the dotted names that they were imported as."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _suspicious(node: ast.AST, aliases: dict[str, str]) -> bool:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id in EXIT_NAMES or aliases.get(node.id, "") in EXIT_CALLS
    if isinstance(node, ast.Attribute):
        owner = aliases.get(node.value.id, node.value.id) if isinstance(node.value, ast.Name) else ""
        return node.attr in EXIT_ATTRIBUTES or f"{owner}.{node.attr}" in EXIT_CALLS or _kills_process(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"getattr", "setattr"}:
        return any(isinstance(a, ast.Constant) and a.value in EXIT_ATTRIBUTES | {"kill", "abort"} for a in node.args)
    return False


def _kills_process(node: ast.Attribute) -> bool:
    """Whether it is `psutil.Process().kill` or the like on the kernel's own process."""
    call = node.value
    if node.attr not in {"kill", "terminate", "suspend", "send_signal"} or not isinstance(call, ast.Call):
        return False
    return not call.args and ast.unparse(call.func) in {"psutil.Process", "Process"}


class _Look:
    """One look at a cell and at the code that it holds as text (`exec("…")`), to a small depth."""

    def __init__(self, namespace: Mapping[str, object] | None, depth: int = 4) -> None:
        self._namespace = namespace
        self._depth = depth

    def cell(self, code: str) -> set[str]:
        """Return the labels of a cell."""
        parts = cellcode.split(code)
        found: set[str] = set()
        for command in parts.shell:
            found |= {SHELL, *of_command(command)}
        for name, rest in parts.magics:
            found |= self._magic(name, rest)
        if parts.tree is not None:
            found |= self._tree(parts.tree)
        elif parts.shell or parts.magics:  # IPython may well read what this look could not
            found |= {label for pattern, label in (*ROUGH, (ANSWER_TEXT, ANSWERS)) if pattern.search(code)}
        return found

    def _magic(self, name: str, rest: str) -> set[str]:
        if name in INSTALL_MAGICS:
            return set() if INSTALL_LOOKS.match(rest) else {INSTALLS, *of_command(rest)}
        if name in SHELL_MAGICS:
            return {SHELL, *of_command(f"{name} {rest}")}
        if name in UNSEEN_MAGICS:
            return {UNSEEN, NETWORK} if URL.search(rest) else {UNSEEN}
        if name == "agent" or (name in SETTING_MAGICS and ANSWER_SETTINGS.match(rest)):
            return {ANSWERS}
        if name == "pastebin":
            return {NETWORK}
        if ANSWER_MAGIC.match(rest.strip()) and rest.strip().startswith("%"):  # %time %agent allow
            return {ANSWERS}
        return self._inner(cellcode.python_of(rest))

    def _inner(self, code: str) -> set[str]:
        return _Look(self._namespace, self._depth - 1).cell(code) if code and self._depth > 0 else set()

    def _tree(self, tree: ast.AST) -> set[str]:
        names = Dotted(tree, ASSUMED, frozenset(DOUBTFUL), self._namespace)
        found: set[str] = set()
        harmless: set[int] = set()
        for node in ast.walk(tree):  # a call comes before its function
            if _answers(node, names):
                found.add(ANSWERS)
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= _of_import(node)
            elif isinstance(node, ast.Call):
                found |= self._call(node, names)
                if _is_harmless(node, names):
                    harmless.add(id(node.func))
            elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and id(node) not in harmless:
                found |= _of_reference(node, names)
        return found

    def _call(self, node: ast.Call, names: Dotted) -> set[str]:
        called = names.of(node.func)
        label = label_of(called)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        found: set[str] = set()
        fetched = names.of(node)
        if not fetched.endswith("()") and (fetched_label := label_of(fetched)):  # getattr(os, "system")
            found.add(fetched_label)
        if label == SHELL:
            parts = [names.text(part) for argument in given for part in ast.walk(argument)]
            found |= of_command(" ".join(part for part in parts if part))
        elif label == UNSEEN and given:
            found |= self._inner(names.text(given[0]) or "")
        if called == "operator.methodcaller" and given and (named := names.text(given[0])) in ANY_OWNER:
            found.add(ANY_OWNER[named])
        if called.startswith("get_ipython().run_") and called.endswith("_magic"):
            head, *rest = [names.text(argument) or "" for argument in given] or [""]
            mark, end = ("%%", "\n") if "cell" in called else ("%", " ")
            found |= self._inner(f"{mark}{head} {end.join(rest)}") if head else {UNSEEN}
        if called == "getattr" and len(node.args) > 1 and names.text(node.args[1]) is None:
            owner = names.of(node.args[0])
            found |= {UNSEEN} if owner in {"os", "shutil", *MODULES} else set()
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if READER.search(name) and any(URL.match(names.text(argument) or "") for argument in given):
            found.add(NETWORK)
        return found


def _answers(node: ast.AST, names: Dotted) -> bool:
    """Whether it names what could answer in the person's place; also as a text, as getattr takes it."""
    if isinstance(node, ast.Attribute):
        return ANSWER_NAMES.fullmatch(node.attr) is not None
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and ANSWER_NAMES.fullmatch(node.value) is not None
    if isinstance(node, ast.keyword):  # environ.update(NBAGENT_MODE="…")
        return node.arg is not None and ANSWER_NAMES.fullmatch(node.arg) is not None
    if not isinstance(node, ast.Call) or not node.args:
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else names.of(node.func).rpartition(".")[2]
    return called in RUNS_MAGIC and ANSWER_MAGIC.match(names.text(node.args[0]) or "") is not None


def _is_harmless(node: ast.Call, names: Dotted) -> bool:
    """Whether a call runs text that is literally there, which is looked at by itself, or only looks like `requests`."""
    called = names.of(node.func)
    if called in TAKES_TEXT or called.startswith("get_ipython().run_"):
        return bool(node.args) and names.is_literal(node.args[0])
    if called in {"?requests.head", "?requests.get"}:  # frame.head(5)
        return not node.keywords and all(isinstance(a, ast.Constant) and type(a.value) is not str for a in node.args)
    return False


def _of_reference(node: ast.Name | ast.Attribute | ast.Subscript, names: Dotted) -> set[str]:
    if not isinstance(node.ctx, ast.Load):
        return set()
    found = {ANY_OWNER[node.attr]} if isinstance(node, ast.Attribute) and node.attr in ANY_OWNER else set[str]()
    label = label_of(names.of(node))
    return {*found, label} if label else found


def _of_import(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Return what an import hands on under a name by which a later cell would not be known."""
    if isinstance(node, ast.Import):
        hidden = [f"{alias.name}.x" for alias in node.names if alias.asname and alias.asname != alias.name]
    elif not node.module or node.level:
        return set()
    else:
        every = {"os": "os.system", "shutil": "shutil.rmtree"}.get(node.module, f"{node.module}.x")
        named = [alias.name for alias in node.names if alias.name != "import_module"]
        hidden = [every if name == "*" else f"{node.module}.{name}" for name in named]
    return {label for name in hidden if (label := label_of(name))}
