"""Long work in a shell: what is summed up, what is told anew, and a run that goes on after it was stopped."""

from __future__ import annotations

import json
import time

import pytest

from nbagent.app.answer import RunFailed
from nbagent.app.cell import run_agent_cell
from nbagent.app.compacting import NOTHING, compact
from nbagent.app.continuing import GO_ON, ONLY_LAST, continue_run
from nbagent.app.continuing import NOTHING as NOTHING_LEFT
from nbagent.app.extension import Extension
from nbagent.app.filling import CONTEXT, IMAGES, MCP, PERSON, SYSTEM, TOOLS, Counted, context, parts_of
from nbagent.app.undo_commands import clicked
from nbagent.core.errors import ConfigError
from nbagent.core.messages import image_block, text_block
from nbagent.core.session import NoStore, Session, result_block
from nbagent.extend.hooks_python import hook_of
from nbagent.extend.render import Invocation
from nbagent.headless.memory import MemoryNotebook
from nbagent.jupyter.desk import Click
from nbagent.tools.seen import Seen
from nbagent.view.filling import Part, picture
from tests.core.rig import check_transcript

SCRIPTS = "-m scripted:tests.app.long_scripts"


@pytest.fixture
def extension(shell, at_home, monkeypatch) -> Extension:
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    shell.user_ns["x"] = 1
    made = Extension(shell)
    made.file = MemoryNotebook([{"id": "aaaa", "cell_type": "code", "source": "x = 1"}], path="n.ipynb")
    return made


# ── summing up ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_a_full_conversation_goes_on_in_a_new_session_that_is_told_everything_anew(extension):
    extension.choose(context_window=1_000)
    answer = await run_agent_cell(extension, f"{SCRIPTS}:fills", "find out what x is")
    conversation = extension.last
    assert conversation is not None
    assert "SUMMARY: x is 1" in answer.text
    assert "The open notebook is" in answer.text  # told anew, though it was told before
    assert "find out what x is" in answer.text
    assert answer.session_id == conversation.session.id == conversation.store.path.stem
    check_transcript(conversation.session.transcript)
    about = json.loads(conversation.store.path.read_text().splitlines()[0])
    old = about["compacted_from"]["session"]
    assert about["notebook"] == "n.ipynb"
    last = json.loads((conversation.store.path.parent / f"{old}.jsonl").read_text().splitlines()[-1])
    assert (last["type"], last["into"]) == ("compacted", answer.session_id)
    extension.choose(context_window=1_000_000)
    again = await run_agent_cell(extension, f"{SCRIPTS}:goes_on", "and y?")
    assert again.session_id == answer.session_id


@pytest.mark.slow
async def test_a_cell_that_was_read_before_the_summary_must_be_read_again_before_it_is_edited(extension):
    extension.choose(context_window=1_000)
    await run_agent_cell(extension, f"{SCRIPTS}:fills", "look")
    assert extension.last is not None
    assert extension.last.seen == Seen(cells={}, listing=extension.last.seen.listing)


@pytest.mark.slow
async def test_a_person_may_have_it_summed_up_and_say_what_to_keep(extension):
    assert await compact(extension, "") == NOTHING
    await run_agent_cell(extension, f"{SCRIPTS}:goes_on", "never use pie charts")
    before = extension.last.session
    extension.last.called.append(Invocation("charts", "Label both axes."))
    extension.choose(model="scripted:tests.app.long_scripts:sums_up")
    said = await compact(extension, "keep the units")
    assert said.startswith("The conversation was summed up: ")
    assert "keep the units" in said
    session = extension.last.session
    assert session is not before
    assert session is before.newest
    check_transcript(session.transcript)
    assert "never use pie charts" in str(session.transcript[0])
    assert "Label both axes." in str(session.transcript[0])  # a skill that was called still holds
    assert extension.stop is None
    answer = await run_agent_cell(extension, f"{SCRIPTS}:goes_on", "go")
    assert "The open notebook is" in answer.text
    assert answer.session_id == session.id


@pytest.mark.slow
async def test_where_it_cannot_be_summed_up_the_conversation_is_as_it_was(extension):
    await run_agent_cell(extension, f"{SCRIPTS}:goes_on", "hello")
    before, told = extension.last.session, len(extension.last.session.transcript)
    extension.choose(model="scripted:tests.app.long_scripts:has_nothing")
    with pytest.raises(ConfigError, match="could not be summed up"):
        await compact(extension, "")
    assert extension.last.session is before
    assert len(before.transcript) == told


@pytest.mark.slow
async def test_hooks_of_the_session_hear_of_it_and_stay(extension):
    heard: list[dict] = []
    extension.hooks.register(hook_of(heard.append, "PreCompact"))
    extension.hooks.register(hook_of(heard.append, "PostCompact"))
    extension.choose(context_window=1_000)
    answer = await run_agent_cell(extension, f"{SCRIPTS}:fills", "look")
    assert [(one["hook_event_name"], one["trigger"]) for one in heard] == [
        ("PreCompact", "auto"),
        ("PostCompact", "auto"),
    ]
    assert heard[1]["compact_summary"] == "SUMMARY: x is 1"
    assert extension.hooks.table(answer.session_id) is not None


# ── going on ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_a_run_that_reached_its_limit_says_what_is_left_and_goes_on_with_one_command(extension):
    """Seed: "Always check the final stop_reason and implement a fallback path"."""
    with pytest.raises(RunFailed):  # nobody is here to read why
        await run_agent_cell(extension, f"{SCRIPTS}:stops --max-turns 1 --out kept", "look at all")
    answer = extension.shell.user_ns["kept"]
    assert (answer.stop_reason, answer.text) == ("max_turns", "Done: looked. Left: the rest.")
    extension.choose(model="scripted:tests.app.long_scripts:goes_on")
    extension.unfinished.given.pop("model")  # type: ignore[union-attr]
    assert await continue_run(extension, "") == ""
    last = extension.last.session.transcript
    assert GO_ON in str(last[-2])
    assert "The last run ended before the task was done: Stopped at the limit of 1 turn" in str(last[-2])
    assert extension.last.session.id == answer.session_id
    assert extension.unfinished is None
    assert await continue_run(extension, "") == NOTHING_LEFT


@pytest.mark.slow
async def test_what_is_said_and_given_with_continue_counts_beside_the_options_of_before(extension):
    with pytest.raises(RunFailed):
        await run_agent_cell(extension, f"{SCRIPTS}:stops --max-turns 1 --mode plan", "look at all")
    await continue_run(extension, f"{SCRIPTS}:goes_on --preset lookup only the totals")
    transcript = extension.last.session.transcript
    assert "only the totals" in str(transcript[-2])
    assert extension.last.told_mode == "plan"


@pytest.mark.slow
async def test_the_button_runs_its_cell_and_goes_on_there(extension):
    extension.file = None
    with pytest.raises(RunFailed):
        await run_agent_cell(extension, f"{SCRIPTS}:stops --max-turns 1", "look at all")
    last = extension.unfinished
    said = await clicked(extension, Click("continue", "run-000", "c1", "p"))
    assert said.text == ONLY_LAST
    extension.continued[""] = time.monotonic() + 5  # what a click on the cell's own button leaves
    await run_agent_cell(extension, f"{SCRIPTS}:goes_on", "look at all")
    assert last is not None
    assert GO_ON in str(extension.last.session.transcript[-2])
    assert "look at all" not in str(extension.last.session.transcript[-2])


@pytest.mark.slow
async def test_a_run_goes_on_in_its_own_conversation_though_its_cell_says_to_begin_one(extension):
    """Continue in a cell with --new, and in one with --fork."""
    extension.file = None
    with pytest.raises(RunFailed):
        await run_agent_cell(extension, f"{SCRIPTS}:stops --max-turns 1 --new", "look at all")
    begun = extension.last.session.id
    extension.continued[""] = time.monotonic() + 5
    await run_agent_cell(extension, f"{SCRIPTS}:goes_on --new", "look at all")
    assert extension.last.session.id == begun
    own = len(extension.last.session.transcript)
    for by_button in (True, False):
        with pytest.raises(RunFailed):
            await run_agent_cell(extension, f"{SCRIPTS}:stops --max-turns 1 --fork", "look in a branch")
        branch = extension.last.session.id
        assert branch != begun
        if by_button:
            extension.continued[""] = time.monotonic() + 5
            await run_agent_cell(extension, f"{SCRIPTS}:goes_on --fork", "look in a branch")
        else:
            await continue_run(extension, f"{SCRIPTS}:goes_on")
        assert extension.last.session.id == branch
        assert GO_ON in str(extension.last.session.transcript[-2])
    assert len(extension.conversations[extension.seat].session.transcript) == own


@pytest.mark.slow
@pytest.mark.parametrize("whence", ["--new", "--fork", "--session {}"])
@pytest.mark.parametrize("by", ["the button", "the command"])
async def test_a_run_goes_on_in_its_own_session_wherever_that_came_from(extension, whence, by):
    """`--new` and `--fork` begin something; to go on is not to begin it again, nor to leave the branch."""
    other = await run_agent_cell(extension, f"{SCRIPTS}:goes_on", "hello")
    await run_agent_cell(extension, f"{SCRIPTS}:goes_on --new", "hello again")
    whence = whence.format(other.session_id)
    with pytest.raises(RunFailed):
        await run_agent_cell(extension, f"{SCRIPTS}:stops --max-turns 1 {whence} --out kept", "look at all")
    stopped = extension.shell.user_ns["kept"].session_id
    if by == "the button":
        extension.continued[""] = time.monotonic() + 5
        await run_agent_cell(extension, f"{SCRIPTS}:goes_on {whence} --out kept", "look at all")
    else:
        await continue_run(extension, f"{SCRIPTS}:goes_on")
    answer = extension.shell.user_ns["kept"]
    assert answer.stop_reason == "end_turn"
    assert answer.session_id == stopped


# ── what fills the window ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_context_shows_what_fills_the_window_as_a_picture_and_as_text(extension, monkeypatch):
    assert "first %%agent cell" in await context(extension, "")
    await run_agent_cell(extension, f"{SCRIPTS}:goes_on", "hello")
    extension.choose(model="scripted:tests.app.long_scripts:goes_on", context_window=20_000)
    shown: list[dict] = []
    monkeypatch.setattr(extension.shell.display_pub, "publish", lambda data, metadata: shown.append(data))
    assert await context(extension, "") == ""
    (bundle,) = shown
    for text in bundle.values():
        assert all(name in text for name in (SYSTEM, TOOLS, CONTEXT, PERSON, "Free", "≈", "estimated"))
        assert "of 20.0k tokens" in text
    assert 'role="img"' in bundle["text/html"]
    assert "<script" not in bundle["text/html"]


async def test_what_the_server_counts_is_taken_and_the_messages_are_scaled_to_it():
    session = Session("s", system="x" * 360, tools=({"name": "look"}, {"name": "mcp__a__b"}), store=NoStore())
    session.transcript.ask([text_block("<context>\nthe notebook\n</context>"), text_block("hello")])
    session.transcript.reply([{"type": "tool_use", "id": "t", "name": "look", "input": {}}])
    image = image_block("image/png", "A" * 10_000)
    session.transcript.answer({"t": result_block("t", [text_block("seen"), image])})
    parts = {part.name: part for part in parts_of(session, Counted(90, 7, 5, 4_000))}
    assert [(parts[name].tokens, parts[name].counted) for name in (SYSTEM, TOOLS, MCP)] == [
        (90, True),
        (7, True),
        (5, True),
    ]
    rest = [part for name, part in parts.items() if name not in {SYSTEM, TOOLS, MCP}]
    assert abs(sum(part.tokens for part in rest) - 4_000) < 5
    assert max(rest, key=lambda part: part.tokens).name == IMAGES  # by its pixels, not by its base64


@pytest.mark.parametrize("window", [None, 1_000, 1_000_000])
@pytest.mark.parametrize("sizes", [(), (0, 0), (1, 999_999), (10_000,) * 9])
def test_a_picture_is_drawn_of_whatever_there_is(window, sizes):
    parts = [Part(f"<b>{n}</b>", size) for n, size in enumerate(sizes)]
    bundle = picture(parts, window, note="n", model="m")
    assert "<b>0</b>" not in bundle["text/html"]
    assert len(bundle["text/plain"].splitlines()[1]) == 52
