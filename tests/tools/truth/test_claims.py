"""Claims that a notebook was verified are found, and what claims nothing is not."""

from __future__ import annotations

import pytest

from nbagent.tools.claims import claim_in


@pytest.mark.parametrize(
    "text",
    [
        "I verified it from a clean kernel.",
        "Done. The notebook runs from top to bottom in a fresh kernel, 14 of 15 cells the same.",
        "Everything was re-run after a kernel restart and gives the same numbers.",
        "The analysis is now fully reproducible.",
        "The notebook is verified.",
        "Verified from a clean kernel: all 3 cells show the same.",
        "All results are reproducible.",
        "Ich habe es in einem frischen Kernel geprüft.",
        "The notebook runs from a clean kernel without errors.",
        "Verified from a clean kernel: no differences.",
        "I verified everything in a fresh kernel and there are no issues.",
        "There were no errors, and all of it works after a kernel restart.",
        "Restart & Run All works with no errors.",
        "It is reproducible, no doubt.",
        "Verified from a clean kernel; if you change a cell, verify again.",
        "I ran it in a clean kernel, so you can rely on these numbers.",
        "Die Analyse läuft in einem frischen Kernel ohne Fehler.",
        "I restarted the kernel and ran all cells: everything reproduces.",
        "It executes end-to-end after a restart.",
        "Clean-kernel verification: ✅",
        "I re-ran the whole notebook from scratch.",
        "verified from a cle\u200ban kernel",
        "Vérifié dans un noyau propre.",
        "Verificado en un kernel limpio.",
        "Verificato in un kernel pulito.",
        "Проверено в чистом ядре.",
        "已在干净的内核中验证。",
        "クリーンなカーネルで検証済み。",
        "클린 커널에서 검증됨.",
    ],
)
def test_a_claim_is_found(text: str) -> None:
    assert claim_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "I did not verify it from a clean kernel.",
        "It was not run in a fresh kernel.",
        "You can verify it from a clean kernel with %agent verify.",
        "Restart the kernel and run all to check.",
        "To check that it runs in a clean kernel, use `verify_notebook`.",
        "The mean is 4.2 and the model runs fast.",
        "`verified from a clean kernel` is what I may not say.",
        "I verified the join: 344 rows before and after.",
        "A fixed random_state would make this reproducible.",
        "It works in a fresh kernel if data.csv is there.",
        "Nothing of this was verified from a clean kernel, and it has not run in one.",
        "",
    ],
)
def test_what_claims_nothing_is_left_alone(text: str) -> None:
    assert not claim_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "Je ne l'ai pas vérifié dans un noyau propre.",
        "No lo he verificado en un kernel limpio.",
        "Non l'ho verificato in un kernel pulito.",
        "Не проверено в чистом ядре.",
        "尚未在干净的内核中验证。",
        "クリーンなカーネルで検証していません。",
        "Restart the kernel and run all cells to see it.",
        "A clean run would tell.",
    ],
)
def test_what_says_no_or_asks_for_it_in_other_languages_claims_nothing(text):
    assert claim_in(text) == ""


def test_a_line_break_inside_of_a_sentence_hides_neither_a_claim_nor_a_denial():
    assert claim_in("verified from a\nclean kernel") == "verified from a clean kernel"
    assert claim_in("Geprüft in einem sauberen\nKernel.")
    assert claim_in("I ran it in a fresh  \n  kernel: all the same")
    assert not claim_in("It was not\nverified from a clean kernel.")
    assert not claim_in("Checked: the join\n- clean kernel: not tried")
    assert claim_in("Not looked at:\n\nverified from a clean kernel")
