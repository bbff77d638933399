"""All hooks of a session: which are asked, side by side, once each; in whose words; and that failures shut their gate."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nbagent.core.errors import Interrupted
from nbagent.core.hooks import Began, Finished, Verdict
from nbagent.core.payloads import (
    CellRun,
    HookEvent,
    Payload,
    PostToolUse,
    PreToolUse,
    SessionStart,
    Stop,
    TaskCreated,
    UserPromptSubmit,
    Where,
)
from nbagent.extend.hooks import WORDS, HookTable, listing
from nbagent.extend.hooks_python import hook_of
from nbagent.extend.hooks_run import Runners, filled, prompted
from nbagent.extend.hooks_settings import Hook, Source, read
from tests.extend.test_hooks_command import lives
from tests.support.turns import until

LS = PreToolUse(tool_name="shell", tool_input={"command": "ls"}, tool_use_id="c1")
WRITE = PreToolUse(tool_name="write_file", tool_input={"path": "a.txt", "content": "x"})


class Session:
    """A table over a folder, and what its hooks were seen to do."""

    def __init__(self, folder: Path, *hooks: Hook, **more: Any) -> None:
        self.folder = folder
        self.news: list[Began | Finished] = []
        runners = Runners(folder, environment={"PATH": os.environ["PATH"]}, **more)
        self.table = HookTable(runners, hooks, spill=folder / ".nbagent" / "hooks")

    async def fire(self, payload: Payload) -> Verdict:
        where = Where("s1", "/t.jsonl", str(self.folder), effort="high")
        return await self.table.fire(payload, where, self.news.append)

    @property
    def finished(self) -> list[Finished]:
        return [news for news in self.news if isinstance(news, Finished)]


def of(table: dict, source: Source | None = None) -> tuple[Hook, ...]:
    return read(table, source or Source("settings.json")).hooks


def command(text: str, **more: object) -> dict:
    return {"type": "command", "command": text, **more}


def on(event: str, *handlers: dict, matcher: str = "", source: Source | None = None) -> tuple[Hook, ...]:
    return of({event: [{"matcher": matcher, "hooks": list(handlers)}]}, source)


def python(function: Callable, event: str = "PreToolUse", **more: Any) -> Hook:
    return hook_of(function, event, **more)


DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                               "permissionDecisionReason": "policy"}}  # fmt: skip


def printing(data: object) -> dict:
    return command(f"cat > /dev/null; echo '{json.dumps(data)}'")


async def test_a_command_that_exits_with_2_denies_with_its_stderr(tmp_path):
    session = Session(tmp_path, *on("PreToolUse", command("echo no rm >&2; exit 2"), matcher="Bash"))
    verdict = await session.fire(LS)
    assert (verdict.decision, verdict.reason) == ("deny", "echo no rm >&2; exit 2: no rm")
    assert session.finished[0].outcome == "deny"


async def test_a_script_written_for_claude_code_finds_its_fields_on_stdin(tmp_path):
    """The documentation's own example: block rm, decided by `.tool_input.command` of a Bash call."""
    script = tmp_path / "guard.py"
    script.write_text(
        "import json, os, sys\n"
        "data = json.load(sys.stdin)\n"
        "assert data['hook_event_name'] == 'PreToolUse' and data['tool_name'] == 'Bash'\n"
        "assert data['session_id'] == 's1' and data['transcript_path'] == '/t.jsonl'\n"
        "assert os.environ['CLAUDE_PROJECT_DIR'] == os.environ['NBAGENT_PROJECT_DIR'] == data['cwd'] == os.getcwd()\n"
        "assert os.environ['CLAUDE_EFFORT'] == 'high'\n"
        "if data['tool_input']['command'].startswith('rm'):\n"
        "    print('Blocked: rm commands are not allowed', file=sys.stderr)\n"
        "    sys.exit(2)\n"
    )
    hooks = on("PreToolUse", command(f'{sys.executable} "$CLAUDE_PROJECT_DIR"/guard.py'), matcher="Bash")
    session = Session(tmp_path, *hooks)
    assert await session.fire(LS) == Verdict()
    verdict = await session.fire(PreToolUse(tool_name="shell", tool_input={"command": "rm -rf x"}))
    assert verdict.reason == "guard.py: Blocked: rm commands are not allowed"


async def test_the_words_are_those_of_the_name_that_the_matcher_fits(tmp_path):
    seen: dict[str, list[str]] = {}

    def keep(name: str) -> Callable[[dict], None]:
        def hook(said: dict) -> None:
            seen.setdefault(name, []).append(said["tool_name"])

        hook.__qualname__ = name
        return hook

    async def ask(matcher: str, source: Source) -> str:
        out = tmp_path / "out"
        hooks = on("PreToolUse", command(f"cat > '{out}'"), matcher=matcher, source=source)
        await Session(tmp_path, *hooks).fire(LS)
        said = json.loads(out.read_text()) if out.exists() else {}
        out.unlink(missing_ok=True)
        return said.get("tool_name", "")

    claude, ours = Source("claude"), Source("nbagent", dialect="nbagent")
    assert [await ask(m, claude) for m in ("Bash", "shell", "*", "Bash|shell", "Write")] == [
        "Bash", "shell", "Bash", "Bash", "",
    ]  # fmt: skip
    assert [await ask(m, ours) for m in ("Bash", "shell", "", "^.*$")] == ["Bash", "shell", "shell", "shell"]
    session = Session(tmp_path, python(keep("a"), match="shell"), python(keep("b"), match="Bash"))
    await session.fire(LS)
    assert seen == {"a": ["shell"], "b": ["Bash"]}


async def test_an_updated_input_in_claude_s_words_comes_back_in_ours(tmp_path):
    updated = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {
        "file_path": str(tmp_path / "a.txt"), "content": "safe"}}}  # fmt: skip
    session = Session(tmp_path, *on("PreToolUse", printing(updated), matcher="Write|Edit"))
    verdict = await session.fire(WRITE)
    assert verdict.updated_input == {"path": "a.txt", "content": "safe"}
    assert "changed the input of this call" in session.finished[0].sentence


async def test_an_updated_output_in_the_shape_of_bash_is_a_text_again(tmp_path):
    data = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": {"stdout": "x", "stderr": ""}}}
    session = Session(tmp_path, *on("PostToolUse", printing(data)))
    assert (await session.fire(PostToolUse(tool_name="shell", tool_input={}, tool_response="key"))).updated_output == (
        "x",
    )


async def test_all_matching_hooks_run_side_by_side(tmp_path):
    met = asyncio.Barrier(3)

    def waiting(name: str) -> Hook:
        async def hook(said: dict) -> dict:
            await met.wait()
            return {"systemMessage": name}

        hook.__qualname__ = name
        return python(hook, timeout=5)

    verdict = await Session(tmp_path, *map(waiting, "abc")).fire(LS)
    assert verdict.messages == ("a: a", "b: b", "c: c")


async def test_the_same_handler_of_several_files_runs_once_a_skill_s_copy_apart(tmp_path):
    ticks = tmp_path / "ticks"
    tick = command(f"echo x >> '{ticks}'")
    user, project = on("PreToolUse", tick), on("PreToolUse", tick, matcher="Bash", source=Source("p", "project"))
    session = Session(tmp_path, *user, *project)
    await session.fire(LS)
    assert ticks.read_text() == "x\n"
    session.table.add("skill x", on("PreToolUse", tick, source=Source("skill x", "skill")))
    await session.fire(LS)
    assert ticks.read_text() == "x\n" * 3
    session.table.remove("skill x")
    await session.fire(LS)
    assert ticks.read_text() == "x\n" * 4


async def test_matchers_count_for_the_events_that_have_them_and_for_no_others(tmp_path):
    hooks = [*on("SessionStart", command("echo hi"), matcher="resume"), *on("Stop", command("exit 2"), matcher="never"),
             *on("CellRun", command("echo seen >&2; exit 2"), matcher="run_*")]  # fmt: skip
    session = Session(tmp_path, *hooks)
    assert (await session.fire(SessionStart(source="startup"))).context == ()
    assert (await session.fire(SessionStart(source="resume"))).context == ("hi",)
    assert (await session.fire(Stop(stop_hook_active=False))).block
    assert (await session.fire(CellRun(cell_id="c", cell_type="code", source="", tool_name="run_cell"))).block == (
        "seen",
    )


async def test_if_filters_calls_and_a_hook_with_if_never_runs_at_other_events(tmp_path):
    rule = {"if": "Bash(git *)"}
    hooks = [*on("PreToolUse", command("exit 2", **rule)), *on("UserPromptSubmit", command("exit 2", **rule))]
    session = Session(tmp_path, *hooks)
    assert (await session.fire(LS)).decision == ""
    git = PreToolUse(tool_name="shell", tool_input={"command": "npm test && git push"})
    assert (await session.fire(git)).decision == "deny"
    assert (await session.fire(UserPromptSubmit(prompt="git push"))).block == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (command("exit 1"), "exit code 1"),
        (command("/nowhere/guard.sh"), "exit code 127"),
        (command("/nowhere/guard", args=[]), "can't be started"),
        (command("sleep 60", timeout=0.05), "no answer within 0.05 s"),
        (command('echo \'{"decision": "maybe"}\''), "decision 'maybe'"),
        (command("echo '{'"), "begins like JSON"),
        (command("kill -9 $$"), "exit code -9"),
        ({"type": "http", "url": "http://127.0.0.1:1/"}, "can't be reached"),
        ({"type": "mcp_tool", "server": "s", "tool": "t"}, "no MCP server"),
        ({"type": "prompt", "prompt": "ok?"}, "no model"),
        ({"type": "agent", "prompt": "ok?"}, "no model"),
        ({"type": "command"}, "needs 'command'"),
    ],
)
async def test_a_hook_that_gives_no_answer_is_asked_about_and_says_why(tmp_path, handler, why):
    """Row 113: crash, time limit and nonsense open no gate."""
    session = Session(tmp_path, *on("PreToolUse", handler))
    verdict = await session.fire(LS)
    assert verdict.decision == "ask"
    assert why in verdict.reason
    assert why in verdict.failed[0]
    (ended,) = session.finished
    assert ended.outcome == "failed"
    assert ended.sentence.endswith("It is not taken as a yes.")
    assert (
        await Session(tmp_path, *on("TaskCreated", handler)).fire(TaskCreated(task_id="1", task_subject="s"))
    ).failed


async def test_a_python_hook_that_raises_or_returns_nonsense_is_asked_about(tmp_path):
    """Row 113: a hook with an ImportError."""

    def broken(said: dict) -> None:
        import nothing_like_this  # noqa: F401

    def talking(said: dict) -> Any:
        return "deny"

    async def leaving(said: dict) -> None:
        raise SystemExit(3)

    for function, why in ((broken, "ModuleNotFoundError"), (talking, "not a dict"), (leaving, "SystemExit")):
        verdict = await Session(tmp_path, python(function)).fire(LS)
        assert verdict.decision == "ask"
        assert why in verdict.reason


async def test_a_deny_counts_although_another_hook_failed_and_a_yes_does_not(tmp_path):
    failing, yes = command("exit 1"), printing({"hookSpecificOutput": {"hookEventName": "PreToolUse",
                                                                       "permissionDecision": "allow"}})  # fmt: skip
    assert (await Session(tmp_path, *on("PreToolUse", failing, printing(DENY))).fire(LS)).decision == "deny"
    assert (await Session(tmp_path, *on("PreToolUse", failing, yes)).fire(LS)).decision == "ask"


async def test_on_failure_continue_and_block_are_the_hook_s_own_word(tmp_path):
    going, blocking = command("exit 1", onFailure="continue"), command("exit 1", onFailure="block")
    assert (await Session(tmp_path, *on("PreToolUse", going)).fire(LS)).decision == ""
    assert (await Session(tmp_path, *on("PreToolUse", blocking)).fire(LS)).decision == "deny"


@pytest.mark.slow
async def test_a_time_limit_ends_all_processes_of_a_command(tmp_path):
    pid = tmp_path / "pid"
    script = f"sleep 60 & echo $! > '{pid}.new'; mv '{pid}.new' '{pid}'; wait"
    for seconds in (0.2, 2, 20):  # a busy machine needs longer until the command has a child at all
        session = Session(tmp_path, *on("PreToolUse", command(script, timeout=seconds)))
        assert (await session.fire(LS)).decision == "ask"
        if pid.exists():
            break
    child = int(pid.read_text())
    await until(lambda: not lives(child))


async def test_an_interrupt_in_a_hook_is_the_person_s_and_no_failure(tmp_path):
    def interrupted(said: dict) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        await Session(tmp_path, python(interrupted)).fire(LS)


async def test_cancelling_ends_the_command_and_closes_what_the_person_sees(tmp_path):
    session = Session(tmp_path, *on("PreToolUse", command("sleep 60")))
    task = asyncio.create_task(session.fire(LS))
    await until(lambda: session.news)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(session.finished) == 1


async def test_once_runs_once_and_stays_if_it_failed(tmp_path):
    skill = Source("skill x", "skill")
    session = Session(tmp_path, *on("PreToolUse", command("exit 2", once=True), source=skill))
    assert [(await session.fire(LS)).decision for _ in range(2)] == ["deny", ""]
    failing = Session(tmp_path, *on("PreToolUse", command("exit 1", once=True), source=skill))
    assert [(await failing.fire(LS)).decision for _ in range(2)] == ["ask", "ask"]


async def test_a_hook_whose_files_changed_since_they_were_trusted_does_not_run(tmp_path):
    """Row 110: trust is bound to content."""
    ran = tmp_path / "ran"
    trusted = [True]
    source = Source("p", "project", allowed=lambda *_: trusted[0])
    session = Session(tmp_path, *on("PreToolUse", command(f"touch '{ran}'"), source=source))
    assert await session.fire(LS) == Verdict()
    ran.unlink()
    trusted[0] = False
    assert "has changed since you said yes" in (await session.fire(LS)).reason
    assert not ran.exists()


async def test_async_goes_on_beside_the_run_and_its_words_come_with_the_next_turn(tmp_path):
    go = tmp_path / "go"
    os.mkfifo(go)
    words = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "tests failed"},
             "systemMessage": "slow"}  # fmt: skip
    script = f"cat '{go}' > /dev/null; echo '{json.dumps(words)}'"
    session = Session(tmp_path, *on("PostToolUse", command(script, **{"async": True})))
    post = PostToolUse(tool_name="write_file", tool_input={"path": "a"})
    assert await session.fire(post) == Verdict()
    assert session.table.listens(HookEvent.USER_PROMPT_SUBMIT) is False
    go.write_text("go")
    await until(lambda: session.table.listens(HookEvent.USER_PROMPT_SUBMIT))
    verdict = await session.fire(UserPromptSubmit(prompt="next"))
    assert [text.rpartition(": ")[2] for text in verdict.context] == ["tests failed", "slow"]
    assert (await session.fire(UserPromptSubmit(prompt="next"))).context == ()
    await session.table.close()


async def test_async_rewake_with_exit_code_2_keeps_the_run_going_with_its_stderr(tmp_path):
    session = Session(tmp_path, *on("PostToolUse", command("echo broken >&2; exit 2", asyncRewake=True)))
    assert await session.fire(PostToolUse(tool_name="shell", tool_input={})) == Verdict()
    await until(lambda: session.table.listens(HookEvent.STOP))
    verdict = await session.fire(Stop(stop_hook_active=False))
    assert verdict.context[0].endswith(": broken")


async def test_a_first_line_of_async_true_goes_on_beside_the_run_too_and_decides_nothing_later(tmp_path):
    go = tmp_path / "go"
    os.mkfifo(go)
    words = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                    "additionalContext": "found it"}}  # fmt: skip
    script = f"""echo '{{"async": true}}'; cat '{go}' > /dev/null; echo '{json.dumps(words)}'; exit 2"""
    session = Session(tmp_path, *on("PreToolUse", command(script)))
    assert await session.fire(LS) == Verdict()
    go.write_text("go")
    await until(lambda: session.table.listens(HookEvent.POST_TOOL_USE))
    verdict = await session.fire(PostToolUse(tool_name="shell", tool_input={}))
    assert (verdict.decision, verdict.context[0].rpartition(": ")[2]) == ("", "found it")


async def test_a_text_that_is_too_long_goes_into_a_file_with_a_preview(tmp_path):
    session = Session(tmp_path, *on("UserPromptSubmit", command(f"head -c {WORDS + 5000} /dev/zero | tr '\\0' x")))
    (text,) = (await session.fire(UserPromptSubmit(prompt="p"))).context
    assert len(text) < 3_000
    (kept,) = [path for path in (tmp_path / ".nbagent" / "hooks").iterdir() if path.suffix == ".txt"]
    assert kept.read_text() == "x" * (WORDS + 5000)
    assert text.endswith(f"all of it is in {kept}")


async def test_an_mcp_tool_gets_its_input_filled_and_its_text_counts_like_a_command_s(tmp_path):
    calls: list[tuple] = []

    async def mcp(server: str, tool: str, given: dict) -> str:
        calls.append((server, tool, given))
        return json.dumps(DENY)

    handler = {"type": "mcp_tool", "server": "s", "tool": "scan", "input": {"file": "${tool_input.file_path}", "n": 1}}
    session = Session(tmp_path, *on("PreToolUse", handler, matcher="Write"), mcp=mcp)
    assert (await session.fire(WRITE)).decision == "deny"
    assert calls == [("s", "scan", {"file": str(tmp_path / "a.txt"), "n": 1})]


async def test_prompt_and_agent_hooks_ask_the_model_that_they_are_given(tmp_path):
    asked: list[tuple[str, str, float]] = []

    async def judge(prompt: str, model: str, seconds: float) -> str:
        asked.append((prompt, model, seconds))
        return '{"ok": false, "reason": "not done"}'

    handlers = (
        {"type": "prompt", "prompt": "Is it done? $ARGUMENTS", "model": "haiku"},
        {"type": "agent", "prompt": "look"},
    )
    session = Session(tmp_path, *on("Stop", *handlers), judge=judge, agent=judge)
    verdict = await session.fire(Stop(stop_hook_active=False, last_assistant_message="yes"))
    assert verdict.block == ("not done", "not done")
    assert asked[0][1:] == ("haiku", 30)
    assert '"last_assistant_message": "yes"' in asked[0][0]
    assert asked[1][2] == 60


def test_arguments_are_put_into_a_prompt_or_after_it():
    assert prompted("A $ARGUMENTS B", {"x": 1}) == 'A {"x": 1} B'
    assert prompted("A", {"x": 1}) == 'A\n\n{"x": 1}'
    assert prompted(r"costs \$1.00 \$ARGUMENTS", {}) == "costs $1.00 $ARGUMENTS\n\n{}"
    assert filled({"a": ["${x.y}", "${x}", "${nothing}"]}, {"x": {"y": 2}}) == {"a": ["2", '{"y": 2}', ""]}


async def test_a_subagent_has_the_hooks_of_the_session_and_its_own_while_it_runs(tmp_path):
    session = Session(tmp_path, *on("PreToolUse", command("exit 0")))
    own = on("SubagentStop", command("exit 2"), source=Source("agent a", "agent"))
    within = session.table.within(own)
    assert [hook.event for hook in within.hooks] == ["PreToolUse", "SubagentStop"]
    assert within.listens(HookEvent.SUBAGENT_STOP)
    assert not session.table.listens(HookEvent.SUBAGENT_STOP)


async def test_a_cell_that_registers_a_python_hook_again_replaces_it(tmp_path):
    session = Session(tmp_path)

    def made(answer: str) -> Hook:
        def guard(said: dict) -> dict:
            return {"systemMessage": answer}

        return python(guard, match="shell")

    session.table.register(made("old"))
    session.table.register(made("new"))
    assert (await session.fire(LS)).messages == ("guard: new",)
    assert len(session.table.hooks) == 1


def test_people_see_all_hooks_as_a_list(tmp_path):
    hooks = [*on("PreToolUse", command("a.sh"), matcher="Bash"), *on("Stop", {"type": "nothing"})]
    assert listing(hooks) == [
        {"event": "PreToolUse", "matcher": "Bash", "type": "command", "name": "a.sh", "from": "settings.json",
         "problem": ""},
        {"event": "Stop", "matcher": "*", "type": "broken", "name": "nothing hook of settings.json",
         "from": "settings.json", "problem": "its type 'nothing' is none of command, http, mcp_tool, prompt, agent"},
    ]  # fmt: skip


async def test_the_person_reads_what_came_of_a_hook_once_and_in_one_sentence(tmp_path):
    def words(event: str) -> dict:
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": "run the tests"}}

    async def said(payload: Payload, handler: dict) -> str:
        session = Session(tmp_path, *on(payload.event, {**handler, "command": f"{handler['command']} # x/g.sh"}))
        await session.fire(payload)
        return session.finished[0].sentence

    stop, post = Stop(stop_hook_active=False), PostToolUse(tool_name="shell", tool_input={})
    no = command("echo no >&2; exit 2")
    assert await said(stop, no) == "The hook g.sh (Stop) has the agent go on: no"
    assert await said(stop, printing(words("Stop"))) == "The hook g.sh (Stop) has the agent go on: run the tests"
    assert await said(post, no) == "The hook g.sh (PostToolUse) says to the model: no"
    assert await said(post, printing(words("PostToolUse"))) == ""
    assert (
        await said(TaskCreated(task_id="1", task_subject="s"), no) == "The hook g.sh (TaskCreated) held this back: no"
    )
    assert (
        await said(LS, no) == await said(UserPromptSubmit(prompt="p"), no) == ""
    )  # the call, or the run's end, says it
    assert await said(post, printing({"continue": False})) == "The hook g.sh (PostToolUse) ended the run."
