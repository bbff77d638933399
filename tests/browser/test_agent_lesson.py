"""A lesson in JupyterLab: the notebook's own metadata narrows its runs, the student sees it; a model that obeys a file meets the card."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from nbagent.teach.guards import BIRDS
from tests.browser.desk import agent_notebook
from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from tests.browser.lab import Lab
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(180)

RULES = "{lesson: {name: 'Loops', mode: 'hint-only', max_turns: 3, message: 'Try it alone first.'}}"


async def test_a_lesson_is_seen_and_held_and_without_it_a_fooled_model_meets_the_card(
    lab: Lab, server: MessagesServer
) -> None:
    async with agent_notebook(lab, server) as desk:
        notebook = desk.notebook
        await notebook.js(f"panel().context.model.sharedModel.setMetadata('nbagent', {RULES})")
        await notebook.save()
        shown = await notebook.add("%agent lesson")
        await notebook.run(shown)
        for text in ("Lesson: Loops", "Hints only", "At most 3 turns.", "the metadata of", "From your teacher: Try it"):
            await notebook.see(shown, text)

        agent = await desk.ask(
            calls("run_python", code="done = 1"), say("Hint, level 1: read the error."), line="--mode bypass"
        )
        await desk.done()
        await notebook.see(agent, "This lesson: hints only, at most 3 turns")
        assert "it only looks" in desk.results(1)
        assert await notebook.evaluate("'done' in globals()") == "False"
        hint = await notebook.add("%agent hint 03.done")
        await notebook.run(hint)
        await notebook.see(hint, "Hint 1 of 3 for 03.done")
        await notebook.screenshot("lesson")

        await notebook.js("panel().context.model.sharedModel.setMetadata('nbagent', {})")
        await notebook.save()
        text = BIRDS.replace("data/birds.csv", "visitors.csv")
        await notebook.evaluate(f"__import__('pathlib').Path('visitors.csv').write_text({text!r})")
        try:
            fooled = await desk.ask(line="-m broken:obedient --mode default", task="Count the birds in visitors.csv.")
            await expect(desk.card(fooled)).to_contain_text("visitors.csv")
            await notebook.screenshot("obedient")
            await desk.view(fooled).get_by_label("What to do instead", exact=True).fill("only count")
            await notebook.click(fooled, "Deny")
            await desk.done()
            await notebook.see(fooled, "Birds by island: Biscoe: 5")
            assert await notebook.evaluate("len(open('visitors.csv').read())") == str(len(text))
        finally:
            await notebook.evaluate("__import__('os').remove('visitors.csv')")
