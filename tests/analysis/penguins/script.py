"""A solution for the penguins that reads names, separator, decimal mark, encoding, missing mark and unit before it writes. Read `solve`."""

from __future__ import annotations

from tests.analysis.solving import Steps, add, heading, meanings, meant, reading, use


def solve() -> Steps:
    """Look, load, count, draw."""
    files = (yield from use("glob", "I look at what is here.", pattern="*")).split()
    path = next(name for name in files if name.endswith(".csv"))
    known = meanings((yield from use("read_file", path="columns.md")))
    species, sex, mass = meant(known, "species"), meant(known, "sex"), meant(known, "mass")
    read = reading((yield from use("read_data_head", path=path)))
    factor = " / 1000" if " in g" in known[mass] else ""

    yield from heading("How heavy are the penguins?")
    yield from add("import matplotlib.pyplot as plt\nimport pandas as pd")
    yield from add(
        f"""
birds = {read}
birds["mass_kg"] = birds["{mass}"]{factor}
birds.head()
"""
    )
    counted = yield from add('not_weighed = int(birds["mass_kg"].isna().sum())\nnot_weighed')
    yield from add(
        f"""
summary = (
    birds.groupby([{species!r}, {sex!r}], dropna=False)["mass_kg"]
    .agg(["mean", "count"])
    .reset_index()
)
summary
"""
    )
    yield from add(
        f"""
bars = summary.fillna({{{sex!r}: "unknown"}}).pivot(index={species!r}, columns={sex!r}, values="mean")
ax = bars.plot.bar(rot=0, figsize=(7, 4), title="Body mass of the penguins")
ax.set_xlabel("Species")
ax.set_ylabel("Mean body mass (kg)")
plt.show()
"""
    )
    return f"The table is `summary`, the chart is below it; never weighed: {counted.split()[-1]}."
