"""A realistic run as events: thinking, a table, an error and its repair, an image, a diff, a question, a retry, a denial."""

from __future__ import annotations

import base64
import io
from typing import Any

from nbagent.core import events as ev
from nbagent.core.events import Event, Reason, State, Status
from nbagent.core.messages import Usage, image_block, text_block
from nbagent.core.ports import Approval, Preview
from nbagent.view.asking import call_html, effects_html, preview_box

CODE = """import matplotlib.pyplot as plt

# One point a bird, one colour a species
fig, ax = plt.subplots(figsize=(6, 4))
for name, part in clean.groupby("species"):
    ax.scatter(part["bill_length_mm"], part["bill_depth_mm"], label=name, s=14)
ax.set(xlabel="bill length (mm)", ylabel="bill depth (mm)")
ax.legend()"""
WRONG = 'clean = penguins.dropna(subset=["bill_len"])\nclean.shape'
RIGHT = 'clean = penguins.dropna(subset=["bill_length_mm", "bill_depth_mm"])\nclean.shape'
TRACE = "KeyError                                  Traceback (most recent call last)\n----> 1 clean = penguins.dropna(subset=[\"bill_len\"])\n\nKeyError: ['bill_len']"
ANSWER = """**Adelie and Chinstrap differ most in bill length**; Gentoo stands apart by its shallow bill.

| species | birds | length (mm) | depth (mm) |
|---|---:|---:|---:|
| Adelie | 151 | 38.8 | 18.3 |
| Chinstrap | 68 | 48.8 | 18.4 |
| Gentoo | 123 | 47.5 | 15.0 |

I dropped 2 rows without measurements. The plot is in the cell above; `clean` is yours to use:

```python
clean.groupby("species")[["bill_length_mm", "bill_depth_mm"]].mean()
```
"""


def plot() -> str:
    """Return a small PNG in base64."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (420, 240), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((40, 10, 410, 210), outline="black")
    for n in range(150):
        for shift, colour in enumerate(("#1f77b4", "#ff7f0e", "#2ca02c")):
            x, y = 60 + shift * 100 + n * 37 % 110, 30 + shift * 40 + n * 53 % 80
            draw.ellipse((x, y, x + 4, y + 4), fill=colour)
    out = io.BytesIO()
    image.save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


class Script:
    """Collects events with a running clock."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.turn, self.at, self.state = 0, 0.0, State.THINK

    def add(self, kind: type[Event], seconds: float = 0.1, /, **fields: Any) -> None:
        self.at = round(self.at + seconds, 3)
        self.events.append(kind(state=self.state, turn=self.turn, at=self.at, **fields))

    def think(self) -> None:
        self.turn, self.state = self.turn + 1, State.THINK
        self.add(ev.RequestSent, model="claude-sonnet-5", new=(), prefix="abc")
        self.add(ev.ReplyStarted, 0.6, model="claude-sonnet-5")

    def stream(self, index: int, text: str, kind: type[Event] = ev.TextDelta, size: int = 12) -> None:
        self.add(ev.BlockStarted, index=index, kind="text" if kind is ev.TextDelta else "thinking")
        for i in range(0, len(text), size):
            self.add(kind, 0.03, index=index, text=text[i : i + size])

    def writes(self, index: int, call_id: str, name: str, given: dict[str, Any]) -> None:
        self.add(ev.BlockStarted, index=index, kind="tool_use", name=name, call_id=call_id)
        raw = repr(given)
        for i in range(0, len(raw), 20):
            self.add(ev.InputDelta, 0.02, index=index, text=raw[i : i + 20])

    def replied(self, calls: dict[str, dict[str, Any]] | None = None) -> None:
        content = tuple({"type": "tool_use", "id": i, "name": "x", "input": g} for i, g in (calls or {}).items())
        self.add(ev.ReplyEnded, content=content, stop_reason="tool_use" if calls else "end_turn",
                 usage=Usage(1200, 340, 0, 5200), cost=0.0121)  # fmt: skip

    def asks(self, call_id: str, tool: str, title: str, given: dict[str, Any], preview: Preview,
             offers: tuple[str, ...]) -> None:  # fmt: skip
        self.state = State.ACT
        self.add(ev.CallDecided, call_id=call_id, name=tool, input=given, action="ask", rule="mode default")
        approval = Approval(
            call_id, tool, title, given, preview, "This runs code in your kernel.", offers, "penguins.ipynb"
        )
        self.add(ev.ApprovalAsked, call_id=call_id, approval=approval.to_json())

    def answered(self, call_id: str, *, approved: bool = True, words: str = "", rule: str = "") -> None:
        self.add(ev.ApprovalAnswered, 2.0, call_id=call_id, approved=approved, words=words, rule=rule, by="person")

    def runs(self, call_id: str, tool: str, title: str, given: dict[str, Any], preview: Preview = Preview()) -> None:  # noqa: B008
        self.state = State.ACT
        self.add(ev.CallStarted, call_id=call_id, name=tool, input=given, title=title, preview=preview.to_json())

    def ends(self, call_id: str, tool: str, *content: Any, status: Status = Status.OK, summary: str = "",
             seconds: float = 0.8, cells: tuple[str, ...] = ()) -> None:  # fmt: skip
        self.add(ev.CallEnded, seconds, call_id=call_id, name=tool, status=status, content=content, seconds=seconds,
                 summary=summary, cells=cells)  # fmt: skip


def penguins() -> list[Event]:
    """Return the whole run, from its start to its end."""
    s = Script()
    s.add(ev.RunStarted, run_id="run-1", session_id="ses-1", model="claude-sonnet-5", mode="default", max_turns=25,
          prompt="Which penguin species differ most in bill shape? Clean the data first, show me one plot.",
          notebook="penguins.ipynb")  # fmt: skip
    s.think()
    s.stream(
        0,
        "The person wants a comparison of bill shape.\nFirst look at what is there, then clean, then plot.",
        ev.ThinkingDelta,
    )
    s.stream(1, "I look at your variables first.")
    s.writes(2, "c1", "list_variables", {})
    s.replied({"c1": {}})
    s.runs("c1", "list_variables", "list_variables", {})
    s.ends("c1", "list_variables", text_block("penguins  DataFrame  344 rows × 8 columns\nyear      int        2026"),
           summary="2 variables", seconds=0.01)  # fmt: skip
    s.add(ev.ResultsAppended, call_ids=("c1",))
    s.think()
    s.stream(0, "Now the rows without mea")
    s.add(ev.ReplyDiscarded, why="the stream was cut in the middle")
    s.add(ev.RetryScheduled, attempt=2, limit=4, wait=1.5, why="the server is overloaded")
    s.add(ev.ReplyStarted, model="claude-sonnet-5")
    s.stream(0, "Now the rows without measurements go away.")
    given = {"source": WRONG, "position": "after", "run": True}
    s.writes(1, "c2", "add_cell", given)
    s.replied({"c2": given})
    preview = Preview("code", WRONG)
    s.asks("c2", "add_cell", "add_cell below this cell, and run it", given, preview, ("add_cell", "run_cell"))
    s.answered("c2", rule="add_cell")
    s.runs("c2", "add_cell", "add_cell below this cell, and run it", given, preview)
    s.ends("c2", "add_cell", text_block(TRACE), status=Status.ERROR, summary="KeyError: ['bill_len']", cells=("x1",))
    s.think()
    s.stream(0, "The column is called `bill_length_mm`; I repair the cell.")
    given = {"cell": "In [4]", "source": RIGHT, "run": True}
    s.replied({"c3": given})
    preview = Preview("diff", RIGHT, WRONG)
    s.asks("c3", "edit_cell", "edit_cell In [4], and run it", given, preview, ("edit_cell",))
    s.answered("c3")
    s.runs("c3", "edit_cell", "edit_cell In [4], and run it", given, preview)
    s.add(ev.CallProgress, call_id="c3", text="running for 1 s")
    s.ends("c3", "edit_cell", text_block("In [4]\n(342, 8)"), summary="(342, 8)", cells=("x1",))
    s.think()
    given = {"source": CODE, "position": "after", "run": True}
    s.replied({"c4": given, "c5": {"command": "pip install seaborn"}})
    s.asks("c4", "add_cell", "add_cell below In [4], and run it", given, Preview("code", CODE), ("add_cell",))
    s.answered("c4")
    s.runs("c4", "add_cell", "add_cell below In [4], and run it", given, Preview("code", CODE))
    s.ends("c4", "add_cell", text_block("In [5]"), image_block("image/png", plot()), summary="1 image", seconds=1.4,
           cells=("x2",))  # fmt: skip
    given = {"command": "pip install seaborn"}
    s.asks(
        "c5", "shell", "shell pip install seaborn", given, Preview("command", "pip install seaborn"), ("shell(pip *)",)
    )
    s.answered("c5", approved=False, words="no installs, please: matplotlib is enough")
    s.ends("c5", "shell", text_block("The person denied this call and says: no installs, please"), status=Status.DENIED,
           seconds=0.0)  # fmt: skip
    s.add(ev.QuestionAsked, question_id="q1", text="Shall I keep the cleaned table?", choices=("Yes, as clean", "No"))
    s.add(ev.QuestionAnswered, 1.0, question_id="q1", text="Yes, as clean")
    s.add(ev.Noted, text="The notebook changed on disk and was read again.", level="info")
    s.add(ev.RawReceived, raw={"type": "new_kind_of_event", "value": 1})
    s.think()
    s.stream(0, ANSWER)
    s.replied()
    s.state = State.DONE
    s.add(ev.RunEnded, reason=Reason.END_TURN, sentence="Done: 2 cells were added and run.",
          next_step="%agent undo takes the cells back.", text=ANSWER, turns=5, usage=Usage(6000, 1700, 0, 26000),
          cost=0.0605, cells=("x1", "x2"))  # fmt: skip
    return s.events


def until(kind: type[Event], number: int = 1) -> list[Event]:
    """Return the run up to and with the `number`-th event of `kind`."""
    seen = 0
    for place, event in enumerate(events := penguins()):
        seen += isinstance(event, kind)
        if seen == number:
            return events[: place + 1]
    raise AssertionError(kind)


def card_html(approval: dict[str, Any]) -> str:
    """Return all that a card shows of a call."""
    return call_html(approval, grouped=False) + preview_box(approval) + effects_html(approval)
