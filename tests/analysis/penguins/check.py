"""Checks the means by species and sex, the birds of unknown sex, and the count of those never weighed. Read `check`."""

from __future__ import annotations

from statistics import fmean

from tests.analysis.desk import Facts, Work
from tests.analysis.making import read_table
from tests.analysis.rules import frame, says, sums_to, well_kept


def check(work: Work, facts: Facts) -> None:
    """Compute the groups from the file's texts and look them up."""
    well_kept(work, "summary", "not_weighed", figures=1)
    groups: dict[tuple[str, str | None], list[float]] = {}
    without = 0
    for row in read_table(work.folder / facts["file"], sep=facts["sep"], encoding=facts["encoding"]):
        sex = None if row[facts["sex"]] == facts["missing"] else row[facts["sex"]]
        if row[facts["mass"]] == facts["missing"]:
            without += 1
        else:
            mass = float(row[facts["mass"]].replace(facts["decimal"], ".")) / facts["unit"]
            groups.setdefault((row[facts["species"]], sex), []).append(mass)
    assert work.clean["not_weighed"] == without, f"{without} birds were never weighed"
    summary = frame(work, "summary")
    for (species, sex), masses in groups.items():
        says(summary, [species, *([sex] if sex else [])], fmean(masses), what="mean mass in kg")
        says(summary, [species, *([sex] if sex else [])], len(masses), what="birds weighed")
    sums_to(summary, sum(map(len, groups.values())), "birds weighed, those of unknown sex too")


SABOTAGES = {
    "loses the birds of unknown sex": (r", dropna=False", "", r"nothing for|should be|in all"),
    "takes a missing mass for zero": (r'(birds\["mass_kg"\] = birds\["\w+"\])', r"\1.fillna(0)", "never weighed"),
    "drops every row with anything missing": (r"(birds = pd.read_csv\(.+\))", r"\1.dropna()", "never weighed"),
    "leaves grams": (r" / 1000", "", "mean mass"),
}
