"""`nbagent mcp-serve`, witnessed by the SDK's client: tools, decisions, questions to the person, results."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys

import nbformat
import pytest
from mcp import Client, types
from mcp.client.stdio import StdioServerParameters

from nbagent.app.serve import Service
from nbagent.app.serve_asking import ALLOW, DENY, SHOWN_LIMIT
from nbagent.app.serve_places import Here
from nbagent.core.messages import image_block, text_block
from nbagent.core.policy import Mode, Policy, Rule
from nbagent.core.ports import Preview, Question
from nbagent.core.tools import Call, Kind, Result, tool
from tests.support.turns import until


class Bench:
    """Three tools and what ran; the person before the other agent answers `says`."""

    def __init__(self, says: str = ALLOW, words: str = "", mode: Mode = Mode.DEFAULT, *rules: Rule) -> None:
        self.ran: list[str] = []
        self.asked: list[types.ElicitRequestFormParams] = []
        self.says, self.words = says, words
        self.hangs = asyncio.Event()
        self.stopped = asyncio.Event()

        @tool
        async def look(call: Call, what: str) -> Result:
            """Look at something.

            Args:
                what: What to look at.
            """
            call.progress(f"looking at {what}")
            return Result((text_block(f"seen {what}"), image_block("image/png", "aGk=")))

        @tool(kind=Kind.RUN_CELL, exact=True, preview=lambda given: Preview("code", given["code"]))
        async def change(_call: Call, code: str) -> str:
            """Run code."""
            self.ran.append(code)
            return f"ran {code}"

        @tool
        async def ask(call: Call) -> str:
            """Ask the person."""
            return await call.ask(Question(call.id, "Which one?", ("a", "b")))

        @tool
        async def hang(_call: Call) -> str:
            """Hang."""
            self.hangs.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped.set()
            return ""

        self.service = Service(Here([look, change, ask, hang]), Policy(mode, rules), "n.ipynb")

    async def answer(self, context, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        self.asked.append(params)
        if self.says in ("decline", "cancel"):
            return types.ElicitResult(action=self.says)
        return types.ElicitResult(action="accept", content={"answer": self.says, "words": self.words})

    def client(self, mode: str = "auto", *, present: bool = True) -> Client:
        return Client(
            self.service.server(), mode=mode, elicitation_callback=self.answer if present else None, cache=None
        )


def text(result: types.CallToolResult) -> str:
    return "\n".join(item.text for item in result.content if item.type == "text")


both_protocols = pytest.mark.parametrize("mode", ["legacy", "auto"])


@both_protocols
async def test_tools_are_listed_with_schemas_and_results_keep_their_images(mode):
    async with Bench().client(mode) as client:
        listed = {item.name: item for item in (await client.list_tools()).tools}
        assert set(listed) == {"look", "change", "ask", "hang", "read_result"}
        assert listed["look"].input_schema["properties"]["what"]["description"] == "What to look at."
        assert listed["read_result"].annotations.read_only_hint is True
        assert listed["change"].annotations.read_only_hint is False
        result = await client.call_tool("look", {"what": "x"})
        assert [item.type for item in result.content] == ["text", "image"]
        assert "Read before you change anything" in client.instructions


@both_protocols
async def test_what_changes_something_runs_after_a_yes_of_the_person_there(mode):
    bench = Bench()
    async with bench.client(mode) as client:
        result = await client.call_tool("change", {"code": "df = 1\u202e"})
    assert (text(result), bench.ran) == ("ran df = 1\u202e", ["df = 1\u202e"])
    (asked,) = bench.asked
    assert "df = 1⟨U+202E⟩" in asked.message and "n.ipynb" in asked.message
    assert asked.requested_schema["properties"]["answer"]["enum"][:2] == [DENY, ALLOW]


@pytest.mark.slow
@both_protocols
@pytest.mark.parametrize("says", [DENY, "decline", "cancel", "Allow", ""])
async def test_anything_but_a_plain_yes_is_a_no(mode, says):
    bench = Bench(says, words="use another cell")
    async with bench.client(mode) as client:
        result = await client.call_tool("change", {"code": "x"})
    assert result.is_error and bench.ran == []
    if says == DENY:
        assert "They say: use another cell" in text(result)


@both_protocols
async def test_where_the_other_agent_cannot_ask_the_policy_denies(mode):
    bench = Bench()
    async with bench.client(mode, present=False) as client:
        result = await client.call_tool("change", {"code": "x"})
        assert result.is_error and "Nobody is there to approve this" in text(result)
        assert text(await client.call_tool("look", {"what": "x"})) == "seen x"
    assert bench.ran == []


@both_protocols
async def test_allow_from_now_on_lasts_for_this_program(mode):
    bench = Bench()
    async with bench.client(mode) as client:
        await client.call_tool("change", {"code": "one"})
        bench.says = bench.asked[0].requested_schema["properties"]["answer"]["enum"][-1]
        assert bench.says.startswith("Allow from now on: every call of change")
        await client.call_tool("change", {"code": "two"})
        await client.call_tool("change", {"code": "three"})
    assert (len(bench.asked), bench.ran) == (2, ["one", "two", "three"])


async def test_rules_and_modes_decide_as_in_a_notebook():
    denied = Bench(ALLOW, "", Mode.BYPASS, Rule.parse("deny", "change"))
    async with denied.client() as client:
        assert "Not allowed (rule: deny change)" in text(await client.call_tool("change", {"code": "x"}))
    reading = Bench(ALLOW, "", Mode.READ_ONLY)
    async with reading.client() as client:
        assert (await client.call_tool("change", {"code": "x"})).is_error
    assert denied.ran == reading.ran == reading.asked == []


async def test_what_is_too_long_to_be_looked_through_is_not_approved():
    bench = Bench()
    async with bench.client() as client:
        assert "too long to be shown" in text(await client.call_tool("change", {"code": "x" * SHOWN_LIMIT}))
    assert bench.asked == bench.ran == []


@both_protocols
async def test_a_tools_own_question_reaches_the_person_there(mode):
    bench = Bench("b")
    async with bench.client(mode) as client:
        assert text(await client.call_tool("ask", {})) == "b"
    assert "One of: a, b" in bench.asked[0].requested_schema["properties"]["answer"]["description"]


async def test_wrong_arguments_and_unknown_tools_are_told():
    async with Bench().client() as client:
        assert "wrong arguments for look" in text(await client.call_tool("look", {"wat": 1}))
        assert "There is no tool 'nope'" in text(await client.call_tool("nope", {}))


async def test_progress_is_handed_on():
    told: list[str | None] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with Bench().client("legacy") as client:
        await client.call_tool("look", {"what": "x"}, progress_callback=progress)
        await until(lambda: told)
    assert told == ["looking at x"]


async def test_a_call_that_the_other_agent_cancels_is_stopped():
    bench = Bench()
    async with bench.client("legacy") as client:
        task = asyncio.create_task(client.call_tool("hang", {}))
        await bench.hangs.wait()
        task.cancel()
        await asyncio.wait_for(bench.stopped.wait(), 10)
        assert text(await client.call_tool("look", {"what": "after"})) == "seen after"


async def test_an_answer_counts_for_the_call_that_was_asked_about_only():
    """The newest protocol sends the call again with the answer: other arguments with it run nothing."""
    bench = Bench()
    async with bench.client() as client:
        session = client.session
        first = await session.call_tool("change", {"code": "shown"}, allow_input_required=True)
        assert isinstance(first, types.InputRequiredResult)
        yes = {"answer": types.ElicitResult(action="accept", content={"answer": ALLOW})}
        again = await session.call_tool(
            "change",
            {"code": "other"},
            input_responses=yes,
            request_state=first.request_state,
            allow_input_required=True,
        )
        assert again.is_error and "Nothing ran" in text(again)
        replay = await session.call_tool(
            "change",
            {"code": "shown"},
            input_responses=yes,
            request_state=first.request_state,
            allow_input_required=True,
        )
        assert replay.is_error
    assert bench.ran == []


# ── the program itself ───────────────────────────────────────────────────────────────────────────────────────────────


def program(folder, *options: str) -> StdioServerParameters:
    env = {**os.environ, "XDG_CONFIG_HOME": str(folder / "settings"), "HOME": str(folder)}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "nbagent", "mcp-serve", *options], cwd=folder, env=env
    )


async def yes(context, params) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"answer": ALLOW})


@pytest.mark.slow
async def test_a_notebook_file_is_read_run_and_changed_over_stdio(tmp_path):
    file = tmp_path / "n.ipynb"
    cells = [nbformat.v4.new_code_cell("print('to the screen')\na = 20"), nbformat.v4.new_code_cell("a + 1")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), file)
    async with Client(program(tmp_path, "--notebook", str(file)), elicitation_callback=yes) as client:
        overview = text(await client.call_tool("read_notebook", {}))
        first, second = re.findall(r"^\d+\. (\S+)", overview, re.MULTILINE)
        await client.call_tool("run_cell", {"cell": first})
        assert "21" in text(await client.call_tool("run_cell", {"cell": second}))
        assert "a: 20" in text(await client.call_tool("list_variables", {}))
        assert "20" in text(await client.call_tool("run_python", {"code": "import os; os.write(1, b'x'); a"}))
    saved = json.loads(file.read_text("utf-8"))
    assert saved["cells"][1]["outputs"][0]["data"]["text/plain"] == ["21"]


@pytest.mark.kernel
async def test_a_kernel_that_runs_is_reached_without_leaving_a_trace(tmp_path):
    file = tmp_path / "kernel.json"
    kernel = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ipykernel_launcher", "-f", str(file), cwd=tmp_path
    )
    try:
        await until(file.exists, within=30)
        async with Client(program(tmp_path, "--kernel", str(file)), elicitation_callback=yes) as client:
            await client.call_tool("run_code", {"code": "df = 'my table'"})
            assert "df: 'my table'" in text(await client.call_tool("list_variables", {}))
            assert text(await client.call_tool("run_python", {"code": "b = 1\ndf"})) == "'my table'"
            assert "8" in text(await client.call_tool("run_code", {"code": "c = 7\nc + 1"}))
            assert (await client.call_tool("run_python", {"code": "1 / 0"})).is_error
            long = "import time\nfor i in range(600): time.sleep(0.1)\nlate = 1"
            task = asyncio.create_task(client.call_tool("run_code", {"code": long}))
            await asyncio.wait({task}, timeout=2)
            task.cancel()
            names = text(await client.call_tool("list_variables", {}))
            assert "c: 7" in names and "late" not in names and "b:" not in names
    finally:
        kernel.kill()
        await kernel.wait()


@pytest.mark.slow
async def test_a_kernel_that_is_not_there_is_told(tmp_path):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "nbagent", "mcp-serve", "--kernel", "no-such-kernel", cwd=tmp_path,
        stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, said = await process.communicate()
    assert process.returncode == 1
    assert b"There is no running kernel 'no-such-kernel'" in said
