"""A notebook file is changed where it was edited and nowhere else, whatever it looks like and whatever is in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbagent.core.errors import NotebookError
from nbagent.core.ports import Anchor, source_hash
from nbagent.headless.file import FileNotebook
from nbagent.tools import ipynb
from tests.conformance.notebook_kit import stream

# ── any notebook ─────────────────────────────────────────────────────────────────────────────────────────────────────

TEXTS = st.text(alphabet=st.sampled_from('abz 019é€😀"\\/\n\t\r<>{}[]:,\u2028\x85'), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**18) | st.sampled_from([0.1, 1e100, -0.0, 12345.678]) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
SOURCES = TEXTS | st.lists(TEXTS, max_size=3)
OUTPUTS = st.fixed_dictionaries(
    {
        "output_type": st.just("display_data"),
        "metadata": st.just({}),
        "data": st.dictionaries(TEXTS, VALUES, max_size=2),
    }
) | st.fixed_dictionaries({"output_type": st.just("stream"), "name": st.just("stdout"), "text": SOURCES})


@st.composite
def cells(draw):
    kind = draw(st.sampled_from(["code", "markdown", "raw", "sql"]))
    cell = {"cell_type": kind, "source": draw(SOURCES)}
    if draw(st.booleans()):
        cell["metadata"] = draw(st.dictionaries(TEXTS, VALUES, max_size=3))
    if draw(st.booleans()):
        cell["id"] = draw(st.sampled_from(["a", "b", "c-1", "not usable!", ""]))
    if kind == "code":
        cell |= {"outputs": draw(st.lists(OUTPUTS, max_size=2)), "execution_count": draw(st.none() | st.integers(1, 9))}
    if kind == "markdown" and draw(st.booleans()):
        cell["attachments"] = {"i.png": {"image/png": "AAAA"}}
    if draw(st.booleans()):
        cell["unknown"] = draw(VALUES)
    return dict(draw(st.permutations(list(cell.items()))))


@st.composite
def files(draw):
    """The text of a notebook as some program may have written it."""
    whole = {
        "cells": draw(st.lists(cells(), max_size=4)),
        "metadata": draw(st.dictionaries(TEXTS, VALUES, max_size=3)),
        "nbformat": 4,
        "nbformat_minor": draw(st.integers(0, 7)),
    }
    if draw(st.booleans()):
        whole["extra"] = draw(VALUES)
    whole = dict(draw(st.permutations(list(whole.items()))))
    style = draw(
        st.sampled_from(
            [
                {"indent": 1},
                {"indent": 4},
                {"indent": "\t"},
                {},
                {"separators": (",", ":")},
                {"separators": (" , ", " : ")},
            ]
        )
    )
    text = json.dumps(whole, ensure_ascii=draw(st.booleans()), **style) + draw(st.sampled_from(["", "\n", "\n\n "]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def taken(text):
    return ipynb.read(text.encode("utf-8", "surrogatepass"), "n")


def as_they_are(notebook):
    return [(cell, {**cell.raw, "source": ipynb.normal(cell.raw["source"])}) for cell in notebook.cells]


@pytest.mark.slow
@given(files())
def test_a_file_in_which_nothing_is_edited_keeps_every_byte(text):
    notebook = taken(text)
    assert ipynb.written(notebook, as_they_are(notebook)) == text


@pytest.mark.slow
@given(files(), st.integers(0, 3), TEXTS)
def test_an_edit_changes_the_source_of_its_cell_and_no_other_byte(text, place, source):
    notebook = taken(text)
    if place >= len(notebook.cells):
        return
    source = source.replace("\r", "")
    now = as_they_are(notebook)
    now[place] = (now[place][0], {**now[place][1], "source": source})
    changed = ipynb.written(notebook, now)
    start, end = notebook.spans[place]
    assert changed[:start] == text[:start]
    assert changed.endswith(text[end:])
    again = taken(changed)
    cell = again.cells[place].raw
    assert ipynb.normal(cell["source"]) == source
    assert list(cell) == list(notebook.cells[place].raw)
    if ipynb.normal(notebook.cells[place].raw["source"]) != source:
        assert type(cell["source"]) is type(notebook.cells[place].raw["source"])
    assert {k: v for k, v in cell.items() if k != "source"} == {
        k: v for k, v in notebook.cells[place].raw.items() if k != "source"
    }


@pytest.mark.slow
@given(files(), st.integers(0, 4), TEXTS)
def test_a_new_cell_leaves_every_other_as_it_was(text, place, source):
    notebook = taken(text)
    place = min(place, len(notebook.cells))
    new = {
        "id": "new1",
        "cell_type": "code",
        "metadata": {},
        "source": source.replace("\r", ""),
        "outputs": [],
        "execution_count": None,
    }
    now = as_they_are(notebook)
    now.insert(place, (None, new))
    again = taken(ipynb.written(notebook, now))
    made = again.cells[place]
    assert ipynb.normal(made.raw["source"]) == new["source"]
    assert ("id" in made.raw) == (notebook.minor >= 5)
    others = [cell.text for n, cell in enumerate(again.cells) if n != place]
    assert others == [cell.text for cell in notebook.cells]
    assert {**again.raw, "cells": None} == {**notebook.raw, "cells": None}
    assert again.text[: again.start] == text[: notebook.start]
    assert again.text[again.end :] == text[notebook.end :]


@pytest.mark.slow
@given(files(), st.data())
def test_cells_that_move_and_go_leave_the_others_as_they_were(text, data):
    notebook = taken(text)
    order = data.draw(st.permutations(range(len(notebook.cells))))[: data.draw(st.integers(0, len(notebook.cells)))]
    now = as_they_are(notebook)
    again = taken(ipynb.written(notebook, [now[n] for n in order]))
    assert [cell.text for cell in again.cells] == [notebook.cells[n].text for n in order]
    assert {**again.raw, "cells": None} == {**notebook.raw, "cells": None}


@pytest.mark.slow
@given(files(), st.integers(0, 3), st.dictionaries(TEXTS, VALUES, min_size=1, max_size=2), st.booleans())
def test_metadata_changes_key_by_key(text, place, change, take_away):
    notebook = taken(text)
    if place >= len(notebook.cells):
        return
    old = notebook.cells[place].raw.get("metadata", {})
    new = {**old, **change}
    if take_away and old:
        new.pop(next(iter(old)))
    now = as_they_are(notebook)
    now[place] = (now[place][0], {**now[place][1], "metadata": new})
    again = taken(ipynb.written(notebook, now))
    cell = again.cells[place].raw
    assert cell.get("metadata", {}) == new
    assert {k: v for k, v in cell.items() if k != "metadata"} == {
        k: v for k, v in notebook.cells[place].raw.items() if k != "metadata"
    }
    others = [c.text for n, c in enumerate(again.cells) if n != place]
    assert others == [c.text for n, c in enumerate(notebook.cells) if n != place]


@pytest.mark.slow
@given(files())
def test_any_file_with_a_byte_changed_is_read_or_refused_in_one_sentence(text):
    data = text.encode("utf-8", "surrogatepass")
    for broken in (data[:-3], b"[" + data, data.replace(b'"cells"', b'"cell"'), data.replace(b"4", b"3")):
        try:
            ipynb.read(broken, "n.ipynb")
        except NotebookError as error:
            assert str(error).startswith("n.ipynb")
            assert "\n" not in str(error)


# ── the file itself ──────────────────────────────────────────────────────────────────────────────────────────────────


def raw_notebook(*sources, minor=5):
    made = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
        for source in sources
    ]
    if minor >= 5:
        made = [{**cell, "id": f"c{n}"} for n, cell in enumerate(made)]
    return {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "n.ipynb"
    file.write_text(json.dumps(raw_notebook("a = 1", "b = 2", "a = 1"), indent=1))
    return file


def opened(path):
    return FileNotebook(path, who_has_open=lambda _: None)


async def test_mode_and_link_stay(path, tmp_path):
    path.chmod(0o640)
    link = tmp_path / "link.ipynb"
    link.symlink_to("n.ipynb")
    notebook = opened(link)
    await notebook.edit("c0", "a = 2", source_hash("a = 1"))
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert json.loads(path.read_text())["cells"][0]["source"] == "a = 2"
    assert sorted(p.name for p in tmp_path.iterdir()) == [".nbagent", "link.ipynb", "n.ipynb"]


async def test_a_file_that_is_read_only_is_left_so(path):
    before = path.read_bytes()
    path.chmod(0o444)
    with pytest.raises(NotebookError, match="read-only"):
        await opened(path).edit("c0", "a = 2", source_hash("a = 1"))
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o444


@pytest.mark.slow
async def test_what_was_there_first_is_kept_and_backups_do_not_pile_up(path):
    first = path.read_bytes()
    notebook = opened(path)
    cell = await notebook.read("c0")
    for n in range(30):
        cell = await notebook.edit("c0", f"a = {n}", cell.hash)
    backups = list((path.parent / ".nbagent" / "backups").iterdir())
    assert [backup.read_bytes() for backup in backups] == [first]
    for n in range(30):  # somebody else writes in between, each time
        path.write_text(json.dumps(raw_notebook(f"theirs {n}"), indent=1))
        cell = await notebook.read("c0")
        await notebook.edit("c0", f"ours {n}", cell.hash)
    assert len(list((path.parent / ".nbagent" / "backups").iterdir())) <= 21
    assert (path.parent / ".nbagent" / ".gitignore").read_text() == "*\n"


async def test_made_up_ids_stay_with_their_cells_and_are_never_written(tmp_path):
    file = tmp_path / "n.ipynb"
    file.write_text(json.dumps(raw_notebook("a = 1", "b = 2", "a = 1", minor=4)))
    notebook = opened(file)
    ids = [cell.id for cell in await notebook.cells()]
    assert len(set(ids)) == 3
    assert [cell.id for cell in await opened(file).cells()] == ids  # the same next time
    new = await notebook.insert(Anchor(ids[0], "before"), "markdown", "# top")
    await notebook.edit(ids[2], "c = 3", source_hash("a = 1"))
    theirs = json.loads(file.read_text())
    theirs["cells"][2]["source"] = "b = 22"
    file.write_text(json.dumps(theirs))
    assert [cell.id for cell in await notebook.cells()] == [new.id, *ids]
    assert [cell.source for cell in await notebook.cells()] == ["# top", "a = 1", "b = 22", "c = 3"]
    assert '"id"' not in file.read_text()


async def test_of_two_cells_with_one_id_the_right_one_is_edited(tmp_path):
    file = tmp_path / "n.ipynb"
    raw = raw_notebook("first", "second")
    raw["cells"][1]["id"] = "c0"
    file.write_text(json.dumps(raw))
    notebook = opened(file)
    one, two = await notebook.cells()
    assert one.id == "c0" != two.id
    await notebook.edit(two.id, "changed", two.hash)
    raw["cells"][1]["source"] = "changed"
    assert json.loads(file.read_text()) == raw


async def test_a_run_is_in_the_file_when_it_ends_and_not_before(path):
    notebook = opened(path)
    sink = await notebook.begin_run("c1")
    before = path.read_bytes()
    sink.emit(stream("one\ntwo\n"))
    assert path.read_bytes() == before
    await sink.end(4)
    cell = json.loads(path.read_text())["cells"][1]
    assert (cell["execution_count"], cell["outputs"][0]["text"]) == (4, "one\ntwo\n")


async def test_outputs_that_the_file_did_not_take_are_told(path):
    notebook = opened(path)
    sink = await notebook.begin_run("c1")
    sink.emit(stream("lost\n"))
    path.unlink()
    with pytest.raises(NotebookError, match="no notebook"):
        await sink.end(4)


async def test_edits_side_by_side_wait_for_one_another(path):
    import asyncio

    notebook = opened(path)
    await asyncio.gather(*(notebook.insert(Anchor("c0"), "code", f"x{n}") for n in range(8)))
    assert len(json.loads(path.read_text())["cells"]) == 11
    assert len(await notebook.cells()) == 11


async def test_what_would_be_no_valid_notebook_is_not_written(path):
    before = path.read_bytes()
    with pytest.raises(NotebookError, match="no valid notebook"):
        await opened(path).insert(Anchor("c0"), "code", "x", cell_id="two words")
    assert path.read_bytes() == before


async def test_a_notebook_that_was_not_quite_valid_before_can_be_edited(tmp_path):
    file = tmp_path / "n.ipynb"
    raw = raw_notebook("a")
    raw["cells"].append({"cell_type": "sql", "source": ["select 1"], "metadata": {}, "id": "s", "engine": 7})
    file.write_text(json.dumps(raw, indent=2))
    notebook = opened(file)
    await notebook.edit("c0", "b", source_hash("a"))
    await notebook.edit("s", "select 2", source_hash("select 1"))
    raw["cells"][0]["source"], raw["cells"][1]["source"] = "b", ["select 2"]
    assert json.loads(file.read_text()) == raw


@pytest.mark.slow
@given(files(), st.integers(0, 3), TEXTS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_any_file_is_edited_through_the_port_or_left_as_it_is(tmp_path, text, place, source):
    file = tmp_path / "any.ipynb"
    file.write_bytes(text.encode())
    notebook = opened(file)
    known = await notebook.cells()
    if place >= len(known):
        return
    source = source.replace("\r", "")
    try:
        edited = await notebook.edit(known[place].id, source, known[place].hash)
    except NotebookError as error:  # it would have become invalid where it was not
        assert "no valid notebook" in str(error)
        assert file.read_bytes() == text.encode()
        return
    assert edited.source == source
    before, after = json.loads(text), json.loads(file.read_bytes())
    before["cells"][place].pop("source")
    assert ipynb.normal(after["cells"][place].pop("source")) == source
    assert after == before
    assert [cell.id for cell in await notebook.cells()] == [cell.id for cell in known]
