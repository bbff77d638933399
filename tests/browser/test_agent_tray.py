"""The tray: what three runs in the background ask, answered in another order than asked, by mouse and then by keys alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.browser.test_agent_in_sight import LOW_CONTRAST

if TYPE_CHECKING:
    from playwright.async_api import Locator

    from tests.browser.lab import Lab
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(180)

RUNS = """
import asyncio
from nbagent.app.extension import current
from nbagent.app.underway import LiveRun
from nbagent.core import events as ev
from nbagent.core.ports import Approval, Preview, Question
from nbagent.core.run import Stop
from nbagent.jupyter.approval import PersonApprover
from nbagent.view.widget import AgentView
from nbagent.app.undo_commands import show_desk
kernel, said, tasks = current(get_ipython()), {}, []
show_desk(kernel)
AT = dict(state=ev.State.ACT, turn=1, at=1.0)
async def work(name, view, person, code):
    if code is None:
        view.show(ev.QuestionAsked(**AT, question_id=name, text="Which year?", choices=("2025", "2026")))
        said[name] = await person.question(Question(name, "Which year?", ("2025", "2026")))
        view.show(ev.QuestionAnswered(**AT, question_id=name, text=said[name]))
    else:
        asked = Approval(name, "run_python", f"run {name}", {"code": code}, Preview("code", code), "This runs code.", ())
        view.show(ev.ApprovalAsked(**AT, call_id=name, approval=asked.to_json()))
        answer = await person.ask(asked)
        said[name] = f"{answer.approved} {answer.words}".strip()
        view.show(ev.ApprovalAnswered(**AT, call_id=name, approved=answer.approved))
def begin(name, code):
    person = PersonApprover()
    view = AgentView(on_answer=person.answer, on_reply=person.answer_question, on_stop=lambda: None)
    run = LiveRun(f"run-{name}", name, f"the task of {name}", CELL, Stop(), background=True, view=view, approver=person)
    kernel.underway.add(run)
    task = asyncio.ensure_future(work(name, view, person, code))
    task.add_done_callback(lambda _: kernel.underway.remove(run))
    tasks.append(task)
    return view.widget
"""
THREE = """CELL = "cell-2"
for name, code in (("anna", "a = 1"), ("ben", None), ("cleo", "c = 3")): shown = begin(name, code)
"""
COVERED = """() => {
  const at = document.activeElement.getBoundingClientRect();
  const bar = document.querySelector('.nbagent-trayhost').getBoundingClientRect();
  return [at.bottom <= bar.top + 1, bar.height];
}"""


def entry(tray: Locator, name: str) -> Locator:
    """What a run of that name asks in the tray."""
    return tray.locator(".nbagent-trayentry").filter(has_text=name)


async def test_three_runs_are_answered_in_the_tray_by_mouse_and_then_by_keys_alone(
    lab: Lab, server: MessagesServer
) -> None:
    cells = (RUNS, THREE, *(f"filler_{n} = {n}\n\n\n" for n in range(6)), "'last'")
    async with agent_notebook(lab, server, *cells, viewport=(1100, 800)) as desk:
        first = desk.notebook
        await first.run(1)
        await first.run(2)
        tray, page = first.page.locator(".nbagent-tray"), first.page
        await expect(tray.locator(".nbagent-traycount")).to_have_text("2 approvals and 1 question wait")
        await expect(tray.locator(".nbagent-card"), "nobody has opened it").to_have_count(0)
        await first.save()
        second = await first.second_tab()
        other = second.page.locator(".nbagent-tray")
        await expect(other).to_contain_text("2 approvals and 1 question wait")

        # by mouse: the last, the first, the one in the middle; the other tab follows
        await tray.locator(".nbagent-traytoggle").click()
        await expect(tray.locator(".nbagent-trayhead b")).to_have_text(["anna", "ben", "cleo"])
        await other.locator(".nbagent-traytoggle").click()
        await expect(other.locator(".nbagent-card")).to_have_count(3)
        await page.evaluate("document.querySelectorAll('.nbagent-tray .nbagent-approve').forEach(each => each.click())")
        for theme in ("light", "dark"):
            await page.emulate_media(color_scheme=theme)
            await first.until(f"(document.body.dataset.jpThemeLight === 'true') === ({theme!r} === 'light')")
            seen, low = await tray.evaluate(LOW_CONTRAST)
            assert seen > 15
            assert low == [], theme
            await first.screenshot(f"tray_{theme}")
        await entry(tray, "cleo").get_by_label("What to do instead", exact=True).fill("not so")
        await entry(tray, "cleo").get_by_role("button", name="Deny").click()
        await expect(other.locator(".nbagent-trayhead b")).to_have_text(["anna", "ben"])
        await other.locator(".nbagent-trayentry").first.get_by_role("button", name="Approve").click()
        await expect(tray.locator(".nbagent-trayhead b")).to_have_text(["ben"])
        await entry(tray, "ben").get_by_role("button", name="2026").click()
        for each in (tray, other):
            await expect(each).to_be_hidden()
        assert await first.evaluate("said") == "{'cleo': 'False not so', 'anna': 'True', 'ben': '2026'}"

        # by keys: who types in the last cell goes on typing, and comes back there
        await first.run(2)
        await first.enter(9)
        await expect(tray).to_be_visible()
        clear, height = await page.evaluate(COVERED)
        assert clear, "the tray never covers the cell that one types in"
        assert 0 < height < 60
        await page.keyboard.type("# typed ")
        assert "# typed " in (await first.sources())[9]
        await first.press("Alt+a")
        await expect(tray.locator(".nbagent-card")).to_have_count(3)
        await first.until("document.activeElement.matches('.nbagent-tray .nbagent-approving')")
        await first.press("Escape", "Escape")  # to the box for words, then out
        await expect(tray.locator(".nbagent-card").first).to_be_hidden()
        await first.typing(9)
        await first.press("Alt+a")
        await first.until("document.activeElement.matches('.nbagent-tray .nbagent-approving')")
        while not await page.evaluate("document.activeElement.matches('.nbagent-card-6 .nbagent-approving')"):
            await first.press("Tab")
        await expect(entry(tray, "cleo").get_by_role("button", name="Approve")).to_be_enabled()
        await first.press("Enter")
        await expect(tray.locator(".nbagent-trayhead b")).to_have_text(["anna", "ben"])
        await first.until("document.activeElement.matches('.nbagent-tray .nbagent-approving')")
        while not await page.evaluate("document.activeElement.matches('.nbagent-asking .nbagent-bar')"):
            await first.press("Tab")
        await expect(entry(tray, "ben").get_by_role("button", name="2025")).to_be_enabled()
        await first.press("1")
        await expect(tray.locator(".nbagent-trayhead b")).to_have_text(["anna"])
        await first.reload()
        await expect(tray).to_contain_text("1 approval waits")
        await tray.locator(".nbagent-traytoggle").click()  # JupyterLab takes the focus while it loads
        await entry(tray, "anna").get_by_role("button", name="Approve").click()
        await expect(tray).to_be_hidden()
        assert await first.evaluate("said") == "{'cleo': 'True', 'anna': 'True', 'ben': '2025'}"
        assert await page.evaluate("document.querySelector('.nbagent-trayhost').getBoundingClientRect().height") == 0
