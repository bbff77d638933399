"""A solution for the big table: it looks by queries, and lets DuckDB go through the file. Read `solve`."""

from __future__ import annotations

import re

from tests.analysis.solving import Steps, add, heading, meanings, meant, use


def solve() -> Steps:
    """Ask how big it is, count by kind, draw."""
    files = (yield from use("glob", "I look at what is here.", pattern="*")).splitlines()
    path = next(name.strip() for name in files if name.strip().endswith(".parquet"))
    known = meanings((yield from use("read_file", path="about.md")))
    kind, amount = meant(known, "kind"), meant(known, "amount")
    mark = re.findall(r"(-?[\d.]+) when unknown", known[amount])[0]
    quoted = [f'"{name}"' for name in (kind, amount)]
    rows = yield from use("query", "First its size, without loading it.", sql=f"SELECT count(*) AS n FROM '{path}'")
    marked = yield from use(
        "query", sql=f"SELECT count(*) AS n, min({quoted[1]}) AS least FROM '{path}' WHERE {quoted[1]} = {mark}"
    )
    size = max(int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", rows))
    assert size > 100_000, rows
    assert mark.split(".")[0] in marked, marked

    yield from heading("Events by kind")
    yield from add("import duckdb\nimport matplotlib.pyplot as plt")
    yield from add(
        f'''
per_kind = duckdb.sql("""
    SELECT {quoted[0]} AS kind, count(*) AS events,
        avg(nullif({quoted[1]}, {mark})) AS mean_amount, max(nullif({quoted[1]}, {mark})) AS largest
    FROM '{path}'
    GROUP BY ALL ORDER BY events DESC
""").df()
per_kind
'''
    )
    yield from add(
        """
ax = per_kind.plot.bar(x="kind", y="mean_amount", rot=0, legend=False, figsize=(7, 4), title="Mean amount by kind")
ax.set_xlabel("Kind of event")
ax.set_ylabel("Mean known amount (EUR)")
plt.show()
"""
    )
    return f"{size:,} events were counted in the file; the table is `per_kind`."
