"""`%config NbAgent.…`: the settings as traits of the shell. What was set here wins over files and environment."""

from __future__ import annotations

from typing import Any

from traitlets import Dict, Float, Integer, List, TraitError, Unicode, validate
from traitlets.config import Configurable

from nbagent.config import CHOICES


class NbAgent(Configurable):
    """Settings of %%agent for this kernel, e.g. `%config NbAgent.model = 'opus'`."""

    model = Unicode("", help="Model of new sessions: opus, sonnet, haiku, or any id that your server knows.").tag(
        config=True
    )
    fallback_model = Unicode("", help="Model that is asked, between two turns, when the other is overloaded.").tag(
        config=True
    )
    mode = Unicode("", help="default, accept-edits, plan, read-only, dont-ask or bypass.").tag(config=True)
    preset = Unicode("", help="lookup (5 turns), research (25), autonomous (50) or session (100).").tag(config=True)
    max_turns = Integer(None, allow_none=True, help="Turns of a run at most.").tag(config=True)
    budget = Float(None, allow_none=True, help="US dollars of a run at most.").tag(config=True)
    budget_tokens = Integer(None, allow_none=True, help="Tokens of a run at most.").tag(config=True)
    agent_depth = Integer(
        None, allow_none=True, help="Levels of subagents: 1 (the default) lets none have its own."
    ).tag(config=True)
    background_agents = Integer(None, allow_none=True, help="Agents in the background at once, at most (4).").tag(
        config=True
    )
    timeout = Float(None, allow_none=True, help="Seconds of a run at most.").tag(config=True)
    cell_timeout = Float(None, allow_none=True, help="Seconds of one cell of the agent's at most.").tag(config=True)
    cell_patience = Float(
        None, allow_none=True, help="Seconds after which the agent may think while its cell goes on (60; 0: it waits)."
    ).tag(config=True)
    base_url = Unicode("", help="Address of any server that speaks the Messages API.").tag(config=True)
    web = List(Unicode(), None, allow_none=True, help="What the model's server may do on the web: search, fetch.").tag(
        config=True
    )
    web_allowed_domains = List(Unicode(), help="The only domains that it may reach.").tag(config=True)
    web_blocked_domains = List(Unicode(), help="Domains that it may not reach.").tag(config=True)
    web_max_uses = Integer(None, allow_none=True, help="Searches, and pages read, of one reply at most (8).").tag(
        config=True
    )
    system_append = Unicode("", help="Text that is added to the system prompt of new sessions.").tag(config=True)
    rerun = Unicode("", help="Of a cell that has a finished run: replay (the default), live or ask.").tag(config=True)
    stale = Unicode("", help="Of a finished run whose inputs have changed: ask (the default), show or rerun.").tag(
        config=True
    )
    resume = Unicode(
        "", help="In a new kernel, go on in the notebook's last session: always (the default), ask or never."
    ).tag(config=True)
    prompt = Dict(Unicode(), help="Parts of the system prompt of new sessions, by name (%agent prompt).").tag(
        config=True
    )
    allow = List(Unicode(), help="Rules of calls that run without asking, e.g. ['run_cell'].").tag(config=True)
    ask = List(Unicode(), help="Rules of calls that are always asked about.").tag(config=True)
    deny = List(Unicode(), help="Rules of calls that never run.").tag(config=True)

    hide = List(Unicode(), help="Variables that the model is not shown, e.g. ['patients', 'df.ssn'].").tag(config=True)
    schema_only = List(Unicode(), help="Variables of which it is told names and types only.").tag(config=True)
    secrets = List(Unicode(), help="Your own patterns of secrets: text with *, or re: and an expression.").tag(
        config=True
    )

    @validate("rerun", "stale", "resume")
    def _one_of(self, proposal: Any) -> str:
        """Refuse what the next cell could only fail with."""
        name, value = proposal["trait"].name, proposal["value"]
        if value and value not in CHOICES[name]:
            raise TraitError(
                f"NbAgent.{name} is {', '.join(CHOICES[name][:-1])} or {CHOICES[name][-1]}, not {value!r}."
            )
        return value

    def given(self) -> dict[str, Any]:
        """Return the settings that were set, by name."""
        values = {name: getattr(self, name) for name in self.trait_names(config=True)}
        return {name: value for name, value in values.items() if value not in ("", None, [], {})}
