"""Teams as events: a small one in the middle of its work, with a conflict, and one of 40 tasks and 8 teammates."""

from __future__ import annotations

from nbagent.core import events as ev
from nbagent.core.board import APPROVED, Board
from nbagent.core.board_values import LEAD, Member
from nbagent.core.events import State

AT = {"state": State.ACT, "turn": 3, "at": 90.0}


def small() -> ev.TeamChanged:
    """Three teammates who repair tests."""
    board = Board(goal="Make the three failing tests of the report pass")
    for name in (LEAD, "anna", "ben", "cleo"):
        board = board.join(Member(name, "general-purpose", branch=f"nbagent/fixers/{name}"))
    board = board.create("Dates are read in the wrong order", by=LEAD).create("Totals count refunds twice", by=LEAD)
    board = board.create("Months without sales are missing", needs=["1"], wants_plan=True, by=LEAD)
    board = board.create("Merge and run all tests", needs=["1", "2", "3"], owner=LEAD, by=LEAD)
    board = board.claim("anna", 0.0, 30.0, "1").claim("ben", 2.0, 30.0, "2")
    board = board.complete("1", "anna", 1, "dates.py: day first, as the files of the bank have it; 4 tests pass", 41.0)
    board = board.claim("anna", 44.0, 30.0, "3").propose("3", "anna", 1, "1. reindex by month\n2. fill with 0")
    board = board.answer_plan("3", APPROVED).complete("2", "ben", 1, "totals.py: refunds are negative already", 58.0)
    board = board.now_is("ben", "idle").now_is("cleo", "gone")
    board = board.post("anna", LEAD, "The bank's dates are day first. Is that so in all files?", 20.0)
    board = board.post(LEAD, "anna", "Yes, in all of them.", 22.0)
    board = board.post("ben", "*", "I rename `total` to `net_total` in totals.py: mind it when you use it.", 30.0)
    board = board.post("ben", LEAD, "", 60.0, kind="idle")
    lanes = (
        {"name": LEAD, "spans": [{"state": "working", "title": "plans the work", "from": 0, "to": 12},
                                 {"state": "waiting", "title": "", "from": 12, "to": None}]},
        {"name": "anna", "spans": [{"state": "working", "title": "Dates are read in the wrong order", "from": 14, "to": 55},
                                   {"state": "planning", "title": "Months without sales are missing", "from": 57, "to": 70},
                                   {"state": "working", "title": "Months without sales are missing", "from": 70, "to": None}]},
        {"name": "ben", "spans": [{"state": "working", "title": "Totals count refunds twice", "from": 15, "to": 72},
                                  {"state": "idle", "title": "", "from": 72, "to": None}]},
        {"name": "cleo", "spans": [{"state": "idle", "title": "", "from": 15, "to": 40}, {"state": "gone", "title": "", "from": 40, "to": None}]},
    )  # fmt: skip
    return ev.TeamChanged(**AT, team="fixers", board=board.to_json(), lanes=lanes, seconds=90.0,
                          note="ben has finished task 2; its merge conflicts with anna's.",
                          marks={"2": "conflict in report/totals.py: both sides are kept"})  # fmt: skip


def large() -> ev.TeamChanged:
    """Eight teammates and forty tasks."""
    names = ("anna", "ben", "cleo", "dora", "emil", "fritz", "gina", "hugo")
    words = ("Clean the table of", "Compare the months of", "Plot the outliers of", "Document the columns of")
    places = (
        "Berlin",
        "Hamburg",
        "Köln",
        "München",
        "Frankfurt am Main",
        "Stuttgart",
        "Leipzig",
        "Dresden",
        "Bonn",
        "Kiel",
    )
    tasks = []
    for n in range(40):
        state = "completed" if n < 17 else "in_progress" if n < 25 else "pending"
        task = {"id": str(n + 1), "title": f"{words[n % 4]} {places[n % 10]}", "state": state, "lease": 30.0}
        if state != "pending":
            task["owner"] = names[n % 8]
        if state == "completed":
            task["result"] = f"{n * 37 % 91} rows changed, saved as {places[n % 10].lower()}.parquet"
        if n > 28:
            task["needs"] = [str(n - 10), "3"]
        tasks.append(task)
    lanes = tuple(
        {"name": name, "spans": [
            {"state": "working" if k % 4 != 3 else "idle", "title": f"{words[k % 4]} {places[(k + n) % 10]}" if k % 4 != 3 else "",
             "from": k * 61 + n * 7, "to": (k + 1) * 61 + n * 7 - 5 if k < 9 else None} for k in range(10)]}
        for n, name in enumerate(names)
    )  # fmt: skip
    letters = [{"id": str(n + 1), "sender": names[n % 8], "to": "*" if n % 5 == 0 else names[(n + 3) % 8],
                "text": f"The table of {places[n % 10]} has {n * 13 % 40} empty rows; I leave them."} for n in range(90)]  # fmt: skip
    board = {"goal": "Clean, compare and document the sales of ten cities", "tasks": tasks, "letters": letters,
             "members": [{"name": name, "state": "working"} for name in names], "last_letter": 90}  # fmt: skip
    return ev.TeamChanged(**AT, team="cities", board=board, lanes=lanes, seconds=640.0)
