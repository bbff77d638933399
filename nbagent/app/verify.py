"""`%agent verify`: the notebook runs in a clean kernel, and a card says what differs from what is shown.

It is an errand: the same call, the same questions, Stop and record as when an agent makes it, without a model. Read `verify`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nbagent.app.agents import Errand
from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json
from nbagent.core.ports import Model, Notebook
from nbagent.jupyter.front_end import in_a_job
from nbagent.models.scripted import ScriptedModel, call, result_of
from nbagent.tools.results import clip
from nbagent.tools.verify import NAME, TIMEOUT

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

USAGE = (
    "%agent verify [--timeout SECONDS] [--seed]: runs a copy of the notebook in a clean kernel and says what differs."
)
UNREAD = (
    "%agent verify: the notebook's cells can't be read from here. It works in JupyterLab, Notebook 7 and `nbagent run`."
)
IN_A_JOB = (
    "Not verified: a job such as papermill or nbconvert does not let the notebook's cells be read. It began in a clean kernel and "
    "runs the cells in order, so what this copy shows came from one. What differs from what was shown before is told by %agent "
    "verify in JupyterLab, Notebook 7 and `nbagent run`."
)
"""What is said instead of an error, which would end the job."""
NOBODY = (
    "Not verified: the notebook has code that is asked about each time it runs (it deletes, installs, sends, or reaches outside "
    "of the folder), and nobody is there to answer. Run %agent verify where you can: in JupyterLab or Notebook 7."
)
_TOLD = 4_000


@dataclass(frozen=True, slots=True)
class Verification(Errand):
    """One verification that the person asked for."""

    timeout: int = TIMEOUT
    seed: bool = False

    keeps: ClassVar[tuple[str, ...]] = (NAME,)

    def model(self, words: str) -> Model:  # noqa: ARG002  (the errand's signature)
        """Return what stands in for a model: it looks at the notebook, makes this one call, and answers with its headline."""
        made = call(NAME, timeout=self.timeout, seed=self.seed)

        def answer(transcript: object) -> str:
            said = result_of(transcript, NAME)  # type: ignore[arg-type]  # the messages of a request
            return NOBODY if "Nobody is there to approve this" in said else said.split("\n", 1)[0]

        return ScriptedModel([call("read_notebook", limit=1), made, answer], name="verify")

    def heard(self, words: str, text: str) -> str:  # noqa: ARG002
        """Return what the conversation is told of it with the next prompt."""
        return f"The person ran `%agent verify`. It said: {clip(text, _TOLD)}"


def options(rest: str) -> Json:
    """Return `timeout` (seconds) and `seed` of the words after `%agent verify`; raises `ConfigError`."""
    found = re.fullmatch(r"(?:\s*(?:--timeout[ =](?P<timeout>\d{1,6})|(?P<seed>--seed)))*\s*", rest)
    if found is None:
        raise ConfigError(f"%agent verify: {rest.strip()!r} is not understood. {USAGE}")
    return {"timeout": int(found["timeout"] or TIMEOUT), "seed": bool(found["seed"])}


async def verify(extension: Extension, rest: str) -> str:
    """Carry out `%agent verify [--timeout S] [--seed]` in this cell; returns what to say where a job runs it."""
    from nbagent.app.cell import agent_cell

    given = options(rest)
    unread = False

    async def looked(notebook: Notebook | None, said: str) -> tuple[str, str]:
        nonlocal unread
        if unread := notebook is None or notebook.proposes_only:
            raise ConfigError(UNREAD)
        return said, ""

    try:
        await agent_cell(
            extension, "verify this notebook", "", looked, errand=Verification("verify", "medium", **given)
        )
    except ConfigError:
        if unread and in_a_job(extension.shell):
            return IN_A_JOB
        raise
    return ""
