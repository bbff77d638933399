"""The code cells above an agent's cell: what differs from then, in words, with and without a document."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.app.above import Here, changes_above, changes_of_texts, here, shown_above, untold
from nbagent.app.replay import RunKey
from nbagent.core.policy import Mode
from nbagent.headless.memory import MemoryNotebook

THEN = ("%load_ext nbagent", "df = load()", "n = 1")


def at(*above: str, cell: str = "a", ids: frozenset[str] | None = frozenset({"a", "made"})) -> Here:
    return Here(cell, above, tuple(f"In[{n}]" for n, _ in enumerate(above, 1)), ids)


@pytest.mark.parametrize(
    ("above", "said"),
    [
        (THEN, []),
        (("%load_ext nbagent", "df = load()", "n = 2"), ["In[3] above was edited"]),
        (("%load_ext nbagent", "new", "df = load()", "n = 1"), ["In[2] above is new"]),
        (("%load_ext nbagent", "n = 1"), ["a cell above is gone: df = load()"]),
        (("%load_ext nbagent", "x", "y", "n = 1"), ["In[2] above was edited", "In[3] above is new"]),
        ((), [f"a cell above is gone: {source}" for source in THEN]),
    ],
)
def test_what_differs_in_the_document_is_said_cell_by_cell(above, said):
    assert changes_above(THEN, at(*above)) == said


@pytest.mark.parametrize(
    ("ran", "ok"),
    [
        (THEN, True),
        (("import os", *THEN, "more"), True),
        (("n = 1", *THEN), True),
        (("%load_ext nbagent", "n = 1", "df = load()"), False),
        (THEN[:2], False),
    ],
)
def test_without_a_document_every_cell_must_have_been_run_in_that_order(ran, ok):
    assert (changes_above(THEN, at(*ran, ids=None)) == []) is ok


def test_a_cell_is_known_by_its_id_and_without_one_by_the_agents_cells_above_it():
    asked = "%%agent\nfirst"
    assert at(cell="a").is_cell("a", THEN) and not at(cell="a").is_cell("b", ())
    assert at(asked, "x", cell="").is_cell("b", ("y", asked))
    assert not at(asked, cell="").is_cell("b", ("y",))


def test_cells_that_a_run_made_are_missed_where_the_document_is_known():
    assert at().missing(["made", "gone"]) == ["gone"]
    assert at(ids=None).missing(["gone"]) == []


def cells(*sources: str) -> list[dict]:
    return [{"id": f"c{n}", "cell_type": "markdown" if source.startswith("#") else "code", "source": source,
             "metadata": {}, "outputs": [], "execution_count": None} for n, source in enumerate(sources)]  # fmt: skip


async def test_only_code_cells_above_the_own_cell_count():
    notebook = MemoryNotebook(
        cells("%load_ext nbagent\n", "# title", "  ", "x = 1", "%%agent\nhi", "below"), own_cell="c4"
    )
    shell = SimpleNamespace(kernel=object())
    found = await here(shell, notebook)
    assert found is not None and found.cell == "c4"
    assert found.above == ("%load_ext nbagent", "x = 1") and found.labels == ("code cell 1", "code cell 2")


async def shown(*outputs: dict) -> tuple[str, ...]:
    listed = cells("x = load()", "%%agent\nbefore", "%%agent\nhi")
    listed[0]["outputs"] = list(outputs)
    listed[1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": f"a record {len(outputs)}"}]
    notebook = MemoryNotebook(listed, own_cell="c2")
    now = await here(SimpleNamespace(kernel=object()), notebook)
    assert now is not None
    return await shown_above(notebook, now)


def printed(text) -> dict:
    return {"output_type": "stream", "name": "stdout", "text": text}


async def test_what_the_cells_above_show_is_compared_for_the_model_was_told_it():
    """An answer read from an output must not pass for current when that output has changed."""
    then, now = await shown(printed("total 10")), await shown(printed("total 300"))
    place = Here("a", ("x = load()", "%%agent\nbefore"), ("In[1]", "In[2]"), frozenset({"a"}))
    assert changes_above(place.above, place, then, now) == ["the output of In[1] above changed"]
    assert changes_above(place.above, place, then, then) == changes_above(place.above, place, (), now) == []
    failed = await shown({"output_type": "error", "ename": "E", "evalue": "no such file", "traceback": []})
    assert changes_above(place.above, place, then, failed) == ["the output of In[1] above changed"]


async def test_addresses_images_and_the_shape_of_a_text_make_no_difference():
    image = {
        "output_type": "display_data",
        "data": {"image/png": "AAAA", "text/plain": "<Figure at 0x7f00aa11bb22>"},
        "metadata": {},
    }
    other = {
        "output_type": "display_data",
        "data": {"image/png": "BBBB", "text/plain": ["<Figure at 0x7f11cc22dd33>"]},
        "metadata": {},
    }
    assert await shown(image) == await shown(other)


# ── text cells ───────────────────────────────────────────────────────────────────────────────────────────────────────

RULES = ("# Sales", "VAT is 19 %", "EU only")


def with_texts(*texts: str) -> Here:
    return replace(at(*THEN), texts=texts, text_ids=tuple(f"t{n}" for n, _ in enumerate(texts)))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (RULES, []),
        (("# Sales", "VAT is 7 %", "EU only"), ["a text cell above was edited: VAT is 19 %"]),
        (("# Sales", "VAT is 19 %"), ["a text cell above is gone: EU only"]),
        ((*RULES, "no\nreturns"), ["a text cell above is new: no"]),
        (
            ("# Sales", "x", "y", "EU only"),
            ["a text cell above was edited: VAT is 19 %", "a text cell above is new: y"],
        ),
    ],
)
def test_text_cells_above_are_compared_for_the_model_was_shown_them(texts, said):
    assert changes_of_texts(RULES, (), with_texts(*texts)) == said


def test_a_text_cell_that_the_model_was_not_shown_may_change():
    """Of a long notebook the model is told head and tail; a new text cell would be told to it."""
    now = with_texts("# Sales", "VAT is 7 %")
    assert changes_of_texts(RULES, RULES[1:], now) == []
    assert changes_of_texts(RULES, RULES[1:], with_texts(*RULES, "new")) == ["a text cell above is new: new"]
    assert changes_of_texts(RULES, RULES[2:], now) == ["a text cell above was edited: VAT is 19 %"]


_TEXTS = st.lists(st.sampled_from(["# a", "b", "c\nd", "e"]), max_size=6).map(tuple)


@pytest.mark.slow
@given(_TEXTS, _TEXTS)
def test_something_is_said_exactly_where_the_texts_differ(then, now):
    assert (changes_of_texts(then, (), with_texts(*now)) == []) is (then == now)
    gone = [source for source in then if source not in now]
    assert len(changes_of_texts(then, gone, with_texts(*now))) <= len(changes_of_texts(then, (), with_texts(*now)))


def test_the_model_was_shown_what_a_message_to_it_names():
    now = with_texts(*RULES)
    told = {"role": "user", "content": [{"type": "text", "text": "Cell t0 (markdown):\n# Sales"}]}
    read = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "t2: EU"}]}],
    }
    asked = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c", "name": "read_cell", "input": {"cell": "t1"}}],
    }
    assert untold(now, [told, asked, read]) == ("VAT is 19 %",)
    assert untold(now, []) == RULES


async def test_the_text_cells_above_are_those_that_say_something():
    notebook = MemoryNotebook(cells("# title ", "#", "x = 1", "%%agent\nhi", "# below"), own_cell="c3")
    notebook.cells_[1]["source"] = "  \n"
    found = await here(SimpleNamespace(kernel=object()), notebook)
    assert found is not None and (found.texts, found.text_ids) == (("# title",), ("c0",))


async def test_in_a_terminal_there_is_no_cell_to_run_again():
    assert await here(SimpleNamespace(kernel=None), None) is None


def test_the_text_of_a_cell_is_its_prompt_and_what_changes_the_answer():
    def key(prompt: str = "p", mode: Mode = Mode.DEFAULT, **options: object) -> str:
        return RunKey.of(prompt, options, mode).text

    assert key() == key(out="x", again=True, stale="show", timeout=3.0, max_turns=5, budget=1.0)
    assert key() == key(mode=Mode.BYPASS)
    assert len({key(), key("q"), key(model="opus"), key(new=True), key(mode=Mode.PLAN)}) == 5
    assert RunKey.of("p", {"again": True}, Mode.DEFAULT).again
