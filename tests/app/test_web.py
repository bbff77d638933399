"""Web search and fetch: what rules and modes say of them, and whole runs over real HTTP against the Messages API's double."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.app.cell import run_agent_cell
from nbagent.app.extension import Extension
from nbagent.app.reports import command
from nbagent.app.web import domains, offered, ruling
from nbagent.config import Settings, load, own_file
from nbagent.core.errors import ConfigError
from nbagent.core.events import CallEnded, CallStarted, Event, Noted, ReplyEnded, RunEnded
from nbagent.core.loop import run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.rules import Rule
from nbagent.core.run import Agent
from nbagent.core.session import NoStore, Session
from nbagent.core.tools import Toolset
from nbagent.models import AnthropicModel
from nbagent.view.fold import fold_all
from nbagent.view.html import item_html
from nbagent.view.items import CallItem, TextItem
from nbagent.view.outline import answer as answer_of
from nbagent.view.record_text import markdown, plain
from nbagent.view.words import facts
from tests.core.rig import Person
from tests.support.messages_server import MessagesServer, Reply

PAGE = {"type": "web_search_result", "title": "Iris <b>data</b>", "url": "https://example.org/iris?a=1", "page_age": "May 1",
        "encrypted_content": "sealed"}  # fmt: skip
BAD = {**PAGE, "title": "bad", "url": "javascript:alert(1)"}


def searched(call_id: str = "srvtoolu_1", query: str = "iris size") -> list[dict[str, Any]]:
    """A search and what it found."""
    return [
        {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": query}},
        {"type": "web_search_tool_result", "tool_use_id": call_id, "content": [PAGE, BAD]},
    ]


CITED = [
    {"type": "text", "text": "It has "},
    {"type": "text", "text": "150 rows", "citations": [
        {"type": "web_search_result_location", "url": PAGE["url"], "title": "Iris", "cited_text": "150", "encrypted_index": "x"}
    ]},
    {"type": "text", "text": ", says the page."},
]  # fmt: skip
SERVED = {
    "input_tokens": 10,
    "output_tokens": 5,
    "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
}


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as made:
        yield made
        made.assert_clean()


async def run_with(server: MessagesServer, *replies: Any, tools: tuple[dict[str, Any], ...] = ()) -> list[Event]:
    server.push(*replies)
    model = AnthropicModel("claude-sonnet-5-5", base_url=server.url, api_key="sk-test")
    session = Session("s", system="Be short.", tools=tools, store=NoStore())
    agent = Agent(model=model, tools=Toolset(()), gate=Policy(), approver=Person())
    try:
        return [event async for event in run(agent, session, [text_block("How big is iris?")])]
    finally:
        await model.aclose()


TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}


@pytest.mark.slow
async def test_a_search_is_shown_as_a_call_with_links_counted_and_its_citations_stand_in_one_text(server):
    events = await run_with(server, Reply([*searched(), *CITED], usage=SERVED), tools=(TOOL,))
    (started,) = [e for e in events if isinstance(e, CallStarted)]
    (ended,) = [e for e in events if isinstance(e, CallEnded)]
    assert (started.title, ended.summary) == ("search the web: iris size", "2 pages")
    assert "sealed" not in str(ended), "what is sealed for the server stays in the transcript"
    last = events[-1]
    assert isinstance(last, RunEnded) and last.text == "It has 150 rows, says the page."
    assert last.cost == pytest.approx(10 * 2e-6 + 5 * 10e-6 + 0.01)

    view = fold_all(events)
    (item,) = [i for i in view.items if isinstance(i, CallItem)]
    html = item_html(item)
    assert item.status == "ok" and 'href="https://example.org/iris?a=1"' in html
    assert "<img" not in html and "<b>data" not in html and "javascript:" not in html
    texts = [i for i in view.items if isinstance(i, TextItem) and i.text]
    assert [i.text for i in texts] == ["It has 150 rows [\\[1\\]](<https://example.org/iris?a=1>), says the page."]
    assert 'href="https://example.org/iris?a=1"' in item_html(texts[0]) and "[1]" in item_html(texts[0])
    assert answer_of(view)[1] == texts[0].key
    assert "1 web search" in facts(view)
    assert "https://example.org/iris?a=1" in markdown(view) and "example.org/iris" in plain(view)


async def test_a_paused_reply_goes_on_with_what_was_found_and_a_search_that_fails_says_why(server):
    """Stop reason pause_turn: the reply is appended as it came and the model asked again, unchanged."""
    failed = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    asked, _ = searched()
    paused = Reply([{"type": "text", "text": "Let me look."}, *searched("srvtoolu_0"), asked], stop_reason="pause_turn")
    rest = [{"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": failed}, *CITED]
    events = await run_with(server, paused, Reply(rest), tools=(TOOL,))
    first, second = server.requests
    assert second.body["messages"][:-1] == first.body["messages"] and second.body["messages"][-1]["role"] == "assistant"
    assert [e.summary for e in events if isinstance(e, CallEnded)] == [
        "2 pages", "The server could not do it: max uses exceeded."
    ]  # fmt: skip
    assert [e.stop_reason for e in events if isinstance(e, ReplyEnded)] == ["pause_turn", "end_turn"]
    assert isinstance(events[-1], RunEnded) and events[-1].text.startswith("It has 150 rows")
    assert {i.status for i in fold_all(events).items if isinstance(i, CallItem)} == {"ok", "error"}


# ── rules and modes ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mode", "action"),
    [("default", "ask"), ("accept-edits", "ask"), ("plan", "deny"), ("read-only", "deny"), ("dont-ask", "deny"),
     ("bypass", "allow")],
)  # fmt: skip
def test_without_rules_the_row_of_the_network_decides(mode, action):
    assert ruling("web_search", (), Mode(mode)).action == action


def test_rules_in_claudes_words_answer_for_the_web():
    def said(name: str, mode: Mode, **rules: str):
        return ruling(name, [Rule.parse(action, text) for action, text in rules.items()], mode)  # type: ignore[arg-type]

    assert said("web_search", Mode.DEFAULT, allow="WebSearch").action == "allow"
    assert said("web_search", Mode.DONT_ASK, allow="WebSearch").action == "allow"
    assert said("web_search", Mode.PLAN, allow="WebSearch").action == "deny"
    assert said("web_search", Mode.BYPASS, deny="WebSearch").action == "deny"
    assert said("web_fetch", Mode.BYPASS, ask="WebFetch").action == "ask"
    assert said("web_fetch", Mode.DEFAULT, allow="WebFetch(domain:python.org)").only == ("python.org",)
    assert said("web_fetch", Mode.BYPASS, deny="WebFetch(domain:evil.com)").never == ("evil.com",)
    assert said("web_fetch", Mode.BYPASS, ask="WebFetch(domain:evil.com)").never == ("evil.com",)
    assert said("web_fetch", Mode.BYPASS, deny="WebFetch(https://a/*)").action == "deny", "nobody could check it"


NAMES = st.lists(st.sampled_from(["a.org", "b.org", "x.a.org", "y.x.a.org"]), max_size=3)


@pytest.mark.slow
@given(NAMES, NAMES, NAMES)
def test_no_domain_is_sent_that_a_rule_or_the_settings_keep_shut(only, never, wanted):
    sent = domains(only, never, wanted)
    if sent is None:
        return
    assert len(sent) <= 1, "a server takes one of the two lists"
    for one in sent.get("allowed_domains", ()):
        below = [one, *(f for f in only + never + wanted if f.endswith(f".{one}"))]
        assert not set(below) & set(never)
        for limit in (only, wanted):
            assert not limit or any(one == name or one.endswith(f".{name}") for name in limit)
    if "allowed_domains" not in sent:
        assert not only and not wanted and set(sent.get("blocked_domains", ())) == set(never)


def test_the_setting_is_off_a_project_can_only_turn_it_off_and_domains_are_read_as_people_write_them(tmp_path):
    assert load(tmp_path, {}).web == ()
    settings = load(tmp_path, {"NBAGENT_WEB": "search"}, {"web_allowed_domains": ["https://Docs.Python.org/"]})
    assert (settings.web, settings.web_allowed_domains) == (("search",), ("docs.python.org",))
    (tmp_path / "pyproject.toml").write_text('[tool.nbagent]\nweb = ["search"]\n')
    assert load(tmp_path, {}).web == () and "web" in load(tmp_path, {}).ignored[0]
    for wrong in ({"web": ["all"]}, {"web_blocked_domains": ["not a domain"]}):
        with pytest.raises(ConfigError):
            load(tmp_path, {}, wrong)


# ── in a shell ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Seen:
    """A view that keeps what it is shown."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def show(self, event: Event) -> None:
        self.events.append(event)

    @property
    def notes(self) -> str:
        return "\n".join(e.text for e in self.events if isinstance(e, Noted))


@pytest.fixture
def extension(shell, tmp_path, monkeypatch, server) -> Extension:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name, value in (("HOME", str(tmp_path)), ("XDG_CONFIG_HOME", str(tmp_path / "config")),
                        ("ANTHROPIC_BASE_URL", server.url), ("ANTHROPIC_API_KEY", "sk-test")):  # fmt: skip
        monkeypatch.setenv(name, value)
    return Extension(shell)


def served_tools(server: MessagesServer) -> list[list[str]]:
    return [[t["name"] for t in r.body.get("tools", []) if "type" in t] for r in server.requests]


@pytest.mark.slow
async def test_where_nobody_is_there_a_rule_offers_the_web_and_turning_it_on_seeds_a_new_session(extension, server):
    server.push(Reply("One.", thinking="Hm."), Reply("Two.", thinking="Hm."), Reply([*searched(), *CITED]), "Four.")
    assert "The web is off" in command(extension, "web")
    await run_agent_cell(extension, "first", "")
    assert "search and fetch" in command(extension, "web on")
    await run_agent_cell(extension, "second", "")
    session = extension.last.session.id
    assert served_tools(server) == [[], []], "nobody was there to agree"

    own_file().parent.mkdir(parents=True, exist_ok=True)
    own_file().write_text('allow = ["WebSearch"]\nweb_blocked_domains = ["evil.com"]\n')
    found = await run_agent_cell(extension, "third", "")
    assert found.text == "It has 150 rows, says the page."
    assert served_tools(server)[-1] == ["web_search"]
    assert server.requests[-1].body["tools"][-1]["blocked_domains"] == ["evil.com"]
    assert extension.last.session.id != session
    told = server.requests[-1].body["messages"]
    assert [b["type"] for m in told if m["role"] == "assistant" for b in m["content"]] == ["text", "text"]

    command(extension, "web off")
    await run_agent_cell(extension, "fourth", "")
    kept = [b for m in server.requests[-1].body["messages"] if m["role"] == "assistant" for b in m["content"]]
    assert {b["type"] for b in kept} == {"text"} and "https://example.org/iris?a=1" in str(kept)


async def test_a_person_is_asked_once_before_a_run_and_may_agree_for_the_conversation(extension):
    settings = replace(Settings(), web=("search", "fetch"), model="sonnet")
    for word, count, kept in (
        ("No, go on without", 0, 0),
        ("Yes, in this run", 2, 0),
        ("Yes, in this conversation", 2, 2),
    ):
        person = Person(replies=[word])
        offer = await offered(settings, SimplePlace(Seen(), person), ())  # type: ignore[arg-type]
        assert (len(offer.tools), len(offer.keep)) == (count, kept)
        assert "search the web and read pages of the web" in person.questions[0].text
    again = await offered(settings, SimplePlace(Seen(), Person()), offer.keep)  # type: ignore[arg-type]
    assert len(again.tools) == 2, "it is not asked again"


class SimplePlace:
    """As much of a place as the offer uses."""

    def __init__(self, view: Seen, approver: Any) -> None:
        self.view, self.approver = view, approver


def test_other_words_of_the_command_are_refused(extension):
    with pytest.raises(ConfigError, match="on, off, search or fetch"):
        command(extension, "web maybe")
    assert Path.cwd().name == "work"
