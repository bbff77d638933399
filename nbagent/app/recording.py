"""`--record FILE`, `--replay FILE` and what goes with them: which model a run asks, and whether its calls run.

A recorded or replayed run has a conversation of its own, beside the notebook's: what is recorded can be asked again. Must not know
what a recording looks like (models/recording.py). Read `tapes_of`, then `Tapes.through`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.model import Metered
    from nbagent.config import Settings
    from nbagent.models.recorded import Replayed
    from nbagent.models.recording import Cleaning, Tape

REPLAY = "replay:"
"""How a model is named that answers from a recording."""

_OPTIONS = frozenset({"record", "replay", "replay_loose"})
_NEEDS = "%%agent: {} goes with --replay FILE or --replay-loose FILE."
_BESIDE = "A run in the background can't be recorded or replayed. Leave --background out."
_DRY = "A dry run sends nothing, so there is nothing to record or to replay. Leave --dry-run out."


@dataclass(frozen=True, slots=True)
class Tapes:
    """What a run is recorded on (`record`), played from (`replay`), and what its calls give without running (`results`)."""

    record: Tape | None = None
    replay: Replayed | None = None
    results: Mapping[str, Json] | None = None
    said: str = ""

    def through(self, metered: Metered) -> Metered:
        """Return what all models of a run are asked through: the recording in the place of each, or a tape around each."""
        if (replay := self.replay) is not None:
            return lambda _: replay
        if (tape := self.record) is not None:
            from nbagent.models.recorded import Recording

            return lambda model: Recording(metered(model), tape)
        return metered


NO_TAPES = Tapes()


def is_taped(given: Json) -> bool:
    """Whether the options of a cell record or replay: then it runs, also where a finished run of it is kept."""
    return not _OPTIONS.isdisjoint(given)


def played(settings: Settings, given: Json) -> Settings:
    """Return the settings of a cell; in a replay its model is the recording."""
    path = given.get("replay") or given.get("replay_loose")
    return replace(settings, model=f"{REPLAY}{path}", fallback_model="") if path else settings


def check(given: Json) -> None:
    """Raise `ConfigError` for options that don't go together, or a file that can't be written over."""
    playing = bool({"replay", "replay_loose"} & set(given))
    for name in ("recorded_pace", "recorded_results"):
        if given.get(name) and not playing:
            raise ConfigError(_NEEDS.format(f"--{name.replace('_', '-')}"))
    if is_taped(given) and given.get("background"):
        raise ConfigError(_BESIDE)
    if is_taped(given) and given.get("dry_run"):
        raise ConfigError(_DRY)
    if path := given.get("record"):
        from nbagent.models.recording import refuse_other

        refuse_other(Path(str(path)).expanduser())


def cleaning_of(extension: Extension) -> Cleaning:
    """Return what takes secrets and the person's own paths out of a recording made here."""
    from nbagent.models.recording import Cleaning
    from nbagent.tools.secrets import mask

    vault = extension.privacy.vault
    return Cleaning.here(lambda text: mask(vault.mask(text)), extension.folder)


def opened(path: str) -> Replayed:
    """Return the model that answers from a recording; raises `ConfigError` where there is none."""
    from nbagent.models.recorded import Replayed
    from nbagent.models.recording import read_recording

    return Replayed(read_recording(Path(path).expanduser()))


def tapes_of(extension: Extension, given: Json) -> Tapes:
    """Return what a cell with these options is recorded on or played from; raises `ConfigError`."""
    if path := given.get("record"):
        from nbagent import __version__
        from nbagent.models.recording import Tape

        tape = Tape(Path(str(path)).expanduser(), cleaning=cleaning_of(extension), about={"nbagent": __version__})
        return Tapes(record=tape, said=f"This run is recorded in {path}. It has a conversation of its own.")
    if not is_taped(given):
        return NO_TAPES
    return _playing(extension, given)


def _playing(extension: Extension, given: Json) -> Tapes:
    from nbagent.models.recorded import Loose, Replayed, as_recorded, at_once, recorded_results
    from nbagent.models.recording import read_recording

    loose = "replay_loose" in given
    path = str(given["replay_loose" if loose else "replay"])
    file, cleaning = read_recording(Path(path).expanduser()), cleaning_of(extension)
    model = (Loose if loose else Replayed)(
        file, cleaning=cleaning, pace=as_recorded if given.get("recorded_pace") else at_once
    )
    results = recorded_results(file, cleaning) if given.get("recorded_results") else None
    day = str(file.about.get("when") or "")[:10]
    said = f"This is a replay of {path} ({file.model}{', ' + day if day else ''}): no model is asked."
    if results is not None:
        said += " Nothing runs: each call gives what it gave when it was recorded."
    return Tapes(replay=model, results=results, said=said)
