"""Failures, named by who acts next.

    NbagentError
    ├── ConfigError        the person: a key, an option, a setting is missing or wrong
    ├── ModelError         the model's side
    │   ├── Transient      the loop tries again, after `retry_after` seconds if given
    │   │   └── Overloaded      the same, perhaps with another model
    │   ├── Rejected       the person: the request itself was refused (key, model name)
    │   │   └── ImagesRefused   the loop tries once more, without images
    │   ├── ContextFull    the loop tries once more without older images, then ends the run: it no longer fits
    │   └── Spent          the loop ends the run: the budget that it shares with others is used up
    ├── ToolError          the model: its text becomes the call's error result
    │   ├── NotebookError  the model: the notebook did not take an edit
    │   │   └── Unsure     the same, but perhaps it did: no answer came, or another one than was expected
    │   └── BoardError     the model: a team's board does not allow a change
    └── Interrupted        nobody: the person stopped the call; `output` is what it had produced

Beside the tree, because cancellation is asyncio's: `CutOff`, a cancellation that carries such an `output`.

This module must not import anything of nbagent.
"""

from __future__ import annotations

import asyncio


class NbagentError(Exception):
    """Base of every failure that nbagent raises on purpose; its text is one readable sentence."""


class ConfigError(NbagentError):
    """The person must change a key, an option or a setting; the text names it, its value and the fix."""


class ModelError(NbagentError):
    """The model's side failed; the text is the sentence shown in the cell."""


class Transient(ModelError):
    """A failure that may pass (overload, lost connection); `retry_after` is seconds asked for by the server."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Overloaded(Transient):
    """The server has too much to do for this model: another one may answer."""


class Rejected(ModelError):
    """The server refused the request and would refuse it again."""


class ImagesRefused(Rejected):
    """The server refused an image of the conversation, or images at all."""


class ContextFull(ModelError):
    """The conversation no longer fits the model's context window."""


class Spent(ModelError):
    """The budget that this run shares with others is used up, so the request was not sent."""


class ToolError(NbagentError):
    """Tell the model: the text becomes an error result, and the run goes on."""


class NotebookError(ToolError):
    """The notebook did not take an operation (unknown cell, changed cell, page gone)."""


class Unsure(NotebookError):
    """Nobody knows whether the notebook took an operation: its answer was lost, or it holds something else now."""


class BoardError(ToolError):
    """A team's board does not allow a change: the task is another's, it waits for others, there is no such name."""


class Interrupted(NbagentError):
    """The person interrupted a call that had begun; `output` is the text it had produced so far."""

    def __init__(self, output: str = "") -> None:
        super().__init__("interrupted")
        self.output = output


class CutOff(asyncio.CancelledError):
    """The task of a call was cancelled; `output` is the text that the call had produced so far."""

    def __init__(self, output: str = "") -> None:
        super().__init__("interrupted")
        self.output = output
