"""The file tools: only inside the root unless approved, only the bytes that were meant, never through a swapped link."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nbagent.core.errors import ToolError
from nbagent.core.messages import plain_text
from nbagent.core.tools import Kind
from nbagent.tools import paths, workspace
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
    with pytest.raises(ToolError, match="not a readable notebook"):
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


@given(before=st.text(), old=st.text(min_size=1), new=st.text(), after=st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_one_edit_is_exact(call, root, before, old, new, after):
    text = before + old + after
    if text.count(old) != 1:
        return
    (root / "f").write_bytes(text.encode())
    await call("edit_file", path="f", old_text=old, new_text=new)
    assert (root / "f").read_bytes() == (before + new + after).encode()


async def test_a_notebook_is_not_written_as_a_file(call, root):
    (root / "n.ipynb").write_text("{}")
    for name, arguments in (("write_file", {"content": "x"}), ("edit_file", {"old_text": "{", "new_text": "x"})):
        with pytest.raises(ToolError, match="use add_cell and edit_cell"):
            await call(name, path="n.ipynb", **arguments)
    assert (root / "n.ipynb").read_text() == "{}"


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


# ── where a path may lead ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path", ["", "  ", "a\0b", "~", "~/x", "~root/x", "file:///etc/passwd", "http://x/y", "a\ud800", "x" * 5000]
)
async def test_what_is_no_path_is_refused_with_a_sentence_and_nobody_is_asked(call, path):
    for name, rest in (
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_text": "a", "new_text": "b"}),
    ):
        assert call.kind(name, path=path, **rest) is Kind.READ
        with pytest.raises(ToolError):
            await call(name, path=path, **rest)


async def test_a_loop_of_links_is_refused(call, root):
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(ToolError, match="circle"):
        await call("write_file", path="a", content="x")


OUTSIDE = [
    "../outside.txt",
    "../work2/secret.txt",
    "/etc/hostname",
    "a/../../outside.txt",
    "dir/secret.txt",
    "leaf",
    "dangling",
    "dir/../outside.txt",
]


@pytest.fixture
def leading_out(root):
    (root / "dir").symlink_to(root.parent / "work2")
    (root / "leaf").symlink_to(root.parent / "outside.txt")
    (root / "dangling").symlink_to(root.parent / "not there yet")


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.usefixtures("leading_out")
async def test_a_path_that_leads_out_is_protected_and_refused_where_nobody_decided(call, root, path):
    assert call.kind("read_file", path=path) is Kind.PROTECTED
    assert call.kind("write_file", path=path, content="x") is Kind.PROTECTED
    fresh = Calling(workspace.tools(root))
    with pytest.raises(ToolError, match="leads elsewhere"):
        await fresh.carry_out("read_file", path=path)
    with pytest.raises(ToolError, match="leads elsewhere"):
        await fresh.carry_out("write_file", path=path, content="x")


async def test_an_approved_path_outside_is_read_and_written(call, root):
    assert await call.text("read_file", path="../outside.txt") == "outside"
    await call("write_file", path="../outside.txt", content="new")
    assert (root.parent / "outside.txt").read_text() == "new"
    assert call.subject("write_file", path="../outside.txt", content="") == str(root.parent / "outside.txt")


GUARDED = [
    ".git/config",
    "sub/.git/hooks/x",
    ".GIT/config",
    ".nbagent/x",
    ".claude/x",
    ".vscode/x",
    ".idea/x",
    ".bashrc",
    "sub/.zshrc",
    ".mcp.json",
    ".git./x",
    ".git::$INDEX/x",
]
SECRET = [".env", ".env.local", "sub/.ENV", ".npmrc", "id_rsa", "server.pem", "a.key", ".ssh/config", ".netrc"]


@pytest.mark.parametrize("path", GUARDED + SECRET)
async def test_what_can_run_something_or_holds_keys_is_protected_from_writes(call, path):
    assert call.kind("write_file", path=path, content="x") is Kind.PROTECTED
    assert call.kind("edit_file", path=path, old_text="a", new_text="b") is Kind.PROTECTED
    assert call.kind("read_file", path=path) is (Kind.PROTECTED if path in SECRET else Kind.READ)


@pytest.mark.parametrize("path", ["a.txt", "git/config", "environment.yml", ".gitignore", "sub/keys.py", "my.env.txt"])
def test_other_files_are_not(call, path):
    assert call.kind("write_file", path=path, content="x") is Kind.WRITE_FILE


def test_a_link_to_a_guarded_file_is_guarded(call, root):
    (root / ".git").mkdir()
    (root / "harmless").symlink_to(".git")
    assert call.kind("write_file", path="harmless/config", content="x") is Kind.PROTECTED
    assert call.subject("write_file", path="harmless/config", content="x") == ".git/config"


async def test_a_root_that_is_a_link_itself_is_inside(root):
    (root.parent / "alias").symlink_to(root)
    call = Calling(workspace.tools(root.parent / "alias"))
    assert call.kind("write_file", path="x", content="1") is Kind.WRITE_FILE
    await call("write_file", path=str(root / "x"), content="1")
    assert await call.text("read_file", path="x") == "1"


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file"])
async def test_a_link_put_there_after_the_decision_is_not_followed(call, root, name):
    rest = {"write_file": {"content": "x"}, "edit_file": {"old_text": "outside", "new_text": "x"}}.get(name, {})
    (root / "dir").mkdir()
    (root / "dir" / "secret.txt").write_text("inside")
    call.kind(name, path="dir/secret.txt", **rest)
    (root / "dir").rename(root / "old")
    (root / "dir").symlink_to(root.parent / "work2")
    call.subject(name, path="dir/secret.txt", **rest)  # the policy looks again: that must not move the decision
    with pytest.raises(ToolError, match="leads elsewhere"):
        await call.carry_out(name, path="dir/secret.txt", **rest)
    assert (root.parent / "work2" / "secret.txt").read_text() == "outside"


def test_a_write_to_a_resolved_path_follows_no_link_on_the_way(root):
    target = root / "dir" / "secret.txt"
    (root / "dir").symlink_to(root.parent / "work2")
    with pytest.raises((OSError, ToolError)):
        paths.replace_file(target, b"x")
    with pytest.raises((OSError, ToolError)):
        paths.read_file(target, 100)
    (root / "leaf").symlink_to(root.parent / "outside.txt")
    with pytest.raises((OSError, ToolError)):
        paths.replace_file(root / "leaf", b"x")
    assert (root.parent / "work2" / "secret.txt").read_text() == "outside"
    assert (root.parent / "outside.txt").read_text() == "outside"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="fifos")
async def test_a_fifo_is_neither_read_nor_written(call, root):
    os.mkfifo(root / "pipe")
    with pytest.raises(ToolError, match="not a regular file"):
        await call("read_file", path="pipe")
    with pytest.raises(ToolError, match="not a regular file"):
        await call("write_file", path="pipe", content="x")
    with pytest.raises(ToolError, match="not a regular file"):
        await call("edit_file", path="pipe", old_text="a", new_text="b")


PIECES = st.sampled_from(
    [
        "..",
        ".",
        "a",
        "dir",
        "leaf",
        "dangling",
        "up",
        "work2",
        "work",
        "secret.txt",
        "outside.txt",
        "etc",
        "hostname",
        "",
        "...",
        ".. ",
        "~",
        "x y",
        "ü",
        "%2e%2e",
        "..\\..",
        "\0",
    ]
)


@given(
    parts=st.lists(PIECES, min_size=1, max_size=7),
    absolute=st.booleans(),
    prefix=st.sampled_from(["", "file://", "./", "//"]),
)
@example(parts=["up", "outside.txt"], absolute=False, prefix="")
@example(parts=["dir", "..", "outside.txt"], absolute=False, prefix="")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
async def test_no_spelling_of_a_path_reads_or_writes_outside_without_a_decision(call, root, parts, absolute, prefix):
    for name, target in (("dir", "work2"), ("leaf", "outside.txt"), ("dangling", "not there yet"), ("up", ".")):
        if not (root / name).is_symlink():
            (root / name).symlink_to(root.parent / target)
    spelled = prefix + ("/" if absolute else "") + "/".join(parts)
    if call.kind("write_file", path=spelled, content="MARK") is not Kind.PROTECTED:
        try:
            await call("write_file", path=spelled, content="MARK")
        except ToolError:
            pass
    try:
        read = plain_text(list((await call.carry_out("read_file", path=spelled)).content))
    except ToolError:
        read = ""
    assert "outside" not in read
    assert (root.parent / "outside.txt").read_text() == "outside"
    assert (root.parent / "work2" / "secret.txt").read_text() == "outside"
    assert sorted(p.name for p in root.parent.iterdir()) == ["outside.txt", "work", "work2"]
    assert [p.name for p in (root.parent / "work2").iterdir()] == ["secret.txt"]


def test_making_the_tools_and_asking_the_policy_does_not_import_the_sdk(root):
    code = f"""
import sys
from pathlib import Path
from nbagent.tools import workspace
for tool in workspace.tools(Path({str(root)!r})):
    given = {{"path": "x", "folder": ".", "pattern": "*", "content": "y", "old_text": "a", "new_text": "b"}}
    tool.kind(given), tool.subject(given), tool.title(given), tool.preview(given)
print("anthropic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
