"""What `%agent …` says: one small function a subcommand, each returns text, or a coroutine of text if it has to wait.

Most live elsewhere and are named in `COMMANDS` only.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Self

from nbagent.core.errors import ConfigError
from nbagent.core.policy import Mode

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

Said = str | Coroutine[Any, Any, str]
Command = Callable[["Extension", str], Said]
"""Carries out one subcommand with the words after it."""


class Checked(str):
    """What to say at once; where something can be waited for, `whole` is said in its place."""

    __slots__ = ("whole",)

    def __new__(cls, text: str, whole: Callable[[], Awaitable[str]]) -> Self:
        """Make it of the text and of what gives the whole text."""
        made = super().__new__(cls, text)
        made.whole = whole
        return made

    whole: Callable[[], Awaitable[str]]


class Linked(str):
    """What to say, where a page can show it as Markdown with links: `markdown` says the same."""

    __slots__ = ("markdown",)

    def __new__(cls, text: str, markdown: str) -> Self:
        """Make it of the plain text and of the same as Markdown."""
        made = super().__new__(cls, text)
        made.markdown = markdown
        return made

    markdown: str


def command(extension: Extension, line: str) -> Said:
    """Carry out the subcommand in `line` and return what it says; raise `ConfigError` for one that does not exist."""
    name, _, rest = line.strip().partition(" ")
    if name.startswith("/"):
        return _called(extension, line.strip())
    found = COMMANDS.get(name or "help")
    if found is None:
        near = difflib.get_close_matches(name, COMMANDS, 1, 0.5)
        hint = f"Did you mean %agent {near[0]}?" if near else f"There are: {', '.join(COMMANDS)}."
        raise ConfigError(f"%agent: there is no subcommand {name!r}. {hint} (A task goes into a %%agent cell.)")
    return (_imported(found) if isinstance(found, str) else found)(extension, rest.strip())


def _imported(place: str) -> Command:
    """Return the function at `module:name`; it is imported when it is first called, so that loading nbagent stays cheap."""
    module, _, name = place.partition(":")
    function: Command = getattr(importlib.import_module(module), name)
    return function


def _status(extension: Extension, _: str) -> str:
    settings, conversation = extension.settings(), extension.last
    from nbagent.app.underway_commands import running
    from nbagent.models.catalog import DEFAULT_MODEL

    lines = [
        f"model    {settings.model or DEFAULT_MODEL}",
        f"mode     {settings.mode}",
        f"running  {running(extension)}",
    ]
    if conversation is not None:
        session = conversation.session
        file, problem = conversation.store.path, conversation.store.problem
        cost = "unknown" if session.cost is None else f"${session.cost:.4f}"
        lines += [
            f"session  {session.id} ({len(session.transcript)} messages)",
            f"file     {f'none: in memory only ({problem})' if problem else file}",
            f"tokens   {session.usage.total:,} (cost {cost})",
        ]
    if settings.ignored:
        lines.append(f"ignored  {'; '.join(settings.ignored)} (a project's file may only narrow what is allowed)")
    return "\n".join(lines)


def _mode(extension: Extension, name: str) -> str:
    if not name:
        return f"The mode is {extension.mode()}. %agent mode MODE sets another: {', '.join(Mode)}."
    if name not in set(Mode):
        near = difflib.get_close_matches(name, list(Mode), 1)
        hint = f"Did you mean {near[0]}?" if near else f"The modes are {', '.join(Mode)}."
        raise ConfigError(f"There is no mode {name!r}. {hint}")
    extension.choose(mode=name)
    return f"The mode is {name} from the next %%agent cell on."


def _rules(extension: Extension, rest: str) -> str:
    from nbagent.app.ruling import report
    from nbagent.app.runtools import named_tools

    return report(extension, rest, named_tools(extension) if rest else {})


def _prompt(extension: Extension, _: str) -> str:
    from nbagent.prompt import compose

    settings = extension.settings()
    return compose(settings.prompt, settings.system_append)


def _doctor(extension: Extension, _: str) -> str:
    from nbagent.app.doctor import examine, report

    return report(examine(extension.settings(), extension.folder))


def _traceback(extension: Extension, _: str) -> str:
    return extension.traceback or "No internal error so far."


def _called(extension: Extension, line: str) -> Said:
    from nbagent.app.skills import called

    return called(extension, line)


def _todos(extension: Extension, _: str) -> str:
    from nbagent.app.todos import listed

    return listed(extension)


def _help(_: Extension, __: str) -> str:
    return (
        "%%agent [options]          run a task in this notebook; %%agent? lists the options\n"
        "%%ask                      ask about the notebook: looks and answers, changes and runs nothing\n"
        "   in a prompt             @df, @df.price, @cell:7, @sales.csv, @last_error, @plot say which one you mean; Tab completes\n"
        "%agent status              model, mode, session, tokens, cost\n"
        "%agent stop [ID | all]     stop the run, or one in the background\n"
        "%agent allow [N [CODE]]    say yes without a button: to what waits, or to a refused call for the next run\n"
        "%agent deny [N] [WORDS]    say no to it, and what to do instead; N counts as in the tray, oldest first\n"
        "%agent keep [N] [off]      mark the last cell, or In[N], as one not to be run again without asking you\n"
        "%agent undo                take back what the last run did; again for the one before; %agent redo does it again\n"
        "%agent forget              let go of what undo would need\n"
        "%agent fix [WORDS]         repair the cell that failed last; the repair is shown before it is made\n"
        "%agent history [N]         the runs so far, newest first; with N the record of one\n"
        "%agent trace [N]           the loop of the last run, or of run N, opened up: [--turn N] [--save FILE.html]\n"
        "%agent sessions [--all]    the sessions of this notebook, or of the folder; with an ID its prompts by number\n"
        "%agent resume [ID]         go on in that session (an ID, its beginning, or a name), or in the last one\n"
        "%agent fork [--at N] [ID]  go on in a copy of this session, or of ID, after its first N prompts\n"
        "%agent rename NAME         name this session; %agent delete ID deletes one, after asking you\n"
        "%agent compare [A B]       two branches side by side: answers, calls, turns, cost\n"
        "%agent export [FILE]       a notebook without agent cells; FILE.md is Markdown, FILE.py a script\n"
        "%agent continue [WORDS]    go on with the run that was stopped, with its options; WORDS and options may say more\n"
        "%agent record FILE [N]     a recording of a run that is over; --lesson NAME.ipynb: a lesson about it\n"
        "%agent replay FILE         what is in a recording; %%agent --replay FILE plays it\n"
        "%agent context             what fills the model's context window, as a picture\n"
        "%agent compact [WORDS]     sum the conversation up now, so that there is room; WORDS say what to keep of it\n"
        "%agent ask QUESTION        the same on one line\n"
        "%agent explain [WHAT]      the cell above, or: cell N | output N | error | notebook | NAME\n"
        "%agent review [N … | notebook] looks at the method: leakage, wrong tests, lost rows; with lines that are checked\n"
        "%agent report [-o FILE]    the analysis as a page: --to html | md, --title T, --no-code, --write (a summary first)\n"
        "%agent explore WORDS       a subagent that only looks finds it out: [quick | medium | very thorough] what to look for\n"
        "%agent plan WORDS          look and plan first; you see the plan and agree, change it or say what to think over\n"
        "%agent agents              what runs now, and the kinds of subagents; watch ID | stop ID | stop all | front ID (wait for it)\n"
        '%agent team "GOAL"          a lead and teammates reach it side by side; alone: how it stands; accept, discard, log\n'
        "%agent tidy                proposes merges, splits, moved imports, dead cells, in one card; --names: better names, too\n"
        "%agent verify              runs a copy in a clean kernel and says what differs: [--timeout S] [--seed]\n"
        "%agent todos               the to-do list of the conversation\n"
        "%agent model [NAME]        what is used, by whom; opus, sonnet, haiku, an id of your server, or ENDPOINT/ID\n"
        "%agent web [on | off]      whether the model's server may search the web and read pages\n"
        "%agent mode MODE           " + ", ".join(Mode) + "\n"
        "%agent hooks               the hooks that are asked, and those that wait for your trust\n"
        "%agent mcp                 the MCP servers: list, status, add, remove, restart\n"
        "%agent skill [NAME …]      the skills and commands; with a name it calls one, as %agent /NAME does\n"
        "%agent memory [TOPIC]      the notes that the agent keeps on this project; forget TOPIC | off | on\n"
        "%agent trust               what of this folder's files runs or widens, and what you said of it; yes | no | forget\n"
        "%agent lesson              what a teacher has set for this notebook, and how its exercises stand\n"
        "%agent hint [NN.word]      the next of three hints for the exercise above, or for that one; then the answer\n"
        "%agent hide [NAME …]       variables that the model is not shown: names, raw_*, df.ssn; alone it lists them\n"
        "%agent schema-only NAME …  variables of which it is told names, types and sizes, never values\n"
        "%agent show NAME …         show them again\n"
        "%agent sent                what the last run sent, word for word; --session all of it; --raw N one as JSON\n"
        "%agent rules [TOOL ARGS]   what is allowed, asked and denied; for a call, which rule decides and why\n"
        "%agent prompt              the system prompt\n"
        "%agent doctor              what works here and what is missing\n"
        "%agent traceback           the last internal error\n"
        '@nbagent.describer("mylib.Graph")  above a function: what the agent is told of an object of yours (docs/data.md)'
    )


COMMANDS: dict[str, Command | str] = {
    "status": _status,
    "stop": "nbagent.app.underway_commands:stop",
    "allow": "nbagent.app.refused:allow",
    "deny": "nbagent.app.refused:deny",
    "keep": "nbagent.app.keep:keep",
    "undo": "nbagent.app.undo_commands:undo",
    "redo": "nbagent.app.undo_commands:redo",
    "forget": "nbagent.app.undo_commands:forget",
    "fix": "nbagent.app.fix:fix",
    "history": "nbagent.app.history:history",
    "trace": "nbagent.app.trace:trace",
    "sessions": "nbagent.app.sessions:sessions",
    "resume": "nbagent.app.sessions:resume",
    "fork": "nbagent.app.sessions:fork",
    "rename": "nbagent.app.sessions:rename",
    "delete": "nbagent.app.sessions:delete",
    "compare": "nbagent.app.compare:compare",
    "export": "nbagent.app.export:export",
    "record": "nbagent.app.recording_commands:record",
    "replay": "nbagent.app.recording_commands:replay",
    "hooks": "nbagent.app.hooks:command",
    "mcp": "nbagent.app.mcp:command",
    "continue": "nbagent.app.continuing:continue_run",
    "context": "nbagent.app.filling:context",
    "compact": "nbagent.app.compacting:compact",
    "ask": "nbagent.app.ask:ask",
    "explain": "nbagent.app.ask:explain",
    "review": "nbagent.app.review:review",
    "report": "nbagent.app.report:report",
    "explore": "nbagent.app.agents:explore",
    "plan": "nbagent.app.agents:planned",
    "agents": "nbagent.app.underway_commands:agents",
    "team": "nbagent.app.teamcommands:team",
    "verify": "nbagent.app.verify:verify",
    "tidy": "nbagent.app.tidy:tidy",
    "todos": _todos,
    "lesson": "nbagent.app.lesson:command",
    "hint": "nbagent.app.lesson:hints",
    "hide": "nbagent.app.privacy:hide",
    "schema-only": "nbagent.app.privacy:schema_only",
    "show": "nbagent.app.privacy:show",
    "sent": "nbagent.app.sent:sent",
    "model": "nbagent.app.model_command:command",
    "web": "nbagent.app.web:command",
    "mode": _mode,
    "skill": "nbagent.app.skills:command",
    "memory": "nbagent.app.memory:command",
    "trust": "nbagent.app.trusting:command",
    "rules": _rules,
    "prompt": _prompt,
    "doctor": _doctor,
    "traceback": _traceback,
    "help": _help,
}
