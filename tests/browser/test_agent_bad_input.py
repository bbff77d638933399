"""What can be wrong before and in a run: the page shows a sentence, never a traceback; notebook and kernel live on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.messages_server import Status, calls, refused_url, say

if TYPE_CHECKING:
    from tests.browser.desk import Desk

pytestmark = pytest.mark.timeout(120)


async def ends_with_a_sentence(desk: Desk, cell: int, sentence: str) -> None:
    """The cell is done, says `sentence`, shows no traceback and no dead widget, and its kernel computes."""
    await desk.done()
    await desk.notebook.see(cell, sentence)
    shown = await desk.notebook.output(cell).inner_text()
    assert not re.search(r"Traceback|File .*line \d|Error displaying widget|Loading widget", shown), shown
    assert await desk.notebook.evaluate("1 + 1") == "2"


@pytest.mark.parametrize("key", [None, "", "  \n"], ids=["none", "empty", "blank"])
async def test_without_a_key_three_lines_say_what_to_do(desk: Desk, key: str | None) -> None:
    await desk.set_env(ANTHROPIC_API_KEY=key, ANTHROPIC_BASE_URL=None)  # a server of one's own may need no key
    agent = await desk.ask()
    await ends_with_a_sentence(desk, agent, "No API key")
    assert "getpass" in await desk.notebook.output(agent).inner_text()
    assert desk.server.requests == []


async def test_a_wrong_key_is_said_and_not_shown(desk: Desk) -> None:
    await desk.set_env(ANTHROPIC_API_KEY="sk-wrong-and-secret")
    agent = await desk.ask(Status(401, "authentication_error", "invalid x-api-key"))
    await ends_with_a_sentence(desk, agent, "does not take this API key")
    assert "sk-wrong-and-secret" not in str(await desk.notebook.outputs(agent))


async def test_a_server_that_is_not_there_is_named(desk: Desk) -> None:
    url = refused_url()
    await desk.set_env(ANTHROPIC_BASE_URL=url)
    agent = await desk.ask()
    await ends_with_a_sentence(desk, agent, f"Nothing listens at {url}")


async def test_an_unknown_option_is_named_with_the_nearest(desk: Desk) -> None:
    agent = await desk.ask(line="--max-turn 3")
    await ends_with_a_sentence(desk, agent, "there is no option --max-turn. Did you mean --max-turns?")


async def test_an_empty_cell_says_what_to_write(desk: Desk) -> None:
    agent = await desk.ask(task="")
    await ends_with_a_sentence(desk, agent, "Write what the agent should do")


async def test_a_wider_mode_that_only_the_notebook_asks_for_is_asked_about(desk: Desk) -> None:
    agent = await desk.ask(line="--mode bypass")
    await desk.notebook.see(agent, "This notebook asks for the mode bypass")
    desk.server.push(calls("add_cell", source="wide = 1"), say("Asked once."))
    await desk.notebook.click(agent, "Yes, in this kernel")
    await desk.done()
    assert await desk.notebook.evaluate("wide") == "1"


async def test_exit_in_agent_code_is_asked_about_and_does_not_end_the_kernel(desk: Desk) -> None:
    await desk.set_env(NBAGENT_MODE="bypass")
    agent = await desk.ask(calls("add_cell", source="kept = 5\nexit()"), say("It stayed."))
    await desk.approve(agent)
    await ends_with_a_sentence(desk, agent, "It stayed.")
    assert await desk.notebook.evaluate("kept") == "5"
    assert "exit" in desk.results(1)


async def test_fifty_megabytes_of_output_end_as_a_bounded_cell(desk: Desk) -> None:
    await desk.set_env(NBAGENT_MODE="bypass")
    code = "for n in range(50): print('x' * 999_999)\nprint('the end')"
    agent = await desk.ask(calls("add_cell", source=code), say("A lot of x."))
    await ends_with_a_sentence(desk, agent, "A lot of x.")
    assert len(desk.results(1)) < 20_000
    assert len(await desk.notebook.text(agent + 1)) < 2_000_000
    await desk.set_env(NBAGENT_MODE=None)
    await desk.works()
