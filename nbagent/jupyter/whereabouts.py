"""Which notebook file a kernel belongs to, where no page says it: told by the environment, checked, never guessed.

No network, no look around for files: a wrong path is worse than none. Read `notebook_path`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_NAMED_BY = ("__vsc_ipynb_file__",)
_ENVIRONMENT = ("JPY_SESSION_NAME",)


def notebook_path(namespace: Mapping[str, object], environment: Mapping[str, str]) -> str:
    """Return the path of the notebook file, "" where nothing says it or what is said is no notebook (any more).

    VS Code puts its path into the namespace, Jupyter's server into the environment. Both may be stale: the file was
    renamed, or the kernel is on another machine.
    """
    said = [*(namespace.get(name) for name in _NAMED_BY), *(environment.get(name) for name in _ENVIRONMENT)]
    return next((text for text in said if isinstance(text, str) and _is_notebook(text)), "")


def _is_notebook(text: str) -> bool:
    try:
        return Path(text).suffix == ".ipynb" and Path(text).is_absolute() and Path(text).is_file()
    except (OSError, ValueError):  # a name that this system can't have
        return False
