"""Rows of group (b): the kernel, its loop and its widgets, end to end in real kernels. Others stand beside their parts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import aclosing

import pytest
from nbclient.exceptions import DeadKernelError

from nbagent.app.restarts import said_of
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Cell
from nbagent.core.run import Agent
from nbagent.core.session import Session
from nbagent.models.scripted import ScriptedModel, say
from nbagent.models.scripted import call as scripted_call
from tests.core.rig import Person, Rig, check_transcript
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply, call, calls
from tests.support.turns import turns
from tests.support.warm import COLD

APPROVE = '"description": "Approve"'
ALLOW = {"NBAGENT_ALLOW": "run_python\nadd_cell\nrun_cell\ndraw\nforks"}

WIDGET = """
%matplotlib inline
import asyncio, ipywidgets, nbagent
import matplotlib.pyplot as plt
clicks = []
button = ipywidgets.Button(description='Mine')
button.on_click(lambda _: clicks.append(1))
@nbagent.register
@nbagent.tool
async def draw(call) -> str:
    '''Draw.'''
    plt.plot([3, 1, 2])
    return "drawn"
button
"""


def images(content) -> int:
    return sum(block["type"] == "image" for block in content)


def last_result(server) -> list:
    return server.requests[-1].body["messages"][-1]["content"][0]["content"]


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_a_figure_stays_in_its_cell_whatever_is_clicked_before_it_is_drawn(tmp_path):
    """Row 30: a message of a widget ends like a cell of its own; figures that are open then are not its."""
    awaits = "print('it runs')\nplt.plot([1, 2]);\nwhile not clicks: await asyncio.sleep(0.02)"
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True, **ALLOW) as room:
            await room.cell(WIDGET)
            runs = asyncio.create_task(room.seen("it runs"))
            running = asyncio.create_task(room.cell("%%agent\nplot", calls("add_cell", source=awaits), "Plotted."))
            await runs
            room.page.click("Mine")
            (await running).says("Plotted.")
            outputs = room.page.document.cells[-1]["outputs"]
            assert [o["output_type"] for o in outputs] == ["stream", "display_data"]
            assert images(last_result(server)) == 1

            asking = asyncio.create_task(room.seen(APPROVE))
            asks = Reply([call("shell", command="touch asked")])
            running = asyncio.create_task(room.cell("%%agent\ndraw", calls("draw"), asks, "Drawn."))
            await asking
            while not running.done():
                room.page.click("Approve")
                await asyncio.wait({running}, timeout=0.2)
            (await running).says("Drawn.")
            drawn = server.requests[-2].body["messages"][-1]["content"][0]["content"]
            assert [block["type"] for block in drawn] == ["text", "text", "image"]
            assert "matplotlib figure" in drawn[1]["text"]
            assert await room.value("plt.get_fignums()") == []
            await room.still_works()
        server.assert_clean()


SHADOWS = "list = dict = display = input = json_ = print_ = agent = str = len = type = nbagent = asyncio = int = None"


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_names_of_the_persons_neither_break_us_nor_are_touched(tmp_path):
    """Rows 55 and 57: shadowed builtins, %reset and del between runs; nothing of ours is put among their names."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            await room.cell(SHADOWS)
            names = "sorted(n for n in globals() if n[0] != '_')"
            before = await room.value(names)
            shown = await room.cell(
                "%%agent\ngo",
                calls("list_variables"),
                calls("add_cell", source="x = 5\nx"),
                calls("run_python", code="x + 1"),
                "All good.",
            )
            shown.says("All good.")
            assert not shown.error
            assert await room.value("[list, agent, nbagent, x]") == [None, None, None, 5]
            assert set(await room.value(names)) - set(before) == {"x"}

            await room.cell("%reset -f")
            shown = await room.cell(
                "%%agent\nagain", calls("list_variables"), calls("add_cell", source="y = 7"), "Fresh."
            )
            shown.says("Fresh.")
            assert room.results()[-2] == "no variables yet"
            await room.cell("del y")
            await room.cell("%%agent\nagain", calls("inspect_variable", name="y"), "Gone.")
            assert "no variable is named 'y'" in room.results()[-1]
            await room.still_works()
        server.assert_clean()


BRACES = "{v: k for k, v in d.items()} $x {y} {{z}} %s {'a': [1, 2]}"


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_what_the_person_writes_is_taken_literally(tmp_path):
    """Row 53: braces, dollars and percent signs, in the body and on the first line, whatever the variables are."""
    with MessagesServer() as server:
        async with Room(tmp_path, server) as room:
            await room.cell("y = 'expanded'; x = 'expanded'; d = {'a': 1}")
            for source in ("%%agent\n{y} $y", "%%agent {y} $y"):
                (await room.cell(source, "Read.")).says("Read.")
                assert server.requests[-1].body["messages"][-1]["content"][-1]["text"] == "{y} $y"
            for source in (
                f"%%agent\n{BRACES}",
                f"%%agent --mode plan {BRACES}",
                f"# note\n%%agent {BRACES}\n{BRACES}",
            ):
                (await room.cell(source, "Read.")).says("Read.")
                told = server.requests[-1].body["messages"][-1]["content"][-1]["text"]
                assert set(told.split("\n")) == {BRACES}, told
            shown = await room.cell("%agent mode {y}")
            shown.says("no mode '{y}'")
        server.assert_clean()


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_a_file_with_the_name_of_a_package_is_named_and_never_run(tmp_path):
    """Row 57: json.py does no harm; anthropic.py in the notebook's folder is not taken for the SDK."""
    (tmp_path / "json.py").write_text("open('ran-json', 'w')")
    (tmp_path / "anthropic.py").write_text("open('ran-anthropic', 'w')")
    with MessagesServer() as server:
        async with Room(tmp_path, server, **{COLD: "1"}) as room:
            shown = await room.cell("%%agent\nhello")
            shown.says(f"Your file {tmp_path / 'anthropic.py'} stands in the way", "Rename the file")
            assert not (tmp_path / "ran-anthropic").exists()
            (await room.cell("%agent status")).says("running  no")
            assert await room.value("'alive'") == "alive"
            (tmp_path / "anthropic.py").unlink()
            await room.still_works()
        server.assert_clean()


FORKS = """
import nbagent, os
@nbagent.register
@nbagent.tool
async def forks(call) -> str:
    '''Fork.'''
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    return "parent" if pid else "child"
"""


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_a_tool_that_forks_leaves_one_agent(tmp_path):
    """Row 50: the child of a tool comes back into the loop; it asks nothing, writes nothing and ends."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            await room.cell(FORKS)
            shown = await room.cell("%%agent\ngo", calls("forks"), "One answer.")
            shown.says("One answer.")
            assert room.results() == ["parent"] and len(server.requests) == 2
            forked = "import os\npid = os.fork()\nif not pid:\n    try: get_ipython().run_line_magic('agent', 'status')\n    except BaseException as e: open('said', 'w').write(str(e))\n    os._exit(0)\nos.waitpid(pid, 0);"
            await room.cell(forked)
            assert "forked copy of the kernel" in (tmp_path / "said").read_text()
            await room.still_works()
        server.assert_clean()


LATER = """
import threading
go, done = threading.Event(), threading.Event()
def late():
    go.wait(30)
    print('from the thread')
    done.set()
threading.Thread(target=late).start()
print('started')
"""


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_a_thread_that_outlives_its_cell_prints_into_no_other_cell_of_the_agents(tmp_path):
    """Rows 39 and 49: what prints late is in no result, no record and no cell that the agent adds afterwards."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, NBAGENT_CELL_TIMEOUT="5", **ALLOW) as room:
            shown = await room.cell(
                "%%agent\ngo",
                calls("add_cell", source=LATER),
                calls("add_cell", source="go.set(); assert done.wait(10); print('waited')"),
                calls("run_python", code="print('looked')"),
                calls("add_cell", source="import time\nfor n in range(10_000):\n    print(n)\n    time.sleep(0.1)"),
                "Four steps.",
            )
            shown.says("Four steps.")
            started, waited, looked, stopped = room.results()
            assert "started" in started and "waited" in waited and looked == "looked"
            assert "0\n1\n2" in stopped and "time limit is 5 s" in stopped
            outputs = [cell["outputs"] for cell in room.page.document.cells[-3:]]
            assert "from the thread" not in json.dumps([outputs[1:], room.results()])
            last = json.dumps(outputs[-1])
            await room.still_works()
            assert json.dumps(room.page.document.cells[-6]["outputs"]) == last or last in json.dumps(
                [cell.get("outputs") for cell in room.page.document.cells]
            ), "nothing is added to the stopped cell afterwards"
        server.assert_clean()


HELPERS = """
def helper(line): return get_ipython().magics_manager.magics["line"]["agent"](line)
def as_cell(): return get_ipython().run_cell("helper('status')").raise_error()
def cell_with_magic(): return get_ipython().run_cell("get_ipython().run_line_magic('agent', 'mode bypass')").raise_error()
"""
NESTED = [
    "get_ipython().run_cell_magic('agent', '', 'hi')",
    "get_ipython().run_line_magic('agent', 'status')",
    "ip = get_ipython()\nr = await ip.run_cell_async('%%agent\\nhi', transformed_cell=ip.transform_cell('%%agent\\nhi'))\nr.raise_error()",
    "x = 1\n%agent status",
    "def again(): return get_ipython().magics_manager.magics['cell']['agent']('', 'hi')\nawait again()",
    "import contextvars\nprint(contextvars.Context().run(helper, 'status'))",
    "import contextvars\nprint(contextvars.Context().run(as_cell))",
    "import asyncio, contextvars\nasync def look(): return helper('status')\nprint(await asyncio.get_running_loop().create_task(look(), context=contextvars.Context()))",
]
AFTERWARDS = """
import asyncio, contextvars
said, loop = [], asyncio.get_running_loop()
def attempt(act):
    try:
        said.append(act())
    except BaseException as error:
        said.append(str(error))
def later():
    attempt(lambda: helper("mode bypass"))
    attempt(as_cell)
    attempt(cell_with_magic)
loop.call_later(0.2, later, context=contextvars.Context());
"""


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_code_of_the_agents_never_starts_an_agent(tmp_path):
    """Row 69: whatever way it takes; and only one request is made for each reply."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, **ALLOW) as room:
            await room.cell(HELPERS)
            steps = [
                calls(tool, **{key: code})
                for code in NESTED
                for tool, key in (("run_python", "code"), ("add_cell", "source"))
            ]
            shown = await room.cell("%%agent --max-turns 20\ngo", *steps, "None of it.", within=90)
            shown.says("None of it.")
            assert len(server.requests) == len(steps) + 1
            refused = (
                "for people",
                "Nobody is there to approve",
            )  # by the magic itself, or by the look at the code before
            assert all(any(why in text for why in refused) for text in room.results()), room.results()
            assert len(room.results()) == len(steps)
            assert all("for people" in text for text in room.results()[-6:]), "the look can't see what helpers do"
            await room.cell("%%agent --new\ngo", calls("add_cell", source=AFTERWARDS), "It comes later.")
            await room.cell("import asyncio\nwhile len(said) < 3: await asyncio.sleep(0.05)")
            assert str(await room.value("said")).count("for people") == 3
            (await room.cell("%agent mode")).says("default")
            (await room.cell("%agent status")).says("running  no")
            await room.still_works()
        server.assert_clean()


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_views_are_closed_and_big_objects_let_go_after_their_run(tmp_path):
    """Rows 63 and 101: many runs leave no widget behind, and nothing that the agent looked at is kept alive."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True, **ALLOW) as room:
            await room.cell(
                "import gc, weakref, ipywidgets\nfrom ipywidgets.widgets import widget\nclass Frame(dict): pass"
            )
            await room.cell("%%agent\nfirst", "One.")
            count = "len(widget._instances if hasattr(widget, '_instances') else ipywidgets.Widget.widgets)"
            before = await room.value(count)
            await room.cell("df = Frame(a=[1] * 1000); ref = weakref.ref(df)")
            for n in range(6):
                shown = await room.cell(
                    f"%%agent\nrun {n}",
                    calls("list_variables"),
                    calls("inspect_variable", name="df"),
                    calls("run_python", code="local = df; df"),
                    calls("run_python", code="def deep(frame): return frame['missing']\ndeep(df)"),
                    calls("add_cell", source="len(df)"),
                    calls("add_cell", source="df['missing']"),
                    "Done.",
                )
                shown.says("Done.")
            assert await room.value(count) == before
            assert await room.value("ref() is df")
            await room.cell("del df")
            assert await room.value("[gc.collect() * 0, ref() is None]") == [0, True]
            await room.still_works()
        server.assert_clean()


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_a_kernel_that_goes_away_at_an_open_approval_has_executed_nothing(tmp_path):
    """Rows 47 and 59: after the restart a click does nothing, and the model is told that the variables are gone."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True) as room:
            await room.cell("kept = 'in the old kernel'")
            asking = asyncio.create_task(room.seen(APPROVE))
            asks = Reply([call("run_python", code="open('ran.txt', 'w')")])
            running = asyncio.create_task(room.cell("%%agent\ngo", asks, within=60))
            await asking
            os.kill(room.pid, signal.SIGKILL)
            with pytest.raises(DeadKernelError):
                await running
            cells = list(room.page.document.cells)
        async with Room(tmp_path, server, interactive=True) as room:
            room.page.document.cells[:0] = cells
            shown = await room.cell("%%agent\nwhat is there?", calls("list_variables"), "Nothing is left.")
            shown.says("Nothing is left.")
            assert not (tmp_path / "ran.txt").exists()
            assert room.results()[-1] == "no variables yet"
            asked = server.requests[-2].body["messages"]
            assert [b["is_error"] for b in asked[-2]["content"] if b["type"] == "tool_result"] == [True]
            assert "Nothing of it happened" in json.dumps(asked[-2]), "it was asked about, and nobody had answered"
            last = json.dumps(asked[-1])
            assert "kernel was restarted" in last and "In[2]" in last and "): kept" in last
            page = json.dumps(shown.cell.outputs, ensure_ascii=False)
            assert "last session, “go”" in page and "The agent knows which cells made them." in page
            check_transcript(room.transcripts()[-1])
            assert await room.value("'alive'") == "alive"
        server.assert_clean()


def test_cells_of_another_kernel_are_told_and_those_of_this_one_are_not():
    """Row 47: by what this kernel has run; a cell that was edited since it ran is not taken for one of another."""
    cells = [Cell("a", "code", "x = 1", 0, 1), Cell("b", "code", "y = 2", 1, 2), Cell("c", "code", "%%agent\nhi", 2, 9)]
    assert said_of(cells, ["", "x = 1", "y = 2"]) == ""
    assert said_of(cells, ["", "x = 1", "y = 20", "more"]) == ""
    assert "In[1] (cell a), In[2] (cell b)." in said_of(cells, ["", "%load_ext nbagent"])
    late = [*cells, Cell("d", "code", "z = 3", 3, 40)]
    assert "gone unless they were made anew. In[40] (cell d)." in said_of(late, ["", "x = 1", "y = 2"])
    assert said_of([], [""]) == ""
    many = [Cell(str(n), "code", f"v{n} = 1", n, n) for n in range(1, 41)]
    assert "and 28 more" in said_of(many, [""])


async def left_at(kind: str, *turns) -> Session:
    """Take the events of a run until one of `kind`, leave it there, and return its session."""
    rig = Rig()
    tools = rig.tools()
    session = rig.session(tools)
    agent = Agent(ScriptedModel(turns), tools, Policy(Mode.DEFAULT, ()), Person(), Limits(longest_wait=0.0))
    async with aclosing(run(agent, session, [text_block("go")])) as events:
        async for event in events:
            if event.type == kind:
                break
    check_transcript(session.transcript)
    return session


LOOKS = [[say("hm"), scripted_call("look", what="a"), scripted_call("count")], "Done."]


@pytest.mark.slow
async def test_the_events_of_a_run_may_be_left_cancelled_or_gathered_in_any_way():
    """Row 65: a break, a time limit around it and two runs at once leave valid transcripts and no task behind."""
    for kind in ("run_started", "request_sent", "text_delta", "call_started", "call_ended", "results_appended"):
        session = await left_at(kind, *LOOKS)
        assert not session.transcript.open_calls
    one, two = await asyncio.gather(left_at("run_ended", *LOOKS), left_at("call_ended", *LOOKS))
    assert (len(one.transcript), len(two.transcript)) == (4, 3)
    hanging = asyncio.create_task(left_at("never", scripted_call("hang"), "Done."))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(hanging, 0.2)
    first, second = (asyncio.create_task(left_at("never", scripted_call("hang"))) for _ in range(2))
    await turns()
    first.cancel()
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    assert asyncio.all_tasks() == {asyncio.current_task()}
