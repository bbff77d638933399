"""Three tiny agents by three imagined authors, to be read by who has never seen them: the same loop in three shapes.

They are text, and they run (tests/teach/test_strangers.py runs them). Read `STRANGERS`; `shown` shows real code with lines lit.
"""

from __future__ import annotations

import ast
import html
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ORCHID = """def chat(task, llm, tools):
    log = [{"role": "user", "content": task}]
    for _ in range(8):
        answer = llm(log)
        log.append({"role": "assistant", "content": answer})
        if not answer["calls"]:
            return answer["text"]
        for wanted in answer["calls"]:
            found = tools[wanted["name"]](**wanted["input"])
            log.append({"role": "tool", "content": found})
    return "out of steps"
"""

HERON = """def solve(past, ask, tools, left=8):
    if left == 0:
        return "out of steps"
    said = ask(past)
    past = past + [{"role": "assistant", "content": said}]
    if said["calls"]:
        seen = [tools[c["name"]](**c["input"]) for c in said["calls"]]
        past = past + [{"role": "tool", "content": one} for one in seen]
        return solve(past, ask, tools, left - 1)
    return said["text"]
"""

BASALT = """class Finished(Exception):
    pass


class Worker:
    def __init__(self, task, brain, tools):
        self.brain, self.tools = brain, tools
        self.memory = [{"role": "user", "content": task}]

    def step(self):
        thought = self.brain(self.memory)
        self.memory.append({"role": "assistant", "content": thought})
        if not thought["calls"]:
            raise Finished(thought["text"])
        for act in thought["calls"]:
            self.memory.append({"role": "tool", "content": self.tools[act["name"]](**act["input"])})

    def work(self):
        while len(self.memory) < 40:
            try:
                self.step()
            except Finished as end:
                return str(end)
        return "out of steps"
"""

STRANGERS: dict[str, str] = {"orchid": ORCHID, "heron": HERON, "basalt": BASALT}
"""Name of the agent → its source."""


def grows(source: str) -> set[str]:
    """Return the names in Python source to which something is added: by `append`, by `+=`, or by `a = a + …`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="append", value=value)):
                found.add(ast.unparse(value))
            case ast.AugAssign(op=ast.Add(), target=target):
                found.add(ast.unparse(target))
            case ast.Assign(targets=[target], value=ast.BinOp(op=ast.Add(), left=left)):
                found |= {ast.unparse(target)} & {ast.unparse(left)}
            case _:
                pass
    return found


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of code with their numbers; those in `lit` are marked with ▶."""

    title: str
    first: int
    lines: tuple[str, ...]
    lit: frozenset[int]

    def __repr__(self) -> str:
        body = (f"{n:>4} {'▶' if n in self.lit else ' '} {text}" for n, text in enumerate(self.lines, self.first))
        return "\n".join([self.title, *body])

    def _repr_html_(self) -> str:
        marked = "background:rgba(255,193,7,.34);font-weight:600"
        rows: list[str] = []
        for number, text in enumerate(self.lines, self.first):
            row = f"{number:>4} {'▶' if number in self.lit else ' '} {html.escape(text)}"
            rows.append(f'<span style="{marked}">{row}</span>' if number in self.lit else row)
        code = "\n".join(rows)
        return f'<b>{html.escape(self.title)}</b><pre style="overflow-x:auto;white-space:pre;margin:0;font-size:12px">{code}</pre>'


def numbered(source: str, title: str = "") -> Lines:
    """Return a source with numbers, from 1."""
    return Lines(title, 1, tuple(source.splitlines()), frozenset())


def shown(function: Callable[..., Any], *words: str, around: int = 6) -> Lines:
    """Return the lines of a real function that hold any of `words`, with `around` lines about them, as its file has them now.

    Raises `ValueError` where it holds none of them: what a lesson says of the code is then no longer true.
    """
    source, first = inspect.getsourcelines(function)
    lines = textwrap.dedent("".join(source)).splitlines()
    lit = [n for n, line in enumerate(lines) if any(word in line for word in words)]
    if not lit:
        raise ValueError(f"{function.__qualname__} holds none of {words}")
    start, end = max(0, lit[0] - around), min(len(lines), lit[-1] + around + 1)
    where = f"{function.__module__.replace('.', '/')}.py, {function.__qualname__}()"
    return Lines(where, first + start, tuple(lines[start:end]), frozenset(first + n for n in lit))
