"""The file host keeps every promise of the notebook port, whatever form of nbformat 4 the file has."""

from __future__ import annotations

import json

import nbformat
import pytest

from nbagent.headless.file import FileNotebook
from nbagent.tools import ipynb
from tests.conformance.notebook_kit import NotebookHost, promise_name, promises

FORMS = {
    "4.5 as Jupyter writes it": (5, {"indent": 1, "sort_keys": True, "ensure_ascii": False}, list),
    "4.4 without ids, sources as text": (4, {"indent": 2}, str),
    "4.2 on one line": (2, {"separators": (",", ":")}, list),
    "4.5 with tabs and CRLF": (5, {"indent": "\t"}, str),
}


def notebook_text(form):
    minor, style, kind = FORMS[form]
    cell = {"cell_type": "code", "metadata": {}, "source": "# first", "outputs": [], "execution_count": 1}
    if kind is list:
        cell["source"] = ["# first"]
    if minor >= 5:
        cell = {"id": "first", **cell}
    text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": minor}, **style) + "\n"
    return text.replace("\n", "\r\n") if "CRLF" in form else text


@pytest.fixture(params=FORMS)
def file(request, tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_bytes(notebook_text(request.param).encode())
    return path


@pytest.fixture
def host(file):
    notebook = FileNotebook(file, who_has_open=lambda path: None)

    async def user_edit(cell_id, source):
        """The person saves the file from an editor of theirs, which knows nothing of our ids: by the cell's place."""
        place = next(cell.index for cell in await notebook.cells() if cell.id == cell_id)
        raw = json.loads(file.read_bytes())
        raw["cells"][place]["source"] = source
        file.write_text(json.dumps(raw))

    return NotebookHost(notebook, user_edit)


@pytest.mark.slow
@pytest.mark.parametrize("promise", promises(), ids=promise_name)
async def test_keeps_the_promise(promise, host, file):
    await promise(host)
    raw = json.loads(file.read_bytes())
    nbformat.validate(raw)
    assert ("id" in raw["cells"][-1]) == (raw["nbformat_minor"] >= 5)
    assert ipynb.read(file.read_bytes(), "n").minor == raw["nbformat_minor"]
