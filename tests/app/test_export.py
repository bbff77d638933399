"""`%agent export`: what is left of a notebook without its agent cells, in three kinds of file, and where it is written."""

from __future__ import annotations

import ast
import base64
import json
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from nbagent.app.export import Wanted, from_file, from_page, plain, read, script, target_of, write
from nbagent.core.errors import ConfigError, NotebookError
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools.marks import as_stale
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, calls

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def sample():
    """A notebook as it is after a few runs: agent cells, cells of the agent's, attachments, outputs of all kinds."""
    stale = as_stale([new_output("stream", name="stdout", text="old\n")])
    shown = new_output(
        "display_data", data={"image/png": PIXEL, "text/plain": "<Figure>"}, metadata={"nbagent": {"x": 1}}
    )
    return new_notebook(
        metadata={"nbagent": {"v": 1}, "widgets": {"state": {}}, "kernelspec": {"name": "python3", "display_name": "P"}},
        cells=[
            new_markdown_cell("# Title\n![a](attachment:a.png)", attachments={"a.png": {"image/png": PIXEL}}),
            new_code_cell("%load_ext nbagent", execution_count=1),
            new_code_cell("%load_ext nbagent\n%agent model opus\nimport os\nx = 1", execution_count=2),
            new_code_cell("# please\n%%agent\nPlot it", execution_count=3, outputs=[new_output("stream", text="record")]),
            new_code_cell("plot()", execution_count=4, outputs=[shown], metadata={"nbagent": {"run": "r"}, "tags": ["t"]}),
            new_code_cell("y = 2", execution_count=5, outputs=[nbformat.from_dict(o) for o in stale]),
            new_code_cell("%agent status"),
            new_raw_cell("raw"),
        ],
    )  # fmt: skip


def test_agent_cells_and_all_that_is_ours_go_and_the_rest_stays():
    before = sample()
    made, left_out = plain(before)
    assert (before, left_out) == (sample_like(before), 3)
    assert [cell.source for cell in made.cells][1:] == ["import os\nx = 1", "plot()", "y = 2", "raw"]
    assert [len(cell.get("outputs", [])) for cell in made.cells] == [0, 0, 1, 1, 0]
    assert "nbagent" not in json.dumps(made) and "widgets" not in made.metadata
    assert made.cells[0].attachments and made.cells[2].metadata.tags == ["t"]
    assert made.metadata.kernelspec.name == "python3"


def sample_like(notebook):
    assert len(notebook.cells) == 8 and notebook.metadata.nbagent == {"v": 1}, "the notebook itself is not touched"
    return notebook


def test_an_exported_notebook_is_valid_and_replaces_nothing_unasked(tmp_path):
    target = tmp_path / "made.ipynb"
    write(plain(sample())[0], target, "ipynb", force=False)
    nbformat.validate(nbformat.read(target, as_version=4))
    with pytest.raises(ConfigError, match=r"is there already.*--force"):
        target_of(Wanted(str(target), "ipynb", False, ""), "n")
    assert target_of(Wanted(str(target), "ipynb", True, ""), "n") == target
    assert target_of(Wanted("", "md", False, ""), "n") == Path.cwd() / "n-plain.md"
    with pytest.raises(ConfigError, match="is a folder"):
        target_of(Wanted(str(tmp_path), "ipynb", True, ""), "n")


@pytest.mark.slow
def test_markdown_has_its_images_beside_it(tmp_path):
    target = tmp_path / "made.md"
    assert write(plain(sample())[0], target, "md", force=False) == 2
    text = target.read_text()
    assert "# Title" in text and "plot()" in text and "record" not in text
    images = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png"))
    assert len(images) == 2 and all(image in text for image in images)
    assert (tmp_path / images[0]).read_bytes() == base64.b64decode(PIXEL)
    with pytest.raises(ConfigError, match=r"_files/.* is there already"):
        write(plain(sample())[0], target, "md", force=False)
    write(plain(sample())[0], target, "md", force=True)


def test_a_script_is_python_and_keeps_each_cell(tmp_path):
    cells = [
        new_markdown_cell("# Title\n\ntext"),
        new_code_cell("%matplotlib inline\nimport os\n!ls\nfiles = !ls\nos.path?\nfor n in 'ab':\n    !echo {n}"),
        new_code_cell("%%bash\necho hi"),
        new_code_cell("text = '''\n%not a magic\n'''\nawait something()"),
        new_code_cell("this is no python !"),
    ]
    text = script(new_notebook(cells=cells))
    compile(text, "made.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert text.startswith("# %% [markdown]\n# # Title\n#\n# text\n\n# %%\n# %matplotlib inline\nimport os\n# !ls\n")
    assert "%not a magic\n" in text and "# %not" not in text
    assert "# files = !ls" in text and "    pass  # !echo {n}" in text and "# %%bash\n# echo hi" in text
    assert text.count("\n# %%\n") == 4


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_cells_become_a_script_that_compiles(sources):
    text = script(new_notebook(cells=[new_code_cell(source) for source in sources]))
    compile(text.replace("\0", ""), "made.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("made.txt", "end it in .ipynb, .md or .py"),
        ("a.md b.md", "unrecognized arguments: b.md"),
        ("--to pdf", "invalid choice: 'pdf'"),
        ("'made.md", "quotation mark"),
        ("--form x", "--form"),
    ],
)
def test_a_line_that_can_not_be_carried_out_is_one_sentence(line, said):
    with pytest.raises(ConfigError, match=said):
        read(line)


def test_the_ending_or_to_says_what_it_becomes():
    assert [read(line).kind for line in ("", "a.py", "a.MD", "--to md", "'my notes.md' --force", "a --to py")] == [
        "ipynb", "py", "md", "md", "md", "py"]  # fmt: skip


@pytest.mark.parametrize("text", ["", "[]", "{}", "no json", '{"nbformat": 3, "worksheets": []}'])
def test_a_file_that_is_no_notebook_is_one_sentence(tmp_path, text):
    (tmp_path / "a.ipynb").write_text(text)
    with pytest.raises(ConfigError) as refused:
        from_file(tmp_path / "a.ipynb")
    assert len(str(refused.value).splitlines()) == 1
    with pytest.raises(ConfigError, match="can't be read: No such file"):
        from_file(tmp_path / "none.ipynb")


async def test_of_an_open_notebook_the_saved_file_is_taken_only_if_it_is_the_same(tmp_path):
    cells = sample().cells
    path = tmp_path / "open.ipynb"
    saved = sample()
    saved.cells = cells
    open_ = MemoryNotebook(list(cells), path="open.ipynb", on_save=lambda: nbformat.write(saved, path))
    assert (await from_page(open_, tmp_path)).cells[0].attachments
    other = MemoryNotebook(list(sample().cells), path="open.ipynb")
    found = await from_page(other, tmp_path)
    assert [cell.source for cell in found.cells] == [cell.source for cell in cells]
    assert found.cells[4].outputs[0].data["image/png"] == PIXEL and "attachments" not in found.cells[0]


async def test_a_page_that_can_not_save_is_exported_as_it_is(tmp_path):
    def fail() -> None:
        raise NotebookError("no disk")

    found = await from_page(MemoryNotebook(list(sample().cells), on_save=fail), tmp_path)
    made, _ = plain(found)
    write(made, tmp_path / "made.ipynb", "ipynb", force=False)


@pytest.mark.kernel
@pytest.mark.timeout(120)
async def test_the_notebook_of_a_page_is_exported_without_its_agent_cells(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server, NBAGENT_ALLOW="add_cell") as room:
            await room.cell("x = 1\nx")
            await room.cell("%%agent\nAdd", calls("add_cell", source="x + 1"), "Done.")
            (await room.cell("%agent export")).says("Exported 2 cells to room-plain.ipynb, without the 3 %agent cells.")
            made = nbformat.read(tmp_path / "room-plain.ipynb", as_version=4)
            assert [cell.source for cell in made.cells] == ["x = 1\nx", "x + 1"]
            assert [cell.outputs[0].data["text/plain"] for cell in made.cells] == ["1", "2"]
            assert "nbagent" not in (tmp_path / "room-plain.ipynb").read_text()
            (await room.cell("%agent export")).says("room-plain.ipynb is there already", "--force")
            (await room.cell("%agent export --force made.py")).says("to made.py")
            assert "# %%\nx + 1\n" in (tmp_path / "made.py").read_text()
            (await room.cell("%agent export --from room-plain.ipynb made.md")).says("Exported 2 cells to made.md.")
            (await room.cell("%agent export nowhere/made.txt")).says("end it in .ipynb, .md or .py")
            await room.still_works()
        server.assert_clean()
