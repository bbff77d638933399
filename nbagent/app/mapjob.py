"""What an executor calls for one job of a map, in whatever process and on whatever machine that is.

Named to other processes by module and name, so it stands alone here and imports nothing heavy. Read `carry_out`.
"""

from __future__ import annotations

from pathlib import Path

from nbagent.app.jobs import Outcome
from nbagent.app.nursery import Nursery
from nbagent.app.worker import perform
from nbagent.core.messages import Json


def carry_out(job: Json, link: Json, folder: str, attempt: int, *, within: Nursery | None = None) -> Json:  # noqa: ARG001
    """Perform a job of the map that is kept in `folder`, and return its outcome as JSON. `attempt` tells two tries apart.

    A worker that does not see the folder could not go on with what another one began, and would pay for it again.
    """
    if not (Path(folder) / "map.json").is_file():
        problem = (
            f"This worker does not see {folder}. Workers on other machines need a folder that all of them share: give one as "
            "resume=."
        )
        return Outcome(str(job.get("id")), "failed", problem=problem).to_json()
    return perform(job, link, within=within)
