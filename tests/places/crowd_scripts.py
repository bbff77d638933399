"""What agents in the background do in the random test with real cells: `scripted:tests.places.crowd_scripts:crowd`."""

from __future__ import annotations

import random

from nbagent.models.scripted import ScriptedModel, call

PIECES = (
    "with mark({0!r}): pass",
    "with mark({0!r}):\n    sum(range(300_000))",
    "with mark({0!r}):\n    from tests.support.turns import turns\n    await turns(100)",
    "with mark({0!r}): 1 / 0",
    "with mark({0!r}):\n    import asyncio\n    await asyncio.wait_for(asyncio.Event().wait(), 6)",
)


def crowd() -> ScriptedModel:
    """Between two and five calls at random: code that is asked about, and looks at the variables."""
    dice = random.Random(random.getrandbits(32))
    names = [f"agent {dice.getrandbits(32):x}" for _ in range(dice.randint(2, 5))]
    calls = [call("run_python", code=dice.choices(PIECES, [4, 4, 4, 2, 1])[0].format(name)) for name in names]
    return ScriptedModel([*calls, call("list_variables"), "done"])
