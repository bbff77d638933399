"""Opens the model that the settings choose: one place, so that a name means the same wherever it is looked up."""

from __future__ import annotations

from nbagent.config import Settings
from nbagent.core.ports import Model
from nbagent.models import open_model
from nbagent.models.catalog import DEFAULT_MODEL


def model_of(settings: Settings) -> Model:
    """Return the model of `settings`; raise `ConfigError` for a name that means none."""
    return open_model(settings.model or DEFAULT_MODEL, base_url=settings.base_url or None)
