"""The HTTP double's models, as the tests of the models make them."""

from tests.models.conftest import model_at, no_settings_from_outside

__all__ = ["model_at", "no_settings_from_outside"]
