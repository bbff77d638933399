"""FAILURES.md, group (c), the rows about notebook files and text files: each test is named after the right behaviour."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
import types
import urllib.request
from urllib.parse import urlsplit

import nbformat
import pytest

from nbagent.app.place import Reins, find_place
from nbagent.app.restore import Told, restore_files
from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.files import content_hash
from nbagent.core.ports import Anchor, source_hash
from nbagent.extend.checkpoints import Checkpoint, FileChange, Head
from nbagent.headless.file import FileNotebook
from nbagent.headless.memory import MemoryNotebook
from nbagent.jupyter.refusals import Refusals
from nbagent.tools import ipynb, paths, workspace
from nbagent.tools.keeping import Keeper
from nbagent.tools.servers import Holder, running_servers, who_has_open
from tests.support.turns import wait_until
from tests.tools.calling import Calling
from tests.tools.test_servers import Jupyter

RICH = {
    "cells": [
        {
            "cell_type": "markdown",
            "id": "words",
            "metadata": {"slideshow": {"slide_type": "slide"}, "tags": ["intro"]},
            "attachments": {"plot.png": {"image/png": "iVBORw0KGgo="}},
            "source": ["# Sales\n", "![](attachment:plot.png)"],
        },
        {"cell_type": "raw", "id": "raw", "metadata": {"raw_mimetype": "text/latex"}, "source": "\\alpha"},
        {
            "cell_type": "code",
            "execution_count": 7,
            "id": "load",
            "metadata": {"scrolled": True, "vendor": {"x": 1e5, "y": [1, None]}},
            "outputs": [
                {"name": "stdout", "output_type": "stream", "text": ["a\n", "b\n"]},
                {
                    "data": {
                        "application/vnd.x+json": {"k": 0.10},
                        "image/png": "iVBORw0KGgo=\n",
                        "text/html": ["<b>\n", "x"],
                    },
                    "execution_count": 7,
                    "metadata": {"image/png": {"width": 10}},
                    "output_type": "execute_result",
                },
            ],
            "source": ["df = load()\n", "df"],
        },
        {"cell_type": "code", "execution_count": None, "id": "end", "metadata": {}, "outputs": [], "source": "x = 1"},
    ],
    "metadata": {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "widgets": {"a": {}},
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}


def write(path, raw, **style):
    path.write_text(json.dumps(raw, **({"indent": 1} | style)) + "\n", encoding="utf-8", newline="")
    return path


def opened(path):
    return FileNotebook(path, who_has_open=lambda _: None)


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    """The folder in which Jupyter servers say that they run, as JUPYTER_RUNTIME_DIR names it."""
    folder = tmp_path / "runtime"
    folder.mkdir()
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(folder))
    return folder


# ── 74: unsaved edits in the editor ──────────────────────────────────────────────────────────────────────────────────


async def test_a_notebook_that_a_server_has_in_a_session_is_not_written_behind_its_back(tmp_path, runtime):
    """Row 74: refused in one sentence that says what to do; when the session is gone the same edit is made, with a backup."""
    path = write(tmp_path / "n.ipynb", RICH)
    before = path.read_bytes()
    notebook = FileNotebook(path)
    tools = Calling(workspace.tools(tmp_path))
    with Jupyter(tmp_path, ["n.ipynb"]) as jupyter:
        jupyter.says_so(runtime)
        with pytest.raises(NotebookError, match=r"open in Jupyter.*nothing was written. Work in the open notebook"):
            await notebook.edit("end", "x = 2", source_hash("x = 1"))
        assert (await notebook.read("end")).source == "x = 1"
        for name, given in (
            ("write_file", {"content": json.dumps(RICH)}),
            ("edit_file", {"old_text": "x = 1", "new_text": "x = 3"}),
        ):
            with pytest.raises(ToolError, match="open in Jupyter"):
                await tools(name, path="n.ipynb", **given)
        assert path.read_bytes() == before
        jupyter.paths.clear()
        await notebook.edit("end", "x = 2", source_hash("x = 1"))
    assert json.loads(path.read_bytes())["cells"][3]["source"] == "x = 2"
    assert [b.read_bytes() for b in (tmp_path / ".nbagent/backups").iterdir()] == [before]


async def test_the_open_notebook_of_the_run_is_left_to_the_cell_tools(tmp_path):
    """Row 74: from the kernel its file is never written, under whichever name the page knows it."""
    folder = tmp_path / "project" / "sub"
    folder.mkdir(parents=True)
    path = write(folder / "n.ipynb", RICH)
    before = path.read_bytes()
    for known in ("n.ipynb", "sub/n.ipynb", "project/sub/n.ipynb", str(path), "RTC:sub/n.ipynb"):
        call = Calling(workspace.tools(folder, MemoryNotebook(path=known)))
        with pytest.raises(ToolError, match=r"open notebook of this run.*use the cell tools"):
            await call("write_file", path="n.ipynb", content=json.dumps(RICH))
        with pytest.raises(ToolError, match="open notebook of this run"):
            await call("edit_file", path="./n.ipynb", old_text="x = 1", new_text="x")
    assert path.read_bytes() == before


# ── 75: the file changed on disk ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_file_that_changed_since_it_was_read_is_not_touched_and_the_next_look_sees_it(tmp_path):
    """Row 75: by content, not by time; the second try, made for what is there now, works."""
    path = write(tmp_path / "n.ipynb", RICH)
    keeper = Keeper(path, "n.ipynb", lambda _: None)
    notebook = opened(path)
    read = ipynb.read(path.read_bytes(), "n.ipynb")
    theirs = json.loads(path.read_text())
    theirs["cells"][3]["source"] = "x = 'theirs'"
    write(path, theirs)
    os.utime(path, (1, 1))
    with pytest.raises(NotebookError, match=r"changed on disk since it was read: nothing was written. Read it again"):
        keeper.write(read.text.replace("x = 1", "x = 2"), read)
    with pytest.raises(NotebookError, match="changed since you read it"):
        await notebook.edit("end", "x = 2", source_hash("x = 1"))
    assert json.loads(path.read_text()) == theirs
    again = await notebook.read("end")
    await notebook.edit("end", again.source + "\ny = 2", again.hash)
    assert json.loads(path.read_text())["cells"][3]["source"] == "x = 'theirs'\ny = 2"


async def test_a_touched_file_with_the_same_content_is_written(tmp_path):
    """Row 75: another time of change alone is no conflict."""
    path = write(tmp_path / "n.ipynb", RICH)
    notebook = opened(path)
    os.utime(path, (1, 1))
    await notebook.edit("end", "x = 2", source_hash("x = 1"))
    assert json.loads(path.read_text())["cells"][3]["source"] == "x = 2"


async def test_text_that_changed_between_reading_and_writing_is_not_overwritten(tmp_path):
    """Row 75: the file tools too look at the content at the moment of the write."""
    file = tmp_path / "a.py"
    file.write_text("one\n")
    was = content_hash(file.read_bytes())
    file.write_text("theirs\n")
    with pytest.raises(ToolError, match="changed on disk"):
        paths.replace_file(file, b"ours\n", was=was)
    assert file.read_text() == "theirs\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a.py"]


# ── 79: a 4.4 file gets no ids ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("minor", [0, 2, 4])
async def test_a_file_of_an_older_minor_stays_one_and_stays_valid(tmp_path, minor):
    """Row 79: no ids are written, the minor is not raised, and every edit leaves a valid notebook."""
    raw = {**RICH, "nbformat_minor": minor, "cells": [{k: v for k, v in c.items() if k != "id"} for c in RICH["cells"]]}
    if minor < 1:  # attachments came with 4.1
        raw["cells"] = [{k: v for k, v in c.items() if k != "attachments"} for c in raw["cells"]]
    path = write(tmp_path / "n.ipynb", raw)
    notebook = opened(path)
    cells = await notebook.cells()
    new = await notebook.insert(Anchor(cells[0].id), "code", "new = 1", metadata={"nbagent": {"run": "r"}})
    await (await notebook.begin_run(new.id)).end(8)
    await notebook.edit(cells[3].id, "x = 2", cells[3].hash)
    after = json.loads(path.read_text())
    nbformat.validate(after)
    assert after["nbformat_minor"] == minor
    assert not any("id" in cell for cell in after["cells"])
    del after["cells"][1]
    after["cells"][3]["source"] = "x = 1"
    assert after == raw


# ── 81: unreadable files ─────────────────────────────────────────────────────────────────────────────────────────────

GOOD = json.dumps(RICH, indent=1)
UNREADABLE = {
    "empty": (b"", "is empty"),
    "blank": (b" \n", "is empty"),
    "not JSON": (b'{\n "cells": [\n', "is not JSON.*line 3"),
    "merge": (
        GOOD.replace('\n "metadata"', '\n<<<<<<< HEAD\n "metadata"').encode(),
        r"unfinished git merge \(line \d+",
    ),
    "merge end": (GOOD.encode() + b"\n>>>>>>> branch\n", "unfinished git merge"),
    "BOM": (b"\xef\xbb\xbf" + GOOD.encode(), "byte order mark"),
    "UTF-16": (GOOD.encode("utf-16"), "UTF-16"),
    "latin-1": (GOOD.replace("Sales", "Verk\xe4ufe").encode("latin-1"), r"not UTF-8 text \(line \d+, byte \d+\)"),
    "a list": (b"[]", "JSON, but no notebook"),
    "a number": (b"3", "JSON, but no notebook"),
    "nbformat 5": (GOOD.replace('"nbformat": 4', '"nbformat": 5').encode(), "nbformat 5, and only nbformat 4"),
    "nbformat true": (GOOD.replace('"nbformat": 4', '"nbformat": true').encode(), "nbformat|format"),
    "v3": (
        b'{"worksheets": [{"cells": []}], "metadata": {}, "nbformat": 3, "nbformat_minor": 0}',
        "old notebook format 3",
    ),
    "no cells": (b'{"metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "no list of cells"),
    "cells are none": (b'{"cells": [7], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "cell 1 is no object"),
    "a cell without source": (
        b'{"cells": [{"cell_type": "code"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
        "cell 1 has no source",
    ),
    "too deep": (b'{"nbformat": 4, "cells": ' + b"[" * 100_000, "nested too deeply|not JSON"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNREADABLE)
async def test_an_unreadable_notebook_gets_one_sentence_and_is_never_rewritten(tmp_path, name):
    """Row 81: the sentence names the file, the problem and where it can its line; reading, writing and editing say the same."""
    data, words = UNREADABLE[name]
    path = tmp_path / "n.ipynb"
    path.write_bytes(data)
    call = Calling(workspace.tools(tmp_path))
    for attempt in (
        lambda: opened(path),
        lambda: call("read_file", path="n.ipynb"),
        lambda: call("write_file", path="n.ipynb", content=GOOD),
        lambda: call("edit_file", path="n.ipynb", old_text="x", new_text="y"),
    ):
        with pytest.raises(ToolError, match=words) as said:
            result = attempt()
            await result
        assert "\n" not in str(said.value)
        assert "n.ipynb" in str(said.value)
    assert path.read_bytes() == data
    assert [p.name for p in tmp_path.iterdir()] == ["n.ipynb"]


# ── 82: half a surrogate pair ────────────────────────────────────────────────────────────────────────────────────────


async def test_half_a_surrogate_never_empties_the_file(tmp_path):
    """Row 82: it is cleaned where it enters, and what can't be encoded is refused before the file is opened."""
    path = write(tmp_path / "n.ipynb", RICH)
    before = path.read_bytes()
    notebook = opened(path)
    assert (await notebook.edit("end", "a\ud800", source_hash("x = 1"))).source == "a\ufffd"
    sink = await notebook.begin_run("end")
    sink.emit({"output_type": "stream", "name": "stdout", "text": "\udfff"})
    await sink.end(1)
    await notebook.set_metadata("end", {"note": "\ud800", "\ud800": 1})
    nbformat.validate(json.loads(path.read_bytes()))
    read = ipynb.read(before, "n.ipynb")
    now = path.read_bytes()
    with pytest.raises(NotebookError, match=r"half of a surrogate pair.*nothing was written"):
        Keeper(path, "n.ipynb", lambda _: None).write(read.text.replace("x = 1", "\ud800"), read)
    assert path.read_bytes() == now


async def test_half_a_surrogate_that_is_in_the_file_stays_there(tmp_path):
    """Row 82: an escape that is already in some cell is no reason to refuse or to change it."""
    path = tmp_path / "n.ipynb"
    path.write_text(GOOD.replace("Sales", "\\ud800"))
    await opened(path).edit("end", "x = 2", source_hash("x = 1"))
    assert path.read_text() == GOOD.replace("Sales", "\\ud800").replace("x = 1", "x = 2")


# ── 83: encodings and line ends ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("form", ["indent 1", "indent 4, CRLF", "tabs", "one line", "escapes", "no newline at the end"])
async def test_only_the_edited_bytes_of_a_notebook_change(tmp_path, form):
    """Row 83: indent, line ends, escapes, separators and the last line are the file's own."""
    raw = json.loads(GOOD.replace("Sales", "Verkäufe"))
    text = {
        "indent 1": json.dumps(raw, indent=1, ensure_ascii=False) + "\n",
        "indent 4, CRLF": (json.dumps(raw, indent=4, ensure_ascii=False) + "\n").replace("\n", "\r\n"),
        "tabs": json.dumps(raw, indent="\t"),
        "one line": json.dumps(raw, separators=(",", ":"), ensure_ascii=False) + "\n",
        "escapes": json.dumps(raw, indent=1, ensure_ascii=True) + "\n",
        "no newline at the end": json.dumps(raw, indent=2),
    }[form]
    path = tmp_path / "n.ipynb"
    path.write_bytes(text.encode())
    await opened(path).edit("end", "x = 2", source_hash("x = 1"))
    assert path.read_bytes() == text.replace("x = 1", "x = 2").encode()
    await Calling(workspace.tools(tmp_path))("edit_file", path="n.ipynb", old_text="Verkäufe", new_text="Erlöse")
    new = json.loads(path.read_bytes())["cells"][0]["source"]
    assert new == ["# Erlöse\n", "![](attachment:plot.png)"]
    assert (b"\\u00f6" in path.read_bytes()) == (form in {"escapes", "tabs", "no newline at the end"})


async def test_only_the_edited_bytes_of_a_text_file_change(tmp_path):
    """Row 83: a CRLF file keeps CRLF, in the new lines too."""
    before = b"first\r\n" + b"x = 1\r\n" * 998 + b"last \xe2\x82\xac\r\n"
    (tmp_path / "a.py").write_bytes(before)
    call = Calling(workspace.tools(tmp_path))
    await call("edit_file", path="a.py", old_text="first", new_text="one\ntwo")
    assert (tmp_path / "a.py").read_bytes() == before.replace(b"first", b"one\r\ntwo")


async def test_a_text_file_that_can_not_be_decoded_is_refused_with_its_line(tmp_path):
    """Row 83: a cp1252 file with a byte 0x99 on line 999 is not guessed at."""
    before = b"x = 1\n" * 998 + b"brand\x99\n"
    (tmp_path / "a.csv").write_bytes(before)
    with pytest.raises(ToolError, match="not UTF-8 text \\(line 999, byte 5993\\)"):
        await Calling(workspace.tools(tmp_path))(
            "edit_file", path="a.csv", old_text="x = 1", new_text="y", replace_all=True
        )
    assert (tmp_path / "a.csv").read_bytes() == before


# ── 85: data lost by rewriting ───────────────────────────────────────────────────────────────────────────────────────


async def test_everything_not_edited_is_equal_after_every_kind_of_edit(tmp_path):
    """Row 85: attachments, raw cells, unknown metadata, outputs and the style of sources stay, byte for byte."""
    path = write(tmp_path / "n.ipynb", RICH)
    text = path.read_text()
    notebook = opened(path)
    await notebook.edit("end", "x = 2", source_hash("x = 1"))
    assert path.read_text() == text.replace("x = 1", "x = 2")
    new = await notebook.insert(Anchor("raw"), "markdown", "two\nlines")
    await notebook.move(new.id, Anchor("words", "before"))
    await notebook.set_metadata("load", {"nbagent": {"run": "r"}})
    await notebook.set_metadata("load", {"nbagent": None})
    load = await notebook.read("load")
    await notebook.set_outputs("load", load.outputs, load.number)
    await notebook.delete(new.id, new.hash)
    await notebook.edit("end", "x = 1", source_hash("x = 2"))
    assert path.read_text() == text


# ── 77: the path is unknown or wrong ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_no_notebook_is_guessed_where_none_was_named(tmp_path):
    """Row 77: the only .ipynb of the folder is not taken for the open one, and a name of another place is not either."""
    path = write(tmp_path / "only.ipynb", RICH)
    other = tmp_path / "other"
    other.mkdir()
    for notebook in (
        None,
        MemoryNotebook(path=""),
        MemoryNotebook(path="gone.ipynb"),
        MemoryNotebook(path="C:\\a\\only.ipynb"),
    ):
        call = Calling(workspace.tools(tmp_path, notebook))
        await call("edit_file", path="only.ipynb", old_text="x = 1", new_text="x = 2")
        await call("edit_file", path="only.ipynb", old_text="x = 2", new_text="x = 1")
    assert json.loads(path.read_text())["cells"][3]["source"] == "x = 1"
    with pytest.raises(NotebookError, match="there is no notebook"):
        opened(tmp_path / "gone.ipynb")


@pytest.mark.parametrize("set_", [{}, {"JPY_SESSION_NAME": "/gone/x.ipynb"}, {"__vsc_ipynb_file__": "c:\\x\\y.ipynb"}])
async def test_a_kernel_without_a_page_has_no_notebook_whatever_the_environment_says(tmp_path, monkeypatch, set_):
    """Row 77: the notebook is what answered the hello; names in the environment and files in the folder are not believed."""
    write(tmp_path / "only.ipynb", RICH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for name, value in set_.items():
        monkeypatch.setenv(name, value)
    reins = Reins(lambda: None, lambda: None, lambda: None, lambda task: None)
    async with find_place(types.SimpleNamespace(kernel=None), reins, Refusals()) as place:
        assert place.notebook is None
        assert place.document == ""


# ── 86: outputs of notebooks that are read as files ──────────────────────────────────────────────────────────────────


async def test_a_notebook_is_read_as_cells_without_its_images(tmp_path):
    """Row 86: no base64, no raw JSON; a place, an id, a source and a line for each output."""
    raw = copy.deepcopy(RICH)
    raw["cells"][2]["outputs"] += [
        {
            "output_type": "display_data",
            "metadata": {},
            "data": {"image/png": "A" * 100_000, "text/html": "<td>" * 10_000},
        }
    ] * 10
    write(tmp_path / "n.ipynb", raw)
    said = await Calling(workspace.tools(tmp_path)).text("read_file", path="n.ipynb")
    assert "load code In[7]" in said
    assert "df = load()" in said
    assert "[image" in said
    assert len(said) < 3_000


# ── a real server ────────────────────────────────────────────────────────────────────────────────────────────────────


def started(runtime, patience=60.0):
    """Wait until a server has written down where it is and answers there: it does both a moment after it says so."""
    pause, end = threading.Event(), time.monotonic() + patience
    while time.monotonic() < end:
        for server in running_servers(runtime):
            address = urlsplit(server.url)
            try:
                socket.create_connection((address.hostname, address.port), 1).close()
            except ConnectionRefusedError:
                continue
            return server
        pause.wait(0.05)
    raise AssertionError("no Jupyter server started")


@pytest.mark.kernel
def test_a_real_jupyter_server_is_found_and_asked(tmp_path, runtime):
    """Row 74: with the file that a real server leaves in the runtime folder, its token and its answer."""
    write(tmp_path / "n.ipynb", RICH)
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--port=0", "--allow-root"]
    command.append(f"--ServerApp.root_dir={tmp_path}")

    def asked(method, place, body=None):
        headers = {"Authorization": f"token {server.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{server.url}api/sessions{place}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert any("?token=" in line for line in process.stderr)
            server = started(runtime)
            assert who_has_open(tmp_path / "n.ipynb", [server]) is None
            wanted = {"path": "n.ipynb", "type": "notebook", "name": "", "kernel": {"name": "python3"}}
            session = json.loads(asked("POST", "", wanted))
            assert who_has_open(tmp_path / "n.ipynb", [server]) == Holder(server.url)
            with pytest.raises(NotebookError, match="open in Jupyter"):
                asyncio.run(FileNotebook(tmp_path / "n.ipynb").edit("end", "x", source_hash("x = 1")))
            asked("DELETE", f"/{session['id']}")
            # the kernel that it shuts down has the notebook as long as its process is there
            wait_until(lambda: who_has_open(tmp_path / "n.ipynb", [server]) is None)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def test_an_undo_does_not_write_a_notebook_that_a_server_has_open(tmp_path, runtime):
    """Row 74: what is true of writing is true of restoring."""
    path = write(tmp_path / "n.ipynb", RICH)
    now = path.read_bytes()
    change = FileChange(str(path), "n.ipynb", b"before", content_hash(now))
    told = Told()
    with Jupyter(tmp_path, ["n.ipynb"]) as jupyter:
        jupyter.says_so(runtime)
        assert not restore_files([change], Checkpoint(Head("run", 0.0, "", "", None, "")), told), "it waits"
    assert path.read_bytes() == now
    assert told.kept == [f"n.ipynb could not be restored: it is open in Jupyter ({jupyter.url})"]
