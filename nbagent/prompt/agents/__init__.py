"""The kinds of subagents that come with nbagent, and the system prompt of any kind.

Their texts are the Markdown files beside this one. It must not know how a subagent runs. Read `built_in`.
"""

from __future__ import annotations

from importlib import resources

from nbagent.core.agents import AgentSpec

CHANGING = (
    "add_cell", "edit_cell", "move_cell", "delete_cell", "run_cell", "run_all", "run_python", "shell", "write_file",
    "edit_file", "remember",
)  # fmt: skip
"""Tools that a kind which only looks is not even offered; what else would change something its gate refuses."""

_EXPLORE = (
    "Only looks. Finds things in the notebook, in variables and in files, and answers questions about them: where "
    "something is computed, what a variable holds, which files matter. Say how thorough: quick, medium, very thorough."
)
_PLAN = "Only looks. Works out a plan for a change or an analysis: steps, cells and files, what can go wrong."
_GENERAL = "Has all tools. For a task of several steps that can be done apart from this conversation."


def _text(name: str) -> str:
    return resources.files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


def built_in() -> dict[str, AgentSpec]:
    """Return the kinds that are always there, by name."""
    explore = AgentSpec(
        "Explore", _EXPLORE, _text("explore"), disallowed_tools=CHANGING, with_instructions=False, only_looks=True,
        source="built-in",
    )  # fmt: skip
    plan = AgentSpec(
        "Plan", _PLAN, _text("plan"), disallowed_tools=CHANGING, only_looks=True, source="built-in"
    )  # fmt: skip
    general = AgentSpec("general-purpose", _GENERAL, _text("general_purpose"), source="built-in")
    return {spec.name: spec for spec in (explore, plan, general)}


def system_prompt(spec: AgentSpec) -> str:
    """Return the system prompt of a subagent: what holds for all, then its own text."""
    return "\n\n".join(part for part in (_text("frame"), spec.prompt.strip()) if part)
