"""The folder that the file tools are at home in, and where each path of a call led when the policy decided about it.

Must not know which tools there are. Read `Workspace`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json
from nbagent.core.ports import Notebook
from nbagent.core.tools import Kind
from nbagent.tools import notebook_files, paths
from nbagent.tools.keeping import Keeper
from nbagent.tools.paths import Place, locate

MAX_EDIT = 4 * 1024 * 1024
"""Bytes of the largest file that can be edited."""
MAX_FILE = 256 * 1024
"""Bytes of the largest file that is read whole."""
_MAX_IMAGE = 40 * 1024 * 1024
_MISSING = "(no file)"
IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"})
"""Endings of files that are shown as pictures or pages."""


class Workspace:
    """The root, and where each spelled path led when the policy decided about it."""

    def __init__(
        self, root: Path, notebook: Notebook | None, also: Sequence[Path], denied: Callable[[str], bool]
    ) -> None:
        self.root = root
        self.denied = denied
        self._also = tuple(Path(os.path.realpath(folder)) for folder in also)
        self.notebook = notebook
        self._keepers: dict[Path, Keeper] = {}
        self._decided: dict[tuple[str, bool], set[Place | None]] = {}
        self._overwritten: dict[Path, set[str]] = {}

    def decide(self, spelled: str, *, writes: bool) -> Place | None:
        """Return where a path leads (None: nowhere, the call will say why) and bind the call to it.

        Every question of the policy comes through here; if two got different answers, the call is refused.
        """
        try:
            place = locate(self.root, spelled)
        except ToolError:
            place = None
        self._decided.setdefault((spelled, writes), set()).add(place)
        return place

    def kind(self, spelled: str, *, writes: bool) -> Kind:
        """Return the row of the policy table: outside the root is protected, and so are guarded or secret files."""
        place = self.decide(spelled, writes=writes)
        if place is None:
            return Kind.READ  # nothing can happen: the call only returns the reason
        self._overwritten.pop(place.path, None)  # a new decision begins with this question
        inside = place.inside or any(folder in (place.path, *place.path.parents) for folder in self._also)
        if not inside or place.secret or (writes and place.guarded):
            return Kind.PROTECTED
        return Kind.WRITE_FILE if writes else Kind.READ

    def subject(self, spelled: str, *, writes: bool) -> str:
        """Return what a rule matches: the path where it really leads, relative to the root if inside."""
        place = self.decide(spelled, writes=writes)
        return place.shown if place else spelled

    def approved(self, spelled: str, *, writes: bool) -> Place:
        """Return where the path leads now; refuse if the decision was about another place."""
        decided = self._decided.pop((spelled, writes), None)
        place = locate(self.root, spelled)
        if decided is None and place.inside and not place.secret and not (writes and place.guarded):
            return place
        if decided != {place}:
            raise ToolError(
                f"{spelled!r} leads elsewhere than when the call was decided on: nothing was done. Try again"
            )
        return place

    def old_text(self, place: Place | None) -> str:
        """Return the text of a file that would be overwritten, and remember it: another text must not be overwritten."""
        if place is None:
            return ""
        try:
            data = paths.read_file(place.path, limit(place))
        except FileNotFoundError:
            self._overwritten.setdefault(place.path, set()).add(_MISSING)
            return ""
        except (OSError, ToolError):  # too big or no file: the call itself will say so
            return ""
        self._overwritten.setdefault(place.path, set()).add(hashlib.sha256(data).hexdigest())
        return data.decode("utf-8", "replace")

    def check_unchanged(self, place: Place) -> None:
        """Refuse to overwrite a file that is not the one that was shown."""
        shown = self._overwritten.pop(place.path, None)
        if shown is None:
            return
        try:
            now = hashlib.sha256(paths.read_file(place.path, limit(place))).hexdigest()
        except FileNotFoundError:
            now = _MISSING
        if shown != {now}:
            raise ToolError(f"{place.shown} changed since the call was shown: nothing was written. Read it again")

    def keeper(self, place: Place) -> Keeper:
        """Return what writes the notebook at `place`; refuse for the open notebook of this run."""
        notebook_files.refuse_open(place, self.root, self.notebook)
        return self._keepers.setdefault(place.path, Keeper(place.path, place.shown))

    def context(self, place: Place) -> Any:
        """Return the SDK's context: confined to the root and, where it was approved, this one place outside."""
        import anthropic  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]  (whole, before its parts: see clients.warm_up)
        from anthropic.lib.tools.agent_toolset import AgentToolContext  # noqa: PLC0415  (the SDK takes a second)

        return AgentToolContext(
            workdir=self.root,
            allowed_roots=[] if place.inside else [place.path],
            max_file_bytes=None if place.path.suffix.lower() in IMAGES else MAX_FILE,
            max_image_base64_bytes=_MAX_IMAGE,
        )


def limit(place: Place) -> int:
    """Return how large a file of this kind may be to be written."""
    return notebook_files.MOST if notebook_files.is_notebook(place) else MAX_EDIT


async def ask_sdk(sdk_tool: Any, given: Json, place: Place) -> str | list[Json]:
    """Call one of the SDK's tools; its errors become ours, without the name of its operation."""
    import anthropic  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]  (whole, before its parts: see clients.warm_up)
    from anthropic.lib.tools import ToolError as SdkError  # noqa: PLC0415

    try:
        return await sdk_tool.call(given)
    except SdkError as error:
        said = str(error).partition(": ")[2].replace(str(place.path), place.shown)
        raise ToolError(said.replace("view_range", "start_line and end_line")) from None
    except OSError as error:
        raise ToolError(error.strerror or "the file can't be read") from None
