"""A model that has another one asked, and says of itself what that one says.

Must not know why one stands before another. Read `Passing`.
"""

from __future__ import annotations

from typing import Any

from nbagent.core.errors import Rejected
from nbagent.core.messages import Usage
from nbagent.core.ports import Model, Request
from nbagent.models.catalog import Facts


class Passing:
    """What is to be known of a model, as the one says it that is asked next: `_asked`. How it is asked is the heir's."""

    def __init__(self, asked: Model) -> None:
        self._asked = asked

    @property
    def name(self) -> str:
        """The id of the model."""
        return self._asked.name

    @property
    def facts(self) -> Facts:
        """Price and sizes of the model."""
        found = getattr(self._asked, "facts", None)
        return found if isinstance(found, Facts) else Facts()

    @property
    def place(self) -> str:
        """Whose server is asked; "" for a script."""
        return str(getattr(self._asked, "place", ""))

    @property
    def base_url(self) -> str:
        """The address of the server, "" where none is asked."""
        return str(getattr(self._asked, "base_url", "") or "")

    @property
    def compacts(self) -> bool:
        """Whether the server can sum a conversation up itself."""
        return bool(getattr(self._asked, "compacts", False))

    async def count(self, request: Request) -> int:
        """Return how many tokens `request` is, as the server counts them; raises `NbagentError` where it can't."""
        counts = getattr(self._asked, "count", None)
        if counts is None:
            raise Rejected(f"{self.name} does not count tokens.")
        return int(await counts(request))

    def cost(self, usage: Usage) -> float | None:
        """Return the price of a reply that took `usage`."""
        return self._asked.cost(usage)

    async def aclose(self) -> None:
        """Close idle connections."""
        await close(self._asked)


async def close(model: Model) -> None:
    """Close a model's idle connections, if it has any."""
    found: Any = getattr(model, "aclose", None)
    if found is not None:
        await found()
