"""Scripts of a team that repairs a project's failing tests: the models' replies, written down; everything else is real.

Nothing of the project is known before: the lead runs the tests and makes a task of each that fails; a teammate runs its
test, reads the assertion and the function, and computes the edit from both. Use them as
`%agent team "Make the failing tests pass" -m scripted:nbagent.teach.team:lead --teammate-model scripted:nbagent.teach.team:teammate`.
Read `lead`, then `teammate`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbagent.core.messages import Block, Message
from nbagent.models.scripted import (
    REFUSED,
    Scripted,
    Value,
    call,
    last_results,
    prompt_text,
    result_of,
    result_text,
    say,
)

PYTEST = f'"{sys.executable}" -m pytest -q -p no:cacheprovider --tb=short'
_FAILED = re.compile(r"^FAILED (\S+?)::(\w+)", re.MULTILINE)
_TEST = re.compile(r"Test: (\S+?)::(\w+)")
_ASSERTED = re.compile(r"^\s*(?:>\s+)?assert (.+) == (.+)$", re.MULTILINE)
_GOT = re.compile(r"^E\s+assert (.+?) == (.+)$", re.MULTILINE)
_IMPORTED = re.compile(r"^\s*(?:\d+[ \t|]+)?from (\w[\w.]*) import (.+)$", re.MULTILINE)
_NUMBERED = re.compile(r"^\s*\d+(?:\t|: ?| \| ?)", re.MULTILINE)
_READY = re.compile(r"(\w+) completed task (\w+)")
_LONGEST = 400
"""Turns of a script at most: a real run ends long before."""


# ── the lead ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def lead() -> list[Scripted]:
    """Return the lead's script: run the tests, a task for each that fails, wait, merge, shut down, answer."""
    return [_run_tests, _make_tasks, *[_next] * _LONGEST]


def _run_tests(_: Sequence[Message]) -> Value:
    return [say("I run the tests to see what fails."), call("shell", command=PYTEST)]


def _make_tasks(transcript: Sequence[Message]) -> Value:
    failing = list(dict.fromkeys(_FAILED.findall(result_of(transcript, "shell"))))
    if not failing:
        return "All tests pass already: there is nothing to do for the team."
    return [say(f"{len(failing)} tests fail, a task for each."), *(_task(file, test) for file, test in failing)]


def _task(file: str, test: str) -> Block:
    return call(
        "task_create",
        title=f"Make {test} pass",
        description=f"Test: {file}::{test}\nRepair what it tests, not the test.",
    )


def _next(transcript: Sequence[Message]) -> Value:
    """Merge what is ready, else wait; when all is completed and merged, shut down and answer."""
    told = "\n".join(text for name, text in _results(transcript) if name in {"wait_for_team", "merge_teammate"})
    asked = [str(block["input"].get("teammate")) for block in _calls(transcript, "merge_teammate")]
    done = [owner for owner, _ in _READY.findall(told)]
    waiting = [owner for owner in dict.fromkeys(done) if asked.count(owner) < done.count(owner)]
    if waiting:
        return [call("merge_teammate", teammate=owner) for owner in waiting]
    made = len(_calls(transcript, "task_create"))
    stopped = _calls(transcript, "shutdown_request")
    if len(done) < made and not re.search(r"all teammates are gone", told):
        return [call("wait_for_team")]
    if not stopped:
        return [call("shutdown_request", to="*")]
    return _summary(transcript)


def _summary(transcript: Sequence[Message]) -> str:
    merges = [(str(block["input"]["teammate"]), text) for block, text in _answered(transcript, "merge_teammate")]
    lines = [f"- {name}: {text.splitlines()[0]}" for name, text in merges if text.strip()]
    names = set(dict(merges))
    conflicts = {name for name, text in dict(merges).items() if "in conflict" in text}  # by the last merge of each
    good = {name for name, text in merges if text.startswith(("Merged", "Nothing new"))} - conflicts
    head = f"The work of {len(good)} of {len(names)} teammates is merged cleanly" + (
        f", {len(conflicts)} in conflict." if conflicts else "."
    )
    return "\n".join([head, *lines])


# ── a teammate ───────────────────────────────────────────────────────────────────────────────────────────────────────


def teammate() -> list[Scripted]:
    """Return a teammate's script, for as many tasks as it gets: run, read, compute the edit, edit, run again, say."""
    return [_work] * _LONGEST


@dataclass(frozen=True, slots=True)
class Found:
    """What a teammate knows of its task: the failing expression `call`, what it must give, and the file it is in."""

    call: str
    wanted: str
    file: str
    function: str


def _work(transcript: Sequence[Message]) -> Value:
    """Take the next step of the newest task, from what has come of it so far."""
    own = since_prompt(transcript)
    told = _TEST.search(prompt_text(transcript))
    if told is None:
        return "NOT DONE: the task does not name a test."
    file, test = told[1], told[2]
    runs = [text for name, text in _results(own) if name == "shell"]
    reads = [text for name, text in _results(own) if name == "read_file"]
    edits = [text for name, text in _results(own) if name == "edit_file"]
    refused = [text for text in last_results(own) if text.startswith(REFUSED)]
    if refused:
        return f"NOT DONE: a step that I need was refused. {refused[0]}"
    if not runs:
        return [say("I run the test."), call("shell", command=f"{PYTEST} {file}::{test}")]
    if "passed" in runs[-1] and "failed" not in runs[-1]:
        return f"{test} passes now. {edits[-1] if edits else 'It passed already.'} Checked by running it."
    if not reads:
        return [call("read_file", path=file)]
    if len(reads) == 1:
        home = _home(reads[0], test)
        return [call("read_file", path=home)] if home else f"NOT DONE: {test} imports nothing of this project."
    if len(edits) < len(runs):
        found = _found(reads[0], test, runs[-1], reads[1])
        repaired = found and repair(_plain(reads[1]), found.function, found.call, found.wanted)
        if not found or not repaired:
            return f"NOT DONE: I can't see from the assertion what is wrong in {test}."
        old, new = repaired
        return [
            say(f"{found.call} must give {found.wanted}."),
            call("edit_file", path=_home(reads[0], test), old_text=old, new_text=new),
        ]
    if len(runs) > 3:
        return f"NOT DONE: {test} still fails after {len(edits)} edits."
    return [call("shell", command=f"{PYTEST} {file}::{test}")]


def _found(test_file: str, test: str, output: str, _: str) -> Found | None:
    """Read the failing assertion out of pytest's report, and which function it calls."""
    body = re.search(rf"def {test}\(.*?(?=^def |\Z)", _plain(test_file), re.MULTILINE | re.DOTALL)
    for expression, wanted in _ASSERTED.findall(output) or _ASSERTED.findall(body[0] if body else ""):
        name = re.match(r"(\w+)\(", expression)
        if name:
            return Found(expression.strip(), wanted.strip(), _home(test_file, test), name[1])
    return None


def _home(test_file: str, test: str) -> str:
    """Return the file of the project that a test imports the function that it calls from."""
    source = _plain(test_file)
    body = re.search(rf"def {test}\(.*?(?=^def |\Z)", source, re.MULTILINE | re.DOTALL)
    for module, names in _IMPORTED.findall(source):
        for name in (part.split(" as ")[-1].strip() for part in names.split(",")):
            if body and re.search(rf"\b{name}\(", body[0]):
                return module.replace(".", "/") + ".py"
    return ""


_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip


def repair(source: str, function: str, expression: str, wanted: str) -> tuple[str, str] | None:
    """Return the line of `function` to replace and its replacement, so that `expression` gives `wanted`; None: not found.

    Tries small changes, one at a time (another operator, a constant one more or less, two operands the other way round),
    and takes the first with which the function gives what is wanted.
    """
    tree = ast.parse(source)
    found = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function), None)
    if found is None:
        return None
    lines = source.splitlines()
    for node in ast.walk(found):
        for text in _variants(node):
            if not isinstance(node, ast.expr) or node.lineno != node.end_lineno or node.end_col_offset is None:
                continue
            old = lines[node.lineno - 1]
            new = old[: node.col_offset] + text + old[node.end_col_offset :]
            changed = "\n".join([*lines[: node.lineno - 1], new, *lines[node.lineno :]])
            if _gives(changed, expression, wanted):
                return _unique(lines, node.lineno - 1, new)
    return None


def _variants(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.BinOp):
        left, right = ast.unparse(node.left), ast.unparse(node.right)
        others = [f"{left} {sign} {right}" for kind, sign in _OPERATORS.items() if not isinstance(node.op, kind)]
        if (sign := _OPERATORS.get(type(node.op))) is not None:
            others.append(f"{right} {sign} {left}")
        yield from (form for text in others for form in (text, f"({text})"))
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        yield from (f"{left} {sign} {right}" for sign in ("<", "<=", ">", ">=", "==", "!="))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        yield from (repr(node.value + step) for step in (1, -1, 2, -2))
        yield from (repr(node.value * 10), repr(node.value // 10))


_PLAIN = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.Expr, ast.If, ast.IfExp, ast.BinOp,
    ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.Name, ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Subscript,
    ast.expr_context, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_BUILTINS = {"abs": abs, "len": len, "max": max, "min": min, "round": round, "sorted": sorted, "sum": sum}
_LARGEST = 1_000_000


def _harmless(tree: ast.AST) -> bool:
    """Whether code only computes with numbers and short texts: it can reach nothing, and ends soon."""
    return all(
        isinstance(node, _PLAIN) and not (isinstance(node, ast.Constant) and not _small(node.value))
        for node in ast.walk(tree)
    )


def _small(value: object) -> bool:
    return abs(value) <= _LARGEST if isinstance(value, int | float) else isinstance(value, str) or value is None


def _gives(source: str, expression: str, wanted: str) -> bool:
    """Whether `expression` has the value `wanted` beside the functions in `source`; they are run only where they are harmless."""
    try:
        functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        compared = ast.parse(f"_right = ({expression}) == ({wanted})").body
        module = ast.Module([*functions, *compared], [])
        if not _harmless(module):
            return False
        names: dict[str, object] = {"__builtins__": _BUILTINS}
        exec(compile(module, "<candidate>", "exec"), names)  # noqa: S102  (nothing but what `_harmless` lets through)
        return names["_right"] is True
    except (ArithmeticError, LookupError, TypeError, ValueError, NameError, SyntaxError, RecursionError):
        return False


def _unique(lines: Sequence[str], index: int, new: str) -> tuple[str, str]:
    """Return the old and the new text with as many lines before it as make the old one the only such place."""
    first = index
    text = "\n".join(lines)
    while text.count("\n".join(lines[first : index + 1])) > 1 and first:
        first -= 1
    head = list(lines[first:index])
    return "\n".join([*head, lines[index]]), "\n".join([*head, new])


# ── what a transcript says ───────────────────────────────────────────────────────────────────────────────────────────


def _plain(text: str) -> str:
    """Return a file as it is, from read_file's text with line numbers."""
    lines = text.splitlines()
    numbered = bool(lines) and all(_NUMBERED.match(line) for line in lines if line.strip())
    return "\n".join(_NUMBERED.sub("", line, count=1) for line in lines) + "\n" if numbered else text


def _blocks(transcript: Sequence[Message], kind: str) -> list[Block]:
    return [b for m in transcript if isinstance(m["content"], list) for b in m["content"] if b.get("type") == kind]


def _calls(transcript: Sequence[Message], tool: str) -> list[Block]:
    return [block for block in _blocks(transcript, "tool_use") if block["name"] == tool]


def _results(transcript: Sequence[Message]) -> list[tuple[str, str]]:
    """Return every result in order: its tool's name and its text."""
    names = {block["id"]: str(block["name"]) for block in _blocks(transcript, "tool_use")}
    return [(names.get(b["tool_use_id"], ""), result_text(b)) for b in _blocks(transcript, "tool_result")]


def _answered(transcript: Sequence[Message], tool: str) -> list[tuple[Block, str]]:
    texts = {b["tool_use_id"]: result_text(b) for b in _blocks(transcript, "tool_result")}
    return [(block, texts.get(block["id"], "")) for block in _calls(transcript, tool)]


def since_prompt(transcript: Sequence[Message]) -> Sequence[Message]:
    """Return what came after the newest prompt."""
    for index in range(len(transcript) - 1, -1, -1):
        message = transcript[index]
        content = message["content"]
        results = isinstance(content, list) and any(b.get("type") == "tool_result" for b in content)
        if message["role"] == "user" and not results:
            return transcript[index + 1 :]
    return transcript
