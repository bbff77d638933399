"""The promise as a whole: texts with planted secrets, read and edited by a model over real HTTP.

Nothing of a secret is in any request's body, in the session's file or in an event; in the cell and in the file it stands
exactly where it stood, and never a placeholder.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from nbagent.core.drive import drive
from nbagent.core.events import Event
from nbagent.core.events_json import to_json
from nbagent.core.loop import run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.run import Agent, Stop
from nbagent.core.session import Session
from nbagent.core.tools import Toolset
from nbagent.extend.sessions import JsonlStore
from nbagent.headless.memory import MemoryNotebook
from nbagent.models.anthropic import AnthropicModel
from nbagent.tools import notebook as cell_tools
from nbagent.tools import workspace
from nbagent.tools.guarded import guarded
from nbagent.tools.ledger import Ledger
from nbagent.tools.results import ResultStore, capped
from nbagent.tools.seen import Seen
from nbagent.tools.times import RunTimes
from nbagent.tools.vault import PLACEHOLDER
from tests.core.rig import Person
from tests.privacy.planted import planted, vault
from tests.support.messages_server import MessagesServer, call
from tests.tools.desk import EchoKernel, raw

READ = [call("read_cell", cell="a"), call("read_file", path="conf.txt"), call("read_notebook")]


class Model:
    """Reads the cell and the file, then writes back what it saw with one word more."""

    def __call__(self, body: dict[str, Any]) -> Any:
        messages = body["messages"]
        replies = sum(message["role"] == "assistant" for message in messages)
        if replies == 0:
            return READ
        if replies > 1:
            return "Done."
        cell = self._text(messages, 0).partition("\n")[2]
        return [
            call("edit_cell", cell="a", source=self._source(cell)),
            call("write_file", path="copy.txt", content="\n".join(self._lines(messages))),
        ]

    @staticmethod
    def _text(messages: list[Any], number: int) -> str:
        results = [block for block in messages[2]["content"] if block["type"] == "tool_result"]
        return "\n".join(block["text"] for block in results[number]["content"])

    @staticmethod
    def _source(shown: str) -> str:
        found = PLACEHOLDER.search(shown)
        return f"kept = '{found[0]}'  # edited" if found else "nothing"

    def _lines(self, messages: list[Any]) -> list[str]:
        return [f"<{match[0]}>" for match in PLACEHOLDER.finditer(self._text(messages, 1))]


async def _play(server: MessagesServer, folder: Path, text: str) -> tuple[list[Event], MemoryNotebook, Path]:
    box, results = vault(), ResultStore()
    notebook = MemoryNotebook([raw("a", text), raw("mine", "%%agent\ngo")], own_cell="mine")
    (folder / "conf.txt").write_text(text, "utf-8", newline="")
    kept = {"seen": Seen(), "ledger": Ledger(), "times": RunTimes(lambda: 0.0)}
    inner = [*cell_tools.tools(notebook, EchoKernel(), timeout=5, **kept), *workspace.tools(folder)]
    tools = Toolset(guarded(capped(tool, results, mask=box.mask), box) for tool in inner)
    store = JsonlStore(folder / "session.jsonl")
    session = Session("s", system="be good", tools=tools.params(), store=store, mask=box.masked)
    model = AnthropicModel("claude-test", base_url=server.url, api_key="k-test")
    agent = Agent(model=model, tools=tools, gate=Policy(Mode.BYPASS), approver=Person(*[True] * 4))
    stop, seen = Stop(), list[Event]()
    events = run(agent, session, [text_block(f"Here it is: {text}")], prompt="do it", stop=stop)
    await drive(events, seen.append, agent=agent, session=session, stop=stop)
    await model.aclose()
    return seen, notebook, store.path


@pytest.mark.slow
@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # each plays a run
@given(planted())
def test_nothing_of_a_planted_secret_leaves_and_edits_put_it_back(case: tuple[str, str]) -> None:
    text, secret = case
    text = text.replace("\r", "\n").replace("\x00", "")
    with tempfile.TemporaryDirectory() as name, MessagesServer(Model()) as server:
        folder = Path(name)
        seen, notebook, store = asyncio.run(_play(server, folder, text))
        bodies = [json.dumps(request.body, ensure_ascii=False) for request in server.requests]
        records = store.read_text("utf-8")
        events = json.dumps([to_json(event) for event in seen], ensure_ascii=False, default=str)
        assert len(bodies) == 3, [str(getattr(event, "sentence", "")) for event in seen][-1]
        for kept in (*bodies, records, events):
            assert secret not in kept
            assert secret[-8:] not in kept
        edited = notebook.cells_[0]["source"]
        assert secret in edited and not PLACEHOLDER.search(edited) and edited.endswith("# edited"), edited
        copied = (folder / "copy.txt").read_text("utf-8")
        assert f"<{secret}>" in copied and not PLACEHOLDER.search(copied)
