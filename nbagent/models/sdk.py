"""Says in a sentence why the SDK can't be imported: a file of the person's has its name, or it is not there.

A notebook's folder comes first where Python looks for modules, so `anthropic.py` beside it would be run in the SDK's
place. Imports nothing of it. Read `in_the_way`.
"""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec

from nbagent.core.errors import ConfigError

_SDK = "anthropic"


def in_the_way() -> ConfigError | None:
    """Return what to tell the person if importing the SDK would run a file of theirs, or find nothing."""
    try:
        spec: ModuleSpec | None = importlib.util.find_spec(_SDK)
    except ValueError:  # a module of that name was made by hand
        spec = None
    if spec is None:
        return ConfigError("The package anthropic is not installed in this kernel's Python: pip install anthropic.")
    if spec.submodule_search_locations is None:
        return _hidden(str(spec.origin), _SDK)
    return None


def because(error: ImportError) -> ConfigError:
    """Return what to tell the person of an import of the SDK that failed in the middle."""
    if error.path and error.name and "site-packages" not in error.path:
        return _hidden(error.path, error.name)
    return ConfigError(f"The package anthropic can't be imported: {error}. pip install --upgrade anthropic.")


def _hidden(file: str, name: str) -> ConfigError:
    return ConfigError(
        f"Your file {file} stands in the way of the Python package {name!r}, which the model's client needs. Rename the "
        "file, then restart the kernel."
    )
