"""Two branches side by side: what differs stands out, nothing of others is alive, and each form tells the same."""

from __future__ import annotations

from html.parser import HTMLParser

from nbagent.core.events import (
    CallEnded,
    CallStarted,
    Reason,
    ReplyEnded,
    RunEnded,
    RunStarted,
    State,
    Status,
    TextDelta,
)
from nbagent.core.messages import Usage, text_block
from nbagent.view.compare import Side, compared
from nbagent.view.fold import ViewModel, fold_all


def run(answer: str, *, model: str = "small", calls: int = 1, cost: float = 0.02) -> ViewModel:
    at = {"state": State.ACT, "turn": 1, "at": 1.0}
    events = [
        RunStarted(**at, run_id="r", session_id="s", model=model, mode="default", prompt="How <many>?", max_turns=5)
    ]
    for number in range(calls):
        call = {"call_id": f"c{number}", "name": "list_variables"}
        events += [
            CallStarted(**at, **call, input={}, title="list variables", preview={}),
            CallEnded(**at, **call, status=Status.OK, content=(text_block("x"),), seconds=0.1, cells=("cell",)),
        ]
    events += [
        TextDelta(**at, index=0, text=answer),
        ReplyEnded(**at, content=(text_block(answer),), stop_reason="end_turn", usage=Usage(output=9), cost=cost),
        RunEnded(**at, reason=Reason.END_TURN, sentence="Done.", next_step="", text=answer, turns=2,
                 usage=Usage(output=9), cost=cost, cells=("cell",)),
    ]  # fmt: skip
    return fold_all(events)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def both() -> dict[str, str]:
    one = Side("20261129-235801-1f9c", "careful", ("list_variables",), (run("It is **42**."),))
    other = Side(
        "20261129-235802-aaaa", "", (), (run("<script>alert(1)</script> 43 | maybe", model="large", calls=0, cost=0.5),)
    )
    return compared(one, other, "Remember <b>", 2)


def test_each_form_tells_answers_models_tools_calls_turns_cost_and_cells():
    for kind, text in both().items():
        for part in (
            "42",
            "43",
            "small",
            "large",
            "Turns",
            "Calls",
            "Cells changed",
            "Cost",
            "0.50 USD",
            "after 2 prompts",
            "careful",
        ):
            assert part in text, (kind, part)


def test_its_html_is_static_escaped_and_stands_in_columns_that_wrap():
    html = both()["text/html"]
    tags = Tags()
    tags.feed(html)
    names = {tag for tag, _ in tags.found}
    assert not names & {"script", "style", "iframe", "link", "img", "input", "button"}
    assert {"table", "th", "section", "details", "summary"} <= names, (
        "rows have heads, and what folds opens by keyboard"
    )
    styles = [attrs.get("style") or "" for _, attrs in tags.found]
    assert any("flex-wrap:wrap" in style for style in styles) and not any(
        "color:#" in style.replace("border", "") for style in styles
    )
    assert all(attrs.get("aria-label") for tag, attrs in tags.found if tag == "section")
    assert "<b>large</b>" in html and "<b>2</b>" not in html, "what differs stands out"


def test_a_table_in_markdown_is_not_broken_by_what_stands_in_it():
    side = Side("a|b", "x_y", ("t|u",), ())
    lines = compared(side, side, "", 0)["text/markdown"].splitlines()
    assert {line.replace("\\|", "").count("|") for line in lines if line.startswith("|")} == {4}


def test_the_markdown_form_loads_nothing_and_runs_nothing_of_an_answer():
    bad = "![x](http://evil/p.png) <img src=http://evil/q> [a](javascript:alert(1)) \u202e end"
    said = compared(Side("a", "", (), (run(bad),)), Side("b", "", (), (run("ok"),)), "", 1)["text/markdown"]
    for alive in ("![", "<img", "](javascript", "\u202e"):
        assert alive not in said
    assert "end" in said
