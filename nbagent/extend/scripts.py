"""Which of a project's own files would run with a command: what trust in the command is bound to, too.

Reads a command only as far as names of files go: quoted commands inside of it, folders that it goes to, redirections,
options, modules, patterns. A file too many costs one more question; one too few runs what nobody saw. What a script
loads by itself is not followed. Must not know of settings or of trust. Read `scripts_of`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

from nbagent.extend.places import Places
from nbagent.extend.textfiles import is_inside, read_bytes, sha256, tree_digest

PROJECT = ("CLAUDE_PROJECT_DIR", "NBAGENT_PROJECT_DIR")
"""Variables that stand for the project's folder."""
_LIMIT = 8 * 1024 * 1024
_KINDS = (
    *(".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".ps1", ".psm1", ".cmd", ".bat"),
    ".exe",
)
_MEANS = {
    "make": ("Makefile", "makefile", "GNUmakefile"), "just": ("justfile", "Justfile"), "task": ("Taskfile.yml",),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "bun"), ("package.json",)), "tox": ("tox.ini",),
    "pre-commit": (".pre-commit-config.yaml",),
}  # fmt: skip
"""Programs that run what a file of the folder says, without its name in the command."""
_LEFT_OUT = (".py", ".js", ".mjs", ".cjs", ".ts", "/__main__.py", "/index.js")
_FOLDER = re.compile(rf"\$(?:\{{(?:{'|'.join(PROJECT)})(?::-[^}}]*)?\}}|(?:{'|'.join(PROJECT)})\b)")
_DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")
_UNKNOWN = re.compile(r"\A(?:\$\w+|\$\{[^}]*\})?/+")
"""How a path begins whose first part only the shell knows: `$X/a`, or `/a` after `$(…)`."""
_INTO = frozenset({">", ">>", ">|", "&>", "&>>"})
"""After these stands what a command writes into: it does not run, and a log must not take the trust away."""
_AROUND = "();|&<>'\"`{}"
_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_PATTERN = re.compile(r"[*?\[]")
_DEEP, _MOST, _FOUND = 3, 2_000, 200


def scripts_of(words: Sequence[str], places: Places) -> list[str]:
    """Return name and hash of each of the project's own files that commands name: what would run with them."""
    return [f"{places.shown(path)} {_digest(path)}" for path in _files(words, places)]


def _digest(path: Path) -> str:
    """Return the hash of a script; one below `.claude` or `.nbagent` counts with the scripts beside it, which it may call."""
    try:
        own = sha256(read_bytes(path, _LIMIT))
    except (OSError, ValueError) as error:
        return f"unreadable: {error}"
    beside = {".claude", ".nbagent"} & set(path.parent.parts)
    return own + (tree_digest(path.parent, _KINDS) or "too many files beside it") if beside else own


def _files(words: Sequence[str], places: Places) -> list[Path]:
    """Return the files of the project that a command names, from each folder that it may be run in or goes to."""
    found: dict[Path, None] = {}
    for top in places.upward():
        tokens = list(islice((token for text in words for token in _tokens(_with_folder(text, top), _DEEP)), _MOST))
        named = list(dict.fromkeys(name for token in tokens for name in _spellings(token)))
        gone_to = [path for name in named for path in [top / name] if name and _is_folder(path, places.root)]
        for base in dict.fromkeys((top, *gone_to)):
            for name in _meant(named):
                path = base / name
                if len(found) < _FOUND and len(name) < 4096 and _is_file(path) and is_inside(path, places.root):
                    found[path] = None
                if _PATTERN.search(name) and any(map(str.isalnum, name)):  # not the * of a rule, which is anything
                    found |= dict.fromkeys(path for path in _fitting(base, name) if is_inside(path, places.root))
    return list(found)


def _tokens(text: str, deep: int) -> Iterator[str]:
    """Yield the words of a command, and those of the commands that are quoted in it."""
    shielded = _QUOTED.sub(lambda found: found[0].replace(">", "\0"), text)  # a quoted > is none of the shell's
    lexer = shlex.shlex(shielded, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:  # a quote without its other half
        words = text.split()
    for before, shown in pairwise(["", *words]):
        if before in _INTO:
            continue
        word = shown.replace("\0", ">")
        yield word
        if deep and word != text and re.search(r"[\s;|&<>()`]", word):
            yield from _tokens(word, deep - 1)


def _spellings(token: str) -> Iterator[str]:
    """Yield what of one word may be the name of a file: itself, the value of an option, what follows an unknown part."""
    bare = token.strip(_AROUND)
    for text in dict.fromkeys((bare, bare.partition("=")[2], bare.partition(":")[0], *bare.split(os.pathsep))):
        yield text
        if _UNKNOWN.match(text):
            yield _UNKNOWN.sub("", text)


def _meant(named: Sequence[str]) -> Iterator[str]:
    """Yield the names of files that words of a command may stand for: itself, a module, a name without its ending."""
    for before, token in pairwise(["", *named]):
        yield token
        yield from _MEANS.get(token.rpartition("/")[2], ())
        module = token if before == "-m" else token[2:] if token.startswith("-m") else token if "/" not in token else ""
        for name in dict.fromkeys((module.replace(".", "/"), token)):
            if name and not name.startswith("-"):
                yield from (f"{name}{ending}" for ending in (*_LEFT_OUT, "/__init__.py"))


def _with_folder(command: str, folder: Path) -> str:
    return _DEFAULT.sub(r"\1", _FOLDER.sub(lambda _: str(folder), command))


def _fitting(base: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path for path in islice(base.glob(pattern), _FOUND) if path.is_file())
    except (OSError, ValueError, NotImplementedError, IndexError):  # no pattern, or one from the top of the disk
        return []


def _is_folder(path: Path, root: Path) -> bool:
    try:
        return path.is_dir() and is_inside(path, root)
    except (OSError, ValueError):
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
