"""A solution for the penguins that reads names, separator, decimal mark, encoding, missing mark and unit before it writes. Read `solve`."""

from __future__ import annotations

from tests.analysis.solving import (
    Steps,
    add,
    encoding,
    heading,
    look,
    meanings,
    meant,
    numbers_of,
    separator,
    table,
    use,
)


def solve() -> Steps:
    """Look, load, count, draw."""
    files = (yield from use("glob", "I look at what is here.", pattern="*")).split()
    path = next(name for name in files if name.endswith(".csv"))
    known = meanings((yield from use("read_file", path="columns.md")))
    species, sex, mass = meant(known, "species"), meant(known, "sex"), meant(known, "mass")
    coded = yield from encoding(path)
    head = yield from look(f"found = open({path!r}, encoding={coded!r}).read(2000)")
    rows, mark = table(head[: head.rindex("\n")]), separator(head[: head.rindex("\n")])
    place = rows[0].index(mass)
    texts = yield from look(
        f"import csv\nfound = sorted({{row[{place}] for row in csv.reader(open({path!r}, encoding={coded!r}), delimiter={mark!r})}})"
    )
    decimal, missing = numbers_of([text for text in texts if text != mass])
    factor = " / 1000" if " in g" in known[mass] else ""

    yield from heading("How heavy are the penguins?")
    yield from add("import matplotlib.pyplot as plt\nimport pandas as pd")
    yield from add(
        f"""
birds = pd.read_csv({path!r}, sep={mark!r}, decimal={decimal!r}, encoding={coded!r}, na_values={missing!r})
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
