"""Scripts of the eleven capabilities, named in tests as `scripted:tests.seeds.scripts:NAME`."""

from __future__ import annotations

from nbagent.models.scripted import ScriptedModel, call, last_results, prompt_text


def results(transcript) -> str:
    return "\n".join(last_results(transcript)) or "nothing"


def removes() -> list:
    return [[call("shell", command="rm a.txt"), call("shell", command="echo done > b.txt")], results]


def hears() -> list:
    return [lambda transcript: str([m["content"] for m in transcript if m["role"] == "user"])]


def writes() -> list:
    turn = [
        call("write_file", path="made.txt", content="made"),
        call("run_python", code="made = 1"),
        call("shell", command="echo x > shell.txt"),
        call("list_variables"),
    ]
    return [turn, results]


def plans() -> list:
    return [
        [call("exit_plan", plan="1. Write made.txt.")],
        [call("write_file", path="made.txt", content="made")],
        results,
    ]


def delegates() -> list:
    """Three tasks in one reply; each subagent wants a subagent of its own."""
    kinds = [call("task", description=f"n{n}", prompt=f"number {n}", agent="worker") for n in range(3)]
    return [kinds, results]


def works() -> ScriptedModel:
    return ScriptedModel([call("task", description="more", prompt="more"), prompt_text], name="worker")


def hands_over() -> list:
    """Gives the test suite to a subagent in the background and ends its turn."""
    suite = call("task", description="run the tests", prompt="Run them.", agent="tester", run_in_background=True)
    return [suite, "The tests run; I go on."]


def long_work() -> ScriptedModel:
    return ScriptedModel([call("shell", command="cat suite"), results], name="tester")


def small() -> ScriptedModel:
    return ScriptedModel(["small"], name="small")


def large() -> ScriptedModel:
    return ScriptedModel([lambda transcript: f"large, after {len(transcript)} messages"], name="large")


def echoes() -> list:
    return [[call("mcp__s__echo", what="hello")], results]


def remembers() -> list:
    return [[call("remember", note="The fiscal year begins in April.", replaces="")], results]


def careful() -> list:
    """Runs a command, loads a skill, runs another command."""
    return [
        [call("shell", command="echo a > a.txt")],
        [call("skill", skill="careful")],
        [call("shell", command="echo b > b.txt")],
        results,
    ]


def cleans() -> list:
    """Loads a skill whose text begins with a command."""
    return [[call("skill", skill="cleaner")], results]
