"""A shell command as the shell would read it: its simple commands, their words, redirections and what can't be vouched for.

Read by tree-sitter's grammar for bash and checked again here: every byte must be a word that means one literal text, a
known operator or a blank, else the line is `unreadable` or has something that `asks`. It runs nothing and knows no rules.
Read `Line`, then `read_line`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbagent.tools.commandwords import Word, word

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 10_000
MOST_PARTS = 50
_DEEPEST = 60
_OPERATORS = frozenset({"&&", "||", ";", "&", "|", "|&", "\n", "(", ")", "{", "}", "!"})
_THROUGH = frozenset({"program", "list", "pipeline", "subshell", "compound_statement", "negated_command"})
_BUILTINS = frozenset({"declaration_command", "unset_command", "test_command"})
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_BLANK = re.compile(rb"(?:[ \t]|\\\n)*\Z")
_BLANK_LINES = re.compile(rb"(?:[ \t\n]|\\\n)*\Z")
_BEFORE_COMMENT = frozenset(b" \t\n;&|()")
_HEREDOC = frozenset({"heredoc_start", "heredoc_end", "file_redirect", "file_descriptor", "herestring_redirect"})
_SINKS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>", "<>"})


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirection: `writes` a file or reads one, `target` None where it is no file (a heredoc)."""

    operator: str
    target: Word | None
    text: str = ""

    @property
    def writes(self) -> bool:
        """Whether a file is written: `>&name` too."""
        return self.operator in _WRITES or (self.operator == ">&" and not self._joins)

    @property
    def harmless(self) -> bool:
        """Whether it only joins streams, or throws away what comes."""
        if self.target is None or self.target.dynamic or self.target.glob:
            return False
        if self._joins:
            return True
        return self.target.text == "/dev/null" or (self.writes and self.target.text in _SINKS)

    @property
    def _joins(self) -> bool:
        if self.target is None or self.target.dynamic or self.operator not in {">&", "<&"}:
            return False
        return re.fullmatch(r"\d+|-", self.target.text) is not None


@dataclass(frozen=True, slots=True)
class Part:
    """One simple command. `piped`: something is written to its input; `inner`: it is in a substitution of another."""

    raw: str
    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    piped: bool = False
    inner: bool = False

    @property
    def name(self) -> str:
        """The command's name without its folder, "" where it can't be known."""
        return self.words[0].text.rpartition("/")[2] if self.words and self.words[0].literal else ""


@dataclass(frozen=True, slots=True)
class Line:
    """A command line. `asks`: what no pattern can vouch for, in words; `unreadable`: that its parts may be others.

    `comment`: there is text in it that does nothing.
    """

    text: str
    parts: tuple[Part, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    asks: tuple[str, ...] = ()
    unreadable: str = ""
    comment: bool = False


@functools.lru_cache(maxsize=256)
def read_line(command: str) -> Line:
    """Read a command line; what can't be read is said in the result, nothing is raised."""
    if len(command) > LONGEST:
        return Line(command, unreadable=f"it is longer than {LONGEST:,} characters")
    if not command.replace("\n", "").replace("\t", "").isprintable():
        return Line(command, unreadable="it has characters that can't be seen")
    try:
        root = _tree(command)
    except ImportError as error:
        return Line(command, unreadable=f"the parser is missing ({error.name})")
    reading = _Reading(command.encode())
    if root.has_error:
        reading.unreadable = "it is not a command that a shell would read without an error"
    reading.visit(root, 0)
    return reading.line(command)


@functools.cache
def _language() -> Any:
    import tree_sitter_bash  # noqa: PLC0415  (3.5 MB with its library, 20 ms: only when a command is judged)
    from tree_sitter import Language  # noqa: PLC0415

    return Language(tree_sitter_bash.language())


def _tree(command: str) -> Node:
    language = _language()
    from tree_sitter import Parser  # noqa: PLC0415

    return Parser(language).parse(command.encode()).root_node


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join what has no blank between: bash takes it for one word."""
    joined: list[tuple[int, int]] = []
    for begin, end in spans:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined


class _Reading:
    """What was found so far in one command line."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.parts: list[Part] = []
        self.redirects: list[Redirect] = []
        self.asks: dict[str, None] = {}
        self.unreadable = ""
        self.comment = False
        self.stray: list[Word] = []

    def line(self, command: str) -> Line:
        """Return all of it."""
        if len(self.parts) > MOST_PARTS:
            self.unreadable = f"it has more than {MOST_PARTS} parts"
        return Line(command, tuple(self.parts), tuple(self.redirects), tuple(self.asks), self.unreadable, self.comment)

    def visit(self, node: Node, depth: int, *, piped: bool = False, inner: bool = False) -> None:
        """Take in a node and all below it."""
        if depth > _DEEPEST:
            self.unreadable = self.unreadable or "it is nested too deeply"
            return
        if not node.is_named:
            if self._text(node) not in _OPERATORS:
                self.asks["a loop, a condition or a function"] = None
            return
        kind = node.type
        if kind == "command":
            self._command(node, depth, piped=piped, inner=inner)
        elif kind == "redirected_statement":
            self._redirected(node, depth, piped=piped, inner=inner)
        elif kind == "comment":
            self.comment = True
            if node.start_byte and self.source[node.start_byte - 1] not in _BEFORE_COMMENT:
                self.unreadable = self.unreadable or "what begins with # in it may not be a comment"
        elif kind in {"variable_assignment", "variable_assignments"}:
            self._assignments(node, depth, inner=inner)
        elif kind in _BUILTINS:
            self._builtin(node, depth, piped=piped, inner=inner)
        elif kind in _SUBSTITUTIONS:
            self.asks["a substitution"] = None
            for child in node.named_children:
                self.visit(child, depth + 1, inner=True)
        else:
            self._through(node, depth, piped=piped, inner=inner)

    def _through(self, node: Node, depth: int, *, piped: bool, inner: bool) -> None:
        """Go on below a node that only holds others; what is none of the known ones asks."""
        if node.type not in _THROUGH:
            self.asks["a loop, a condition or a function"] = None
        elif node.type == "compound_statement" and node.children and self._text(node.children[0]) == "((":
            self.asks["arithmetic"] = None
        else:
            self._gaps(node, _BLANK_LINES)
        first = True
        for child in node.children:
            self.visit(child, depth + 1, piped=piped or (node.type == "pipeline" and not first), inner=inner)
            first = first and not child.is_named

    def _command(self, node: Node, depth: int, *, piped: bool, inner: bool) -> None:
        self._gaps(node, _BLANK)
        spans: list[tuple[int, int]] = []
        assignments: list[tuple[str, Word]] = []
        redirects: list[Redirect] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assignments.append(self._assignment(child))
            elif child.type.endswith("_redirect"):
                redirects += self._redirect(child)
            else:
                if assignments and self.source[child.start_byte - 1] not in b" \t\n":
                    self.unreadable = self.unreadable or "an assignment in it goes on in a word"
                spans.append((child.start_byte, child.end_byte))
            self._below(child, depth + 1)
        words = [self._word(*span) for span in _joined(spans)]
        if any(one.dynamic for one in words):
            self.asks["a substitution"] = None
        self._add(Part(self._text(node), tuple(words), tuple(assignments), tuple(redirects), piped, inner))

    def _redirected(self, node: Node, depth: int, *, piped: bool, inner: bool) -> None:
        """Take in `body > file`; the redirections of one simple command are its own."""
        body = node.child_by_field_name("body")
        redirects = [
            one for child in node.children if child.type.endswith("_redirect") for one in self._redirect(child)
        ]
        if not any(child.type == "heredoc_redirect" for child in node.children):
            self._gaps(node, _BLANK)
        before = len(self.parts)
        stray, self.stray = self.stray, []
        if body is not None:
            self.visit(body, depth + 1, piped=piped, inner=inner)
        if body is not None and body.type == "command" and len(self.parts) > before:
            own = self.parts[-1]
            self.parts[-1] = replace(own, words=(*own.words, *stray), redirects=(*own.redirects, *redirects))
        else:
            self.redirects += redirects
            if stray:
                self._add(Part(self._text(node), tuple(stray)))
        for child in node.children:
            if child.type.endswith("_redirect"):
                self._below(child, depth + 1)
            if child.type == "heredoc_redirect":
                self._after(child, depth + 1)

    def _after(self, node: Node, depth: int) -> None:
        """Take in what stands on the line of a here-document behind its name: `cat <<EOF | sh`."""
        for child in node.named_children:
            if child.type == "heredoc_body":
                self._below(child, depth)
            elif child.type not in _HEREDOC:
                self.visit(child, depth, piped=True)

    def _redirect(self, node: Node) -> Iterator[Redirect]:
        if node.type != "file_redirect":
            self.asks["a here-document"] = None
            operator = "<<<" if node.type == "herestring_redirect" else "<<"
            yield Redirect(operator, None, self._text(node))
            for child in node.children:  # `cat <<EOF > file`: the redirections after it are below it
                if child.type == "file_redirect":
                    yield from self._redirect(child)
            return
        operator = next((self._text(child) for child in node.children if not child.is_named), "")
        spans = _joined((target.start_byte, target.end_byte) for target in node.children_by_field_name("destination"))
        target = self._word(*spans[0]) if spans else None
        if len(spans) > 1:  # the grammar takes words behind a target for targets, bash for words of the command
            self.asks["a word behind a redirection"] = None
            self.stray += [self._word(*span) for span in spans[1:]]
        yield Redirect(operator, target, self._text(node))

    def _assignments(self, node: Node, depth: int, *, inner: bool) -> None:
        found = [node] if node.type == "variable_assignment" else node.named_children
        assignments = tuple(self._assignment(child) for child in found)
        for child in found:
            self._below(child, depth + 1)
        self._add(Part(self._text(node), (), assignments, inner=inner))

    def _assignment(self, node: Node) -> tuple[str, Word]:
        name, equals, value = self._text(node).partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            self.asks["an assignment to a part of a variable"] = None
        made = word(value) if value else Word("", "")
        if made is None or made.dynamic:
            self.asks["a substitution"] = None
        return name.rstrip("+"), made or Word(value, value, dynamic=True)

    def _builtin(self, node: Node, depth: int, *, piped: bool, inner: bool) -> None:
        """Take in `export X=1`, `[ -f x ]` and the like: their words are not read one by one."""
        self.asks["a test or a declaration"] = None
        raw = self._text(node)
        words = tuple(word(piece) or Word(piece, piece, dynamic=True) for piece in raw.split())
        self._add(Part(raw, words, piped=piped, inner=inner))
        self._below(node, depth + 1)

    def _word(self, begin: int, end: int) -> Word:
        raw = self.source[begin:end].decode("utf-8", "replace")
        made = word(raw)
        if made is None:
            self.unreadable = self.unreadable or f"{raw[:40]!r} can be read in more than one way"
            return Word(raw, raw, dynamic=True)
        return made

    def _below(self, node: Node, depth: int) -> None:
        """Take in the substitutions inside of a word."""
        if node.type in _SUBSTITUTIONS:
            self.visit(node, depth)
            return
        if depth > _DEEPEST:
            self.unreadable = self.unreadable or "it is nested too deeply"
            return
        for child in node.children:
            self._below(child, depth + 1)

    def _add(self, part: Part) -> None:
        if self.stray:
            part, self.stray = replace(part, words=(*part.words, *self.stray)), []
        self.parts.append(part)

    def _gaps(self, node: Node, blank: re.Pattern[bytes]) -> None:
        """Check that nothing but blanks lies between the children of a node: what the grammar skipped, bash may not."""
        at = node.start_byte
        for child in node.children:
            if not blank.match(self.source[at : child.start_byte]):
                self.unreadable = self.unreadable or "there is something between its words"
            at = child.end_byte
        if not _BLANK_LINES.match(self.source[at : node.end_byte]):
            self.unreadable = self.unreadable or "there is something after its words"

    def _text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")
