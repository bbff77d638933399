"""nbagent: an agent that lives in a notebook (placeholder docstring, see below)."""
