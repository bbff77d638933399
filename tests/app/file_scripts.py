"""Scripts of runs in a folder with files of its own, named in tests as `scripted:tests.app.file_scripts:NAME`."""

from __future__ import annotations

from nbagent.models.scripted import ScriptedModel, call, result_of


def _last(seen: object) -> str:
    """All that the last message of the user's has."""
    return "\n".join(str(block.get("text", "")) for block in list(seen)[-1]["content"])  # type: ignore[call-overload]


def heard() -> ScriptedModel:
    """Says what it was told in this run."""
    return ScriptedModel([_last])


def task_of() -> ScriptedModel:
    """A subagent that says what its task is."""
    return ScriptedModel([_last])


def other() -> ScriptedModel:
    """Says that it is another."""
    return ScriptedModel(["the other model"])


def touches() -> ScriptedModel:
    """Makes a file by a command."""
    return ScriptedModel([call("shell", command="touch made.txt"), "done"])


def reads_twice() -> ScriptedModel:
    """Reads a file two times and says what came of each."""
    first: list[str] = []
    return ScriptedModel(
        [
            call("read_file", path="sub/q.sql"),
            lambda seen: first.append(result_of(seen, "read_file")) or call("read_file", path="sub/q.sql"),
            lambda seen: f"{first[0]}====={result_of(seen, 'read_file')}",
        ]
    )


def delegates_reading() -> ScriptedModel:
    """Has a subagent read a file and say what came of it; both play one script in turns."""
    return ScriptedModel(
        [
            call("task", description="read", prompt="read it", agent="Explore"),
            call("read_file", path="sub/q.sql"),
            lambda seen: result_of(seen, "read_file"),
            lambda seen: result_of(seen, "task"),
        ]
    )


def loads() -> ScriptedModel:
    """Loads a skill, one of its files, and one that it may not load; says what came of each."""
    said: list[str] = []

    def next_one(**given: str) -> object:
        return lambda seen: said.append(result_of(seen, "skill")) or call("skill", **given)

    return ScriptedModel(
        [
            call("skill", skill="report"),
            next_one(skill="report", file="style.md"),
            next_one(skill="deploy"),
            lambda seen: "\n".join([*said, result_of(seen, "skill")]),
        ]
    )


def loads_then_touches() -> ScriptedModel:
    """Loads a skill and makes a file by a command."""
    return ScriptedModel(
        [call("skill", skill="report"), call("shell", command="touch made.txt"), lambda seen: result_of(seen, "skill")]
    )


def child_loads_then_touches() -> ScriptedModel:
    """Has a subagent load a skill; then both make a file by a command."""
    return ScriptedModel(
        [
            call("task", description="load", prompt="load it"),
            call("skill", skill="report"),
            call("shell", command="touch made.txt"),
            "child done",
            call("shell", command="touch made.txt"),
            "done",
        ]
    )


def remembers() -> ScriptedModel:
    """Keeps two notes."""
    return ScriptedModel(
        [
            [call("remember", note="Prices are net."), call("remember", note="Odd codes.", topic="codes")],
            "kept",
        ]
    )


def delegates_a_skill() -> ScriptedModel:
    """Has a subagent load a skill; both play one script in turns."""
    return ScriptedModel(
        [
            call("task", description="explain", prompt="explain it", agent="general-purpose"),
            call("skill", skill="deep"),
            lambda seen: result_of(seen, "skill"),
            lambda seen: result_of(seen, "task"),
        ]
    )


def delegates_then_touches() -> ScriptedModel:
    """Has a subagent load a skill, then makes a file by a command of its own; both play one script in turns."""
    return ScriptedModel(
        [
            call("task", description="guard", prompt="load it", agent="general-purpose"),
            call("skill", skill="guarded"),
            lambda seen: result_of(seen, "skill"),
            call("shell", command="touch made.txt"),
            lambda seen: f"{result_of(seen, 'task')}\n{result_of(seen, 'shell')}",
        ]
    )
