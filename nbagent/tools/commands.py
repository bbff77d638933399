"""What shell commands, IPython magics and SQL would do, in plain words. Nothing is run; a shell's tricks may hide anything.

It must not know of Python's syntax. Read `said_of_command` and `said_of_magic`.
"""

from __future__ import annotations

import re
import shlex
from urllib.parse import urlsplit

from nbagent.tools.known import GAP
from nbagent.tools.signs import (
    ANSWERS,
    DELETES,
    EXITS,
    INSTALL_LOOKS,
    INSTALL_MAGICS,
    INSTALLS,
    NATIVE,
    NETWORK,
    SHELL,
    SHELL_KILL,
    SHELL_MAGICS,
    UNSEEN,
    UNSEEN_MAGICS,
    URL,
    of_command,
)

WORDS = {
    SHELL: "runs a shell command",
    NETWORK: "goes to the network",
    DELETES: "deletes files",
    INSTALLS: "installs packages",
    UNSEEN: "runs code not shown",
    NATIVE: "calls native code",
    EXITS: EXITS,
    ANSWERS: ANSWERS,
}
"""Each label of a risk as what the code would do."""

CLEARS = "clears all variables (%reset)"
CLEARS_SOME = "deletes variables (%reset_selective)"
RESETS = frozenset({CLEARS, CLEARS_SOME})
CHANGES_FOLDER = "changes the working folder"
CHANGES_ENVIRONMENT = "changes environment variables"
CHANGES_DATABASE = "changes a database"

_SQL = re.compile(
    r"\s*(?:--[^\n]*\n\s*)*(?:WITH\b.*?\)\s*)?"
    r"((?:INSERT|UPDATE|DELETE|DROP|CREATE|ALTER|REPLACE|TRUNCATE|MERGE|VACUUM|ATTACH|COPY|GRANT)\b(?:\s+[\w.\"`\[\]]+){0,4})",
    re.IGNORECASE | re.DOTALL,
)
_SQL_NOISE = re.compile(r"\s+(?:WHERE|SET|VALUES|AS|IF|NOT|EXISTS|SELECT|ADD|ON)\b.*\Z", re.IGNORECASE | re.DOTALL)
_COPY_TO = re.compile(r"\s*COPY\b.*\bTO\s+'([^']+)'", re.IGNORECASE | re.DOTALL)
_NAMES_A_FILE = frozenset({"writefile", "file", "logstart", "save", "notebook"})
_SEPARATES = frozenset({";", "|", "||", "&", "&&", "(", ")", "|&", ";;"})
_BEFORE = frozenset({"sudo", "time", "exec", "then", "do", "else", "nohup", "env"})


def short(text: str, limit: int = 60) -> str:
    """Return a name as it is shown: one line, of bounded length."""
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + GAP


def network(url: str | None) -> str:
    """Return the words for a visit to `url`, with its host where it is known."""
    try:
        host = urlsplit(url.strip()).hostname if url else None
    except ValueError:  # brackets that are no address
        host = None
    return f"{WORDS[NETWORK]} ({short(host)})" if host and GAP not in host else WORDS[NETWORK]


def said_of_sql(statement: str) -> list[str]:
    """Return the words for an SQL statement that changes something, else []."""
    if to_file := _COPY_TO.match(statement):
        return [f"writes {short(to_file[1])}"]
    found = _SQL.match(statement)
    return [f"{CHANGES_DATABASE} ({short(_SQL_NOISE.sub('', found[1]), 40)})"] if found else []


def said_of_command(command: str) -> list[str]:
    """Return the words for a shell command: that it is one, then what is seen in it."""
    labels = of_command(command)
    said = [WORDS[SHELL]]
    if SHELL_KILL.search(command):
        said.append(WORDS[EXITS])
    files = [words for line in command.splitlines() for words in _said_of_line(line)]
    said += files
    if DELETES in labels and not any(words.startswith(("deletes", "moves")) for words in files):
        said.append(WORDS[DELETES])
    if INSTALLS in labels:
        said.append(WORDS[INSTALLS])
    if NETWORK in labels:
        said.append(network(next((word for word in re.split(r"[\s\"']+", command) if URL.match(word)), None)))
    return said


def _said_of_line(line: str) -> list[str]:
    """Return the words for the files that one line of a shell script deletes, moves or writes."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&()<>")
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:  # an open quote
        return []
    said: list[str] = []
    words: list[str] = []
    writes = False
    for token in tokens:
        if writes:
            said += [f"writes {short(token)}"] if token not in {"/dev/null", "&1", "&2", "1", "2"} else []
            writes = False
        elif set(token) <= set("<>&") and ">" in token:
            writes = not token.endswith("&")
            words = words[:-1] if words and words[-1] in {"1", "2"} else words
        elif token in _SEPARATES:
            said += _said_of_words(words)
            words = []
        else:
            words.append(token)
    return [*said, *_said_of_words(words)]


def _said_of_words(words: list[str]) -> list[str]:
    while words and (words[0] in _BEFORE or "=" in words[0]):
        words = words[1:]
    if not words:
        return []
    name, rest = words[0].rpartition("/")[2], words[1:]
    plain = [short(word) for word in rest if not word.startswith("-")]
    folders = any(re.match(r"-\w*[rR]|--recursive", word) for word in rest) or name == "rmdir"
    if name in {"rm", "rmdir", "unlink", "shred", "del"}:
        known = [word for word in plain if word.strip(GAP + "/.*")]
        unknown = [WORDS[DELETES]] if len(known) < len(plain) else []
        return [*(f"deletes {word.rstrip('/')}{'/' * folders}" for word in known), *unknown]
    if name == "mv" and len(plain) > 1:
        return [f"moves {word} to {plain[-1]}" for word in plain[:-1]]
    if (name == "cp" and len(plain) > 1) or (name == "sed" and plain and any(w.startswith("-i") for w in rest)):
        return [f"writes {plain[-1]}"]
    if name in {"touch", "tee"}:
        return [f"writes {word}" for word in plain]
    if name == "mkdir":
        return [f"makes the folder {word.rstrip('/')}/" for word in plain]
    return []


def said_of_magic(name: str, rest: str, body: str = "") -> list[str]:
    """Return the words for an IPython magic that does more than to run its Python, which is looked at apart."""
    first = rest.split(maxsplit=1)[0] if rest.split() else ""
    if name in INSTALL_MAGICS:
        return [] if INSTALL_LOOKS.match(rest) else [WORDS[INSTALLS], *said_of_command(rest)[1:]]
    if name in {"mkdir", "rm", "rmdir", "mv", "cp"} or name in SHELL_MAGICS:
        command = rest if name in {"sx", "system", "sc", "script"} else f"{name} {rest}"
        return [] if name in {"alias", "edit", "ed"} and not rest else said_of_command(command)
    if name in UNSEEN_MAGICS:
        return [WORDS[UNSEEN], *([network(first)] if URL.match(first) else [])]
    if name in {"env", "set_env"}:
        return [CHANGES_ENVIRONMENT] if len(rest.split()) > 1 or "=" in rest else []
    if name in {"cd", "pushd", "popd"}:
        return [CHANGES_FOLDER]
    if name == "reset":
        return [CLEARS] if not re.search(r"\b(?:in|out|dhist|array)\b", rest) else []
    if name == "reset_selective":
        return [CLEARS_SOME]
    if name == "sql":
        return said_of_sql(body or rest)
    if name == "pastebin":
        return [WORDS[NETWORK]]
    if name in _NAMES_A_FILE:
        named = [word for word in rest.split() if not word.startswith("-")]
        return [f"writes {short(named[0])}" if named else "writes a file"]
    if name in {"history", "hist"} and (found := re.search(r"-f\s+(\S+)", rest)):
        return [f"writes {short(found[1])}"]
    return []
