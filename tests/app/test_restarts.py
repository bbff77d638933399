"""What a new kernel is told to be without: the names, the cells that made them in order, and the offer to rebuild."""

from __future__ import annotations

from types import SimpleNamespace

from nbagent.app.restarts import RESTARTED, gone_with
from nbagent.core.messages import text_block
from nbagent.core.ports import Cell
from nbagent.headless.memory import MemoryNotebook


def shell(*history: str, **names: object) -> SimpleNamespace:
    return SimpleNamespace(history_manager=SimpleNamespace(input_hist_raw=["", *history]), user_ns=names)


def cells() -> list[Cell]:
    return [
        Cell("a", "code", "import pandas as pd\ndf = pd.DataFrame()", 0, 3),
        Cell("b", "code", "total = 1\n_private = 2", 1, 1),
        Cell("c", "code", "print('nothing')", 2, 4),
        Cell("d", "code", "never = 'ran'", 3, None),
    ]


class Cells(MemoryNotebook):
    """A notebook with just these cells, as a page tells of them."""

    async def cells(self) -> list[Cell]:
        return cells()


CODE = {"type": "tool_use", "id": "t1", "name": "run_python", "input": {"code": "scratch = 1\ntotal = 2"}}
FAILED = {"type": "tool_use", "id": "t2", "name": "run_python", "input": {"code": "broken = 1 / 0"}}
EARLIER = [
    {"role": "user", "content": [text_block("go")]},
    {"role": "assistant", "content": [CODE, FAILED]},
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [text_block("ok")]},
            {"type": "tool_result", "tool_use_id": "t2", "content": [text_block("no")], "is_error": True},
        ],
    },
]


async def test_each_name_that_is_gone_is_told_with_what_made_it_in_the_order_in_which_that_ran():
    gone = await gone_with(Cells(path="n.ipynb"), shell(), EARLIER)
    assert gone.told.startswith(RESTARTED)
    lines = [line for line in gone.told.splitlines() if line.startswith("- ")]
    assert lines == [
        "- In[1] (cell b): total",
        "- In[3] (cell a): df, pd",
        "- run_python in this conversation (no cell holds its code): scratch",
    ]
    assert "offer to rebuild them" in gone.told and "broken" not in gone.told and "never" not in gone.told
    assert gone.said.startswith("The kernel was restarted since these were made: total, df, pd, scratch.")


async def test_what_was_made_anew_is_not_gone_and_where_nothing_is_gone_nothing_is_said():
    there = shell(df=1, pd=2, total=3, scratch=4)
    gone = await gone_with(Cells(path="n.ipynb"), there, EARLIER)
    assert gone.names == () and gone.said == "" and "offer" not in gone.told
    ran = shell(*(cell.source for cell in cells()), "more", df=1, pd=2, total=3)
    assert (await gone_with(Cells(path="n.ipynb"), ran)).told == ""
    assert (await gone_with(None, shell(), EARLIER)).names == ("scratch", "total")
