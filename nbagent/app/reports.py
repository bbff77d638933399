"""What `%agent …` says: one small function a subcommand, each returns text, or a coroutine of text if it has to wait."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Self

from nbagent.core.errors import ConfigError
from nbagent.core.policy import Mode

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

Said = str | Coroutine[Any, Any, str]


class Checked(str):
    """What to say at once; where something can be waited for, `whole` is said in its place."""

    __slots__ = ("whole",)

    def __new__(cls, text: str, whole: Callable[[], Awaitable[str]]) -> Self:
        """Make it of the text and of what gives the whole text."""
        made = super().__new__(cls, text)
        made.whole = whole
        return made

    whole: Callable[[], Awaitable[str]]


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
    return found(extension, rest.strip())


def _status(extension: Extension, _: str) -> str:
    settings, conversation = extension.settings(), extension.last
    from nbagent.models.catalog import DEFAULT_MODEL

    lines = [
        f"model    {settings.model or DEFAULT_MODEL}",
        f"mode     {settings.mode}",
        f"running  {'yes' if extension.stop is not None else 'no'}",
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


def _stop(extension: Extension, _: str) -> str:
    if extension.stop is None:
        return "No agent is running."
    extension.on_loop(extension.stop.now)
    return "Stopping."


def _allow(extension: Extension, rest: str) -> str:
    from nbagent.app.refused import allow

    return allow(extension, rest)


def _deny(extension: Extension, words: str) -> str:
    from nbagent.app.refused import deny

    return deny(extension, words)


def _keep(extension: Extension, rest: str) -> Said:
    from nbagent.app.keep import keep

    return keep(extension, rest)


def _model(extension: Extension, rest: str) -> str:
    from nbagent.app.model_command import command as model_command

    return model_command(extension, rest)


def _web(extension: Extension, rest: str) -> str:
    from nbagent.app.web import command as web_command

    return web_command(extension, rest)


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


def _fix(extension: Extension, rest: str) -> Said:
    from nbagent.app.fix import fix

    return fix(extension, rest)


def _export(extension: Extension, rest: str) -> Said:
    from nbagent.app.export import export

    return export(extension, rest)


def _history(extension: Extension, rest: str) -> str:
    from nbagent.app.history import history

    return history(extension, rest)


def _undo(extension: Extension, rest: str) -> Said:
    from nbagent.app.undo_commands import undo

    return undo(extension, rest)


def _redo(extension: Extension, rest: str) -> Said:
    from nbagent.app.undo_commands import redo

    return redo(extension, rest)


def _forget(extension: Extension, rest: str) -> Said:
    from nbagent.app.undo_commands import forget

    return forget(extension, rest)


def _hooks(extension: Extension, rest: str) -> str:
    from nbagent.app.hooks import command as hooks_command

    return hooks_command(extension, rest)


def _mcp(extension: Extension, rest: str) -> Said:
    from nbagent.app.mcp import command

    return command(extension, rest)


def _continue(extension: Extension, rest: str) -> Said:
    from nbagent.app.continuing import continue_run

    return continue_run(extension, rest)


def _context(extension: Extension, rest: str) -> Said:
    from nbagent.app.filling import context

    return context(extension, rest)


def _compact(extension: Extension, rest: str) -> Said:
    from nbagent.app.compacting import compact

    return compact(extension, rest)


def _hide(extension: Extension, rest: str) -> str:
    from nbagent.app.privacy import hide

    return hide(extension, rest)


def _schema_only(extension: Extension, rest: str) -> str:
    from nbagent.app.privacy import schema_only

    return schema_only(extension, rest)


def _show(extension: Extension, rest: str) -> str:
    from nbagent.app.privacy import show

    return show(extension, rest)


def _sent(extension: Extension, rest: str) -> str:
    from nbagent.app.sent import sent

    return sent(extension, rest)


def _explore(extension: Extension, rest: str) -> Said:
    from nbagent.app.agents import explore

    return explore(extension, rest)


def _plan(extension: Extension, rest: str) -> Said:
    from nbagent.app.agents import planned

    return planned(extension, rest)


def _agents(extension: Extension, _: str) -> str:
    from nbagent.app.agents import listed

    return listed(extension)


def _called(extension: Extension, line: str) -> Said:
    from nbagent.app.skills import called

    return called(extension, line)


def _skill(extension: Extension, rest: str) -> Said:
    from nbagent.app.skills import command

    return command(extension, rest)


def _memory(extension: Extension, rest: str) -> str:
    from nbagent.app.memory import command

    return command(extension, rest)


def _trust(extension: Extension, rest: str) -> Said:
    from nbagent.app.trusting import command

    return command(extension, rest)


def _todos(extension: Extension, _: str) -> str:
    from nbagent.app.todos import listed

    return listed(extension)


def _sessions(extension: Extension, rest: str) -> str:
    from nbagent.app.sessions import sessions

    return sessions(extension, rest)


def _resume(extension: Extension, rest: str) -> str:
    from nbagent.app.sessions import resume

    return resume(extension, rest)


def _fork(extension: Extension, rest: str) -> str:
    from nbagent.app.sessions import fork

    return fork(extension, rest)


def _rename(extension: Extension, rest: str) -> str:
    from nbagent.app.sessions import rename

    return rename(extension, rest)


def _delete(extension: Extension, rest: str) -> str:
    from nbagent.app.sessions import delete

    return delete(extension, rest)


def _compare(extension: Extension, rest: str) -> str:
    from nbagent.app.compare import compare

    return compare(extension, rest)


def _help(_: Extension, __: str) -> str:
    return (
        "%%agent [options]          run a task in this notebook; %%agent? lists the options\n"
        "%agent status              model, mode, session, tokens, cost\n"
        "%agent stop                stop the run\n"
        "%agent allow [N [CODE]]    say yes without a button: to what waits, or to a refused call for the next run\n"
        "%agent deny [WORDS]        say no to it, and what to do instead\n"
        "%agent keep [N] [off]      mark the last cell, or In[N], as one not to be run again without asking you\n"
        "%agent undo                take back what the last run did; again for the one before; %agent redo does it again\n"
        "%agent forget              let go of what undo would need\n"
        "%agent fix [WORDS]         repair the cell that failed last; the repair is shown before it is made\n"
        "%agent history [N]         the runs so far, newest first; with N the record of one\n"
        "%agent sessions [--all]    the sessions of this notebook, or of the folder; with an ID its prompts by number\n"
        "%agent resume [ID]         go on in that session (an ID, its beginning, or a name), or in the last one\n"
        "%agent fork [--at N] [ID]  go on in a copy of this session, or of ID, after its first N prompts\n"
        "%agent rename NAME         name this session; %agent delete ID deletes one, after asking you\n"
        "%agent compare [A B]       two branches side by side: answers, calls, turns, cost\n"
        "%agent export [FILE]       a notebook without agent cells; FILE.md is Markdown, FILE.py a script\n"
        "%agent continue [WORDS]    go on with the run that was stopped, with its options; WORDS and options may say more\n"
        "%agent context             what fills the model's context window, as a picture\n"
        "%agent compact [WORDS]     sum the conversation up now, so that there is room; WORDS say what to keep of it\n"
        "%agent explore WORDS       a subagent that only looks finds it out: [quick | medium | very thorough] what to look for\n"
        "%agent plan WORDS          look and plan first; you see the plan and agree, change it or say what to think over\n"
        "%agent agents              the kinds of subagents\n"
        "%agent todos               the to-do list of the conversation\n"
        "%agent model [NAME]        what is used, by whom; opus, sonnet, haiku, an id of your server, or ENDPOINT/ID\n"
        "%agent web [on | off]      whether the model's server may search the web and read pages\n"
        "%agent mode MODE           " + ", ".join(Mode) + "\n"
        "%agent hooks               the hooks that are asked, and those that wait for your trust\n"
        "%agent mcp                 the MCP servers: list, status, add, remove, restart\n"
        "%agent skill [NAME …]      the skills and commands; with a name it calls one, as %agent /NAME does\n"
        "%agent memory [TOPIC]      the notes that the agent keeps on this project; forget TOPIC | off | on\n"
        "%agent trust               what of this folder's files runs or widens, and what you said of it; yes | no | forget\n"
        "%agent hide [NAME …]       variables that the model is not shown: names, raw_*, df.ssn; alone it lists them\n"
        "%agent schema-only NAME …  variables of which it is told names, types and sizes, never values\n"
        "%agent show NAME …         show them again\n"
        "%agent sent                what the last run sent, word for word; --session all of it; --raw N one as JSON\n"
        "%agent rules [TOOL ARGS]   what is allowed, asked and denied; for a call, which rule decides and why\n"
        "%agent prompt              the system prompt\n"
        "%agent doctor              what works here and what is missing\n"
        "%agent traceback           the last internal error"
    )


COMMANDS: dict[str, Callable[[Extension, str], Said]] = {
    "status": _status,
    "stop": _stop,
    "allow": _allow,
    "deny": _deny,
    "keep": _keep,
    "undo": _undo,
    "redo": _redo,
    "forget": _forget,
    "fix": _fix,
    "history": _history,
    "sessions": _sessions,
    "resume": _resume,
    "fork": _fork,
    "rename": _rename,
    "delete": _delete,
    "compare": _compare,
    "export": _export,
    "hooks": _hooks,
    "mcp": _mcp,
    "continue": _continue,
    "context": _context,
    "compact": _compact,
    "explore": _explore,
    "plan": _plan,
    "agents": _agents,
    "todos": _todos,
    "hide": _hide,
    "schema-only": _schema_only,
    "show": _show,
    "sent": _sent,
    "model": _model,
    "web": _web,
    "mode": _mode,
    "skill": _skill,
    "memory": _memory,
    "trust": _trust,
    "rules": _rules,
    "prompt": _prompt,
    "doctor": _doctor,
    "traceback": _traceback,
    "help": _help,
}
