"""The page inside nbclient: a notebook whose cells add cells runs to its end and is what a person would have got."""

from __future__ import annotations

import asyncio
import select
import stat
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import zmq
import zmq.asyncio
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.session import Session
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from nbagent.headless.page import PageClient, run_notebook, write_notebook

ROOT = Path(__file__).parents[2]

REACH = """
from nbagent.core.ports import Anchor
from nbagent.jupyter.bridge import Bridge
from nbagent.jupyter.front_end import reach, running_cell
from nbagent.jupyter.notebook import LiveNotebook
"""

BRIDGE_OPENS = {"comm_id": "bridge", "data": {"state": {"protocol": "nbagent-bridge/1"}}}
SOMEBODY_THERE = {
    "comm_id": "bridge",
    "data": {"method": "custom", "content": {"v": 1, "op": "hello", "id": "1", "cell": None}},
}


def agent(*lines, after=""):
    """A cell that does `lines` with `live`, `bridge` and `hello` at hand."""
    body = "\n    ".join(lines)
    return (
        f"{REACH}bridge = Bridge(cell=running_cell(get_ipython()))\n"
        "async with reach(bridge, get_ipython()) as hello:\n"
        "    live = LiveNotebook(bridge, hello)\n"
        "    own = live.own_cell\n"
        f"    {body}\n"
        f"bridge.close()\n{after}"
    )


def notebook(*sources):
    return new_notebook(cells=[new_code_cell(source, id=f"cell-{n}") for n, source in enumerate(sources)])


def shape(nb):
    return [(cell.source if len(cell.source) < 30 else "agent", cell.get("execution_count")) for cell in nb.cells]


def said(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


async def run(nb, tmp_path, **options):
    options = {"env": {"PYTHONPATH": str(ROOT)}, "timeout": 60, **options}
    return await run_notebook(nb, path=tmp_path / "in.ipynb", **options)


@pytest.mark.kernel
async def test_the_kernel_is_told_that_nobody_can_click(tmp_path):
    nb = await run(
        notebook(agent("print(hello.interactive, hello.front_end, hello.document, own, live.path)")), tmp_path
    )
    assert said(nb.cells[0]) == f"False headless True cell-0 {tmp_path / 'in.ipynb'}\n"


@pytest.mark.kernel
async def test_inserted_cells_stay_and_do_not_run_again_and_all_others_run_once(tmp_path):
    code = agent(
        'above = await live.insert(Anchor(own, "before"), "markdown", "# above")',
        'below = await live.insert(Anchor(own), "code", "added = 1/0")',
        "sink = await live.begin_run(below.id)",
        'sink.emit({"output_type": "stream", "name": "stdout", "text": "streamed\\n"})',
        "await sink.end(9)",
    )
    nb = await run(notebook("n = 1", code, "n += 1; print(n)"), tmp_path)
    assert shape(nb) == [("n = 1", 1), ("# above", None), ("agent", 2), ("added = 1/0", 9), ("n += 1; print(n)", 3)]
    assert (said(nb.cells[3]), said(nb.cells[4])) == ("streamed\n", "2\n")
    nbformat.validate(nb)


@pytest.mark.kernel
async def test_cells_may_be_deleted_and_moved_while_the_notebook_runs(tmp_path):
    code = agent(
        'await live.delete("cell-0", (await live.read("cell-0")).hash)',
        'await live.delete("cell-2", (await live.read("cell-2")).hash)',
        'await live.move("cell-4", Anchor("cell-1", "before"))',
    )
    nb = await run(
        notebook("ran = ['0']", code, "ran += ['gone']", "ran += ['3']", "ran += ['4']; print(ran)"), tmp_path
    )
    assert [cell.id for cell in nb.cells] == ["cell-4", "cell-1", "cell-3"]
    assert said(nb.cells[0]) == "['0', '3', '4']\n"
    nbformat.validate(nb)


@pytest.mark.kernel
async def test_code_that_runs_nested_moves_no_number_of_another_cell(tmp_path):
    code = agent(
        "ip = get_ipython()",
        'for n in range(3): await ip.run_cell_async("x = 1", transformed_cell="x = 1\\n", store_history=True)',
    )
    nb = await run(notebook(code, "print('next')"), tmp_path)
    assert nb.cells[1].execution_count == 5


@pytest.mark.kernel
async def test_outputs_are_told_as_they_come_and_pieces_of_a_stream_become_one(tmp_path):
    code = "import sys\nfor n in range(3):\n    print(n, flush=True)\nprint('!', file=sys.stderr)"
    heard = []
    nb = await run(
        notebook(code, "display('d')"),
        tmp_path,
        on_output=lambda cell, output: heard.append((cell.id, output["output_type"])),
    )
    assert [(o.name, o.text) for o in nb.cells[0].outputs] == [("stdout", "0\n1\n2\n"), ("stderr", "!\n")]
    assert heard[-1] == ("cell-1", "display_data")
    assert {cell for cell, _ in heard} == {"cell-0", "cell-1"}


@pytest.mark.kernel
async def test_an_agents_save_is_in_the_file_before_the_run_ends(tmp_path):
    path = tmp_path / "out.ipynb"
    code = agent(
        'await live.insert(Anchor(own), "markdown", "kept")',
        "await live.save()",
        f"import nbformat; print([cell.id for cell in nbformat.read({str(path)!r}, 4).cells if cell.source == 'kept'])",
    )
    nb = await run(notebook(code), tmp_path, save_to=path)
    assert said(nb.cells[0]) == f"['{nb.cells[1].id}']\n"


@pytest.mark.kernel
async def test_the_record_replaces_the_view_and_later_updates_of_the_view_do_no_harm(tmp_path):
    code = agent(
        'handle = display("live view", display_id="agent-view")',
        'await live.set_record([{"output_type": "display_data", "data": {"text/plain": "record"}, "metadata": {}}], 1)',
        after='handle.update("too late")\n',
    )
    nb = await run(notebook(code, "1"), tmp_path)
    assert [o.data["text/plain"] for o in nb.cells[0].outputs] == ["record"]


@pytest.mark.kernel
async def test_closed_widgets_leave_no_state_in_the_notebook(tmp_path):
    code = agent(
        "pass", after="import ipywidgets as w\nlost = w.IntSlider()\nlost.close()\nkept = w.IntText(value=7)\n"
    )
    nb = await run(notebook(code), tmp_path)
    state = nb.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    names = {entry["model_name"] for entry in state.values()}
    assert "IntTextModel" in names and "IntSliderModel" not in names and "AnyModel" not in names


@pytest.mark.kernel
async def test_a_cell_that_fails_ends_the_run_with_all_that_was_done(tmp_path):
    code = agent('await live.insert(Anchor(own), "markdown", "kept")', "raise ValueError('no')")
    nb = notebook(code, "never")
    with pytest.raises(CellExecutionError, match="ValueError"):
        await run(nb, tmp_path)
    assert shape(nb) == [("agent", 1), ("kept", None), ("never", None)]
    nbformat.validate(nb)


@pytest.mark.kernel
async def test_a_cell_that_never_ends_ends_at_the_limit(tmp_path):
    begin = time.monotonic()
    with pytest.raises(CellTimeoutError):
        await run(notebook("while True: pass"), tmp_path, timeout=2)
    assert time.monotonic() - begin < 30


@pytest.mark.kernel
async def test_a_page_that_stops_answering_costs_the_call_not_the_kernel(tmp_path):
    code = agent(
        "page_dies = await bridge.call('list', timeout=0.2)",
        "from nbagent.core.errors import NotebookError",
        "try: await bridge.call('list', timeout=0.2)",
        "except NotebookError as error: print(error)",
    )

    class Dying(PageClient):
        answers = 0

        def _answer(self, comm, request):
            self.answers += 1
            if self.answers <= 2:
                super()._answer(comm, request)

    nb = notebook(code, "print('alive')")
    client = Dying(nb, timeout=60)
    import os

    async with asyncio.timeout(40):
        await client.async_execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "does not answer" in said(nb.cells[0])
    assert said(nb.cells[1]) == "alive\n"


@pytest.mark.kernel
async def test_plain_nbclient_is_found_to_be_nobody_in_bounded_time(tmp_path):
    import os

    from nbclient import NotebookClient

    code = f"{REACH}import time\nbegin = time.monotonic()\nbridge = Bridge()\nasync with reach(bridge, get_ipython()) as hello:\n    print(hello, time.monotonic() - begin < 5)\nbridge.close()"
    nb = notebook(code)
    await NotebookClient(nb, timeout=60).async_execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert said(nb.cells[0]) == "None True\n"


async def test_old_notebooks_get_ids(tmp_path):
    old = new_notebook(cells=[new_markdown_cell("# old"), new_code_cell("1")])
    for cell in old.cells:
        del cell["id"]
    old.nbformat_minor = 4
    nb = PageClient(old).nb
    assert len({cell["id"] for cell in nb.cells}) == 2
    nbformat.validate(nb)


def test_writing_replaces_the_file_whole_and_keeps_its_mode(tmp_path):
    path = tmp_path / "x.ipynb"
    path.write_text("old")
    path.chmod(0o640)
    write_notebook(notebook("1"), path)
    assert nbformat.read(path, as_version=4).cells[0].source == "1"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    broken = notebook("1")
    broken.cells[0].outputs = [new_output("stream", text="x")]
    del broken.cells[0].outputs[0]["name"]
    with pytest.raises(nbformat.ValidationError):
        write_notebook(broken, path)
    assert nbformat.read(path, as_version=4).cells[0].source == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["x.ipynb"]


async def test_a_reply_that_comes_while_the_page_answers_the_bridge_is_read():
    with (
        zmq.Context() as there,
        zmq.asyncio.Context() as here,
        there.socket(zmq.ROUTER) as kernel,
        here.socket(zmq.DEALER) as socket,
    ):
        socket.connect(f"tcp://127.0.0.1:{kernel.bind_to_random_port('tcp://127.0.0.1')}")
        session = Session(key=b"secret")
        page = PageClient(notebook())
        page.kc = SimpleNamespace(session=session, shell_channel=AsyncZMQSocketChannel(socket, session))
        session.send(socket, "execute_request")
        who = kernel.recv_multipart()[0]
        awaited = asyncio.create_task(page.kc.shell_channel.get_msg(timeout=None))
        while select.select([socket.fd], [], [], 0)[0]:  # what came before the reply, as the connection's
            await asyncio.sleep(0)

        session.send(kernel, "execute_reply", ident=who)
        assert select.select([socket.fd], [], [], 10)[0], "the signal of the reply"
        page.handle_comm_msg([], {"msg_type": "comm_open", "content": BRIDGE_OPENS}, 0)
        while select.select([socket.fd], [], [], 0)[0]:  # libzmq takes it not with each message that is sent
            page.handle_comm_msg([], {"msg_type": "comm_msg", "content": SOMEBODY_THERE}, 0)
        async with asyncio.timeout(10):
            assert (await awaited)["msg_type"] == "execute_reply"
