"""`python -m nbagent`: the command line."""

from __future__ import annotations


def main() -> None:
    """Run the command line; exits with its code."""
    from nbagent.cli import app

    app()


if __name__ == "__main__":
    main()
