"""Tests of the system prompt."""
