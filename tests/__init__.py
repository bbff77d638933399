"""Tests of nbagent: a package, so that `from tests.support...` works."""
