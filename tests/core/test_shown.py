"""A person reads what a rule means before they keep it."""

from __future__ import annotations

import pytest

from nbagent.core.shown import rule_words, visible_plain

EXACT = ("add_cell(sha256:ab12)", "add_cell")
PATH = ("write_file(data/x.csv)", "write_file")


@pytest.mark.parametrize(
    ("rule", "offers", "kind", "words"),
    [
        (EXACT[0], EXACT, "code", "exactly this code, nothing else (this session)"),
        (EXACT[0], EXACT, "diff", "exactly this code, nothing else (this session)"),
        ("shell(sha256:1)", ("shell(sha256:1)",), "command", "exactly this command, nothing else (this session)"),
        ("tool(sha256:1)", ("tool(sha256:1)",), "none", "exactly this call, nothing else (this session)"),
        (PATH[0], PATH, "diff", "every call of write_file on data/x.csv, nothing else (this session)"),
        (PATH[1], PATH, "diff", "every call of write_file from now on, whatever it is given (this session)"),
        ("shell", ("shell(sha256:1)", "shell"), "command",
         "every call of shell from now on, whatever the command (this session)"),
        (EXACT[1], EXACT, "code",
         "every call of add_cell from now on, whatever the code (this session; risky code is still asked about)"),
    ],
)  # fmt: skip
def test_a_rule_is_said_in_words(rule, offers, kind, words):
    assert rule_words(rule, offers, kind) == words


def test_what_cannot_be_seen_is_written_out_and_the_rest_is_left_alone():
    assert visible_plain("naïve 日本語 😀\n\tx = 1") == "naïve 日本語 😀\n\tx = 1"
    assert visible_plain("a\u00a0b\u2028c\u2066d\ud800") == "a⟨U+00A0⟩b⟨U+2028⟩c⟨U+2066⟩d⟨U+D800⟩"
