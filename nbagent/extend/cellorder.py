"""In which order things stand after a merge of three orders: what one side put in or moved is where that side has it.

Must not know what is put in order. Read `merged_order`.
"""

from __future__ import annotations

import bisect
from collections.abc import Container, Hashable, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def merged_order(base: Sequence[K], ours: Sequence[K], theirs: Sequence[K], kept: Container[K]) -> list[K]:
    """Return the keys that are `kept`, in our order with what they put in and moved at their places.

    Where both put something in at one place, ours comes first; where both moved one thing, it stands where we have it.
    """
    order = [key for key in ours if key in kept]
    our_new = set(ours) - set(base)
    our_moved = _moved(base, ours)
    their_moved = _moved(base, theirs) - our_moved
    here = set(order)
    for place, key in enumerate(theirs):
        if key not in kept or (key in here and key not in their_moved):
            continue
        if key in here:
            order.remove(key)
        before = next((other for other in reversed(theirs[:place]) if other in here), None)
        at = 0 if before is None else order.index(before) + 1
        while at < len(order) and order[at] in our_new and order[at] not in theirs:
            at += 1
        order.insert(at, key)
        here.add(key)
    return order


def _moved(base: Sequence[K], side: Sequence[K]) -> set[K]:
    """Return the fewest keys that a side must have moved."""
    places = {key: place for place, key in enumerate(base)}
    common = [key for key in side if key in places]
    return set(common) - set(_longest_rising(common, [places[key] for key in common]))


def _longest_rising(keys: Sequence[K], places: Sequence[int]) -> list[K]:
    """Return the longest part of `keys` whose places rise."""
    ends: list[int] = []  # the smallest last place of a rising part of each length
    last: list[int] = []  # where in `keys` it is
    before: list[int] = []
    for n, place in enumerate(places):
        length = bisect.bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [n]
    found: list[K] = []
    at = last[-1] if last else -1
    while at >= 0:
        found.append(keys[at])
        at = before[at]
    return found[::-1]
