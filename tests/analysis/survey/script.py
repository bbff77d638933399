"""A solution for the survey that reads variables, codes, labels and marks of silence from the codebook. Read `solve`."""

from __future__ import annotations

from tests.analysis.solving import Steps, add, heading, separator, table, use


def solve() -> Steps:
    """Read the codebook, load, label, count, draw."""
    files = (yield from use("glob", "I look at what is here.", pattern="*.csv")).split()
    book = table((yield from use("read_file", path="codebook.csv")))
    entries = [dict(zip(book[0], row, strict=True)) for row in book[1:]]
    path = next(name for name in files if "codebook" not in name)
    head = yield from use("read_file", path=path, start_line=1, end_line=5)
    asked = {entry["variable"]: entry["question"].lower() for entry in entries}
    satisfied = next(name for name, text in asked.items() if "satisfied" in text)
    age = next(name for name, text in asked.items() if "age group" in text)
    missing = [int(entry["code"]) for entry in entries if entry["variable"] == satisfied and entry["missing"] == "yes"]

    yield from heading("Satisfaction by age group")
    yield from add("import matplotlib.pyplot as plt\nimport pandas as pd")
    yield from add(
        f"survey = pd.read_csv({path!r}, sep={separator(head)!r})\nbook = pd.read_csv('codebook.csv')\nsurvey.head()"
    )
    yield from add(
        f"""
answered = survey[survey[{satisfied!r}].notna() & ~survey[{satisfied!r}].isin({missing})]
no_answer = len(survey) - len(answered)
no_answer
"""
    )
    yield from add(
        f"""
answers = book[(book["variable"] == {satisfied!r}) & (book["missing"] == "no")].set_index("code")["label"]
groups = book[book["variable"] == {age!r}].set_index("code")["label"]
labelled = pd.DataFrame({{
    "age": pd.Categorical(answered[{age!r}].map(groups), categories=groups, ordered=True),
    "answer": pd.Categorical(answered[{satisfied!r}].map(answers), categories=answers, ordered=True),
}})
shares = pd.crosstab(labelled["age"], labelled["answer"], normalize="index")
shares
"""
    )
    yield from add(
        """
ax = shares.plot.bar(stacked=True, rot=0, figsize=(7, 4), title="Satisfaction with work by age group")
ax.set_xlabel("Age group")
ax.set_ylabel("Share of valid answers")
plt.show()
"""
    )
    return "The shares are in `shares`, the number of people without an answer in `no_answer`."
