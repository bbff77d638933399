"""`%agent compare A B`: two sessions from the point where they part, side by side.

Reads the sessions' files; what is drawn is `view/compare.py`. Read `compare`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from nbagent.app.finding import find, outlines
from nbagent.core.errors import ConfigError
from nbagent.core.events import Event
from nbagent.core.events_json import from_json
from nbagent.core.messages import Json, Message
from nbagent.core.seeding import seed
from nbagent.extend.sessions import Outline, Stored, read_session
from nbagent.extend.sessions_read import prompt_of, prompts
from nbagent.view.compare import Side, compared
from nbagent.view.fold import fold_all

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

USAGE = (
    "%agent compare A B: two sessions, by id, name or variable; without them, the two newest branches of one session."
)

STILL = "“{}” still runs: what is compared is what it had done when this was asked."
LATER = " Branches in the background count when they have ended."


def compare(extension: Extension, rest: str) -> str:
    """Carry out `%agent compare [A B]`: display them side by side and return ""."""
    try:
        words = shlex.split(rest)
    except ValueError:
        words = rest.split()
    if len(words) not in {0, 2}:
        raise ConfigError(USAGE)
    pair = [_meant(extension, word) for word in words] if words else _newest(extension)
    from IPython.display import display

    for one in pair:
        if (run := extension.underway.in_session(one.id)) is not None:
            print(STILL.format(run.who))  # noqa: T201  (beside what is displayed)
    display(bundle(extension, *pair), raw=True)
    return ""


def bundle(extension: Extension, one: Outline, other: Outline) -> dict[str, str]:
    """Return the comparison of two sessions as a MIME bundle: text/html, text/markdown, text/plain."""
    first, second = (read_session(outline.path, extension.seals) for outline in (one, other))
    if first is None or second is None or one.id == other.id:
        raise ConfigError(f"{USAGE} There must be two.")
    shared = common(first.messages, second.messages)
    place = [where for where in prompts(first.messages) if where < shared]
    since = prompt_of(first.messages[place[-1]]) if place else ""
    return compared(_side(one, first, shared), _side(other, second, shared), since, len(place))


def common(one: tuple[Message, ...], other: tuple[Message, ...]) -> int:
    """Return how many messages two transcripts begin with alike, whatever was thought."""
    pairs = zip(seed(one), seed(other), strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _side(one: Outline, found: Stored, shared: int) -> Side:
    runs = [run for run in found.runs if run.first >= shared]
    views = [fold_all(_events(run.events)) for run in runs]
    ways = one.about.get("ways")
    tools = ways.get("tools") if isinstance(ways, dict) else None
    names = tuple(str(tool) for tool in tools) if isinstance(tools, list) else ()
    return Side(one.id, one.title, names, tuple(views))


def _events(kept: tuple[Json, ...]) -> list[Event]:
    events: list[Event] = []
    for data in kept:
        try:
            event = from_json(data)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
        if event is not None:
            events.append(event)
    return events


def _meant(extension: Extension, word: str) -> Outline:
    """Return the session that a word means: a variable that holds an Answer or a Branch, or as for %agent resume."""
    held = extension.shell.user_ns.get(word) if word.isidentifier() else None
    session = getattr(held, "session_id", None)
    return find(extension.folder, session if isinstance(session, str) and session else word)


def _newest(extension: Extension) -> list[Outline]:
    """Return the two newest branches that leave one session at one point, the older one first."""
    seen: dict[str, Outline] = {}
    for one in outlines(extension.folder):
        origin = one.about.get("forked_from")
        if not one.about.get("beside") or not isinstance(origin, dict) or not one.runs:
            continue
        key = str(sorted(origin.items()))
        if key in seen:
            return sorted((seen[key], one), key=lambda outline: outline.id)
        seen[key] = one
    later = LATER if extension.underway.background else ""
    raise ConfigError(f"There are no two branches of one session yet.{later} {USAGE}")
