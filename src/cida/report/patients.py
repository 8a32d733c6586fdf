"""Trained models as the doctor sees them: what their files and events say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cida.doctor.diagnose import diagnose, final_metrics, skipped_checks
from cida.doctor.diagnosis import Diagnosis, SkippedCheck
from cida.doctor.fit_summary import FitSummary
from cida.estimators import loading
from cida.estimators.checkup import read_diagnoses, read_summary
from cida.io.files import contained_path
from cida.io.json_decode import decode, from_dict, parse_json
from cida.io.tensors import ModelFileError, read_model_file
from cida.training import Event

__all__ = [
    "MODEL_FILE",
    "RECORD_FILE",
    "FittedRun",
    "iter_fitted_runs",
    "read_fitted_runs",
    "read_record",
]

RECORD_FILE = "run.json"
EVENTS_FILE = "events.jsonl"
MODEL_FILE = "model.safetensors"
TABLE_WORLD = "table"  # what run.json says a run of `cida fit` is of

MAX_LEARNING_RATE = 1e6  # of learning: no training has such a one


@dataclass(frozen=True)
class FittedRun:
    """One trained model: what its file and, where they were kept, its events say."""

    name: str
    fit_summary: FitSummary
    history: Sequence[Event]
    saved_diagnoses: Sequence[Diagnosis]

    @property
    def diagnoses(self) -> list[Diagnosis]:
        """By its events; of a file without any, what was found when it was trained."""
        return (
            diagnose(self.history, self.fit_summary) if self.history else list(self.saved_diagnoses)
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything that is said of it, as JSON values."""
        return {
            "run": self.name,
            "diagnoses": [{**each.to_dict(), "summary": each.summary()} for each in self.diagnoses],
            "skipped_checks": [each.to_dict() for each in self.skipped_checks],
            "metrics": final_metrics(self.history, self.fit_summary),
        }

    @property
    def skipped_checks(self) -> list[SkippedCheck]:
        """What could not be looked at; of a file alone, only what nobody looked at before."""
        if not self.history and self.fit_summary.is_complete:
            return []
        return skipped_checks(self.history, self.fit_summary)


def read_fitted_runs(path: Path) -> Iterator[FittedRun]:
    """The model in a file, or all that a run's folder has."""
    if path.is_file():
        yield _read_fitted_run(str(path), path, ())
        return
    record = read_record(path)
    if record.get("world") != TABLE_WORLD and not (path / MODEL_FILE).is_file():
        raise ValueError(
            f"RUN is {path}, which kept no {MODEL_FILE}; methods of scikit-learn have no game to "
            "examine."
        )
    yield from iter_fitted_runs(path, record)


def iter_fitted_runs(path: Path, record: Mapping[str, Any]) -> Iterator[FittedRun]:
    """The models of a run whose run.json was read; those of scikit-learn are not among them."""
    events = _read_events(contained_path(path, EVENTS_FILE))
    if record.get("world") != TABLE_WORLD:
        if (model := contained_path(path, MODEL_FILE)).is_file():
            yield _read_fitted_run(str(path), model, events.get(None, ()))
        return
    for number in range(_count_models(path, record)):
        name = f"{path} (model {number})"
        file = contained_path(path, f"model-{number}.safetensors")
        yield _read_fitted_run(name, file, events.get(number, ()))


def _read_fitted_run(name: str, file: Path, history: Sequence[Event]) -> FittedRun:
    _, header = read_model_file(file)
    try:
        return FittedRun(name, read_summary(header), history, read_diagnoses(header))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{file} has a header that is not as cida writes it ({error})."
        ) from None


def read_record(folder: Path) -> Mapping[str, Any]:
    """What run.json says, in the folder of one run."""
    if not folder.is_dir():
        raise FileNotFoundError(f"RUN is {folder}, where there is nothing; check the path.")
    try:
        return loading.read_run_record(folder)
    except FileNotFoundError:
        run_folders = sorted(found.parent for found in folder.glob(f"**/{RECORD_FILE}"))
        hint = (
            f"such as {run_folders[0]}"
            if run_folders
            else "as cida fit, demo or reproduce write it"
        )
        raise FileNotFoundError(
            f"RUN is {folder}, which has no {RECORD_FILE}; give the folder of one run, {hint}."
        ) from None


def _count_models(folder: Path, record: Mapping[str, Any]) -> int:
    try:
        return int(decode(int, record["table"]["estimators"], "estimators"))
    except (KeyError, ValueError):
        raise ValueError(
            f"{folder / RECORD_FILE} does not say how many models there are."
        ) from None


def _read_events(path: Path) -> dict[int | None, list[Event]]:
    """The events of each model; those of a run of one model have no number."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no {path}; a run that was cut short has none: run it again."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read ({error}).") from None
    events: dict[int | None, list[Event]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            event = from_dict(_EventLine, _drop_unknown_fields(parse_json(line)))
            model_events = events.setdefault(event.model, [])
            if model_events and event.step <= model_events[-1].step:
                raise ValueError(f"step {event.step} after step {model_events[-1].step}")
            model_events.append(event.to_event())
        except ValueError as error:
            raise ValueError(
                f"{path} is damaged in line {number} ({error}); run it again."
            ) from None
    return events


@dataclass(frozen=True)
class _EventLine(Event):
    """A line of events.jsonl: an event, and of which model it is where there are several."""

    model: int | None = None

    def to_event(self) -> Event:
        """The event alone; refuses one before the first step or without a learning rate."""
        if self.step < 1 or not 0 < self.learning_rate < MAX_LEARNING_RATE:
            raise ValueError(f"step {self.step} with learning rate {self.learning_rate:g}")
        return Event(**{each.name: getattr(self, each.name) for each in fields(Event)})


def _drop_unknown_fields(data: Any) -> Any:
    """What a newer version may add is passed over."""
    names = {each.name for each in fields(_EventLine)}
    return {k: v for k, v in data.items() if k in names} if isinstance(data, dict) else data
