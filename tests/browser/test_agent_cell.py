"""The main job in a real page: `%%agent`, approve, deny, allow from now on; the model is played over real HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from tests.browser.desk import Desk

pytestmark = pytest.mark.timeout(120)


async def test_approve_adds_the_cell_below_runs_it_and_the_variable_exists(desk: Desk) -> None:
    notebook = desk.notebook
    await desk.lay("before = 1")
    agent = await desk.ask(calls("add_cell", text="I make it.", source="df = 41\nprint('made')\ndf"))
    after = await notebook.add("df + 1")
    await notebook.see(agent, "df = 41")
    assert len(await notebook.sources()) == 4, "nothing happens before the click"
    desk.server.push(say("There it is: **41**."))
    await desk.approve(agent)
    await desk.done()
    assert (await notebook.sources())[agent + 1] == "df = 41\nprint('made')\ndf"
    assert await notebook.text(agent + 1) == "made\n41"
    await notebook.run(after + 1)
    assert await notebook.text(after + 1) == "42"

    counts = [await notebook.count(cell) for cell in (agent, agent + 1, after + 1)]
    first = counts[0]
    assert first is not None
    assert counts == [first, first + 1, first + 2]
    saved = (await notebook.save()).cells
    assert [saved[cell].execution_count for cell in (agent, agent + 1, after + 1)] == counts
    [record] = saved[agent].outputs
    assert {"text/html", "text/markdown", "text/plain"} == set(record.data)
    assert "There it is: **41**." in record.data["text/markdown"]
    assert notebook.page.url.endswith(notebook.name)
    assert "made" in desk.results(1)


async def test_deny_with_words_tells_the_model_and_the_run_goes_on(desk: Desk) -> None:
    agent = await desk.ask(calls("add_cell", source="import pandas"), say("Polars, then."))
    await desk.view(agent).get_by_label("What to do instead", exact=True).fill("use polars, please")
    await desk.notebook.click(agent, "Deny")
    await desk.done()
    assert "use polars, please" in desk.results(1)
    await desk.notebook.see(agent, "Polars, then.")
    assert "import pandas" not in await desk.notebook.sources()


async def test_a_bare_deny_ends_the_run_and_says_so(desk: Desk) -> None:
    agent = await desk.ask(calls("add_cell", source="import pandas"))
    await desk.notebook.click(agent, "Deny")
    await desk.done()
    await desk.notebook.see(agent, "Stopped: you denied a call.")
    assert len(desk.server.requests) == 1
    assert len(await desk.notebook.sources()) == 2
    assert [output["output_type"] for output in await desk.notebook.outputs(agent)] == ["display_data"]


async def test_allow_from_now_on_shows_the_exact_rule_keeps_it_on_a_second_click_and_does_not_ask_again(
    desk: Desk,
) -> None:
    notebook = desk.notebook
    agent = await desk.ask(calls("add_cell", source="n = 1"))
    await notebook.click(agent, "Allow from now on…")
    keeps = desk.view(agent).locator(".nbagent-keep")
    await expect(keeps).to_have_text(["Allow this code", "Allow every add_cell"])
    rules = await desk.view(agent).locator(".nbagent-rule").all_inner_texts()
    assert rules[0].startswith("add_cell(sha256:")
    assert rules[1] == "add_cell"
    assert len(await notebook.sources()) == 2, "the first click keeps nothing and runs nothing"
    desk.server.push(calls("add_cell", source="n = 2"), say("Two cells, one question."))
    await keeps.nth(1).click()
    await desk.done()
    assert (await notebook.sources())[agent:] == ["%%agent --new\ndo it", "n = 1", "n = 2"]
    assert await notebook.evaluate("n") == "2"

    again = await desk.ask(calls("add_cell", source="n = 3"), say("Still no question."), new=False)
    await desk.done()
    await notebook.see(again, "Still no question.")
    assert await notebook.evaluate("n") == "3"

    other = await desk.ask(calls("add_cell", source="n = 4"))  # another session has not kept it
    await notebook.click(other, "Deny")
    await desk.done()
    assert await notebook.evaluate("n") == "3"


async def test_the_second_half_of_a_double_click_does_not_approve_the_next_call(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(calls("add_cell", source="first = 1"), calls("add_cell", source="second = 2"))
    await expect(notebook.button(agent, "Approve")).to_be_enabled()
    await notebook.button(agent, "Approve").dblclick()
    await expect(desk.card(agent)).to_contain_text("second = 2")
    await expect(notebook.button(agent, "Approve")).to_be_enabled()
    assert (await notebook.sources())[agent + 1 :] == ["first = 1"]
    await notebook.click(agent, "Deny")
    await desk.done()
    assert await notebook.evaluate("'first' in globals(), 'second' in globals()") == "(True, False)"


BY_SCRIPT = """view => {
  for (const control of view.querySelectorAll("button, input")) control.click();
  for (const place of view.querySelectorAll(".nbagent-bar, .nbagent-bar input"))
    for (const type of ["keydown", "keypress", "keyup"])
      place.dispatchEvent(new KeyboardEvent(type, {key: "Enter", keyCode: 13, bubbles: true, cancelable: true}));
}"""
"""All that a script in an output can do to the buttons and boxes of the view."""


async def test_a_click_on_the_card_of_an_old_call_does_nothing_nor_does_a_script(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(calls("add_cell", source="one = 1"), calls("add_cell", source="two = 2"))
    await expect(notebook.button(agent, "Approve")).to_be_enabled()
    old = await notebook.button(agent, "Approve").element_handle()
    await desk.approve(agent)
    await expect(desk.card(agent)).to_contain_text("two = 2")
    await expect(notebook.button(agent, "Approve")).to_be_enabled()
    assert (
        await notebook.page.evaluate("old => { old.disabled = false; old.click(); return old.isConnected }", old)
        is False
    )
    await desk.view(agent).get_by_label("What to do instead", exact=True).fill("not now")
    await desk.view(agent).evaluate(BY_SCRIPT)
    desk.server.push(
        calls("ask_user", questions=[{"question": "Which one?", "options": [{"label": c} for c in ["red", "blue"]]}])
    )
    await notebook.click(agent, "Deny")
    await expect(notebook.button(agent, "red")).to_be_enabled()
    assert "not now" in desk.results(2)
    await desk.view(agent).get_by_label("Your answer", exact=True).fill("green")
    await desk.view(agent).evaluate(BY_SCRIPT)
    desk.server.push(say("Blue, then."))
    await notebook.click(agent, "blue")
    await desk.done()
    await notebook.see(agent, "Blue, then.")
    assert "blue" in desk.results(3)
    assert await notebook.evaluate("'one' in globals(), 'two' in globals()") == "(True, False)"


async def test_output_of_the_agents_cell_is_seen_while_it_runs(desk: Desk) -> None:
    notebook = desk.notebook
    go = notebook.path.with_name("go-on")
    code = f"import pathlib, time\nprint('step 1')\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)\nprint('step 2')"
    agent = await desk.ask(calls("add_cell", source=code), say("Both steps."))
    await desk.approve(agent)
    await notebook.see(agent + 1, "step 1")
    assert (await notebook.text(agent + 1)).rstrip() == "step 1"  # its line end may come in a patch of its own
    go.touch()
    await desk.done()
    go.unlink()
    assert await notebook.text(agent + 1) == "step 1\nstep 2\n"


async def test_a_question_of_the_model_is_answered_by_a_choice_or_by_words(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(
        calls(
            "ask_user", questions=[{"question": "Which one?", "options": [{"label": c} for c in ["Adelie", "Gentoo"]]}]
        )
    )
    await notebook.see(agent, "Which one?")
    desk.server.push(calls("ask_user", questions=[{"question": "And which colour?"}]))
    await notebook.click(agent, "Gentoo")
    await notebook.see(agent, "And which colour?")
    desk.server.push(say("Good."))
    await desk.view(agent).get_by_label("Your answer", exact=True).fill("orange")
    await notebook.click(agent, "Send")
    await desk.done()
    assert "Gentoo" in desk.results(1)
    assert "orange" in desk.results(2)


async def test_a_follow_up_goes_on_with_the_same_bytes_and_tells_what_the_person_changed(desk: Desk) -> None:
    notebook = desk.notebook
    await desk.set_env(NBAGENT_MODE="bypass")
    agent = await desk.ask(calls("add_cell", source="x = 1"), say("Made x."))
    await desk.done()
    await notebook.write(agent + 1, "x = 'edited by hand'")
    await notebook.run(agent + 1)
    await desk.ask(say("I see."), task="and now?", new=False)
    await desk.done()
    before, after = (request.body for request in desk.server.requests[-2:])
    assert after["system"] == before["system"]
    assert after["tools"] == before["tools"]
    marked = len(before["messages"])
    assert _plain(after["messages"][:marked]) == _plain(before["messages"])
    news = str(after["messages"][marked + 1 :])
    assert "edited by hand" in news
    assert "and now?" in news
    assert [message["role"] for message in after["messages"][marked:]] == ["assistant", "user"]


def _plain(value: object) -> object:
    """The messages without the cache's marks, which move to the newest."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != "cache_control"}
    return value
