"""Prints how well the static look does on the labelled snippets: `python -m tests.tools.measure_effects`."""

from __future__ import annotations

from nbagent.tools.effects import effects, hints
from tests.tools.snippets import names, score_of_labels, score_of_risk, snippets


def main() -> None:
    every, namespace = snippets(), names()
    for snippet in every:
        found = frozenset(hints(snippet.code, namespace))
        risk = bool(effects(snippet.code, namespace))
        extra, missing = sorted(found - snippet.labels), sorted(snippet.labels - found)
        verdict = "ok" if not extra and not missing and risk == snippet.risky else "NOT"
        print(f"{snippet.number:3d} {snippet.kept:5s} {verdict:3s} {snippet.title}")
        for words in extra:
            print(f"             said, and not so: {words}")
        for words in missing:
            print(f"             so, and not said:  {words}")
        if risk != snippet.risky:
            print(f"             {'asked about again, and calm' if risk else 'risky, and not asked about'}")
    print(f"\n{'':18s}  labels  precision  recall   risky: precision  recall")
    for title, given in (
        ("tuned on (40)", [s for s in every if s.kept == "tune"]),
        ("held out (20)", [s for s in every if s.kept == "held"]),
        ("first 60", [s for s in every if s.kept in {"tune", "held"}]),
        ("later (30)", [s for s in every if s.kept == "later"]),
        ("last (20)", [s for s in every if s.kept == "last"]),
    ):
        labels, risk = score_of_labels(given, namespace), score_of_risk(given, namespace)
        print(
            f"{title:18s}  {labels.right + labels.missed:6d}  {labels.precision:9.3f}  {labels.recall:6.3f}"
            f"   {risk.precision:16.3f}  {risk.recall:6.3f}"
        )


if __name__ == "__main__":
    main()
