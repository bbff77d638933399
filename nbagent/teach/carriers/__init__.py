"""The same small agent, carried in five ways: recursion, an event emitter, a state machine, a reactive pipeline, an async generator.

Each module has the loop as a good engineer of that style would write it, and a `consume` that uses it the way its users do: a
consumer is given each event, may take its time, and may have enough. What differs between them is measured in `nbagent.teach.matrix`.
"""

from __future__ import annotations

from types import ModuleType

from nbagent.teach.carriers import emitter, generator, machine, reactive, recursion

CARRIERS: dict[str, ModuleType] = {
    "recursion": recursion,
    "event emitter": emitter,
    "state machine": machine,
    "reactive": reactive,
    "async generator": generator,
}
"""Name → module, in the order of the seed's table; `reactive` is its second table's."""
