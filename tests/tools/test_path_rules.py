"""Rules for paths: anchors, patterns as in .gitignore, links, protected places, and what searches leave out."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.policy import Mode, decision_of
from nbagent.core.rules import Rule, Source
from nbagent.core.rules_names import NAMES, our_tools, speaks_of
from nbagent.core.tools import Kind, tool
from nbagent.tools import workspace
from nbagent.tools.coderules import shell_commands, with_code_rules
from nbagent.tools.pathrules import literal, reads_denied

GIVEN = {
    "read_file": {"start_line": 1, "end_line": None},
    "write_file": {"content": "x"},
    "edit_file": {"old_text": "a", "new_text": "b", "replace_all": False},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    top = tmp_path_factory.mktemp("paths")
    made = top / "work"
    for folder in ("src/deep", "data", ".git", "secret"):
        (made / folder).mkdir(parents=True)
    for name in ("src/a.py", "src/deep/b.py", "data/x.csv", "secret/s.txt", ".env"):
        (made / name).write_text("x\n")
    (top / "outside").mkdir()
    (top / "outside" / "o.txt").write_text("o\n")
    (made / "link.py").symlink_to("src/a.py")
    (made / "src" / "out").symlink_to(top / "outside")
    (made / "data" / "innocent.csv").symlink_to("../secret/s.txt")
    return made


@pytest.fixture(scope="module")
def tools(root):
    return {made.name: made for made in workspace.tools(root)}


def decided(tools, name, path, *texts, mode=Mode.DEFAULT, base=""):
    rules = [Rule.parse(*text.split(" ", 1), Source("project", "f", base)) for text in texts]  # type: ignore[arg-type]
    return decision_of(mode, rules, tools[name], {"path": path, **GIVEN[name]}).action


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "path", "action"),
    [
        ("src/**", "src/a.py", "allow"),
        ("src/**", "src/deep/b.py", "allow"),
        ("src/*", "src/deep/b.py", "allow"),  # as git ignores a folder with all that is in it
        ("./src/**", "src/a.py", "allow"),
        ("/src/**", "src/a.py", "allow"),
        ("src/*.py", "src/a.py", "allow"),
        ("src/*.py", "src/deep/b.py", "ask"),
        ("src/**/*.py", "src/deep/b.py", "allow"),
        ("*.py", "src/deep/b.py", "allow"),
        ("./*.py", "src/a.py", "ask"),
        ("src", "src/a.py", "allow"),
        ("src/a.py", "./src/../src/a.py", "allow"),
        ("src/**", "data/x.csv", "ask"),
        ("src/**", "src/../data/x.csv", "ask"),
        ("rc/**", "src/a.py", "ask"),
        ("Src/**", "src/a.py", "ask"),
        ("!src/**", "src/a.py", "ask"),
        ("src/**", "link.py", "ask"),  # the link itself is not in src
        ("link.py", "link.py", "ask"),  # and what it leads to is no link.py
        ("*.py", "link.py", "allow"),
        ("~/src/**", "src/a.py", "ask"),
    ],
)
def test_an_allow_rule_must_fit_the_path_and_where_it_leads(tools, pattern, path, action):
    assert decided(tools, "write_file", path, f"allow Edit({pattern})") == action
    assert decided(tools, "edit_file", path, f"allow edit_file({pattern})") == action


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("secret/**", "secret/s.txt"),
        ("secret/**", "data/innocent.csv"),  # through a link
        ("data/innocent.csv", "data/innocent.csv"),  # the link by its own name
        ("./secret/**", "secret/s.txt"),
        ("/secret/**", "secret/s.txt"),
        ("s.txt", "secret/s.txt"),
        ("*.TXT", "secret/s.txt"),
        ("SECRET/**", "secret/s.txt"),
        ("deep/**", "src/deep/b.py"),  # at any depth
        ("secret", "src/../secret/s.txt"),
        (".env", ".env"),
        ("//**/o.txt", "src/out/o.txt"),
        ("outside/**", "src/out/o.txt"),
    ],
)
def test_a_deny_rule_fits_either_at_any_depth_in_any_case(tools, pattern, path):
    assert decided(tools, "read_file", path, f"deny Read({pattern})", mode=Mode.BYPASS) == "deny"
    assert decided(tools, "read_file", path, f"ask Read({pattern})", mode=Mode.BYPASS) == "ask"


def test_a_slash_counts_from_the_folder_of_the_settings_and_two_from_the_top(tools, root):
    assert decided(tools, "write_file", "src/a.py", "allow Edit(/a.py)", base=str(root / "src")) == "allow"
    assert decided(tools, "write_file", "src/a.py", "allow Edit(/a.py)") == "ask"
    assert decided(tools, "write_file", "src/a.py", f"allow Edit(/{root}/src/**)") == "allow"
    assert decided(tools, "write_file", "src/a.py", "deny Edit(/a.py)", base=str(root / "data")) == "ask"


def test_a_place_outside_is_opened_only_by_a_rule_about_a_place_outside(tools, root):
    outside = str(root.parent / "outside" / "o.txt")
    for text in ("allow Read", "allow Read(**)", "allow Read(*.txt)", "allow read_file"):
        assert decided(tools, "read_file", outside, text) == "ask"
    assert decided(tools, "read_file", outside, f"allow Read(/{root.parent}/outside/**)") == "allow"
    assert decided(tools, "read_file", "src/out/o.txt", f"allow Read(/{root.parent}/outside/**)") == "ask"  # a link in


def test_a_protected_path_needs_a_rule_with_its_own_name(tools):
    for text in ("allow Edit", "allow Edit(**)", "allow Edit(.git/**)", "allow Edit(.git)", "allow Edit(.git/*)"):
        assert decided(tools, "write_file", ".git/config", text) == "ask"
        assert decided(tools, "write_file", ".git/config", text, mode=Mode.BYPASS) == "ask"
    assert decided(tools, "write_file", ".git/config", "allow Edit(.git/config)") == "allow"
    assert decided(tools, "read_file", ".env", "allow Read(*)") == "ask"
    assert decided(tools, "read_file", ".env", "allow Read(./.env)") == "allow"


PROTECTED = (
    *(".git/hooks/pre-commit", ".claude/settings.json", ".nbagent/settings.toml", ".vscode/tasks.json", ".idea/x.xml"),
    *(
        ".husky/pre-push",
        ".bashrc",
        ".zshrc",
        ".profile",
        ".mcp.json",
        ".npmrc",
        ".gitconfig",
        ".GIT/config",
        "sub/.envrc",
    ),
)


@pytest.mark.parametrize("path", PROTECTED)
def test_what_makes_something_run_is_protected_in_every_mode(tools, path):
    for mode in Mode:
        assert decided(tools, "write_file", path, "allow Edit", mode=mode) in {"ask", "deny"}


def test_more_folders_count_as_inside(root):
    outside = root.parent / "outside"
    tools = {made.name: made for made in workspace.tools(root, also=(outside,))}
    assert decided(tools, "read_file", str(outside / "o.txt")) == "allow"
    assert decided(tools, "write_file", str(outside / "n.txt"), mode=Mode.ACCEPT_EDITS) == "allow"
    assert decided(tools, "write_file", str(outside / ".git" / "x"), mode=Mode.ACCEPT_EDITS) == "ask"
    assert decided(tools, "read_file", str(root.parent / "other")) == "ask"


@pytest.mark.parametrize("folder", ["secret", "./secret", "secret/"])
def test_a_search_in_a_denied_folder_is_denied(tools, folder):
    rules = [Rule.parse("deny", "Read(secret/**)")]
    given_ = {"pattern": "x", "folder": folder}
    assert decision_of(Mode.BYPASS, rules, tools["grep"], given_).action == "deny"
    assert decision_of(Mode.BYPASS, rules, tools["glob"], given_).action == "deny"
    assert decision_of(Mode.BYPASS, rules, tools["grep"], {**given_, "folder": "src"}).action == "allow"


@pytest.mark.slow
async def test_a_search_around_a_denied_file_leaves_it_out(root):
    from tests.tools.calling import Calling

    rules = [Rule.parse("deny", "Read(secret/**)")]
    call = Calling(workspace.tools(root, denied=reads_denied(rules, root)))
    said = await call.text("glob", pattern="**/*", folder=".")
    assert "src/a.py" in said
    assert "s.txt" not in said
    assert "innocent" not in said
    assert "s.txt" in await Calling(workspace.tools(root)).text("glob", pattern="**/*", folder=".")


@pytest.mark.slow
@given(
    st.text("ab[]*?!# \\./-é", min_size=1, max_size=12).filter(
        lambda name: name.strip("./ ") and not name.endswith((" ", "/"))
    )
)
def test_an_offered_rule_allows_this_path_and_no_other(tools, name):
    made = tools["write_file"]
    call = {"path": name, "content": "x"}
    if made.kind(call) is not Kind.WRITE_FILE:
        return
    narrow = made.grammar.offers(made, call)[0]
    rules = [Rule.parse("allow", narrow)]
    assert decision_of(Mode.DEFAULT, rules, made, call).action == "allow"
    for other in ("a", "b", "sub/a.py", f"{name}x", f"sub/{name}"):
        here, there = os.path.normpath(name), os.path.normpath(other)
        if here != there and not there.startswith(f"{here}/"):  # a file has nothing below it
            assert decision_of(Mode.DEFAULT, rules, made, {**call, "path": other}).action != "allow"


def test_a_literal_pattern_has_no_magic():
    assert literal("a*[b]?.py") == r"a\*\[b\]\?.py"


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_file_tool_is_known_under_claudes_name_and_its_own(tools):
    for name in tools:
        assert any(name in ours for ours in NAMES.values())
        assert speaks_of(name, name)
    assert our_tools("Bash") == ("shell",)


@pytest.mark.parametrize(
    ("rule", "name", "speaks"),
    [
        ("mcp__git", "mcp__git__log", True),
        ("mcp__git__*", "mcp__git__log", True),
        ("mcp__git__log", "mcp__git__log", True),
        ("mcp__git__log", "mcp__git__logs", False),
        ("mcp__git", "mcp__github__log", False),
        ("mcp__gi*", "mcp__git__log", True),
        ("mcp__*", "mcp__git__log", True),
        ("Edit", "add_cell", True),
        ("NotebookEdit", "delete_cell", True),
        ("Read", "grep", True),
        ("Write", "edit_file", False),
        ("Bash", "run_python", False),
    ],
)
def test_a_rule_speaks_of_tools_by_either_name(rule, name, speaks):
    assert speaks_of(rule, name) is speaks


def named(name):
    async def two(call, name: str, arguments: str = "") -> str:
        """Act."""
        return ""

    async def fetch(call, url: str) -> str:
        """Act."""
        return ""

    chosen = fetch if name == "web_fetch" else two
    return tool(name=name, kind=Kind.MCP, subject=lambda g: " ".join(filter(None, g.values())))(chosen)


@pytest.mark.parametrize(
    ("name", "text", "given_", "action"),
    [
        ("web_fetch", "allow WebFetch(domain:example.com)", {"url": "https://example.com/a"}, "allow"),
        ("web_fetch", "allow WebFetch(domain:example.com)", {"url": "https://example.com.evil.org/"}, "ask"),
        ("web_fetch", "allow WebFetch(domain:example.com)", {"url": "https://user@evil.org/example.com"}, "ask"),
        ("web_fetch", "allow WebFetch(domain:*.example.com)", {"url": "https://a.example.com"}, "allow"),
        ("web_fetch", "deny WebFetch(domain:EXAMPLE.com)", {"url": "https://Example.COM:8080/"}, "deny"),
        ("skill", "allow Skill(deploy *)", {"name": "deploy", "arguments": "now"}, "allow"),
        ("skill", "allow Skill(deploy *)", {"name": "deploy", "arguments": ""}, "allow"),
        ("skill", "allow Skill(deploy)", {"name": "deploy", "arguments": "now"}, "ask"),
        ("skill", "allow Skill(deploy *)", {"name": "deployer", "arguments": ""}, "ask"),
        ("skill", "deny Skill(deploy)", {"name": "deploy", "arguments": "now"}, "deny"),
        ("skill", "allow Skill(*)", {"name": "x", "arguments": ""}, "allow"),
        ("agent", "deny Agent(Explore)", {"name": "Explore", "arguments": ""}, "deny"),
        ("agent", "deny Task(Explore)", {"name": "Explore", "arguments": ""}, "deny"),
        ("agent", "deny Agent(name:Expl*)", {"name": "Explore", "arguments": ""}, "deny"),
        ("agent", "allow Agent(name:Explore)", {"name": "Explore", "arguments": ""}, "ask"),
    ],
)
def test_rules_for_names_domains_and_parameters(name, text, given_, action):
    rules = [Rule.parse(*text.split(" ", 1))]  # type: ignore[arg-type]
    assert decision_of(Mode.DEFAULT, rules, named(name), given_).action == action


# ── code and cells ───────────────────────────────────────────────────────────────────────────────────────────────────


def cell_tool(root, kind=Kind.EDIT_CELL):
    async def add_cell(call, source: str, cell_type: str = "code", run: bool = True) -> str:
        """Act."""
        return source

    made = tool(kind=kind, exact=True)(add_cell)
    return with_code_rules([made], root, lambda: "nb/a.ipynb")[0]


@pytest.mark.parametrize(
    ("text", "run", "cell_type", "action"),
    [
        ("allow Edit", False, "code", "allow"),
        ("allow Edit", True, "code", "ask"),
        ("allow Edit", True, "markdown", "allow"),
        ("allow NotebookEdit", False, "code", "allow"),
        ("allow Edit(nb/**)", False, "code", "allow"),
        ("allow Edit(other/**)", False, "code", "ask"),
        ("deny Edit(*.ipynb)", True, "code", "deny"),
        ("deny Edit(*.ipynb)", False, "code", "deny"),
        ("allow add_cell", True, "code", "allow"),
        ("allow add_cell(print*)", True, "code", "ask"),
        ("allow add_cell(print\\(1\\))", True, "code", "ask"),
        ("allow add_cell(print(1))", True, "code", "allow"),
    ],
)
def test_an_edit_rule_is_about_the_notebook_and_never_allows_what_runs(root, text, run, cell_type, action):
    rules = [Rule.parse(*text.split(" ", 1))]  # type: ignore[arg-type]
    made = cell_tool(root)
    assert (
        decision_of(Mode.DEFAULT, rules, made, {"source": "print(1)", "cell_type": cell_type, "run": run}).action
        == action
    )


@pytest.mark.parametrize(
    "code",
    ["!rm x", "x = !rm x", "  !rm x", "%sx rm x", "%%bash\nls\nrm x", "%%sh -e\nrm x", "!ls; rm x", "a=1\n!sudo rm x"],
)
def test_a_rule_that_denies_a_command_denies_it_in_code_too(root, code):
    given_ = {"source": code, "cell_type": "code", "run": True}
    for kind in (Kind.RISKY_CODE, Kind.RUN_CELL):
        made = cell_tool(root, kind)
        assert decision_of(Mode.BYPASS, [Rule.parse("deny", "Bash(rm *)")], made, given_).action == "deny"
        assert decision_of(Mode.BYPASS, [Rule.parse("ask", "Bash(rm *)")], made, given_).action == "ask"
        assert decision_of(Mode.DEFAULT, [Rule.parse("allow", "Bash(rm *)")], made, given_).action == "ask"


def test_code_without_shell_commands_has_none():
    assert list(shell_commands("a != b\nx = 'y!rm'\nprint(1)")) == []
