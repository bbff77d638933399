"""Outputs reach the page in order, folded, bounded and a few times a second; what was lost on the way is sent again."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import NotebookError
from nbagent.jupyter.bridge import Bridge
from nbagent.jupyter.mirror import OUTPUT_LIMIT, TAIL_LIMIT, TEXT_LIMIT, Mirror
from nbagent.jupyter.notebook import LiveNotebook, PageSink
from tests.bridge.pages import Page, Pages, document


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def display(text, display_id=None, **more):
    given_id = {} if display_id is None else {"_display_id": display_id}
    return {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}, **given_id, **more}


def texts(outputs):
    return [o.get("text") or o["data"]["text/plain"] for o in outputs]


class Still:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


async def connected(page, **options):
    bridge = Bridge(Pages(page, **options))
    hello = await bridge.hello()
    return bridge, LiveNotebook(bridge, hello)


PIECES = st.one_of(
    st.builds(stream, st.text(alphabet="ab😀\n\r\x08", max_size=12), st.sampled_from(["stdout", "stderr"])),
    st.builds(display, st.sampled_from("xyz"), st.sampled_from([None, "d1", "d2"])),
    st.builds(display, st.sampled_from("xyz"), st.sampled_from(["d1", "d2"]), _update=st.just(True)),
    st.builds(lambda wait: {"output_type": "clear_output", "wait": wait}, st.booleans()),
)


@pytest.mark.slow
@given(st.lists(st.one_of(PIECES, st.sampled_from(["patch", "resend"])), max_size=40))
def test_patches_give_the_page_what_the_kernel_has(steps):
    mirror, page = Mirror(), document("x", current=None)
    run = {"cell": "cell-0", "run": "r"}
    page.perform({"op": "begin", **run})
    seq = 0
    for step in [*steps, "patch"]:
        if step == "resend":
            mirror.resend()
        elif step != "patch":
            mirror.take(step)
        elif (patch := mirror.patch()) is not None:
            page.perform({"op": "outputs", **run, "seq": seq, "patch": patch})
            seq += 1
    assert not page.perform({"op": "end", **run, "seq": seq, "count": len(mirror), "number": 1})["gap"]
    assert [dict(o) for o in page.cells[0].outputs] == list(mirror.outputs)


@pytest.mark.slow
@given(st.lists(st.text(alphabet="ab\n\r\x08", max_size=6), max_size=20))
def test_a_stream_in_pieces_is_folded_as_if_it_came_at_once(pieces):
    whole, parts = Mirror(), Mirror()
    whole.take(stream("".join(pieces)))
    for piece in pieces:
        parts.take(stream(piece))
        parts.patch()
    assert parts.outputs == whole.outputs


@pytest.mark.parametrize(("text", "shown"), [("10%\r20%\r100%\n", "100%\n"), ("long\rab", "abng"), ("a\r\nb", "a\nb"),
                                             ("abc\x08\x08x", "ax"), ("\x1b[31mred\x1b[0m\rok", "ok"), ("50%\r", "50%")])  # fmt: skip
def test_a_stream_shows_what_a_terminal_would(text, shown):
    mirror = Mirror()
    mirror.take(stream(text))
    assert texts(mirror.outputs) == [shown]


def test_fifty_megabytes_keep_head_and_tail_and_say_what_is_gone():
    mirror = Mirror()
    mirror.take(stream("head\n"))
    for _ in range(50):
        mirror.take(stream("x" * 1_000_000))
    mirror.take(stream("the tail"))
    mirror.close()
    (text,) = texts(mirror.outputs)
    assert text.startswith("head\nxxx") and text.endswith("xxxthe tail")
    assert len(text) < TEXT_LIMIT + TAIL_LIMIT + 100
    assert f"[… {50_000_013 - TEXT_LIMIT - TAIL_LIMIT:,} characters left out …]" in text


@pytest.mark.slow
def test_a_progress_bar_that_redraws_for_hours_is_not_cut():
    """Row 66: in the cell too."""
    mirror = Mirror()
    for n in range(30_000):
        mirror.take(stream(f"\r{n:100d}"))
    mirror.close()
    assert texts(mirror.outputs) == [f"{29_999:100d}"]


def test_too_many_outputs_are_counted_not_kept():
    mirror = Mirror()
    for n in range(OUTPUT_LIMIT + 5):
        mirror.take(display(str(n)))
    mirror.close()
    assert len(mirror) == OUTPUT_LIMIT + 1
    assert texts(mirror.outputs)[-1] == "[… 5 more outputs left out …]\n"


async def test_outputs_flow_while_synchronous_code_blocks_the_loop():
    page = Page("p", document("x", "y"))
    _bridge, live = await connected(page)
    sink = await live.begin_run("cell-1")
    arrived = threading.Event()
    page.document._shown = lambda _cell, output: "second" in output.get("text", "") and arrived.set()
    sink.emit(stream("first\n"))
    sink.emit(stream("second\n"))
    assert arrived.wait(5), "nothing came until the code ended"  # the loop is blocked here, as by the person's code
    await sink.end(3)
    assert page.document.cells[1].execution_count == 3


async def test_a_burst_is_one_message_not_thousands():
    page, clock = Page("p", document("x", "y")), Still()
    bridge, _live = await connected(page)
    await bridge.call("begin", cell="cell-1", run="r")
    sink = PageSink(bridge, "cell-1", "r", clock=clock)
    sink.emit(stream("0\n"))
    for n in range(1, 5_000):
        sink.emit(stream(f"{n}\n"))
    outputs = await sink.end(1)
    assert page.ops("begin", "end").count("outputs") <= 3
    assert texts(outputs) == ["".join(f"{n}\n" for n in range(5_000))]
    assert texts(page.document.cells[1].outputs) == texts(outputs)


async def test_outputs_from_many_threads_arrive_whole():
    page = Page("p", document("x", "y"))
    _bridge, live = await connected(page)
    sink = await live.begin_run("cell-1")
    threads = [
        threading.Thread(target=lambda n=n: [sink.emit(stream(f"{n}-{i}\n")) for i in range(50)]) for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    await sink.end(1)
    lines = "".join(texts(page.document.cells[1].outputs)).splitlines()
    assert sorted(lines) == sorted(f"{n}-{i}" for n in range(4) for i in range(50))
    for n in range(4):
        assert [line for line in lines if line.startswith(f"{n}-")] == [f"{n}-{i}" for i in range(50)]


@pytest.mark.parametrize("lost", [{0}, {1}, {2}, {0, 2}], ids=str)
async def test_a_lost_piece_is_made_good_at_the_latest_at_the_end(lost):
    page, clock = Page("p", document("x", "y")), Still()
    bridge, _live = await connected(page)
    await bridge.call("begin", cell="cell-1", run="r")
    page.lose = set(lost)
    sink = PageSink(bridge, "cell-1", "r", clock=clock)
    for text in ("one\n", "two\n", "three\n"):
        sink.emit(stream(text))
        clock.now += 1
    outputs = await sink.end(1)
    assert texts(outputs) == texts(page.document.cells[1].outputs) == ["one\ntwo\nthree\n"]


async def test_outputs_that_never_arrive_are_no_success_and_the_cell_is_idle_all_the_same():
    page = Page("p", document("x", "y"))
    _bridge, live = await connected(page)
    sink = await live.begin_run("cell-1")
    page.lose = set(range(100))
    sink.emit(stream("one\n"))
    with pytest.raises(NotebookError, match="what cell cell-1 shows is not all that it printed"):
        await sink.end(5)
    last = page.heard[-1]
    assert (last["op"], last["last"]) == ("end", True)
    assert page.document.cells[1].execution_count == 5, "it does not look as if it ran for ever"


async def test_a_page_that_asks_gets_all_outputs_again_while_the_code_runs():
    page, clock = Page("p", document("x", "y")), Still()
    channel = Pages(page, thread=True)
    bridge = Bridge(channel)
    await bridge.hello()
    await bridge.call("begin", cell="cell-1", run="r")
    page.lose = {0}
    sink = PageSink(bridge, "cell-1", "r", clock=clock)
    sink.emit(stream("one\n"))
    clock.now += 1
    channel.say({"v": 1, "op": "resend", "page": "p", "run": "r", "cell": "cell-1"})
    assert texts(page.document.cells[1].outputs) == ["one\n"]


async def test_a_cell_deleted_while_it_ran_ends_with_its_outputs():
    page = Page("p", document("x", "y"))
    _bridge, live = await connected(page)
    sink = await live.begin_run("cell-1")
    sink.emit(stream("done\n"))
    del page.document.cells[1]
    assert texts(await sink.end(1)) == ["done\n"]


async def test_an_output_that_json_can_not_carry_never_reaches_the_code_that_printed():
    class Broken(Pages):
        def send(self, content):
            if content["op"] == "outputs" and "bad" in str(content):
                raise ValueError("not JSON")
            super().send(content)

    page = Page("p", document("x", "y"))
    bridge = Bridge(Broken(page))
    await bridge.hello()
    await bridge.call("begin", cell="cell-1", run="r")
    PageSink(bridge, "cell-1", "r", clock=Still()).emit(stream("bad"))


async def test_the_record_goes_on_the_running_cell_with_its_number():
    page = Page("p", document("x"))
    _bridge, live = await connected(page)
    await live.set_record([display("the record")], 4)
    assert texts(page.document.cells[0].outputs) == ["the record"]
    assert page.document.cells[0].execution_count == 4
