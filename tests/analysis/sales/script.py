"""A solution for the sales that reads separator, names, the way of dates and of prices before it writes. Read `solve`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.analysis.solving import Steps, add, heading, look, meanings, meant, separator, table, use


def solve() -> Steps:
    """Look, load, count the doubles, sum, draw."""
    files = (yield from use("glob", "I look at what is here.", pattern="*")).splitlines()
    path = next(name.strip() for name in files if name.strip().endswith((".csv", ".txt", ".tsv")))
    known = meanings((yield from use("read_file", path="columns.md")))
    order, day, price = (meant(known, word) for word in ("order", "day", "price"))
    head = yield from use("read_file", path=path, start_line=1, end_line=8)
    mark, header = separator(head), table(head)[0]
    code = f"import csv\nrows = list(csv.reader(open({path!r}), delimiter={mark!r}))[1:]\n"
    days = yield from look(f"{code}found = [row[{header.index(day)}] for row in rows[::3]]")
    prices = yield from look(f"{code}found = [row[{header.index(price)}] for row in rows[:200]]")

    yield from heading("Revenue by month")
    yield from add("import matplotlib.pyplot as plt\nimport pandas as pd")
    yield from add(f"export = pd.read_csv({path!r}, sep={mark!r}, dtype={{{price!r}: str}})\nexport.head()")
    yield from add(
        f"""
sales = export.drop_duplicates(subset={order!r}).copy()
doubled = len(export) - len(sales)
doubled
"""
    )
    decimal = _decimal(prices)
    yield from add(
        f"""
sales["day"] = pd.to_datetime(sales[{day!r}], format="{_dated(days)}")
sales["paid"] = (
    sales[{price!r}].str.replace(r"[^\\d{decimal}]", "", regex=True).str.replace({decimal!r}, ".").astype(float)
)
sales[["day", "paid"]].describe()
"""
    )
    yield from add(
        'monthly = sales.groupby(sales["day"].dt.to_period("M"))["paid"].sum().rename("revenue").to_frame()\nmonthly'
    )
    yield from add(
        """
fig, ax = plt.subplots(figsize=(7, 4))
ax.plot(monthly.index.astype(str), monthly["revenue"], marker="o")
ax.set(title="Revenue by month", xlabel="Month", ylabel="Revenue")
ax.tick_params(axis="x", rotation=60)
plt.show()
"""
    )
    return "The months are in `monthly`, the number of doubled rows in `doubled`."


def _dated(days: Sequence[str]) -> str:
    """Return the format of dates of three numbers: the year has four digits, and a day goes beyond 12."""
    parts = [re.findall(r"\d+", text) for text in days]
    marks = re.sub(r"\d", "", days[0])
    signs: list[str] = []
    for place in range(3):
        column = [part[place] for part in parts]
        if any(len(text) == 4 for text in column):
            signs.append("%Y")
        else:
            signs.append("%d" if max(map(int, column)) > 12 else "%m")
    assert sorted(signs) == ["%Y", "%d", "%m"], f"the dates can't be told apart: {days[:5]}"
    return f"{signs[0]}{marks[0]}{signs[1]}{marks[1]}{signs[2]}"


def _decimal(prices: Sequence[str]) -> str:
    """Return the decimal mark of prices: the last mark, with two digits after it."""
    found = [re.search(r"([.,])\d\d\D*$", text) for text in prices]
    return next(one[1] for one in found if one)
