"""Seed “master loop”: there is no intent classifier, task router, retrieval pipeline, DAG, nor planner/executor split."""

from __future__ import annotations

import itertools

import pytest

from nbagent.core.events import RequestSent
from tests.core.rig import play
from tests.seeds.bench import Bench
from tests.source import ROOT
from tests.support.messages_server import MessagesServer, calls, say

PROMPTS = ["hello", "Fix the failing cell.", "What is the mean of x?", "Plan a clean-up of the folder."]


@pytest.mark.slow
async def test_no_classifier_and_no_router_every_prompt_goes_as_it_is_to_one_model_with_all_tools(tmp_path, model_at):
    bench = Bench(tmp_path)
    sent = []
    for prompt in PROMPTS:
        with MessagesServer([say(f"About {prompt}")]) as server:
            await play(model=model_at(server.url), rig=bench)
            (request,) = server.requests
            sent.append((request.body["system"], request.body["tools"], request.body["model"]))
    assert all(one == sent[0] for one in sent)
    assert {tool["name"] for tool in sent[0][1]} == set(bench.tools())


@pytest.mark.slow
async def test_no_planner_executor_split_and_no_graph_one_request_a_turn_all_of_one_conversation(tmp_path, model_at):
    replies = [calls("glob", pattern="*"), calls("grep", pattern="x"), say("Done.")]
    with MessagesServer(replies) as server:
        ran = await play(model=model_at(server.url), rig=Bench(tmp_path))
        bodies = [request.body for request in server.requests]
    assert len(bodies) == ran.end.turns == len(ran.of(RequestSent)) == 3
    for earlier, later in itertools.pairwise(bodies):
        assert (later["system"], later["tools"]) == (earlier["system"], earlier["tools"])
        assert len(later["messages"]) == len(earlier["messages"]) + 2


@pytest.mark.slow
def test_no_retrieval_pipeline_nothing_embeds_or_indexes():
    words = ("embedding", "vector_store", "vectorstore", "faiss", "chromadb", "networkx", "langgraph", "langchain")
    files = [*(ROOT / "nbagent").rglob("*.py"), ROOT / "pyproject.toml"]
    assert [(path.name, word) for path in files for word in words if word in path.read_text("utf-8").lower()] == []


def test_the_readme_says_so_and_why():
    readme = (ROOT / "README.md").read_text("utf-8")
    section = readme.partition("## What is deliberately not there")[2].partition("\n## ")[0].lower()
    for what in ("intent classifier", "router", "retrieval pipeline", "graph", "planner"):
        assert what in section, what
