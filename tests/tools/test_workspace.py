"""The file tools: only inside the root unless approved, only the bytes that were meant, never through a swapped link."""

from __future__ import annotations

import base64
import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbagent.core.errors import ToolError
from nbagent.tools import workspace
from tests.tools.calling import Calling


@pytest.fixture
def root(tmp_path):
    inside = tmp_path / "work"
    inside.mkdir()
    (tmp_path / "work2").mkdir()
    (tmp_path / "work2" / "secret.txt").write_text("outside")
    (tmp_path / "outside.txt").write_text("outside")
    return inside


@pytest.fixture
def call(root):
    return Calling(workspace.tools(root))


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_text_is_read_whole_or_by_lines(call, root):
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    assert await call.text("read_file", path="a.txt") == "one\ntwo\nthree\n"
    assert (await call.text("read_file", path="a.txt", start_line=2, end_line=2)).strip() == "two"
    assert await call.text("read_file", path="a.txt", start_line=2) == "two\nthree\n"
    assert await call.text("read_file", path="a.txt", start_line=9) == "(no such lines)"
    assert await call.text("read_file", path=str(root / "a.txt")) == "one\ntwo\nthree\n"


async def test_an_empty_file_and_a_folder_and_nothing_are_told_apart(call, root):
    (root / "empty").touch()
    assert "is empty" in await call.text("read_file", path="empty")
    with pytest.raises(ToolError, match=r"folder: use glob"):
        await call("read_file", path=".")
    with pytest.raises(ToolError, match=r"nope.txt: no such file"):
        await call("read_file", path="nope.txt")


async def test_a_big_file_asks_for_lines(call, root):
    (root / "big.csv").write_text("a,b,c\n" * 100_000)
    with pytest.raises(ToolError, match="start_line and end_line"):
        await call("read_file", path="big.csv")
    assert (await call.text("read_file", path="big.csv", start_line=99_999)).startswith("a,b,c")


async def test_an_image_comes_as_a_scaled_image(call, root):
    from PIL import Image

    Image.new("RGB", (4000, 10)).save(root / "wide.png")
    (block,) = (await call("read_file", path="wide.png")).content
    assert block["type"] == "image"
    shown = Image.open(io.BytesIO(base64.b64decode(block["source"]["data"])))
    assert shown.width == 1568


async def test_a_notebook_is_read_as_cells_without_its_images(call, root):
    cell = {
        "id": "abc",
        "cell_type": "code",
        "metadata": {},
        "source": ["x = 1\n", "x"],
        "execution_count": 2,
        "outputs": [{"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * 5000}}],
    }
    (root / "n.ipynb").write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}))
    said = await call.text("read_file", path="n.ipynb")
    assert "abc code In[2]" in said
    assert "x = 1" in said
    assert "[image" in said
    assert "AAAA" not in said


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe{",
        b'{"nbformat": 99}',
        b"<<<<<<< HEAD\n{}",
        b'{"cells": [{}], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}',
    ],
)
async def test_a_broken_notebook_is_one_sentence(call, root, content):
    (root / "n.ipynb").write_bytes(content)
    with pytest.raises(ToolError, match=r"n\.ipynb.{5,200}\Z"):
        await call("read_file", path="n.ipynb")


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_file_is_written_with_its_folders_and_keeps_its_mode(call, root):
    result = await call("write_file", path="a/b/c.py", content="x = 1\n")
    assert (root / "a/b/c.py").read_text() == "x = 1\n"
    assert result.summary == "wrote a/b/c.py"
    (root / "a/b/c.py").chmod(0o750)
    await call("write_file", path="a/b/c.py", content="x = 2\n")
    assert (root / "a/b/c.py").stat().st_mode & 0o777 == 0o750
    assert [p.name for p in (root / "a/b").iterdir()] == ["c.py"]


async def test_an_edit_changes_only_the_bytes_meant(call, root):
    before = b"\xef\xbb\xbffirst\r\nsecond \xe2\x82\xac\r\nlast\nno newline"
    (root / "a.py").write_bytes(before)
    await call("edit_file", path="a.py", old_text="first\nsecond", new_text="1\n2")
    assert (root / "a.py").read_bytes() == before.replace(b"first\r\nsecond", b"1\r\n2")
    await call("edit_file", path="a.py", old_text="no newline", new_text="x")
    assert (root / "a.py").read_bytes().endswith(b"last\nx")


async def test_a_file_that_is_no_utf8_is_refused_and_stays(call, root):
    before = b"one\n" * 998 + b"\x99\n"
    (root / "a.csv").write_bytes(before)
    with pytest.raises(ToolError, match="not UTF-8"):
        await call("edit_file", path="a.csv", old_text="one", new_text="two", replace_all=True)
    assert (root / "a.csv").read_bytes() == before


@pytest.mark.parametrize(("old", "words"), [("z", "is not in"), ("a", "2 times"), ("", "empty")])
async def test_an_edit_that_is_not_clear_is_refused(call, root, old, words):
    (root / "f").write_text("a a")
    with pytest.raises(ToolError, match=words):
        await call("edit_file", path="f", old_text=old, new_text="y")
    assert (root / "f").read_text() == "a a"


async def test_every_place_is_replaced_where_that_was_asked_for(call, root):
    (root / "f").write_text("a a")
    assert "2 place" in await call.text("edit_file", path="f", old_text="a", new_text="b", replace_all=True)
    assert (root / "f").read_text() == "b b"


@pytest.mark.slow
@given(before=st.text(), old=st.text(min_size=1), new=st.text(), after=st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_one_edit_is_exact(call, root, before, old, new, after):
    text = before + old + after
    if text.count(old) != 1:
        return
    if 0 < text.count("\n") == text.count("\r\n"):  # a file of CRLF lines gets no others
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    (root / "f").write_bytes(text.encode())
    await call("edit_file", path="f", old_text=old, new_text=new)
    assert (root / "f").read_bytes() == (before + new + after).encode()


NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "execution_count": 1, "id": "a", "metadata": {}, "source": ["x = 1\n", "x"],
         "outputs": [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}]},
        {"cell_type": "markdown", "id": "b", "metadata": {}, "source": "the value of x"},
    ],
    "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
}  # fmt: skip


async def test_in_a_notebook_the_source_of_a_cell_is_edited_and_its_old_output_marked(call, root):
    (root / "n.ipynb").write_text(json.dumps(NOTEBOOK, indent=2))
    said = await call.text("edit_file", path="n.ipynb", old_text="x = 1", new_text="x = 2")
    assert "cell 1" in said
    assert "Nothing was run" in said
    after = json.loads((root / "n.ipynb").read_text())
    assert after["cells"][0]["source"] == ["x = 2\n", "x"]
    assert after["cells"][0]["metadata"]["nbagent"]["stale"] is True
    assert after["cells"][0]["outputs"][1:] == NOTEBOOK["cells"][0]["outputs"]
    assert after["cells"][1] == NOTEBOOK["cells"][1]
    for old, words in (("cell_type", "in no cell"), ("x", "3 times"), ("", "empty")):
        with pytest.raises(ToolError, match=words):
            await call("edit_file", path="n.ipynb", old_text=old, new_text="y")
    await call("edit_file", path="n.ipynb", old_text="x", new_text="y", replace_all=True)
    assert json.loads((root / "n.ipynb").read_text())["cells"][1]["source"] == "the value of y"


async def test_a_whole_notebook_is_written_only_if_it_is_one(call, root):
    said = await call.text("write_file", path="new.ipynb", content=json.dumps(NOTEBOOK))
    assert said == "wrote new.ipynb: 2 cells"
    for content, words in (
        ("x = 1", "is not JSON.*nbformat JSON"),
        ("{}", "no nbformat"),
        (json.dumps({**NOTEBOOK, "cells": [{"cell_type": "code", "source": "x"}]}), "no valid notebook"),
    ):
        with pytest.raises(ToolError, match=words):
            await call("write_file", path="new.ipynb", content=content)
        with pytest.raises(ToolError, match=words):
            await call("write_file", path="other.IPYNB", content=content)
    assert json.loads((root / "new.ipynb").read_text()) == NOTEBOOK
    assert not (root / "other.IPYNB").exists()


async def test_a_read_only_file_is_not_replaced(call, root):
    (root / "f").write_text("kept")
    (root / "f").chmod(0o444)
    for name, given_ in (("write_file", {"content": "x"}), ("edit_file", {"old_text": "kept", "new_text": "x"})):
        with pytest.raises(ToolError, match="read-only"):
            await call(name, path="f", **given_)
    assert (root / "f").read_text() == "kept"


async def test_half_a_surrogate_is_written_as_a_mark(call, root):
    await call("write_file", path="f", content="a\ud800")
    assert (root / "f").read_text(encoding="utf-8") == "a\ufffd"


async def test_what_is_written_is_shown_before(call, root):
    shown = call.preview("write_file", path="new.py", content="x")
    assert (shown.kind, shown.body, shown.language) == ("code", "x", "python")
    (root / "old.md").write_text("old")
    shown = call.preview("write_file", path="old.md", content="new")
    assert (shown.kind, shown.old, shown.body, shown.language) == ("diff", "old", "new", "markdown")
    shown = call.preview("edit_file", path="old.md", old_text="o", new_text="p")
    assert (shown.kind, shown.old, shown.body) == ("diff", "o", "p")


@pytest.mark.parametrize("first", ["old", None])
async def test_a_file_that_changed_after_it_was_shown_is_not_overwritten(call, root, first):
    if first:
        (root / "f").write_text(first)
    call.kind("write_file", path="f", content="agent's")
    call.preview("write_file", path="f", content="agent's")
    (root / "f").write_text("the person's")
    call.preview("write_file", path="f", content="agent's")  # shown again as it starts: that approves nothing
    with pytest.raises(ToolError, match="changed since"):
        await call.carry_out("write_file", path="f", content="agent's")
    assert (root / "f").read_text() == "the person's"
    await call("write_file", path="f", content="agent's")
    assert (root / "f").read_text() == "agent's"


# ── finding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_files_are_found_by_name(call, root):
    (root / "data").mkdir()
    (root / "data" / "a.csv").touch()
    (root / "link").symlink_to(root.parent)
    assert await call.text("glob", pattern="**/*.csv") == "data/a.csv"
    assert await call.text("glob", pattern="link/*.txt") == "no matches"
    assert await call.text("glob", pattern="*", folder="data") == "data/a.csv"
    assert await call.text("glob", pattern="*.nothing") == "no matches"
    for pattern in ("../*", "/etc/*"):
        with pytest.raises(ToolError):
            await call("glob", pattern=pattern)


async def test_many_files_are_counted_not_poured_out(call, root):
    for number in range(250):
        (root / f"{number}.txt").touch()
    assert len((await call.text("glob", pattern="*")).splitlines()) <= 201


async def test_text_is_found_with_its_place_and_keys_are_not(call, root):
    (root / "a.py").write_text("x\ndef load():\n")
    (root / ".env").write_text("def KEY=1\n")
    (root / "link").symlink_to(root.parent / "work2")
    (root.parent / "work2" / "b.py").write_text("def outside\n")
    assert await call.text("grep", pattern="def") == "a.py:2:def load():"
    assert await call.text("grep", pattern="nothing") == "no matches"
    with pytest.raises(ToolError, match="regex"):
        await call("grep", pattern="(")


async def test_the_preview_of_an_edit_says_in_which_line_of_the_file_it_begins(call, root):
    (root / "a.py").write_bytes(b"one = 1\r\n\r\ndef f():\r\n    return 1\r\n")
    shown = call.preview("edit_file", path="a.py", old_text="def f():\n    return 1", new_text="def f():\n    return 2")
    assert (shown.old, shown.line) == ("def f():\n    return 1", 3)
    assert call.preview("edit_file", path="a.py", old_text="1", new_text="2", replace_all=True).line == 0
    assert call.preview("edit_file", path="none.py", old_text="1", new_text="2").line == 0
