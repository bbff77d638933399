"""Where the file tools may go: inside the root unless approved, and never through a link that was swapped in."""

from __future__ import annotations

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
    "pyproject.toml",
    "sub/PyProject.toml",
    "ipython_config.py",
    "ipython_kernel_config.py",
    "jupyter_server_config.py",
    "jupyter_lab_config.json",
    "sitecustomize.py",
    "usercustomize.py",
    "lib/extra.pth",
    ".pre-commit-config.yaml",
    ".envrc",
]
SECRET = [".env", ".env.local", "sub/.ENV", ".npmrc", "id_rsa", "server.pem", "a.key", ".ssh/config", ".netrc"]


@pytest.mark.slow
@pytest.mark.parametrize("path", GUARDED + SECRET)
async def test_what_can_run_something_or_holds_keys_is_protected_from_writes(call, path):
    assert call.kind("write_file", path=path, content="x") is Kind.PROTECTED
    assert call.kind("edit_file", path=path, old_text="a", new_text="b") is Kind.PROTECTED
    assert call.kind("read_file", path=path) is (Kind.PROTECTED if path in SECRET else Kind.READ)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["a.txt", "git/config", "environment.yml", ".gitignore", "sub/keys.py", "my.env.txt", "my_pyproject.toml",
    "Makefile", "conftest.py", "jupyter_notes.py", "customize.py", "model.pt"],
)  # fmt: skip
def test_other_files_are_not(call, path):
    assert call.kind("write_file", path=path, content="x") is Kind.WRITE_FILE


@pytest.mark.parametrize("path", [".g\u200cit/hooks/x", "\u2060.mcp.json", ".devcontainer/devcontainer.json", ".pdbrc"])
def test_unseen_letters_in_a_name_and_files_that_other_programs_run_are_guarded(call, path):
    assert call.kind("write_file", path=path, content="x") is Kind.PROTECTED


def test_a_link_to_a_guarded_file_is_guarded(call, root):
    (root / ".git").mkdir()
    (root / "harmless").symlink_to(".git")
    assert call.kind("write_file", path="harmless/config", content="x") is Kind.PROTECTED
    assert call.subject("write_file", path="harmless/config", content="x") == ".git/config"


@pytest.mark.parametrize("path", [".claude/settings.json", "shared/settings.json", "a/../.claude/x/y", ".CLAUDE/x"])
def test_a_guarded_folder_that_is_a_link_is_guarded_by_its_name_and_where_it_leads(call, root, path):
    """Row 110: project files that widen what is allowed, in a folder that is linked in."""
    (root / "shared").mkdir()
    (root / ".claude").symlink_to("shared")
    assert call.kind("write_file", path=path, content="x") is Kind.PROTECTED
    assert call.kind("write_file", path="other/settings.json", content="x") is Kind.WRITE_FILE


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
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200 * settings.default.max_examples // 100
)
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


@pytest.mark.slow
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
