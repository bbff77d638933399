"""Seed “master loop”: fork_session, two branches of one conversation with real loops of their own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from nbagent.app.conversation import Conversation
from nbagent.app.forks import fork, stored
from nbagent.config import Settings
from nbagent.core.events import Reason
from nbagent.core.policy import Mode
from nbagent.models.scripted import ScriptedModel, call
from tests.core.rig import Ran, play
from tests.seeds.bench import Bench
from tests.support.messages_server import MessagesServer, say

pytestmark = pytest.mark.slow


def begun(bench: Bench) -> Conversation:
    return Conversation.begin(Settings(), lambda _: list(bench.tools().values()), bench.folder, "n.ipynb")


def branch(of: Conversation, bench: Bench, *, at: int, settings: Settings | None = None, tools=None) -> Conversation:
    past = stored(bench.folder, of.session.id, at)
    assert past is not None
    made = tools or list(bench.tools().values())
    return fork(past, settings or Settings(), lambda _: made, bench.folder, "n.ipynb")[0]


async def parent(bench: Bench) -> tuple[Conversation, Ran]:
    """A conversation of four messages: it has read a file, and knows its word."""
    bench.write("a.txt", "alpha")
    conversation = begun(bench)
    ran = await play([call("read_file", path="a.txt")], "It says alpha.", rig=bench, session=conversation.session)
    return conversation, ran


async def test_a_branch_shares_the_history_up_to_the_fork_point_and_is_independent_after_it(tmp_path: Path):
    bench = Bench(tmp_path)
    conversation, _ = await parent(bench)
    before = json.dumps(conversation.session.transcript[:])
    one, two = (branch(conversation, bench, at=4) for _ in range(2))
    ones = await play("One way.", rig=bench, session=one.session)
    twos = await play([call("write_file", path="b.txt", content="b")], "Another.", rig=bench, session=two.session,
                      mode=Mode.BYPASS)  # fmt: skip
    assert json.dumps(conversation.session.transcript[:]) == before, "the parent is as it was"
    assert json.dumps(ones.messages[:4]) == json.dumps(twos.messages[:4]) == before
    assert (len(ones.messages), len(twos.messages)) == (6, 8)
    assert len({conversation.store.path, one.store.path, two.store.path}) == 3
    assert "Another" not in one.store.path.read_text() and "One way" not in two.store.path.read_text()


async def test_both_branches_run_at_the_same_time_each_with_its_own_loop(tmp_path: Path):
    bench = Bench(tmp_path)
    conversation, _ = await parent(bench)
    met = asyncio.Barrier(2)

    class Meeting(ScriptedModel):
        async def stream(self, request):
            async with asyncio.timeout(5):
                await met.wait()  # neither gets further before the other one asks, too
            async for event in super().stream(request):
                yield event

    made = [branch(conversation, bench, at=4) for _ in range(2)]
    answers = await asyncio.gather(
        *(play(model=Meeting([str(n)]), rig=bench, session=one.session) for n, one in enumerate(made))
    )
    assert [ran.end.text for ran in answers] == ["0", "1"]
    assert all(ran.end.reason is Reason.END_TURN for ran in answers)


@pytest.mark.parametrize("which", ["tools", "prompt"])
async def test_branches_compare_other_tools_or_prompts_from_the_same_point(tmp_path: Path, model_at, which):
    bench = Bench(tmp_path)
    conversation, _ = await parent(bench)
    few = [tool for tool in bench.tools().values() if tool.name in {"read_file", "grep"}]
    settings = Settings(system_append="Answer in one word.")
    other = {"tools": {"tools": few}, "prompt": {"settings": settings}}[which]
    with MessagesServer([say("plain"), say("other")]) as server:
        for made in (branch(conversation, bench, at=4), branch(conversation, bench, at=4, **other)):
            await play(model=model_at(server.url), rig=bench, session=made.session)
        server.assert_clean()
        plain, changed = [request.body for request in server.requests]
    assert [m["content"][0].get("text") for m in plain["messages"][-1:]] == ["do it"]
    assert len(plain["messages"]) == len(changed["messages"]) == 5
    assert ([t["name"] for t in plain["tools"]] != [t["name"] for t in changed["tools"]]) == (which == "tools")
    assert (plain["system"] != changed["system"]) == (which == "prompt")


async def test_nothing_of_the_shared_part_is_run_or_paid_again(tmp_path: Path, model_at):
    bench = Bench(tmp_path)
    with MessagesServer([say("I know."), say("One."), say("Two.")]) as server:
        model = model_at(server.url)
        conversation = begun(bench)
        await play(model=model, rig=bench, session=conversation.session)
        for made in (branch(conversation, bench, at=2), branch(conversation, bench, at=2)):
            ran = await play(model=model, rig=bench, session=made.session)
            assert ran.end.turns == 1, "one request: the shared part is not gone through again"
            assert ran.end.usage.cache_read > 0, "and its prefix comes from the cache"
        server.assert_clean()
