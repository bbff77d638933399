"""Web search and web fetch, which the model's server carries out by itself: whether a run offers them, and for which sites.

The server asks nobody before a call, so the person is asked once before a run offers them, unless a rule or the mode
answers: deny takes a tool out or blocks its domains, allow offers it. Offered tools are part of a session, so a change
begins a new one (see forks.py). Must not know what is done with the results. Read `offered`, then `ruling`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from nbagent.app.consent import before_run
from nbagent.app.model import model_of
from nbagent.config import WEB, Settings
from nbagent.core.errors import ConfigError
from nbagent.core.events import Noted
from nbagent.core.messages import Json
from nbagent.core.policy import TABLE, Mode
from nbagent.core.ports import Question
from nbagent.core.questions import put
from nbagent.core.rules import Action, Rule
from nbagent.core.served import FETCH, SEARCH
from nbagent.core.tools import Kind
from nbagent.models import voice
from nbagent.models.catalog import SEARCH_PRICE

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place

TOOLS = {"search": SEARCH, "fetch": FETCH}
"""Words of the setting `web` → names of the tools."""
_TYPES = {SEARCH: "web_search_20250305", FETCH: "web_fetch_20250910"}
_SPOKEN = {SEARCH: "search the web", FETCH: "read pages of the web"}
_PAGE_TOKENS = 50_000
_ONCE, _KEPT, _NO = "Yes, in this run", "Yes, in this conversation", "No, go on without"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What rules and the mode say of one tool: `why` names who says so; `only` and `never` are domains."""

    action: Action
    why: str
    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(slots=True)
class Offer:
    """The tools of the server that a run offers, as they are sent, and the rules that the person kept for them."""

    tools: tuple[Json, ...] = ()
    keep: list[Rule] = field(default_factory=list[Rule])


def ruling(name: str, rules: Iterable[Rule], mode: Mode) -> Ruling:
    """Return what `rules` and `mode` say of offering the tool `name`, in the order deny → ask → mode → allow.

    A rule for a domain can only be kept by the server: one that denies or asks blocks the domain, one that allows is for
    that domain and those below it. A pattern that no server can check (a query, an address) denies the whole tool.
    """
    about = [rule for rule in rules if rule.speaks_of(name)]
    never: list[str] = []
    for rule in about:
        if rule.action == "deny":
            if (domain := _domain(rule)) is None:
                return Ruling("deny", f"the rule deny {rule.told}")
            never.append(domain)
        elif rule.action == "ask" and (domain := _domain(rule)):
            never.append(domain)
    asks = [rule for rule in about if rule.action == "ask" and not _domain(rule)]
    blocked = tuple(dict.fromkeys(never))
    if asks:
        return Ruling("deny" if mode is Mode.DONT_ASK else "ask", f"the rule ask {asks[0].told}", never=blocked)
    by_mode = TABLE[Kind.SHELL][mode]
    if by_mode == "allow" or (by_mode == "deny" and mode is not Mode.DONT_ASK):
        return Ruling(by_mode, f"the mode {mode}", never=blocked)
    allows = [rule for rule in about if rule.action == "allow"]
    if whole := [rule for rule in allows if rule.pattern in {None, "*", "domain:*"}]:
        return Ruling("allow", f"the rule allow {whole[0].told}", never=blocked)
    if only := tuple(domain for rule in allows if (domain := _domain(rule))):
        return Ruling("allow", "rules for domains", only=only, never=blocked)
    return Ruling(by_mode, f"the mode {mode}", never=blocked)


def _domain(rule: Rule) -> str | None:
    """Return the one domain that a rule is for, None where it is for the whole tool or for something else."""
    text = (rule.pattern or "").strip()
    domain = text.removeprefix("domain:").strip().removeprefix("*.").casefold().rstrip(".")
    return domain if text.startswith("domain:") and domain and "*" not in domain else None


def domains(only: Sequence[str], never: Sequence[str], wanted: Sequence[str] = ()) -> Json | None:
    """Return which domains are sent with a tool, None where none is left: a server takes those allowed or those blocked.

    `wanted` are those of the settings: with `only` of the rules, what both allow. One that is blocked in part is left out.
    """
    allowed = [*only] if not wanted else [*wanted]
    if only and wanted:
        allowed = [one for one in (*only, *wanted) if _below(one, only) and _below(one, wanted)]
    if not only and not wanted:
        return {"blocked_domains": list(dict.fromkeys(never))} if never else {}
    left = [
        one for one in dict.fromkeys(allowed) if not _below(one, never) and not any(_below(n, [one]) for n in never)
    ]
    return {"allowed_domains": left} if left else None


def _below(domain: str, others: Iterable[str]) -> bool:
    return any(domain == other or domain.endswith(f".{other}") for other in others)


def tool(name: str, settings: Settings, where: Json) -> Json:
    """Return a tool of the server as it is sent."""
    made: Json = {"type": _TYPES[name], "name": name, "max_uses": settings.web_max_uses, **where}
    return made if name == SEARCH else {**made, "citations": {"enabled": True}, "max_content_tokens": _PAGE_TOKENS}


def can_serve(settings: Settings) -> bool:
    """Whether the model's server is one that has these tools: Anthropic's API, or a cloud that passes them on."""
    endpoint = settings.endpoints.get((settings.model or "").partition("/")[0])
    if endpoint is not None and endpoint.provider == "bedrock":
        return False
    kind = voice(model_of(settings))
    return kind == "scripted" or kind.endswith(" claude")


async def offered(
    settings: Settings, place: Place, kept: Sequence[Rule], taken: Iterable[str] = (), only: Sequence[str] = ()
) -> Offer:
    """Return what this run offers, after the person was asked where rules and mode leave it to them.

    `kept` are the rules of the conversation; `taken` are names of the person's own tools, which come first; `only` are the
    tools that a branch has (names, `*` may stand in them; () for all).
    """
    names = [TOOLS[word] for word in settings.web if TOOLS[word] not in set(taken)]
    names = [name for name in names if not only or any(fnmatchcase(name, pattern) for pattern in only)]
    if not names:
        return Offer()
    if not can_serve(settings):
        _say(place, f"{model_of(settings).name} is not offered the web: its server has no tools for that.")
        return Offer()
    rules = (*settings.policy(list(kept)).rules,)
    ruled = {name: ruling(name, rules, settings.mode) for name in names}
    for name, said in ruled.items():
        if said.action == "deny":
            _say(place, f"The model can't {_SPOKEN[name]}: {said.why} does not allow it.")
    asked = [name for name in names if ruled[name].action == "ask"]
    keep, agreed = await _asked(place, asked)
    tools: list[Json] = []
    for name in (*(n for n in names if ruled[n].action == "allow"), *agreed):
        only, never = ruled[name].only, (*ruled[name].never, *settings.web_blocked_domains)
        where = domains(only, never, settings.web_allowed_domains)
        if where is None:
            _say(place, f"The model can't {_SPOKEN[name]}: no domain is left that it may reach.")
            continue
        tools.append(tool(name, settings, where))
    return Offer(tuple(sorted(tools, key=lambda one: str(one["name"]))), keep)


async def _asked(place: Place, names: Sequence[str]) -> tuple[list[Rule], list[str]]:
    """Ask the person about `names` at once; return the rules to keep, and those of `names` that they agreed to."""
    if not names:
        return [], []
    what = " and ".join(_SPOKEN[name] for name in names)
    if not place.approver.present:
        _say(
            place,
            f"The model can't {what}: nobody is there to agree. The rule allow WebSearch (WebFetch) says it before.",
        )
        return [], []
    price = f" A search costs {SEARCH_PRICE:g} USD." if SEARCH in names else ""
    question = Question(
        id=f"web-{secrets.token_hex(4)}",
        text=f"May the model {what}? Its server does it without asking again, and sees what is looked for.{price}",
        choices=(_ONCE, _KEPT, _NO),
    )
    answer = await put(question, place.approver, before_run, place.view.show)
    if answer == _KEPT:
        return [Rule.parse("allow", name) for name in names], list(names)
    return [], list(names) if answer == _ONCE else []


def _say(place: Place, text: str) -> None:
    place.view.show(before_run(Noted, text=text, level="info"))


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def command(extension: Extension, rest: str) -> str:
    """Carry out `%agent web [on | off | search | fetch]`; raises `ConfigError` for another word."""
    words = rest.split()
    if words:
        wanted = {"on": WEB, "off": ()}.get(words[0], tuple(words))
        if any(word not in WEB for word in wanted):
            raise ConfigError(f"%agent web on, off, search or fetch, not {rest.strip()!r}.")
        extension.choose(web=wanted)
    settings = extension.settings()
    return "\n".join(_state(extension, settings, changed=bool(words)))


def _state(extension: Extension, settings: Settings, *, changed: bool) -> list[str]:
    if not settings.web:
        later = " from the next %%agent cell on" if changed else ""
        return [f"The web is off{later}. %agent web on lets the model search it and read pages of it."]
    kept = extension.last.kept if extension.last is not None else []
    rules = settings.policy(list(kept)).rules
    lines = [f"web      {' and '.join(settings.web)}{', from the next %%agent cell on' if changed else ''}"]
    if not can_serve(settings):
        lines.append("         not offered: the model's server has no tools for that")
    for word in settings.web:
        said = ruling(TOOLS[word], rules, settings.mode)
        how = {"allow": "offered", "ask": "you are asked before a run offers it", "deny": "not offered"}[said.action]
        lines.append(f"{word:<8} {how} ({said.why})")
        where = domains(said.only, (*said.never, *settings.web_blocked_domains), settings.web_allowed_domains)
        lines += [f"         {key.replace('_', ' ')}: {', '.join(found)}" for key, found in (where or {}).items()]
    lines.append(f"limit    {settings.web_max_uses} of each in a reply; a search costs {SEARCH_PRICE:g} USD")
    return lines
