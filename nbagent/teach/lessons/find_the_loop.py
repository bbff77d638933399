"""The exercises of lesson 14, find the loop: mark it in three strange agents by eye, then write a program that finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbagent.teach.exercises import Exercise, NotYet
from nbagent.teach.strangers import BASALT, HERON, ORCHID, STRANGERS

QUESTIONS: dict[str, str] = {
    "request": "which line sends the conversation to the model?",
    "go_on": "which line decides whether there is another turn?",
    "append": "which line adds the results to the conversation?",
    "stop": "which line ends a run that would go on for ever?",
}
"""What `marks` holds of each agent, and what it means."""

_RIGHT: dict[str, dict[str, tuple[str, ...]]] = {
    "orchid": {"request": ("llm(log)",), "go_on": ("if not answer",), "append": ('"tool"',), "stop": ("range(8)",)},
    "heron": {"request": ("ask(past)",), "go_on": ('if said["calls"]',), "append": ('"tool"',),
              "stop": ("if left == 0",)},
    "basalt": {"request": ("self.brain(self.memory)",), "go_on": ("if not thought",), "append": ('"tool"',),
               "stop": ("while len",)},
}  # fmt: skip

OTHER = """async def assist(first, engine, toolbox, rounds):
    history = list(first)
    notes = []
    while rounds:
        rounds -= 1
        turn = await engine.complete(history, temperature=0)
        notes.append(len(history))
        history += [turn]
        if turn["stop"]:
            break
        history += [await toolbox.run(wish) for wish in turn["wishes"]]
    return history, notes
"""
"""A fourth agent, which the learner does not see: what finds the loop must find it here, too."""


def right_lines(name: str, question: str) -> set[int]:
    """Return the numbers of the right lines, from 1."""
    needles = _RIGHT[name][question]
    return {n for n, line in enumerate(STRANGERS[name].splitlines(), 1) if any(needle in line for needle in needles)}


def _marks(names: Mapping[str, Any]) -> None:
    marks = names["marks"]
    wrong = [
        f"{name}, {question}: line {marks.get(name, {}).get(question)!r} is not it ({QUESTIONS[question]})"
        for name in STRANGERS
        for question in QUESTIONS
        if marks.get(name, {}).get(question) not in right_lines(name, question)
    ]
    if wrong:
        more = f" There are {len(wrong) - 1} more." if len(wrong) > 1 else ""
        raise NotYet(f"{wrong[0]}.{more}")


_GROWS = {
    "orchid": (ORCHID, {"log"}),
    "heron": (HERON, {"past"}),
    "basalt": (BASALT, {"self.memory"}),
    "an agent that you have not seen": (OTHER, {"history", "notes"}),
    "code without a loop": ("def f(x):\n    y = x + 1\n    return y\n", set[str]()),
}


def _growing(names: Mapping[str, Any]) -> None:
    growing = names["growing"]
    for name, (source, right) in _GROWS.items():
        found = growing(source)
        if not isinstance(found, set):
            raise NotYet(f"growing(…) should give a set of names, and it gave {found!r}.")
        if missing := right - found:
            raise NotYet(f"in {name}, {_said(missing)} grows, and growing(…) does not say so.")
        if extra := found - right:
            raise NotYet(f"in {name}, {_said(extra)} does not grow: it is not appended to, and nothing is added to it.")


def _requests(names: Mapping[str, Any]) -> None:
    requests = names["requests"]
    right = {name: right_lines(name, "request") for name in STRANGERS}
    for name, source in STRANGERS.items():
        found = set(requests(source))
        if not found >= right[name]:
            raise NotYet(f"in {name}, the request is in line {min(right[name])}; requests(…) gave {sorted(found)}.")
        if found - right[name]:
            raise NotYet(f"in {name}, line {min(found - right[name])} asks no model. Which calls get the conversation and may be left out?")  # fmt: skip
    if set(requests(OTHER)) != {6}:
        raise NotYet(
            f"an agent that you have not seen asks its model in line 6, by `engine.complete(history, …)`; requests(…) gave {sorted(requests(OTHER))}."
        )


def _said(found: set[str]) -> str:
    return " and ".join(f"`{name}`" for name in sorted(found, key=str))


_MARKS = """marks = {
    "orchid": {"request": 4, "go_on": 6, "append": 10, "stop": 3},
    "heron": {"request": 4, "go_on": 6, "append": 8, "stop": 2},
    "basalt": {"request": 11, "go_on": 13, "append": 16, "stop": 19},
}"""
_GROWING = """import ast


def growing(source):
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            found.add(ast.unparse(node.func.value))
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            found.add(ast.unparse(node.target))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
            name = ast.unparse(node.targets[0])
            if ast.unparse(node.value.left) == name:
                found.add(name)
    return found"""
_REQUESTS = """import ast


def requests(source):
    tree = ast.parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) not in {"len", *own}:
            given = {ast.unparse(each) for each in node.args}
            if given & grows(source):
                lines.append(node.lineno)
    return sorted(lines)"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "14.marks",
        "you have found the loop in three agents that you had never seen",
        (
            "Begin with the request: which line hands over the whole list? Then look at what happens to its value.",
            "The stop is not the way out of a run that is done. It is what ends one whose model would call tools for ever.",
            "In heron the loop is a function that calls itself: each `past + […]` is an append, and `left` counts down to the stop.",
        ),
        _MARKS,
        _marks,
    ),
    Exercise(
        "14.growing",
        "your program finds the conversation: it is the list that grows",
        (
            "In how many ways is something added to a list in these agents? `print(ast.dump(ast.parse('a.append(1)'), indent=1))` shows how one looks.",
            "Three ways: a Call whose func is an Attribute named `append`; an AugAssign with Add (`+=`); an Assign of a BinOp with Add.",
            "`ast.unparse(node)` gives the name as text, also of `self.memory`. For `past = past + […]` compare the target with the left side.",
        ),
        _GROWING,
        _growing,
    ),
    Exercise(
        "14.requests",
        "your program finds the request in agents that it has never seen",
        (
            "The request is a call that is given the list that grows. Which other calls are given it?",
            "`len(self.memory)` is given it and asks nobody. `solve(past, …)` is given it and is the agent itself.",
            "For each ast.Call: the texts of its args, cut with grows(source). Leave out `len` and the names of the functions that the source defines.",
        ),
        _REQUESTS,
        _requests,
    ),
)
