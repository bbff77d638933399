"""What an agent asks and shows beside approvals, in a real page: questions, the to-do list, a plan, subagents, hooks.

With the mouse only and with keys only; a second tab, a double click and a reload answer nothing twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.support.messages_server import Reply, call, calls, say

if TYPE_CHECKING:
    from playwright.async_api import Locator

    from tests.browser.desk import Desk
    from tests.browser.lab import Lab
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(120)

STEPS = ("Load the orders", "Join them", "Write up")
COLUMN = {"question": "Which column?", "header": "Revenue", "options": [
    {"label": "net", "description": "after returns"}, {"label": "gross", "description": "as invoiced"}]}  # fmt: skip
PLOTS = {
    "question": "Which plots?",
    "multiSelect": True,
    "options": [{"label": name} for name in ("month", "land", "item")],
}
NAME = {"question": "What name?"}
HOOK = """import nbagent
@nbagent.hook("PreToolUse", match="run_python")
def keeps_out(said):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                   "permissionDecisionReason": "no scratch code here"}}"""
PLAN = "## Plan\n\n1. Load `orders.csv`"
FOCUS = "(e => e === document.body ? '' : e.getAttribute('aria-label') ?? e.innerText)(document.activeElement)"


def todos(done: int) -> dict:
    """The call that says that so many of the steps are done."""
    status = ["completed"] * done + ["in_progress", "pending", "pending"][: len(STEPS) - done]
    items = [{"content": step, "activeForm": step, "status": how} for step, how in zip(STEPS, status, strict=True)]
    return call("todo_write", todos=items)


def listed(desk: Desk, agent: int) -> Locator:
    """The one to-do list of the run."""
    return desk.view(agent).locator(".nbagent-todobox .nbagent-todos")


async def awake(desk: Desk, agent: int, name: str) -> None:
    """Return when a click on the button of that name counts."""
    await expect(desk.notebook.button(agent, name)).to_be_enabled()


async def tab_to(desk: Desk, name: str) -> None:
    """Press Tab until what bears that name has the focus."""
    for _ in range(25):
        if name == (await desk.notebook.page.evaluate(FOCUS)).strip():
            return
        await desk.notebook.press("Tab")
    raise AssertionError(f"no way by Tab to {name}")


async def test_with_the_mouse_only_questions_a_subagent_a_hook_a_plan_and_one_list_of_steps(
    lab: Lab, server: MessagesServer
) -> None:
    async with agent_notebook(lab, server, HOOK) as desk:
        notebook = desk.notebook
        await notebook.run(1)
        agent = await desk.ask(Reply([todos(0)]), Reply([todos(1), call("ask_user", questions=[COLUMN])]))
        await awake(desk, agent, "gross")
        await expect(listed(desk, agent)).to_have_count(1)
        await expect(listed(desk, agent).locator("li")).to_have_count(3)
        await expect(listed(desk, agent).locator("[aria-current]")).to_contain_text("Join them")
        await expect(desk.view(agent).locator(".nbagent-call")).to_have_count(
            0
        )  # no card a list, none beside the question
        await expect(desk.card(agent)).to_contain_text("as invoiced")
        other = await notebook.second_tab()
        await expect(other.button(agent, "gross")).to_be_enabled()
        await expect(other.output(agent).locator(".nbagent-todobox li")).to_have_count(3)
        server.push(Reply([todos(2), call("ask_user", questions=[COLUMN, PLOTS, NAME])]))
        await notebook.page.bring_to_front()
        await notebook.button(agent, "gross").dblclick()
        await awake(desk, agent, "land")
        assert "The person answered: gross" in desk.results(2)
        await other.page.close()
        for choice in ("gross", "net", "month", "land"):
            await notebook.click(agent, choice)
        await expect(notebook.button(agent, "net")).to_have_attribute("aria-pressed", "true")
        await expect(notebook.button(agent, "gross")).to_have_attribute("aria-pressed", "false")
        await notebook.until("panel().context.model.sharedModel != null")
        await notebook.save()
        await notebook.reload(kernel=False)
        await expect(notebook.button(agent, "net")).to_have_attribute("aria-pressed", "true")
        await expect(notebook.button(agent, "item")).to_have_attribute("aria-pressed", "false")
        await expect(listed(desk, agent)).to_contain_text("2 of 3 done")
        server.push(
            calls("task", description="find the revenue", prompt="Find it.", agent="Explore"),
            Reply([call("list_variables")]),
            say("It is in orders.net."),
            calls("run_python", code="1 + 1"),
            Reply([call("enter_plan")]),
            calls("exit_plan", plan=PLAN),
        )
        await notebook.click(agent, "Send 2 of 3 answers")
        await awake(desk, agent, "Approve")
        for said in ("Which column?\\n  net", "month; land", "(left out"):
            assert said in desk.results(3)
        task = desk.view(agent).locator(".nbagent-call", has_text="Explore: find the revenue")
        steps = task.locator(".nbagent-agent > details > summary")
        await expect(steps).to_contain_text("1 step")
        await steps.click()
        await expect(task.locator(".nbagent-agentstep").first).to_contain_text("list variables")
        await expect(desk.view(agent).locator(".nbagent-call", has_text="no scratch code here").first).to_be_visible()
        await expect(desk.card(agent)).to_contain_text("The plan: go on with it?")
        await desk.view(agent).get_by_label("What to do instead", exact=True).fill("and check the rows")
        server.push(calls("exit_plan", plan=f"{PLAN}\n2. Check"))
        await notebook.click(agent, "Deny")
        await expect(desk.card(agent)).to_contain_text("Check")
        await notebook.click(agent, "Edit")
        await desk.view(agent).locator(".nbagent-area textarea").fill(f"{PLAN}\n2. Check both")
        await awake(desk, agent, "Approve")
        await notebook.click(agent, "Approve")
        await awake(desk, agent, "Edit without asking")
        server.push(calls("add_cell", source="by_plan = 1", run=False), Reply([todos(3)]), say("As planned."))
        await notebook.click(agent, "Edit without asking")  # then a cell that is not run needs no yes
        await notebook.see(agent, "As planned.")
        assert "by_plan = 1" in await notebook.sources()
        assert f"{PLAN}\n2. Check both" in await notebook.sources()
        await notebook.see(agent, "To do: all 3 done")
        await expect(notebook.output(agent).get_by_text("Join them")).to_be_hidden()  # folded: it is done


async def test_with_keys_only_a_number_chooses_and_enter_sends(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(Reply([todos(1), call("ask_user", questions=[COLUMN])]))
    await awake(desk, agent, "gross")
    await desk.view(agent).locator(".nbagent-bar").focus()
    desk.server.push(calls("ask_user", questions=[COLUMN, PLOTS, NAME]))
    await notebook.press("2")
    await awake(desk, agent, "land")
    assert "The person answered: gross" in desk.results(1)
    await notebook.page.wait_for_function(f"({FOCUS}).startsWith('Which column?')")  # there the person goes on
    await notebook.press("1", "3")  # there is no third
    await tab_to(desk, "month")
    await notebook.press("Space", "3", "Escape")
    await notebook.page.keyboard.type("and 2024")  # numbers in a box are words
    await notebook.press("Enter")
    await notebook.page.keyboard.type("report")
    desk.server.push(calls("exit_plan", plan=PLAN), say("Done by keys."))
    await notebook.press("Enter", "Enter")
    await notebook.see(agent, "Done by keys.")
    await desk.done()
    for said in ("Which column?\\n  net", "month; item. In their own words: and 2024", "What name?\\n  report"):
        assert said in desk.results(2)
    await notebook.see(agent, "To do: 1 of 3 done")
    await expect(notebook.output(agent).get_by_text("Join them (begun)")).to_be_visible()
