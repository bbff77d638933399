"""Which files a call reads or writes by a path that stands in the code, or in a name that holds a literal text.

Only what the code says; nothing is opened. It must not know of cells or of the disk. Read `files_of_call`.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Mapping

from nbagent.tools.signs import READER, URL

_WRITES = frozenset({
    *("savefig", "save", "savez", "savez_compressed", "savetxt", "imsave", "write_image", "write_html", "write_json"),
    *("write_text", "write_bytes", "tofile", "to_netcdf", "to_zarr", "imwrite", "copyfile"),
})  # fmt: skip
_NOT_FILES = frozenset({
    *("to_numpy", "to_list", "to_dict", "to_frame", "to_period", "to_timestamp", "to_datetime", "to_numeric", "to_string"),
    *("to_sql", "read_sql", "read_sql_query", "read_sql_table", "read_clipboard", "read_gbq", "to_gbq", "to_pandas"),
    *("to_polars", "to_arrow", "to_crs", "to_series", "to_pydatetime", "to_markdown", "to_dicts", "to_dummies"),
    *("load_dataset", "load_ext", "reload", "fetchall", "fetchone", "fetchmany", "fetch_df", "read"),
})  # fmt: skip
_WRITING = ("to_", "write_", "sink_")
_OWNERS = frozenset({"read_text", "read_bytes", "write_text", "write_bytes"})
_KEYWORDS = frozenset({
    *("path", "filepath_or_buffer", "filepath", "io", "filename", "file", "fname", "source", "path_or_buf"),
    *("excel_writer", "path_or_buffer", "where", "fp"),
})  # fmt: skip
_PATHS = frozenset({"Path", "PurePath", "PosixPath"})


def files_of_call(node: ast.Call, known: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the paths that a call reads and those that it writes; `known` are texts that names hold."""
    func = node.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    writes = name in _WRITES or name.startswith(_WRITING)
    if not name or name in _NOT_FILES or not (writes or name == "open" or name in _OWNERS or READER.search(name)):
        return [], []
    if isinstance(func, ast.Attribute) and (name in _OWNERS or (name == "open" and text_of(func.value, known))):
        path, mode = text_of(func.value, known), _mode(node, 0)
    else:
        path, mode = _path(node, known), _mode(node, 1)
    if path is None or not path or "\n" in path or len(path) > 1_000 or URL.match(path):
        return [], []
    path = posixpath.normpath(path.replace("\\", "/"))
    if name == "open":
        return ([], [path]) if any(sign in mode for sign in "wxa") else ([path], [])
    return ([], [path]) if writes else ([path], [])


def _path(node: ast.Call, known: Mapping[str, str]) -> str | None:
    given = [*node.args[:1], *(word.value for word in node.keywords if word.arg in _KEYWORDS)]
    return next((text for value in given if (text := text_of(value, known)) is not None), None)


def _mode(node: ast.Call, place: int) -> str:
    given = [*node.args[place : place + 1], *(word.value for word in node.keywords if word.arg == "mode")]
    return next((str(value.value) for value in given if isinstance(value, ast.Constant)), "r")


def text_of(node: ast.AST, known: Mapping[str, str]) -> str | None:
    """Return the text of an expression made of literals, known names, `Path(…)`, `/`, `+` and `join`; None of any other."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return known.get(name)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, ast.Div | ast.Add):
            first, second = text_of(left, known), text_of(right, known)
            if first is None or second is None:
                return None
            return posixpath.join(first, second) if isinstance(op, ast.Div) else first + second
        case ast.Call(func=func, args=args) if args and (_is_path(func) or getattr(func, "attr", "") == "join"):
            texts = [text_of(value, known) for value in args]
            return None if None in texts else posixpath.join(*(text for text in texts if text is not None))
        case ast.JoinedStr(values=values):
            texts = [text_of(v.value if isinstance(v, ast.FormattedValue) else v, known) for v in values]
            return None if None in texts else "".join(text for text in texts if text is not None)
        case _:
            return None


def _is_path(func: ast.AST) -> bool:
    return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) in _PATHS
