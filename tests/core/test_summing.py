"""Conversations that get too long: summed up in time, whole, and with nothing lost that must not be."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nbagent.core.errors import ContextFull, Rejected, Transient
from nbagent.core.events import Compacted, Noted, Reason, RetryScheduled
from nbagent.core.hooks import NoHooks, Verdict
from nbagent.core.limits import Limits
from nbagent.core.messages import Usage, text_block
from nbagent.core.payloads import HookEvent, PostCompact, PreCompact, SessionStart
from nbagent.core.session import NoStore, Session
from nbagent.core.summary import Compaction, asked_for, digest, fitting
from nbagent.models.scripted import ScriptedModel, Turn, call, say
from tests.core.rig import Ran, Rig, check_transcript, play

FULL = ContextFull("The conversation no longer fits.")


class Kept:
    """What becomes of a conversation: the sessions that it moved to, and what is told anew."""

    def __init__(self, window: int | None = 1_000, standing: str = "the notebook as it is") -> None:
        self.moved: list[Session] = []
        self._standing = standing
        self.compaction = Compaction(window=lambda _: window, standing=self._told, moved=self.moved.append)

    async def _told(self, _: Session) -> Sequence[dict]:
        return [text_block(f"<context>\n{self._standing}\n</context>")]


def filled(text: str, tokens: int, *more) -> Turn:
    return Turn([say(text), *more], usage=Usage(input=tokens))


async def go(*turns, kept: Kept | None = None, **fields) -> Ran:
    kept = kept or Kept()
    ran = await play(*turns, compaction=kept.compaction, **fields)
    check_transcript(ran.session.newest.transcript)
    return ran


async def test_before_the_window_is_full_the_conversation_is_summed_up_and_the_run_goes_on_in_a_new_session():
    kept = Kept()
    ran = await go(filled("I look", 850, call("look", what="a")), "Task: do it. Left: b.", "done", kept=kept)
    assert ran.end.reason == Reason.END_TURN
    (event,) = ran.of(Compacted)
    assert event.summary == "Task: do it. Left: b."
    assert event.trigger == "auto"
    assert event.before > 850 > event.after
    (heir,) = kept.moved
    assert ran.session.newest is heir
    assert (heir.system, heir.tools) == (ran.session.system, ran.session.tools)
    assert heir.id == event.session_id == "s1-sum1"
    first = heir.store.records[0]  # type: ignore[attr-defined]
    assert first["compacted_from"] == {"session": "s1", "messages": 3}
    assert heir.usage == ran.end.usage


async def test_the_message_that_goes_on_has_the_summary_what_stands_and_the_persons_own_words():
    ran = await go(filled("I look", 850, call("look", what="a")), "the summary", "done")
    text = "\n".join(block["text"] for block in ran.session.newest.transcript[0]["content"])
    assert "<summary>\nthe summary" in text
    assert "the notebook as it is" in text
    assert '"do it"' in text
    assert text.index("the summary") < text.index("notebook as it is") < text.index('"do it"') < text.index("Go on")


async def test_no_call_is_parted_from_its_result_and_the_old_transcript_is_as_it_was():
    """Row 123: pairs are atomic; the first message is the person's."""
    ran = await go(filled("I look", 850, call("look", what="a"), call("fail")), "summary", "done")
    assert [m["role"] for m in ran.session.transcript] == ["user", "assistant", "user"]
    assert [m["role"] for m in ran.session.newest.transcript] == ["user", "assistant"]
    assert ran.rig.ran == ["look a"]


async def test_calls_in_the_reply_that_should_be_a_summary_are_not_run():
    ran = await go(filled("I look", 850, call("look", what="a")), [say("sum"), call("look", what="b")], "done")
    assert ran.rig.ran == ["look a"]
    assert ran.of(Compacted)[0].summary == "sum"


async def test_what_a_call_has_just_returned_counts_before_the_server_has_seen_it():
    """Row 122: the last result of very many tokens was not counted."""
    rig = Rig()
    ran = await go(filled("I look", 100, call("look", what="x" * 4_000)), "summary", "done", rig=rig)
    assert ran.of(Compacted)
    assert ran.end.reason == Reason.END_TURN


async def test_where_the_server_says_that_it_is_full_it_is_summed_up_and_asked_again():
    """Row 17: the stop reason model_context_window_exceeded, and the refusal of a request that is too long."""
    ran = await go([call("look", what="a")], FULL, "summary", "done", kept=Kept(window=None))
    assert ran.end.reason == Reason.END_TURN
    cut = Turn([say("half"), call("look", what="b")], stop_reason="model_context_window_exceeded")
    ran = await go([call("look", what="a")], cut, "summary", "done", kept=Kept(window=None))
    assert ran.end.reason == Reason.END_TURN
    assert ran.rig.ran == ["look a"]
    assert ran.of(Compacted)


@pytest.mark.slow
async def test_a_conversation_that_is_too_long_to_be_summed_up_is_summed_up_from_a_cut_text_of_it():
    """Row 122: the summary request itself is too long."""
    asked = []

    def short(messages):
        asked.append(messages)
        return "from the text"

    long = [call("look", what="y" * 400_000)]
    ran = await go(long, FULL, FULL, FULL, short, "done", kept=Kept(window=None))
    assert ran.of(Compacted)[0].summary == "from the text"
    (only,) = asked[0]
    assert "Agent calls look" in only["content"][0]["text"]
    assert "Person: do it" in only["content"][0]["text"]
    assert len(only["content"][0]["text"]) < 62_000


@pytest.mark.slow
async def test_where_no_summary_can_be_had_a_full_conversation_ends_in_one_sentence_and_stays_valid():
    ran = await go([call("look", what="a")], FULL, Rejected("no"), kept=Kept(window=None))
    assert ran.end.reason == Reason.CONTEXT_FULL
    assert ran.end.sentence == (
        "The conversation no longer fits. It could not be summed up: no Start a new session with %%agent --new."
    )
    assert ran.session.newest is ran.session


async def test_where_no_summary_can_be_had_and_there_is_room_the_run_goes_on_and_does_not_try_again():
    turn = filled("I look", 850, call("count"))
    ran = await go(turn, Rejected("no"), turn, "done", rules=["allow count"])
    assert ran.end.reason == Reason.END_TURN
    assert [e.text for e in ran.of(Noted) if "could not be summed up" in e.text] == [
        "It could not be summed up: no The run goes on as long as there is room."
    ]


async def test_a_conversation_that_is_full_again_at_once_each_time_ends():
    turn = filled("I look", 5_000, call("count"))
    ran = await go(*[turn, "summary"] * 4, rules=["allow count"])
    assert ran.end.reason == Reason.CONTEXT_FULL
    assert "full again each time" in ran.end.sentence
    assert len(ran.of(Compacted)) == 3


async def test_a_summary_is_asked_for_again_where_the_server_is_busy_and_its_tokens_count():
    ran = await go(filled("I look", 850, call("look", what="a")), Transient("busy"), filled("sum", 900), "done")
    assert ran.of(RetryScheduled)
    assert ran.end.usage.input == 1_750


async def test_the_budget_counts_what_summaries_take():
    limits = Limits(tokens=1_000, longest_wait=0.0)
    ran = await go(
        filled("I look", 850, call("look", what="a")), filled("sum", 900), "done", [call("count")], limits=limits
    )
    assert ran.end.usage.total >= 1_750


# ── hooks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_hooks_hear_of_it_before_and_after_and_may_add_to_the_beginning():
    listening = {event: Verdict() for event in (HookEvent.PRE_COMPACT, HookEvent.POST_COMPACT)}
    hooks = NoHooks({**listening, HookEvent.SESSION_START: Verdict(context=("remember the units",))})
    ran = await go(filled("I look", 850, call("look", what="a")), "sum", "done", hooks=hooks)
    assert [e for e in hooks.fired if not isinstance(e, SessionStart)] == [
        PreCompact(trigger="auto"), PostCompact(trigger="auto", compact_summary="sum"),
    ]  # fmt: skip
    assert [e.source for e in hooks.fired if isinstance(e, SessionStart)] == ["compact"]
    assert "remember the units" in str(ran.session.newest.transcript[0])


async def test_a_hook_may_hold_it_back_and_is_asked_once_while_there_is_room():
    hooks = NoHooks({HookEvent.PRE_COMPACT: Verdict(block=("not now",))})
    turn = filled("I look", 850, call("count"))
    ran = await go(turn, turn, "done", rules=["allow count"], hooks=hooks)
    assert ran.end.reason == Reason.END_TURN
    assert len(hooks.fired) == 1
    assert not ran.of(Compacted)
    assert any("not now" in e.text for e in ran.of(Noted))
    ran = await go([call("look", what="a")], FULL, hooks=hooks, kept=Kept(window=None))
    assert "A hook kept it from being summed up" in ran.end.sentence


# ── by the API ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Api(ScriptedModel):
    """A model that sums up by itself, as the API does."""

    compacts = True


BLOCK = {"type": "compaction", "content": "by the API", "signature": "c2ln"}


async def test_the_api_sums_up_where_it_can_and_its_block_is_kept_as_it_came():
    model = Api([filled("I look", 850, call("look", what="a")), Turn([BLOCK], stop_reason="compaction"), "done"])
    ran = await go(model=model)
    messages = ran.session.newest.transcript
    assert messages[0] == {"role": "assistant", "content": [BLOCK]}
    assert messages[1]["role"] == "user"
    assert ran.of(Compacted)[0].summary == "by the API"
    assert ran.end.reason == Reason.END_TURN


async def test_where_the_api_does_not_the_model_is_asked():
    model = Api([filled("I look", 850, call("look", what="a")), Rejected("unknown field"), "by the model", "done"])
    ran = await go(model=model)
    assert ran.of(Compacted)[0].summary == "by the model"
    empty = {"type": "compaction", "content": None}
    model = Api(
        [filled("I", 850, call("look", what="a")), Turn([empty], stop_reason="compaction"), "by the model", "done"]
    )
    ran = await go(model=model)
    assert ran.of(Compacted)[0].summary == "by the model"


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_persons_words_outlive_every_summary():
    kept = Kept(window=10_000)
    turn = filled("I look", 9_000, call("count"))
    ran = await go(turn, "sum 1", turn, turn, turn, "sum 2", turn, "done", kept=kept, rules=["allow count"])
    assert len(ran.of(Compacted)) >= 2
    assert asked_for(ran.session.newest.transcript) == ["do it"]


def test_of_the_persons_words_the_newest_is_whole_and_the_first_is_always_there():
    words = ["never delete anything", *["x" * 3_000] * 40, "y" * 5_000]
    kept = fitting(words, 20_000)
    assert kept[0] == "never delete anything"
    assert kept[-1] == "y" * 5_000
    assert sum(map(len, kept)) < 23_000


@pytest.mark.parametrize("room", [500, 5_000, 50_000])
def test_a_digest_keeps_the_beginning_and_the_end_and_its_size(room):
    messages = [{"role": "user", "content": [text_block(f"message {n} {'z' * 300}")]} for n in range(1_000)]
    text = digest(messages, room)
    assert len(text) < room * 1.2
    assert "message 999" in text
    assert "entries left out" in text


def test_what_a_mask_tells_once_it_tells_again_in_the_session_that_goes_on() -> None:
    """The model reads placeholders there, too, and has nothing left of what it was told of them."""

    def masking():
        told: list[bool] = []

        def mask(value):
            if told or not isinstance(value, dict):
                return value
            told.append(True)
            return {**value, "content": [text_block("what a placeholder is"), *value["content"]]}

        return mask

    session = Session("s", system="", tools=(), store=NoStore())
    session.use(masking)
    for one in (session, session.successor()):
        one.transcript.ask([text_block("first")])
        one.transcript.ask([text_block("second")])
        assert [len(message["content"]) for message in one.transcript] == [2, 1]


def test_a_prompt_that_looks_like_kept_words_is_a_prompt() -> None:
    prompt = "<asked>\nnot JSON"
    assert asked_for([{"role": "user", "content": [text_block(prompt)]}]) == [prompt]
