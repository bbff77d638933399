"""The scripts behind notebooks/capabilities.ipynb: the model's replies, written down; all that answers them is real.

One function a section, named `scripted:nbagent.teach.capabilities:NAME` in its cell. A script goes by what the tools
returned, so a call that is refused or fails is told as it was. Must not know of the screen. Read any of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from nbagent.core.messages import Block, Message, plain_text
from nbagent.models.scripted import Scripted, ScriptedModel, Value, call, last_results, result_of, say

Seen = Sequence[Message]


def told(words: str = "That gave") -> Callable[[Seen], Value]:
    """Return a turn that says what the last calls gave, as it was given."""

    def turn(transcript: Seen) -> Value:
        return f"{words}:\n\n" + "\n\n".join(_quoted(text) for text in last_results(transcript))

    return turn


def _quoted(text: str) -> str:
    lines = text.strip().splitlines()
    more = [f"… {len(lines) - 8} lines more"] if len(lines) > 8 else []
    return "\n".join(f"> {line}" for line in [*lines[:8], *more])


# ── 1 hooks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def hooks() -> list[Scripted]:
    """Wants to delete a file; a hook says no; finds another way."""
    return [
        [say("I make room first."), call("shell", command="rm data/penguins.csv")],
        [say("Not that way, then. I only look."), call("list_variables", pattern="penguins")],
        told("The file is still there. What is loaded of it"),
    ]


# ── 2 skills ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def skill() -> list[Scripted]:
    """Goes by a skill that the person called: says how it begins, and does its first step."""

    def begins(transcript: Seen) -> Value:
        lines = [line for line in plain_text(transcript[-1]["content"]).splitlines() if line.startswith("Explain this")]
        return [say(f"The skill says: “{lines[-1] if lines else 'nothing'}”"), call("read_notebook")]

    def ends(transcript: Seen) -> Value:
        sections = re.findall(r"^ +## \d+\.", result_of(transcript, "read_notebook"), re.MULTILINE)
        return f"This notebook shows in {len(sections)} sections what an agent can do, with a table of penguins."

    return [begins, ends]


# ── 3 explore and plan ───────────────────────────────────────────────────────────────────────────────────────────────


def explore() -> list[Scripted]:
    """What an Explore subagent does: looks at the variables and at one column, and reports."""
    return [
        [call("list_variables"), call("inspect_variable", name="penguins", column="species")],
        told("`penguins` holds the species. What I saw"),
    ]


def plan() -> list[Scripted]:
    """Looks, shows a plan, and says what became of it."""
    steps = "1. Drop the rows without a body mass.\n2. Add the mean of each species as a cell.\n3. Plot it."
    return [
        [say("I look before I plan."), call("inspect_variable", name="penguins", column="body_mass_g")],
        [call("exit_plan", plan=steps)],
        told("What became of the plan"),
    ]


# ── 4 tasks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def tasks() -> list[Scripted]:
    """Hands out two tasks in one reply, which run side by side, and puts the answers together."""
    reply = [
        say("Two things to look up, so I hand them out together."),
        call("task", description="count species", prompt="Which species are there?", agent="columnist"),
        call("task", description="look at islands", prompt="Which islands are there?", agent="columnist"),
    ]
    return [reply, told("Both came back")]


def columnist() -> list[Scripted]:
    """What a subagent of the kind `columnist` does: looks at the column that its task is about."""

    def look(transcript: Seen) -> Value:
        column = "island" if "islands" in str(transcript[0]["content"]) else "species"
        return [call("inspect_variable", name="penguins", column=column)]

    return [look, told("In the table")]


# ── 5 models ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def quick() -> ScriptedModel:
    """A small model, for small questions."""
    return ScriptedModel(["A quick answer, by the small model."], name="small (scripted)")


def thorough() -> ScriptedModel:
    """A large model; it knows what the small one said."""

    def turn(transcript: Seen) -> Value:
        before = [message for message in transcript if message["role"] == "assistant"]
        return f"A thorough one, by the large model. It has read the {len(before)} replies before this one."

    return ScriptedModel([turn], name="large (scripted)")


# ── 6 MCP ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def mcp() -> list[Scripted]:
    """Calls a tool of an MCP server."""
    return [
        [say("The server `units` can convert that."), call("mcp__units__grams_to_pounds", grams=4200.0)],
        lambda seen: f"An average penguin of 4,200 g weighs {_first_line(seen, 'mcp__units__grams_to_pounds')} pounds.",
    ]


def _first_line(transcript: Seen, tool: str) -> str:
    return result_of(transcript, tool).partition("\n")[0]


# ── 7 modes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def changes() -> list[Scripted]:
    """Wants to look, to add a cell and to run a command; the mode and the rules decide which of them."""
    return [
        [
            say("I look, I add a cell, and I run a command."),
            call("inspect_variable", name="penguins", column="island"),
            call("add_cell", source="## Islands", cell_type="markdown"),
            call("shell", command="touch hello.txt"),
        ],
        told("What each of the three gave"),
    ]


# ── 8 sessions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def first() -> list[Scripted]:
    """Looks something up and notes it down for other sessions."""
    return [
        [call("inspect_variable", name="penguins", column="island")],
        [say("I note that down."), call("remember", note="Most of the penguins live on Biscoe.", topic="penguins")],
        "Most of them live on Biscoe: 168 of 344.",
    ]


def briefly() -> list[Scripted]:
    """One way to go on."""
    return ["Biscoe."]


def at_length() -> list[Scripted]:
    """Another way to go on, from the same point."""
    look = call("inspect_variable", name="penguins", column="species")
    return [[say("I look once more."), look], "On Biscoe, where both Adelie and Gentoo live, there are 168 birds."]


# ── 9 limits ─────────────────────────────────────────────────────────────────────────────────────────────────────────


_ENOUGH = 3


def endless() -> list[Scripted]:
    """Looks at one column after the other, and never says that it is done."""
    columns = [
        "species",
        "island",
        "bill_length_mm",
        "bill_depth_mm",
        "flipper_length_mm",
        "body_mass_g",
        "sex",
        "year",
    ]

    def turn(transcript: Seen) -> Value:
        replies = [message["content"] for message in transcript if message["role"] == "assistant"]
        done = sum(block["type"] == "tool_use" for content in replies for block in content)
        last = transcript[-1]["content"][-1]
        if str(last.get("text", "")).startswith("(From the runtime") and "limit" in last["text"] and done >= _ENOUGH:
            return f"Done: {min(done, len(columns))} columns. Left: {max(len(columns) - done, 0)}."
        return [call("inspect_variable", name="penguins", column=columns[done % len(columns)])]

    return [turn] * 8


# ── 10 to-do list, questions ─────────────────────────────────────────────────────────────────────────────────────────


def todos() -> list[Scripted]:
    """Keeps a list of what it does, and asks what it can't know."""

    def listed(*done: str) -> list[Block]:
        steps = ("Look at the body mass", "Ask for the unit", "Answer")
        ways = {step: "completed" if step in done else "pending" for step in steps}
        begun = next((step for step in steps if step not in done), "")
        items = [{"content": s, "status": "in_progress" if s == begun else ways[s], "activeForm": s} for s in steps]
        return [call("todo_write", todos=items)]

    options = [{"label": "grams", "description": "as in the table"}, {"label": "kilograms", "description": "shorter"}]
    ask = call("ask_user", questions=[{"question": "In which unit?", "header": "Unit", "options": options}])
    return [
        listed(),
        [call("inspect_variable", name="penguins", column="body_mass_g")],
        listed("Look at the body mass"),
        [ask],
        lambda seen: [say(f"I asked: {_last(seen)}"), *listed("Look at the body mass", "Ask for the unit")],
        listed("Look at the body mass", "Ask for the unit", "Answer"),
        lambda seen: _weight(
            next((said for said in ("kilograms", "grams") if said in result_of(seen, "ask_user")), "")
        ),
    ]


def _weight(unit: str) -> str:
    said = "4.202 kg" if unit == "kilograms" else "4,202 g"
    return f"The birds weigh {said} on average. (In {unit or 'grams'}, as {'you chose' if unit else 'in the table'}.)"


def _last(transcript: Seen) -> str:
    return (last_results(transcript) or [""])[-1].partition("\n")[0]


# ── 10 the web ───────────────────────────────────────────────────────────────────────────────────────────────────────


def web() -> ScriptedModel:
    """Searches the web where it is offered; what was found is written down here, too."""
    page = {"type": "web_search_result", "title": "Gentoo penguin", "url": "https://en.wikipedia.org/wiki/Gentoo_penguin",
            "page_age": "", "encrypted_content": ""}  # fmt: skip
    cited = {
        "type": "web_search_result_location",
        "url": page["url"],
        "title": page["title"],
        "cited_text": "",
        "encrypted_index": "",
    }
    search = {
        "type": "server_tool_use",
        "id": "srvtoolu_web",
        "name": "web_search",
        "input": {"query": "gentoo penguin weight"},
    }
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_web", "content": [page]}

    def turn(_: Seen) -> Value:
        request = model.last_request
        if request is None or not any(tool["name"] == "web_search" for tool in request.tools):
            return "The web was not offered to me in this run."
        return [search, found, say("Gentoo penguins weigh "), {**say("up to 8.5 kg"), "citations": [cited]}, say(".")]

    model = ScriptedModel([turn], name="searching (scripted)")
    return model


# ── 11 privacy ───────────────────────────────────────────────────────────────────────────────────────────────────────


def privacy() -> list[Scripted]:
    """Looks at all variables, one of which the person has hidden."""
    return [
        [
            say("I look what is there."),
            call("list_variables", pattern="[dp]*"),
            call("inspect_variable", name="penguins"),
        ],
        told("What I was shown"),
    ]
