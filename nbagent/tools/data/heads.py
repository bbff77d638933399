"""The tool `read_data_head`: what a data file is and how it begins, without loading it.

Read `head_tool`.
"""

from __future__ import annotations

from nbagent.core.errors import ToolError
from nbagent.core.tools import Call, Result, Tool, tool
from nbagent.tools.pathrules import PathRules
from nbagent.tools.workspace_root import Workspace


def head_tool(workspace: Workspace) -> Tool:
    """Return the tool that tells how a data file begins and how it is read right."""

    @tool(
        kind=lambda given: workspace.kind(given["path"], writes=False),
        subject=lambda given: workspace.subject(given["path"], writes=False),
        grammar=PathRules(workspace.root),
    )
    async def read_data_head(_call: Call, path: str, rows: int = 10, table: str | None = None) -> Result:
        """Tell a data file's format, encoding, header, types, size and first rows, and the pandas call that reads it right.

        CSV, fixed width, Excel, Parquet (file or folder), Arrow, JSON, SQLite, .npy; also compressed. The file is not loaded.

        Args:
            path: the file, relative to the working folder.
            rows: how many rows to show.
            table: a sheet, a table, or a file in an archive.
        """
        raise ToolError(f"{path}: not there yet ({rows}, {table})")

    return read_data_head
