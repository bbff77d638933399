"""A solution for the comments that reads the categories, their words and the column from the rules. Read `solve`."""

from __future__ import annotations

import re

from tests.analysis.solving import Steps, add, heading, separator, use


def solve() -> Steps:
    """Read the rules, load, sort, count, draw."""
    rules = yield from use("read_file", "I read the rules.", path="rules.md")
    categories = {name: words.split(", ") for name, words in re.findall(r"^\d+\. (.+?): (.+)$", rules, re.MULTILINE)}
    column = re.findall(r"column with the text is `(.+?)`", rules)[0]
    head = yield from use("read_file", path="comments.csv", start_line=1, end_line=1)
    yield from heading("What customers write about")
    yield from add("import re\n\nimport matplotlib.pyplot as plt\nimport pandas as pd")
    listed = "\n".join(f"    {name!r}: {words!r}," for name, words in categories.items())
    yield from add(
        f"rules = {{\n{listed}\n}}\ncomments = pd.read_csv('comments.csv', sep={separator(head)!r})\ncomments.head()"
    )
    yield from add(
        f"""
def category(text):
    if not isinstance(text, str) or not text.strip():
        return "empty"
    for name, words in rules.items():
        if re.search(rf"\\b({{'|'.join(map(re.escape, words))}})\\b", text, re.IGNORECASE):
            return name
    return "other"


comments["category"] = comments[{column!r}].map(category)
counts = comments["category"].value_counts().to_frame()
counts
"""
    )
    yield from add(
        """
ax = counts["count"].iloc[::-1].plot.barh(figsize=(7, 4), title="What customers write about")
ax.set_xlabel("Comments")
ax.set_ylabel("Category")
plt.show()
"""
    )
    return "The counts are in `counts`, the most frequent first."
