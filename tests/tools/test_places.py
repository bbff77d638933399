"""Where cells go: at an anchor that is there, in the order in which they were asked for, whatever the person does meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.messages import plain_text
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import notebook as cell_tools
from tests.tools.calling import Calling
from tests.tools.desk import Desk, EchoKernel


@pytest.fixture
def desk():
    return Desk()


def said(result):
    return plain_text(list(result.content))


async def add(desk, source, **where):
    return (await desk.call("add_cell", source=source, run=False, **where)).cells[0]


INVENTED = ["import pandas", "3", "In[9]", "0", "MINE", "load ", "", "x" * 300, "intro\nload"]


@pytest.mark.slow
@settings(max_examples=60 * settings.default.max_examples // 100)
@given(
    st.sampled_from(["read_cell", "edit_cell", "delete_cell", "run_cell", "move_cell", "after", "before"]),
    st.one_of(st.sampled_from(INVENTED), st.text(max_size=20)),
)
async def test_an_id_that_is_not_there_changes_nothing_and_gets_the_real_ones(name, cell_id):
    desk = Desk()
    if cell_id.strip() in {"intro", "load", "mine", "end"} or (name in {"after", "before"} and not cell_id):
        return
    await desk.call("read_notebook")
    before = [dict(cell) for cell in desk.notebook.cells_]
    arguments = {"edit_cell": {"source": "new"}, "move_cell": {"after": "end"}}.get(name, {})
    with pytest.raises(ToolError) as refused:
        if name in {"after", "before"}:
            await desk.call("add_cell", source="x", **{name: cell_id})
        else:
            await desk.call(name, cell=cell_id, **arguments)
    assert desk.notebook.cells_ == before
    assert desk.kernel.ran == []
    assert "load" in str(refused.value)


@pytest.mark.parametrize("where", ["after", "before"])
async def test_a_number_is_never_taken_for_an_anchor(desk, where):
    with pytest.raises(ToolError, match="'load'"):
        await desk.call("add_cell", source="x", **{where: "In[3]"})


async def test_without_an_anchor_no_cell_ever_lands_at_the_top():
    call = Calling(
        cell_tools.tools(MemoryNotebook([dict(c) for c in Desk().notebook.cells_]), EchoKernel(), timeout=None)
    )
    notebook = call.tools["read_notebook"]
    for name in "ab":
        await call("add_cell", source=name, run=False)
    text = await call.text("read_notebook")
    assert notebook.name == "read_notebook"
    assert text.index("df\n") < text.index("   a") < text.index("   b")


# ── the person types, moves and deletes meanwhile ────────────────────────────────────────────────────────────────────


async def test_inserts_at_one_anchor_keep_their_order_with_the_persons_cells_in_between(desk):
    await add(desk, "a1", after="intro")
    desk.user_insert(1, "p1", "person above")
    desk.user_insert(3, "p2", "person below")
    await add(desk, "a2", after="intro")
    await add(desk, "a3", after="intro")
    assert desk.sources()[:7] == ["# Penguins", "person above", "a1", "a2", "a3", "person below", "df = load()"]


async def test_a_cell_that_was_moved_away_does_not_lead_the_next_one_elsewhere(desk):
    first = await add(desk, "a1", after="intro")
    moved = desk.raw(first)
    desk.notebook.cells_.remove(moved)
    desk.notebook.cells_.append(moved)
    await add(desk, "a2", after="intro")
    assert desk.sources()[:2] == ["# Penguins", "a2"]
    await desk.call("move_cell", cell=desk.notebook.cells_[1]["id"], after="end")
    await add(desk, "a3", after="intro")
    assert desk.sources()[:2] == ["# Penguins", "a3"]


async def test_in_the_next_run_a_cell_goes_right_below_the_anchor_again(desk):
    await add(desk, "a1", after="intro")
    desk.begin("run-2")
    await add(desk, "b1", after="intro")
    assert desk.sources()[:3] == ["# Penguins", "b1", "a1"]


async def test_when_the_anchor_was_deleted_meanwhile_the_cell_lands_beside_where_it_was_and_that_is_said(desk):
    await desk.call("read_notebook")
    desk.user_delete("load")
    result = await desk.call("add_cell", source="a", after="load", run=False)
    assert desk.sources()[:3] == ["# Penguins", "a", "%%agent\ngo"]
    assert "after intro" in said(result)
    assert "cell load is not there any more" in said(result)
    desk.user_delete("end")
    result = await desk.call("add_cell", source="b", before="end", run=False)
    assert "cell end is not there any more" in said(result)
    assert desk.sources()[-2:] == ["%%agent\ngo", "b"]


async def test_when_the_first_cell_was_the_anchor_and_is_gone_the_cell_goes_before_what_followed_it(desk):
    await desk.call("read_notebook")
    desk.user_delete("intro")
    await desk.call("add_cell", source="a", after="intro", run=False)
    assert desk.sources()[:2] == ["a", "df = load()"]


async def test_when_the_last_added_cells_are_gone_the_next_goes_below_the_one_before_them(desk):
    ids = [await add(desk, name) for name in "abc"]
    desk.user_delete(ids[2])
    desk.user_delete(ids[1])
    result = await desk.call("add_cell", source="d", run=False)
    assert desk.sources()[2:5] == ["%%agent\ngo", "a", "d"]
    assert f"after {ids[0]}" in said(result)


async def test_when_the_agents_own_cell_is_gone_too_the_cell_goes_to_the_end(desk):
    desk.user_delete("mine")
    result = await desk.call("add_cell", source="a", run=False)
    assert desk.sources()[-1] == "a"
    assert "cell mine is not there any more" in said(result)


async def test_an_anchor_that_the_model_never_saw_is_not_replaced_by_another(desk):
    with pytest.raises(NotebookError, match="there is no cell 'ghost'"):
        await desk.call("add_cell", source="a", after="ghost", run=False)


class Unwilling(MemoryNotebook):
    """A notebook that refuses inserts."""

    async def insert(self, anchor, cell_type, source, *, metadata=None, cell_id=None):
        raise NotebookError("the page is read-only")


async def test_an_insert_that_is_refused_for_another_reason_is_not_tried_elsewhere():
    notebook = Unwilling([{"id": "a", "cell_type": "code", "metadata": {}, "source": "x"}], own_cell="a")
    call = Calling(cell_tools.tools(notebook, EchoKernel(), timeout=None))
    with pytest.raises(NotebookError, match="read-only"):
        await call("add_cell", source="y")


class Counting(MemoryNotebook):
    """Counts how often all cells are listed."""

    listed = 0

    async def cells(self):
        self.listed += 1
        return await super().cells()


async def test_adding_many_cells_never_lists_the_notebook():
    raws = [{"id": f"c{n}", "cell_type": "code", "metadata": {}, "source": f"x{n}"} for n in range(50)]
    notebook = Counting(raws, own_cell="c10")
    call = Calling(cell_tools.tools(notebook, EchoKernel(), timeout=None))
    for number in range(20):
        added = (await call("add_cell", source=f"y{number}")).cells[0]
        await call("edit_cell", cell=added, source=f"z{number}", run=True)
        await call("run_cell", cell=added)
    assert notebook.listed == 0
    assert [cell["source"] for cell in notebook.cells_[11:31]] == [f"z{n}" for n in range(20)]


# ── anything in any order ────────────────────────────────────────────────────────────────────────────────────────────

ORIGINAL = {"intro", "load", "mine", "end"}
STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 9)),
    st.tuples(st.just("add after"), st.integers(0, 9)),
    st.tuples(st.just("add before"), st.integers(0, 9)),
    st.tuples(st.sampled_from(["person adds", "person deletes", "person moves", "person edits"]), st.integers(0, 9)),
)


@pytest.mark.slow
@settings(max_examples=80 * settings.default.max_examples // 100)
@given(st.lists(STEPS, max_size=14))
async def test_no_cell_is_lost_or_lands_where_nobody_asked_whatever_the_person_does_meanwhile(steps):
    desk = Desk()
    untidy = False  # the person took cells away: what stood below an anchor may stand anywhere
    for number, (step, at) in enumerate(steps):
        cells = desk.notebook.cells_
        ids = [cell["id"] for cell in cells]
        place = at % len(cells)
        before = list(ids)
        if step == "add":
            result = await desk.call("add_cell", source=f"a{number}", run=False)
        elif step == "person adds":
            desk.user_insert(place, f"p{number}", f"person {number}")
            continue
        elif step == "person deletes":
            untidy = True
            if len(cells) > 1:
                desk.user_delete(ids[place])
            continue
        elif step == "person moves":
            untidy = True
            cells.append(cells.pop(place))
            continue
        elif step == "person edits":
            desk.user_edit(ids[place], f"edited {number}")
            continue
        else:
            where = step.split()[1]
            result = await desk.call("add_cell", source=f"a{number}", run=False, **{where: ids[place]})
        new = result.cells[0]
        now = [cell["id"] for cell in desk.notebook.cells_]
        assert [cell_id for cell_id in now if cell_id != new] == before
        assert desk.raw(new)["source"] == f"a{number}"
        if step == "add before":
            assert now.index(new) == now.index(ids[place]) - 1
        elif step == "add after":
            assert now.index(new) > now.index(ids[place])
            between = now[now.index(ids[place]) + 1 : now.index(new)]
            assert untidy or not ORIGINAL & set(between)  # only what was put there since
        above, below = now[: now.index(new)][-1:], now[now.index(new) + 1 :][:1]
        beside = [f"after {cell_id}" for cell_id in above] + [f"before {cell_id}" for cell_id in below]
        assert any(place in said(result) for place in beside)
