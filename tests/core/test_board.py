"""The board of a team: who may claim what, what needs what, whose result counts, who gets which letter."""

from __future__ import annotations

import json

import pytest

from nbagent.core.board import LETTERS, TASKS, Board, Member
from nbagent.core.board_changes import changes
from nbagent.core.errors import BoardError


def team(*titles: str, needs: dict[int, list[int]] | None = None) -> Board:
    """A board with the lead, Ana and Ben, and tasks 1, 2, … of these titles."""
    board = Board(goal="g").join(Member("lead")).join(Member("Ana", "teammate")).join(Member("Ben", "teammate"))
    for number, title in enumerate(titles, 1):
        board = board.create(title, needs=[str(n) for n in (needs or {}).get(number, [])], by="lead", now=number)
    return board


def claimed(board: Board, owner: str, task_id: str = "") -> tuple[Board, int]:
    """The board after a claim, and the number of that."""
    board = board.claim(owner, 100.0, 60.0, task_id)
    return board, board.held(owner)[0].claims


def whats(old: Board, new: Board) -> list[str]:
    return [one.what for one in changes(old, new)]


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_lowest_free_task_is_claimed_first_and_what_was_assigned_before_what_is_nobody_s():
    board = team("a", "b", "c").assign("3", "Ana")
    board, _ = claimed(board, "Ana")
    board, _ = claimed(board, "Ben")
    assert [(one.id, one.owner, one.state) for one in board.tasks] == [
        ("1", "Ben", "in_progress"),
        ("2", "", "pending"),
        ("3", "Ana", "in_progress"),
    ]


def test_numbers_are_compared_as_numbers():
    board = team(*"abcdefghijk")
    for _ in range(9):
        board = board.claim("Ana", 0, 60)
        board = board.complete(board.held("Ana")[0].id, "Ana", 1)
    assert claimed(board, "Ana")[0].held("Ana")[0].id == "10"


def test_a_claim_leaves_the_board_as_it_is_where_there_is_nothing_to_do():
    board, _ = claimed(team("a"), "Ana")
    assert board.claim("Ben", 0, 60) is board


def test_nobody_claims_a_second_task_before_the_first_is_done():
    board, _ = claimed(team("a", "b"), "Ana")
    with pytest.raises(BoardError, match="Ana has task 1 in hand: complete or release it first"):
        board.claim("Ana", 0, 60)


def test_what_can_t_be_claimed_is_said_with_the_reason():
    board = team("a", "b", "c", "d", needs={2: [1]}).assign("3", "Ben")
    board, _ = claimed(board, "Ben", "4")
    with pytest.raises(BoardError, match="task 2 waits for 1"):
        board.claim("Ana", 0, 60, "2")
    with pytest.raises(BoardError, match="task 3 is assigned to Ben"):
        board.claim("Ana", 0, 60, "3")
    with pytest.raises(BoardError, match="Ben works on task 4"):
        board.claim("Ana", 0, 60, "4")
    with pytest.raises(BoardError, match="task 4 is completed already, by Ben"):
        board.complete("4", "Ben", 1).claim("Ana", 0, 60, "4")
    with pytest.raises(BoardError, match=r"there is no task '9'. There are: 1, 2, 3, 4"):
        board.claim("Ana", 0, 60, "9")


@pytest.mark.parametrize(("owner", "lease"), [("", 60), ("Ana", 0)])
def test_a_claim_needs_an_owner_and_a_lease(owner: str, lease: float):
    with pytest.raises(BoardError, match="needs an owner and a lease"):
        team("a").claim(owner, 0, lease)


# ── what needs what ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_completing_unblocks_and_says_so():
    board = team("a", "b", "c", needs={2: [1], 3: [1, 2]})
    assert board.open_needs(board.task("3")) == ("1", "2")
    assert board.blocks("1") == ("2", "3")
    board, number = claimed(board, "Ana")
    done = board.complete("1", "Ana", number, "it works", 5)
    assert [one.id for one in done.claimable("Ben")] == ["2"]
    assert whats(board, done) == ["task_completed", "task_unblocked"]
    assert (done.task("1").result, done.task("1").ended) == ("it works", 5)


def test_a_circle_is_refused_with_a_sentence_that_names_it():
    board = team("a", "b", "c", needs={2: [1], 3: [2]})
    with pytest.raises(BoardError, match="in a circle: 1 needs 3 needs 2 needs 1"):
        board.edit("1", needs=["3"])
    with pytest.raises(BoardError, match="task 1 can't need itself"):
        board.edit("1", needs=["1"])
    with pytest.raises(BoardError, match="no task '9'"):
        board.create("d", needs=["9"])


def test_needs_change_only_before_a_task_has_begun():
    board, _ = claimed(team("a", "b"), "Ana")
    with pytest.raises(BoardError, match="only before it has begun"):
        board.edit("1", needs=["2"])
    assert board.edit("2", needs=["1", "1"]).task("2").needs == ("1",)


def test_a_deleted_task_is_needed_by_nobody_and_its_number_is_never_used_again():
    board = team("a", "b", needs={2: [1]}).delete("1")
    assert [one.id for one in board.claimable("Ana")] == ["2"]
    assert board.delete("2").create("c").tasks[0].id == "3"
    with pytest.raises(BoardError, match="Ana works on task 2"):
        claimed(board, "Ana")[0].delete("2")


def test_a_reopened_task_blocks_again_and_keeps_its_result_to_be_read():
    board, number = claimed(team("a", "b", needs={2: [1]}), "Ana")
    done = board.complete("1", "Ana", number, "half")
    again = done.reopen("1", 9)
    assert [one.id for one in again.claimable("Ben")] == ["1"]
    assert (again.task("1").result, again.task("1").past[0].why) == ("half", "reopened")
    assert whats(done, again) == ["task_reopened"]
    with pytest.raises(BoardError, match="task 2 is pending: only a completed one"):
        done.reopen("2")


# ── whose claim counts ───────────────────────────────────────────────────────────────────────────────────────────────


def test_an_owner_that_lost_its_lease_does_not_overwrite_the_next_one():
    board, first = claimed(team("a"), "Ana")
    freed = board.free({"1": board.task("1").beat}, 7)
    assert whats(board, freed) == ["task_freed"]
    taken, second = claimed(freed, "Ben")
    with pytest.raises(BoardError, match=r"Ana can't complete task 1: .* \(Ben works on it now\)"):
        taken.complete("1", "Ana", first, "mine")
    done = taken.complete("1", "Ben", second, "Ben's")
    with pytest.raises(BoardError, match="Ben has completed it"):
        done.complete("1", "Ana", first, "mine")
    assert done.task("1").result == "Ben's"
    with pytest.raises(BoardError, match="it is free again"):
        freed.complete("1", "Ana", first, "mine")


def test_an_earlier_claim_of_the_same_owner_does_not_count_either():
    board, first = claimed(team("a"), "Ana")
    board, second = claimed(board.release("1", "Ana", first), "Ana")
    assert second == first + 1
    with pytest.raises(BoardError, match="a later claim of Ana counts"):
        board.complete("1", "Ana", first)


def test_completing_twice_with_the_same_words_changes_nothing_and_with_others_is_refused():
    board, number = claimed(team("a"), "Ana")
    done = board.complete("1", "Ana", number, "r")
    assert done.complete("1", "Ana", number, "r") is done
    with pytest.raises(BoardError, match="Ana can't complete task 1"):
        done.complete("1", "Ana", number, "other")


def test_a_sign_of_life_saves_a_claim_that_was_about_to_be_freed():
    board, number = claimed(team("a"), "Ana")
    seen = {"1": board.task("1").beat}
    renewed = board.renew("1", "Ana", number)
    assert renewed.free(seen) is renewed
    with pytest.raises(BoardError, match="Ben can't renew task 1"):
        board.renew("1", "Ben", number)


def test_a_task_that_is_given_to_another_is_taken_from_who_works_on_it():
    board, number = claimed(team("a"), "Ana")
    given = board.assign("1", "Ben", 3)
    assert [one.id for one in given.claimable("Ben")] == ["1"]
    assert given.claimable("Ana") == ()
    assert [(one.owner, one.why) for one in given.task("1").past] == [("Ana", "reassigned")]
    with pytest.raises(BoardError, match="it is assigned to Ben"):
        given.complete("1", "Ana", number)
    assert whats(board, given) == ["task_freed", "task_assigned"]
    with pytest.raises(BoardError, match="reopen it"):
        board.complete("1", "Ana", number).assign("1", "Ben")


def test_who_leaves_gives_all_back():
    board, _ = claimed(team("a", "b").assign("2", "Ana"), "Ben")
    board, _ = claimed(board, "Ana")
    left = board.now_is("Ana", "gone", 8).now_is("Ben", "gone", 9)
    assert [(one.owner, one.state) for one in left.tasks] == [("", "pending"), ("", "pending")]
    assert whats(board, left) == ["member_gone", "member_gone", "task_freed", "task_freed"]


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_that_wants_a_plan_can_be_completed_only_after_one_was_approved():
    board, number = claimed(team().create("a", wants_plan=True), "Ana")
    with pytest.raises(BoardError, match="wants a plan that is approved"):
        board.complete("1", "Ana", number)
    with pytest.raises(BoardError, match="no plan of task 1 waits"):
        board.answer_plan("1", "approved")
    with pytest.raises(BoardError, match="plan is empty"):
        board.propose("1", "Ana", number, " ")
    planned = board.propose("1", "Ana", number, "first this")
    with pytest.raises(BoardError, match="answer to a plan is empty"):
        planned.answer_plan("1", "")
    refused = planned.answer_plan("1", "and the tests?")
    assert not refused.task("1").may_begin
    again = refused.propose("1", "Ana", number, "first this, then the tests")
    approved = again.answer_plan("1", "approved")
    assert approved.complete("1", "Ana", number).is_done
    assert whats(board, planned) + whats(again, approved) == ["plan_proposed", "plan_answered"]


def test_whoever_gets_a_freed_task_plans_anew():
    board, number = claimed(team().create("a", wants_plan=True), "Ana")
    board = board.propose("1", "Ana", number, "p").answer_plan("1", "approved").release("1", "Ana", number)
    board, _ = claimed(board, "Ben")
    assert not board.task("1").may_begin


# ── members and letters ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_name_is_for_one_member_and_can_be_part_of_a_branch():
    with pytest.raises(BoardError, match="has a member 'Ana' already"):
        team().join(Member("Ana"))
    assert team().now_is("Ana", "gone").join(Member("Ana")).member("Ana").state == "working"
    for name in ("", "../x", "-x", "a b", "é", "a" * 41):
        with pytest.raises(BoardError, match="is no name for a teammate"):
            team().join(Member(name))


def test_a_wrong_name_gets_the_nearest_one():
    with pytest.raises(BoardError, match=r"no member 'ana'. Did you mean Ana\? There are: lead, Ana, Ben"):
        team().post("lead", "ana", "hello")
    with pytest.raises(BoardError, match="no member 'Cy'"):
        team("a").assign("1", "Cy")


def test_a_letter_reaches_its_reader_once_and_one_to_all_reaches_all_others():
    board = team().post("Ana", "lead", "one", 1).post("lead", "*", "two", 2)
    assert [one.text for one in board.letters_for("Ana")] == ["two"]
    read, letters = board.take("lead")
    assert [(one.sender, one.text) for one in letters] == [("Ana", "one")]
    assert read.letters_for("lead") == ()
    assert [one.waiting for one in read.letters] == [(), ("Ana", "Ben")]
    assert read.take("lead")[0] is read
    assert whats(team(), board) == ["letter", "letter"]


def test_letters_that_can_t_be_sent_are_refused():
    board = team().now_is("Ben", "gone")
    for sender, to, text, why in [
        ("lead", "Ben", "x", "Ben has left the team. There are: Ana"),
        ("lead", "lead", "x", "nobody writes to themselves"),
        ("lead", "Ana", " ", "message is empty"),
        ("lead", "Ana", "x" * 20_001, "20,001 characters, at most 20,000"),
    ]:
        with pytest.raises(BoardError, match=why):
            board.post(sender, to, text)


def test_old_letters_go_and_those_that_were_not_read_stay():
    board = team().post("lead", "Ben", "unread")
    for number in range(LETTERS + 50):
        board = board.post("lead", "Ana", f"{number}").take("Ana")[0]
    assert len(board.letters) == LETTERS
    assert board.letters_for("Ben")[0].text == "unread"


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("title", "why"),
    [(" \n", "title is empty"), ("x" * 201, "201 characters, at most 200: put the rest into its desc")],
)
def test_a_title_is_one_short_line(title: str, why: str):
    with pytest.raises(BoardError, match=why):
        team().create(title)
    assert team().create(" two\n lines ").task("1").title == "two lines"


def test_a_board_has_an_end():
    board = Board()
    for number in range(TASKS):
        board = board.create(f"{number}")
    with pytest.raises(BoardError, match="has 500 tasks already"):
        board.create("one more")


def test_a_reserved_number_is_one_task_s_only():
    board, number = team("a").reserve()
    other = board.create("b")
    assert [one.id for one in other.create("c", task_id=number).tasks] == ["1", "2", "3"]
    for wrong in ("1", "9", "x", "-1"):
        with pytest.raises(BoardError, match="taken or was never reserved"):
            other.create("d", task_id=wrong)


def test_fields_of_a_newer_version_are_kept():
    said = {
        "goal": "g", "new": 1, "last_task": 1,
        "tasks": [{"id": "1", "title": "a", "color": "red", "past": [{"owner": "Ana", "mood": "bad"}]}],
        "members": [{"name": "Ana", "hat": True}],
        "letters": [{"id": "1", "sender": "Ana", "to": "*", "text": "t", "stamp": "s"}],
    }  # fmt: skip
    assert Board.from_json(json.loads(json.dumps(said))).to_json() == said
    assert Board.from_json(said).claim("Ana", 1, 60).to_json()["tasks"][0]["color"] == "red"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([], "a board is .., which is no table"),
        ({"tasks": [{"title": "a"}]}, "a task has no id"),
        ({"tasks": [{"id": 1, "title": "a"}]}, "id of a task is 1, which is no str"),
        ({"tasks": {}}, "tasks of a board is {}, which is no list"),
        ({"tasks": [{"id": "1", "title": "a", "needs": [2]}]}, "no list of texts"),
        ({"tasks": [{"id": "1", "title": "a", "state": "odd"}]}, "'odd', none of pending, in_progress, completed"),
        ({"members": [{"name": "a", "state": "completed"}]}, "none of working, idle, gone"),
        ({"version": True}, "version of a board is True, which is no int"),
    ],
)
def test_what_is_no_board_is_said(said: object, why: str):
    with pytest.raises(BoardError, match=why):
        Board.from_json(said)


def test_what_happened_is_said_in_words_once_each():
    board = team("a")
    after, number = claimed(board, "Ana")
    after = after.complete("1", "Ana", number).now_is("Ana", "idle").post("Ana", "lead", "done")
    assert [one.text for one in changes(board, after)] == [
        "Ana is idle",
        "Ana works on task 1 (a)",
        "Ana completed task 1 (a)",
        "Ana to lead: done",
    ]
    assert changes(after, after) == ()
    assert whats(Board(), board) == ["member_joined"] * 3 + ["task_created"]
    assert whats(board, board.delete("1")) == ["task_deleted"]
    assert whats(board, board.edit("1", title="b")) == ["task_edited"]
