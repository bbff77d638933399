"""`%agent report`: the analysis as a page that is read without the notebook. In work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.core.errors import ConfigError

if TYPE_CHECKING:
    from nbagent.app.extension import Extension


async def report(extension: Extension, line: str) -> str:
    """Carry out `%agent report …`."""
    del extension, line
    raise ConfigError("%agent report is not there yet.")
