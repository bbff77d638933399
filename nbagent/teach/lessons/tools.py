"""The exercises of lesson 04, tools: a good schema, a schema that refuses, an error that helps, and the runtime by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.core.events import CallEnded, ReplyEnded, Status
from nbagent.core.messages import Json, plain_text
from nbagent.core.tools import Tool
from nbagent.models.scripted import call
from nbagent.teach.bench import bench
from nbagent.teach.exercises import Exercise, NotYet
from nbagent.teach.runtime import played
from nbagent.teach.tools_lesson import NUMBERS, runtime_script, runtime_tools

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_DECISIONS = ("invalid", "allow", "ask", "deny")


def _tool(names: Mapping[str, Any], name: str, arguments: Sequence[str]) -> Tool:
    """Return the learner's tool, with a description of itself and of each of these arguments."""
    made = names[name]
    if not isinstance(made, Tool):
        raise NotYet(f"{name} is a {type(made).__name__}, no tool: the line @tool above the function is missing.")
    has = made.schema.get("properties", {})
    if list(has) != list(arguments):
        raise NotYet(f"the arguments should be {', '.join(arguments)}; the schema has {', '.join(has) or 'none'}.")
    if len(made.description.split()) < 4:
        raise NotYet("the docstring should say in a sentence what the tool does: it is all that the model reads.")
    if bare := [argument for argument in arguments if not has[argument].get("description")]:
        raise NotYet(f"the docstring's Args: section says nothing of {', '.join(bare)}.")
    return made


def _refuses(made: Tool, given: Json, why: str) -> None:
    try:
        made.validate(given)
    except ToolError:
        return
    raise NotYet(f"{given} should be refused before the function runs: {why}.")


def _accepts(made: Tool, given: Json) -> Json:
    try:
        return made.validate(given)
    except ToolError as error:
        raise NotYet(f"{given} is a good call, and it is refused: {error}") from None


async def _ran(made: Tool, *given: Json) -> list[CallEnded]:
    """Run calls of a tool in the real loop and return how they ended, in the order of the calls."""
    script = [[call(made.name, **one) for one in given], "Done."]
    events = await bench(script, [made], mode="bypass").collect("Go")
    ended = {event.call_id: event for event in events if isinstance(event, CallEnded)}
    replies = [event for event in events if isinstance(event, ReplyEnded)]
    order = [str(block["id"]) for reply in replies for block in reply.content if "id" in block]
    return [ended[one] for one in order]


def _text(ended: CallEnded) -> str:
    return plain_text(list(ended.content))


def _numbers(text: str) -> list[float]:
    return [float(found) for found in _NUMBER.findall(text)]


async def _schema(names: Mapping[str, Any]) -> None:
    made = _tool(names, "top_penguins", ("species", "by", "how_many"))
    good = {"species": "Gentoo", "by": "body_mass_g"}
    if _accepts(made, good).get("how_many") != 5:
        raise NotYet("how_many may be left out, and is 5 then.")
    _refuses(made, {**good, "species": "Emperor"}, "there are three species, and the schema can name them (Literal)")
    _refuses(
        made, {**good, "by": "island"}, "only the four columns of NUMBERS hold numbers, and the schema can name them"
    )
    _refuses(made, {**good, "how_many": "a few"}, "how_many is a whole number (int)")
    _refuses(made, {"by": "body_mass_g"}, "species is required: without a default it must be there")
    asked: list[Json] = [{**good, "how_many": 3}, {"species": "Adelie", "by": "bill_length_mm"}]
    for one, ended in zip(asked, await _ran(made, *asked), strict=True):
        values = sorted((row[one["by"]] for row in names["PENGUINS"] if row["species"] == one["species"]), reverse=True)
        expected = values[: one.get("how_many", 5)]
        if ended.status is not Status.OK:
            raise NotYet(f"the call {one} fails: {_text(ended)}")
        if _numbers(_text(ended)) != expected:
            raise NotYet(f"for {one} the values are {expected}, the largest first; the tool gives {_text(ended)!r}.")


async def _fix(names: Mapping[str, Any]) -> None:
    made = _tool(names, "convert", ("grams", "unit", "digits"))
    filled = _accepts(made, {"grams": 4500})
    if (filled["unit"], filled["digits"]) != ("kg", 2):
        raise NotYet("unit and digits may be left out, and are kg and 2 then.")
    _refuses(made, {"grams": "heavy"}, "grams is a number, and the schema can say so")
    _refuses(
        made,
        {"grams": 4500, "unit": "stone"},
        "this tool knows g, kg and lb; with any other unit it gave a wrong number in silence",
    )
    _refuses(made, {"grams": 4500, "digits": 9}, "digits goes from 0 to 6: Annotated[int, Field(ge=0, le=6)]")
    _refuses(made, {"grams": 4500, "digits": -1}, "digits goes from 0 to 6")
    _refuses(made, {"unit": "kg"}, "grams is required")
    asked: list[Json] = [
        {"grams": 4512},
        {"grams": 453.59237, "unit": "lb", "digits": 1},
        {"grams": 12.6, "unit": "g", "digits": 0},
    ]
    for one, expected, ended in zip(asked, (4.51, 1.0, 13.0), await _ran(made, *asked), strict=True):
        if ended.status is not Status.OK or _numbers(_text(ended))[:1] != [expected]:
            raise NotYet(f"{one} should give {expected}; the model gets {_text(ended)!r}.")


async def _error(names: Mapping[str, Any]) -> None:
    made = _tool(names, "mean_of", ("column",))
    masses = [row["body_mass_g"] for row in names["PENGUINS"]]
    good, unknown, words = await _ran(made, {"column": "body_mass_g"}, {"column": "weight"}, {"column": "island"})
    if good.status is not Status.OK or not any(abs(n - sum(masses) / len(masses)) < 1 for n in _numbers(_text(good))):
        raise NotYet(
            f"a good call must still work: the mean of body_mass_g is about {sum(masses) / len(masses):.1f}, not {_text(good)!r}."
        )
    for name, ended in (("weight", unknown), ("island", words)):
        said = _text(ended)
        if ended.status is Status.OK:
            raise NotYet(
                f"for {name!r} the result does not say that it is an error: the model would go on with {said!r}. Raise a ToolError."
            )
        if ended.status is Status.INVALID:
            raise NotYet(
                "here the column comes from the data, so the schema can't know it: take it as text, and look inside."
            )
        if "Error:" in said or "Error(" in said:
            raise NotYet(f"for {name!r} the model gets {said!r}: that is the name of an exception, and no way out.")
        if name not in said:
            raise NotYet(f"for {name!r} the sentence should name what was asked for: {said!r}.")
        if missing := [column for column in NUMBERS if column not in said]:
            raise NotYet(
                f"for {name!r} the sentence should say what the model can ask for instead; {missing[0]} is not in it."
            )


async def _runtime(names: Mapping[str, Any]) -> None:
    answers = names["answers"]
    for mode in ("default", "plan"):
        given = answers.get(mode)
        if not isinstance(given, list | tuple) or len(given) != 5 or any(one not in _DECISIONS for one in given):
            raise NotYet(f'answers["{mode}"] needs five words, each one of {", ".join(_DECISIONS)}.')
        calls = [one for reply in await played(runtime_script(), runtime_tools(), mode=mode) for one in reply.calls]
        for place, (said, one) in enumerate(zip(given, calls, strict=True), 1):
            truth = one.decision if one.valid else "invalid"
            if said != truth:
                why = (
                    "look at its arguments and at the tools again"
                    if "invalid" in {said, truth}
                    else f"what kind of tool is {one.name}?"
                )
                raise NotYet(f"in mode {mode}, call {place} ({one.name}) is not “{said}”: {why}.")


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "04.schema",
        "`top_penguins` has a schema that tells a model all it must know, and refuses what can't work.",
        (
            "A tool is `@tool` above an `async def` whose first parameter is the call (`_`). The schema comes from the types and the docstring.",
            'A fixed set of words is a `Literal`: `species: Literal["Adelie", "Chinstrap", "Gentoo"]`. A default makes an argument optional.',
            "Filter PENGUINS by species, take `row[by]` of each, sort with reverse=True, and return the first how_many. Describe each argument below `Args:`.",
        ),
        '''
@tool
async def top_penguins(
    _,
    species: Literal["Adelie", "Chinstrap", "Gentoo"],
    by: Literal["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"],
    how_many: int = 5,
) -> list[float]:
    """Return the largest values of a measure among the penguins of one species, the largest first.

    Args:
        species: The species to look at.
        by: The measure, a column of the table.
        how_many: How many values to return.
    """
    values = [row[by] for row in PENGUINS if row["species"] == species]
    return sorted(values, reverse=True)[:how_many]
''',
        _schema,
    ),
    Exercise(
        "04.fix",
        "`convert` refuses what it can't do, before it runs.",
        (
            "Three things went wrong in silence: a name that says nothing, a unit that nobody knows, a number that is text. Each is a type.",
            '`grams: float`, `unit: Literal[…] = "kg"`. A range is written `Annotated[int, Field(ge=0, le=6)]`, with its default after it.',
            "Then the function is a table of factors without a default, and a round: round(grams / {…}[unit], digits).",
        ),
        '''
@tool
async def convert(
    _,
    grams: float,
    unit: Literal["g", "kg", "lb"] = "kg",
    digits: Annotated[int, Field(ge=0, le=6)] = 2,
) -> float:
    """Convert a mass from grams to another unit.

    Args:
        grams: The mass in grams.
        unit: The unit to convert to.
        digits: Digits after the point.
    """
    return round(grams / {"g": 1, "kg": 1000, "lb": 453.59237}[unit], digits)
''',
        _fix,
    ),
    Exercise(
        "04.error",
        "`mean_of` answers a wrong column with an error that the model can act upon.",
        (
            "Which columns are there is known in the data only, so this check belongs into the function. What would YOU need to know to ask better?",
            '`raise ToolError("…")` ends the call; its text is the error result. Say what was asked for and what there is.',
            "Two cases, one test: `if column not in NUMBERS: raise ToolError(f\"… {column!r} … {', '.join(NUMBERS)}\")`.",
        ),
        '''
@tool
async def mean_of(_, column: str) -> float:
    """Compute the mean of a column of the penguins.

    Args:
        column: Name of a column that holds numbers.
    """
    if column not in NUMBERS:
        raise ToolError(f"There is no column of numbers {column!r}. There are: {', '.join(NUMBERS)}.")
    values = [row[column] for row in PENGUINS]
    return sum(values) / len(values)
''',
        _error,
    ),
    Exercise(
        "04.runtime",
        "You decide five calls as the runtime does, in two modes.",
        (
            "First ask: is there such a tool, and do the arguments fit? If not, nothing is decided: the call is invalid.",
            "`look` only looks, `compute` runs scratch code, `save` writes a file. The table is in nbagent/core/policy.py; or play with BeTheRuntime.",
            "Calls 2 and 3 are invalid in every mode. In plan mode nothing may be written, and scratch code is asked about.",
        ),
        """
answers = {
    "default": ["allow", "invalid", "invalid", "ask", "ask"],
    "plan": ["allow", "invalid", "invalid", "ask", "deny"],
}
""",
        _runtime,
    ),
)
