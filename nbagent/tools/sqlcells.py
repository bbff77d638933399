"""Reads a `%%sql` cell or a `%sql` line of jupysql: which variable it makes, which query it saves, which tables it names.

A look at the text, without jupysql and without a database, so a table of a database and a data frame look the same here:
who asks knows which names there are. Nothing is run; `{{jinja}}` is read for its names only. Read `sql_cell`.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from nbagent.tools import cellcode

_HEAD = re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*%%sql\b[ \t]*(?P<line>[^\n]*)\n?(?P<body>.*)\Z", re.DOTALL)
_LINE = re.compile(r"^[ \t]*(?:(?P<target>[A-Za-z_]\w*)[ \t]*=[ \t]*)?%sql\b[ \t]*(?P<line>[^\n]*)$", re.MULTILINE)
_CALL = re.compile(r"run_(?P<kind>line|cell)_magic")
_INTO = re.compile(r"(?:\A|\s)(?P<name>[A-Za-z_]\w*)[ \t]*=?[ \t]*<<")
_STARTS = re.compile(
    r"(?:\A|\s)(?=(?:select|from|with|pivot|unpivot|create|update|delete|insert|alter|drop|describe|summarize|show|table|values"
    r"|explain)\b)",
    re.IGNORECASE,
)
_TAKES = frozenset({
    "-a", "--connection_arguments", "-x", "--close", "-c", "--creator", "-s", "--section", "-f", "--file", "-S", "--save",
    "-w", "--with", "-A", "--alias", "--interact", "-p", "--persist", "-P", "--persist-replace", "--append",
})  # fmt: skip
"""Options with a value, as far as they matter here: `--persist` takes the frame's name that follows it."""
_PERSISTS = frozenset({"-p", "--persist", "-P", "--persist-replace", "--append"})

_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?P<quoted>(?:[^\"]|\"\")*)\"|(?P<word>[^\W\d]\w*)|(?P<sign>[(),.;])|\S",
    re.DOTALL,
)
_WORD = re.compile(r"[^\W\d]\w*")
_TAKE_TABLE = frozenset({"from", "join", "describe", "desc", "summarize", "pivot", "unpivot", "table"})
_NOT_TABLE = frozenset({
    *("select", "where", "group", "order", "limit", "having", "lateral", "unnest", "values", "on", "using", "qualify"),
    *("as", "set", "join", "with", "positional", "window", "union", "intersect", "except", "tablesample", "recursive"),
})  # fmt: skip
_ENDS_LIST = _NOT_TABLE - {"as", "lateral", "recursive"} | {
    "left",
    "right",
    "inner",
    "full",
    "cross",
    "natural",
    "asof",
    "semi",
    "anti",
}
_FROM_IN_CALLS = frozenset({"extract", "trim", "substring", "overlay"})
_JINJA_WORDS = frozenset({
    *("for", "in", "if", "else", "elif", "endif", "endfor", "set", "not", "and", "or", "is", "loop", "true", "false", "none"),
    *("join", "upper", "lower", "sqlsafe", "default", "macro", "endmacro", "index", "first", "last", "length", "block"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class SqlCell:
    """What jupysql would make of a cell or line.

    `makes` is the variable after `<<` (or before `= %sql`), "" for none; `saves` the name of `--save`, `uses_saved` those
    of `--with`; `persists` the frames that are written to the database; `tables` the names that the SQL reads from (data
    frames, tables of the database or saved queries); `variables` those of `{{jinja}}`; `connection` what stands before it.
    """

    makes: str = ""
    saves: str = ""
    uses_saved: tuple[str, ...] = ()
    persists: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    connection: str = ""
    sql: str = ""

    @property
    def uses(self) -> tuple[str, ...]:
        """All names that it may read from the notebook, each once: frames, jinja's variables, a connection's variable."""
        connection = (self.connection,) if self.connection.isidentifier() else ()
        return tuple(dict.fromkeys([*self.tables, *self.variables, *self.persists, *connection]))


def sql_cell(source: str) -> SqlCell | None:
    """Return what a `%%sql` cell does; None for every other cell."""
    found = _HEAD.match(source)
    return None if found is None else read_sql(found["line"], found["body"])


def sql_parts(source: str) -> tuple[SqlCell, ...]:
    """Return what each `%%sql` or `%sql` of a cell does, also of code as IPython passes it on (run_cell_magic('sql', …))."""
    if (whole := sql_cell(source)) is not None:
        return (whole,)
    lines = [read_sql(found["line"], "", found["target"] or "") for found in _LINE.finditer(source)]
    return (*lines, *(_passed_on(source) if _CALL.search(source) else ()))


def head_of(source: str) -> str:
    """Return the `%%sql …` line of a cell as it stands, "" for every other cell: an edit keeps it."""
    found = _HEAD.match(source)
    return f"%%sql {found['line']}".rstrip() if found else ""


def with_head(old: str, new: str) -> str:
    """Return the `new` text for a cell that was `old`: bare SQL for a `%%sql` cell gets that cell's line back.

    Without it the cell would be Python that can't be read, and its connection, name and variable would be lost.
    """
    head = head_of(old)
    bare = bool(head) and not new.lstrip().startswith("%") and _STARTS.match(new.strip()) is not None
    return f"{head}\n{new}" if bare and cellcode.parse(new) is None else new


def read_sql(line: str, body: str, target: str = "") -> SqlCell:
    """Return what `%%sql line` with a `body` below it does, or `target = %sql line` without one."""
    head, sql = _split(line)
    sql = "\n".join(text for text in (sql, body.strip()) if text)
    into = _INTO.search(head) or (_INTO.match(sql) if not head else None)
    if into is not None and into.string is sql:
        sql = sql[into.end() :].lstrip()
    makes = into["name"] if into is not None else target
    options, words = _options(_INTO.sub(" ", head))
    saved = tuple(
        name.strip() for name in ",".join(options.get("-w", []) + options.get("--with", [])).split(",") if name.strip()
    )
    persists = tuple(name for key in sorted(_PERSISTS) for name in options.get(key, []) if name.isidentifier())
    return SqlCell(
        makes=makes,
        saves=next(iter(options.get("-S", []) + options.get("--save", [])), ""),
        uses_saved=saved,
        persists=persists,
        tables=tables_of(sql),
        variables=_jinja_names(f"{head}\n{sql}"),
        connection=words[0] if words else "",
        sql=sql,
    )


def _split(line: str) -> tuple[str, str]:
    """Split the line of a magic into what is for jupysql and the SQL that may follow there."""
    if (into := _INTO.search(line)) is not None:
        head, rest = line[: into.end()].strip(), line[into.end() :].strip()
        if not rest.startswith("-") or rest.startswith("-- "):
            return head, rest
        more, sql = _split(rest)  # options behind the name
        return f"{head} {more}", sql
    blank = re.sub(r"'[^']*'|\"[^\"]*\"", lambda quoted: "_" * len(quoted[0]), line)
    start = _STARTS.search(blank)
    return (line, "") if start is None else (line[: start.start()].strip(), line[start.end() :].strip())


def _options(head: str) -> tuple[dict[str, list[str]], list[str]]:
    try:
        words = shlex.split(head.partition("#")[0] if head.lstrip().startswith("#") else head)
    except ValueError:  # a quote without its other half
        words = head.split()
    options: dict[str, list[str]] = {}
    others: list[str] = []
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        if not name.startswith("-"):
            others.append(word)
        elif equals:
            options.setdefault(name, []).append(value)
        else:
            options.setdefault(name, []).extend([next(left, "")] if name in _TAKES else [])
    return options, others


def tables_of(sql: str) -> tuple[str, ...]:
    """Return the plain names that SQL reads from, in their order; names of its own `WITH` and of schemas are left out."""
    found: list[str] = []
    own: set[str] = set()
    tokens = list(_tokens(_JINJA.sub(" ", sql)))
    words = [text.lower() for text, _ in tokens]
    awaited = listing = False
    depth, lists = 0, [False]
    for at, (text, is_name) in enumerate(tokens):
        word = words[at]
        after = words[at + 1] if at + 1 < len(tokens) else ""
        if word == "(" and not is_name:
            depth += 1
            lists.append(False)
            awaited = False
        elif word == ")" and not is_name:
            lists = lists[:-1] or [False]
            awaited = False
        elif word == "," and not is_name:
            awaited = lists[-1]
        elif is_name and after == "as" and words[at + 2 : at + 3] == ["("] and words[at - 1 : at] != [")"]:
            own.add(text)
        elif is_name and word in _TAKE_TABLE and text.isalpha() and not _is_column(words, at):
            awaited, listing = True, word in {"from", "join"}
            lists[-1] = listing
        elif awaited and is_name and word not in _NOT_TABLE:
            awaited = False
            if after not in {"(", "."} and words[at - 1 : at] != ["."]:
                found.append(text)
        else:
            awaited = awaited and word in {"lateral", "recursive"}
            if word in _ENDS_LIST:
                lists[-1] = False
    return tuple(dict.fromkeys(name for name in found if name not in own))


def _is_column(words: list[str], at: int) -> bool:
    """Whether FROM stands in a call, as in extract(year FROM day); `a.table` is a column, too."""
    if words[at - 1 : at] == ["."]:
        return True
    if words[at] != "from":
        return False
    before = words[max(0, at - 5) : at]
    opened = max((place for place, word in enumerate(before) if word == "("), default=0)
    return opened > 0 and before[opened - 1] in _FROM_IN_CALLS and "select" not in before[opened:]


def _tokens(sql: str) -> Iterator[tuple[str, bool]]:
    """Yield words, quoted names (as names) and signs; comments are passed over, texts are a mark of their own."""
    for found in _TOKEN.finditer(sql):
        if found["word"] is not None:
            yield found["word"], True
        elif found["quoted"] is not None:
            yield found["quoted"].replace('""', '"'), True
        elif not found[0].startswith(("--", "/*")):
            yield found[0] if found["sign"] else "?", False


def _jinja_names(text: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    own: set[str] = set()
    for part in _JINJA.findall(text):
        if part.startswith("{#"):
            continue
        inner = re.sub(r"'[^']*'|\"[^\"]*\"|[.|]\s*\w+", " ", part.strip("{}%"))
        words = _WORD.findall(inner)
        if words[:1] in (["for"], ["set"]):
            own |= set(words[1 : words.index("in") if "in" in words else 2])
        names.update(dict.fromkeys(word for word in words if word not in _JINJA_WORDS))
    return tuple(name for name in names if name not in own)


def _passed_on(source: str) -> Iterator[SqlCell]:
    tree = cellcode.parse(source)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or not (found := _CALL.fullmatch(getattr(node.func, "attr", ""))):
            continue
        given = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if given[:1] == ["sql"] and len(given) == len(node.args) >= 2:
            yield read_sql(given[1], given[2] if found["kind"] == "cell" and len(given) > 2 else "")
