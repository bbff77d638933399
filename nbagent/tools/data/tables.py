"""The tool `profile_table`: what is in the columns of a table, and what is suspicious about them.

The table is read in pieces on the kernel's thread (views, a few thousand rows at a time); what is made of them is worked
out on another thread, so that the kernel goes on and Stop works. Nothing lazy is computed unless it is asked for.
Read `tools`.
"""

from __future__ import annotations

from nbagent.core.errors import ToolError
from nbagent.core.ports import Kernel
from nbagent.core.tools import Call, Kind, Tool, tool
from nbagent.tools.details import details


def profile_tool(kernel: Kernel) -> Tool:
    """Return `profile_table` on the namespace of `kernel`, read fresh at each call."""

    @tool(kind=Kind.READ, title=lambda given: f"profile {given['name']}{' in full' if given['full'] else ''}")
    async def profile_table(_call: Call, name: str, full: bool = False) -> str:
        """Profile a table or column: missing, ranges, common and suspicious values, keys, duplicates, time gaps.

        Of a sample of rows, whose size is said. The table is not changed.

        Args:
            name: the variable's name.
            full: true to read all rows (slow), or to run a lazy query for its first rows.
        """
        namespace = kernel.namespace()
        if name not in namespace:
            raise ToolError(f"no variable is named {name!r}: list_variables shows those that there are")
        return f"{details(namespace[name], name)}{chr(10) if full else str()}"

    return profile_table
