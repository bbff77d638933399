"""The exercises of lesson 13: a tool, a skill and a hook of your own; each is tried, none is read."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbagent.core.payloads import HookEvent
from nbagent.core.tools import Tool
from nbagent.extend.hooks_output import of_json
from nbagent.extend.skills import read_skill
from nbagent.models.scripted import call, last_results
from nbagent.teach.bench import bench
from nbagent.teach.exercises import Exercise, NotYet

_PRICES: dict[str, list[float]] = {"tea": [3.0, 5.0, 4.0], "jam": [2.5]}


async def _tool(names: Mapping[str, Any]) -> None:
    spread = names["price_spread"]
    if not isinstance(spread, Tool):
        raise NotYet("`price_spread` is a plain function. What stands above `mean_price`?")
    article = spread.schema.get("properties", {}).get("article", {})
    if article.get("type") != "string" or "article" not in spread.schema.get("required", ()):
        raise NotYet("the schema needs one argument, `article`, a text that must be given.")
    if not spread.description.strip() or not str(article.get("description") or "").strip():
        raise NotYet("the model reads the docstring: say what the tool does, and below `Args:` what `article` is.")
    kept = dict(names["PRICES"])
    names["PRICES"].update(_PRICES)
    try:
        desk = bench([[call(spread.name, article="tea"), call(spread.name, article="jam"), call(spread.name, article="gold")],
                      lambda seen: "\n".join(last_results(seen))], [spread])  # fmt: skip
        await desk.collect("Spread?")
        tea, jam, gold = desk.transcript[2]["content"]
    finally:
        names["PRICES"].clear()
        names["PRICES"].update(kept)
    for block, right in ((tea, ("3", "5")), (jam, ("2.5",))):
        text = block["content"][0]["text"]
        if block.get("is_error") or not all(one in text for one in right):
            raise NotYet(f"for the prices {' and '.join(right)} (the lowest and the highest) it gave {text!r}.")
    text = gold["content"][0]["text"]
    if not gold.get("is_error"):
        raise NotYet(f"there is no article 'gold', and it gave {text!r}. Raise a `ToolError`.")
    if "gold" not in text or "tea" not in text:
        raise NotYet(
            f"a model that reads {text!r} does not know what it may ask for. Name what was asked, and what there is."
        )


def _skill(names: Mapping[str, Any]) -> None:
    text = str(names["MY_SKILL"]).strip()
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "SKILL.md"
        path.write_text(text, encoding="utf-8")
        skill = read_skill("outliers", "skill", "user", path, "SKILL.md", problems)
    if skill is None or problems:
        raise NotYet(" ".join(problems) or "it can't be read as a skill.")
    if skill.title != "outliers":
        raise NotYet("between the two lines `---` there must be a line `name: outliers`.")
    if not text.startswith("---") or "description:" not in text.split("---")[1]:
        raise NotYet("there is no `description:` between the two lines `---`. Without it no model finds the skill.")
    said = f"{skill.description} {skill.when_to_use}".lower()
    if not any(word in said for word in ("when", "before", "if ", "whenever")):
        raise NotYet(
            "the description says what it is, and not WHEN to use it. The model chooses by that sentence only."
        )
    steps = [line for line in skill.body.splitlines() if line.strip() and not line.startswith("#")]
    if len(steps) < 2 or "TODO" in skill.body:
        raise NotYet("below the head stands what to do: write at least two steps.")
    if skill.has_power:
        raise NotYet("this skill runs or allows something. One that is only text needs nobody's trust: leave that out.")


def _asked(tool: str, **given: str) -> dict[str, Any]:
    return {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given}


async def _hook(names: Mapping[str, Any]) -> None:
    guard = names["no_overwriting"]
    cases = [
        (_asked("run_python", code="df.to_csv('data/penguins.csv')"), True),
        (_asked("add_cell", source="clean.to_csv( 'out.csv', index=False)"), True),
        (_asked("edit_cell", cell="a", source="x = 1\ndf.to_csv('b.csv')"), True),
        (_asked("run_python", code="df = pd.read_csv('data/penguins.csv')"), False),
        (_asked("add_cell", source="print('to be or not to be')"), False),
        (_asked("list_variables"), False),
    ]
    for payload, denies in cases:
        answer = guard(dict(payload))
        answer = await answer if inspect.isawaitable(answer) else answer
        verdict = of_json(HookEvent.PRE_TOOL_USE, answer or {}, "no_overwriting")
        denied = verdict.decision == "deny" or bool(verdict.block)
        text = " ".join(payload["tool_input"].values()) or "nothing"
        if denied is not denies:
            raise NotYet(
                f"for {payload['tool_name']} with {text!r} it {'denies' if denied else 'says nothing'}. It should {'deny' if denies else 'say nothing'}."
            )
        if denied and len(verdict.reason.partition(": ")[2]) < len("Why not?"):
            raise NotYet(
                "it denies without a reason. The model needs one, to find another way: permissionDecisionReason."
            )
        if verdict.decision == "allow":
            raise NotYet(
                "it says *allow*, and so the person is not asked any more. Return None where you have nothing to say."
            )


_TOOL = '''
@tool
async def price_spread(_, article: str) -> str:
    """Tell the lowest and the highest price of an article.

    Args:
        article: Name of the article, for example bread.
    """
    if article not in PRICES:
        raise ToolError(f"There is no article {article!r}. There are: {', '.join(PRICES)}.")
    return f"{min(PRICES[article])} to {max(PRICES[article])}"
'''

_SKILL = '''
MY_SKILL = """\\
---
name: outliers
description: Looks for values that are far off. Use it when the person asks for outliers, or before you compute a mean.
---
# Outliers

1. Show the five smallest and the five largest values with their rows.
2. Say how many lie beyond 1.5 times the distance between the quartiles.
3. Change nothing: ask the person what to do with them.
"""
'''

_HOOK = """
def no_overwriting(said):
    code = " ".join(str(value) for value in said["tool_input"].values())
    if ".to_csv(" in code:
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "CSV files are not written here. Show the table instead.",
            }
        }
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "13.tool",
        "`price_spread` tells the lowest and the highest price, and helps a model that asks for something that is not there",
        (
            "Begin with `mean_price`: the same signature, another last line, and a docstring of its own.",
            "`min(PRICES[article])` and `max(PRICES[article])`, in one text. Check first whether the article is there.",
            '`raise ToolError(f"There is no article {article!r}. There are: …")`, with the names in PRICES joined by commas.',
        ),
        _TOOL,
        _tool,
    ),
    Exercise(
        "13.skill",
        "your skill is found by its description, and says in steps what to do",
        (
            "Look at the skill `price-note` above: a head between two lines `---`, then the text.",
            "The head has `name: outliers` and `description: …`. The description must say WHEN: “Use it when …”.",
            "Below the head two or three steps, numbered, each one sentence that says what to do.",
        ),
        _SKILL,
        _skill,
    ),
    Exercise(
        "13.hook",
        "your hook lets no code write a CSV file, says why, and is silent otherwise",
        (
            "`said['tool_input']` is the input of the call: a dict. Code stands under `code` or `source`, by the tool.",
            "Look for `.to_csv(` in all values of the input. To deny, return the same table as `no_drops` above, with your reason.",
            '`code = " ".join(str(v) for v in said["tool_input"].values())`, then `if ".to_csv(" in code: return {…}`. Nothing else is returned.',
        ),
        _HOOK,
        _hook,
    ),
)
