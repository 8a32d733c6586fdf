"""The folder of a run: the only module that knows the names of the files in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from cida.errors import error_summary
from cida.io.files import contained_path, exclusive_lock, remove_partial_files, write_atomically
from cida.io.json_decode import decode, from_dict, parse_json
from cida.io.tensors import MODEL_FILE, ModelFileError
from cida.runs.fitted_run import FittedRun, read_fitted_run
from cida.runs.records import MANIFEST_FILE, RunRecord, RunResult
from cida.runs.snapshot import SNAPSHOT_FILE, Snapshot, load_snapshot
from cida.training import Event, resumable
from cida.training.checkpointing import CHECKPOINT_INTERVAL_SECONDS

RECORD_FILE = "run.json"
RESULT_FILE = "result.json"
EVENTS_FILE = "events.jsonl"
CHECKPOINT_FOLDER_NAME = "checkpoint"  # of checkpoints, in the folder of an unfinished run
RESUMABLE_ERRORS = (KeyboardInterrupt, OSError, MemoryError, SystemExit)  # others would come again
MAX_LEARNING_RATE = 1e6


def check_checkpoint_seconds(seconds: float) -> None:
    """Refuse a time between checkpoints that is negative or not a number."""
    if not seconds >= 0:
        raise ValueError(f"checkpoint_seconds is {seconds}; it must not be negative.")


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run: its files are written once and read as records."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> Self:
        """The folder of a run that is there; its record is read and checked at once."""
        if not path.is_dir():
            raise FileNotFoundError(f"RUN is {path}, where there is nothing; check the path.")
        if not (path / RECORD_FILE).exists():
            inner = find_run_folders(path)
            hint = f"such as {inner[0]}" if inner else "as cida fit, demo or reproduce write it"
            raise FileNotFoundError(
                f"RUN is {path}, which has no {RECORD_FILE}; give the folder of one run, {hint}."
            )
        folder = cls(path)
        _ = folder.record
        return folder

    @classmethod
    @contextmanager
    def create(
        cls,
        path: Path,
        resume: bool = False,
        checkpoint_seconds: float = CHECKPOINT_INTERVAL_SECONDS,
    ) -> Iterator[Self]:
        """A hidden folder beside ``path`` to make the run in; it is renamed when the run is whole.

        Trainings inside leave checkpoints in it. If the work is interrupted they stay, and with
        ``resume`` it continues from them.
        """
        check_checkpoint_seconds(checkpoint_seconds)
        working_folder = path.parent / f".{path.name}.unfinished"
        with exclusive_lock(path, path.parent / f".{path.name}.lock"):
            if _has_checkpoint(working_folder) and not resume:
                raise ValueError(
                    f"out is {path}, of which an unfinished run is kept; go on with --resume, or "
                    f"remove {working_folder}."
                )
            _keep_only_checkpoints(working_folder)
            try:
                with resumable(working_folder / CHECKPOINT_FOLDER_NAME, checkpoint_seconds):
                    yield cls(working_folder)
            except BaseException as error:
                is_kept = isinstance(error, RESUMABLE_ERRORS) and _has_checkpoint(working_folder)
                if not is_kept:
                    shutil.rmtree(working_folder, ignore_errors=True)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                kept = "the training so far is kept: the same command with --resume goes on."
                outcome = kept if is_kept else "nothing was written."
                raise KeyboardInterrupt(f"interrupted; {outcome}") from None
            if path.is_dir():
                path.rmdir()
            os.replace(working_folder, path)
            shutil.rmtree(path / CHECKPOINT_FOLDER_NAME, ignore_errors=True)

    @contextmanager
    def rewrite(
        self, resume: bool = False, checkpoint_seconds: float = CHECKPOINT_INTERVAL_SECONDS
    ) -> Iterator[None]:
        """Inside, the run is made in the folder itself, of which its own command has the lock.

        An earlier result is removed first, and the checkpoints at the end: a folder that has a
        result is a whole run.
        """
        (self.path / RESULT_FILE).unlink(missing_ok=True)
        remove_partial_files(self.path)
        if not resume:
            shutil.rmtree(self.path / CHECKPOINT_FOLDER_NAME, ignore_errors=True)
        with resumable(self.path / CHECKPOINT_FOLDER_NAME, checkpoint_seconds):
            yield
        shutil.rmtree(self.path / CHECKPOINT_FOLDER_NAME, ignore_errors=True)

    @cached_property
    def record(self) -> RunRecord:
        """What was run."""
        path = contained_path(self.path, RECORD_FILE)
        try:
            values = parse_json(path.read_bytes())
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{path} cannot be read ({error}).") from None
        try:
            return RunRecord.from_dict(values)
        except ValueError as error:
            raise ModelFileError(f"{path} is not as cida writes it ({error}).") from None

    @property
    def is_complete(self) -> bool:
        """Whether the run came to its end; the folder of a fit is there when it has."""
        return self.record.fit is not None or (self.path / RESULT_FILE).is_file()

    @cached_property
    def result(self) -> RunResult | None:
        """The scores of the run; a fit of a user's own table has none."""
        if self.record.fit is not None:
            return None
        path = contained_path(self.path, RESULT_FILE)
        try:
            return RunResult.from_dict(parse_json(path.read_bytes()))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} is damaged ({error}); run it again.") from None

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The rows that were kept for a report."""
        path = contained_path(self.path, SNAPSHOT_FILE)
        return load_snapshot(path) if path.is_file() else None

    @cached_property
    def manifest_folder(self) -> Path | None:
        """The folder of the experiment that the run is of: one of the two above it."""
        parents = self.path.resolve().parents[:2]
        return next((each for each in parents if (each / MANIFEST_FILE).is_file()), None)

    def events(self) -> dict[int, list[Event]]:
        """The events of each of its models, by number."""
        path = contained_path(self.path, EVENTS_FILE)
        try:
            lines = path.read_text().splitlines()
        except FileNotFoundError:
            raise FileNotFoundError(
                f"there is no {path}; a run that was cut short has none: run it again."
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} cannot be read ({error_summary(error)}).") from None
        events: dict[int, list[Event]] = {}
        for number, line in enumerate(lines, start=1):
            try:
                _add_event(events, decode(dict[str, Any], parse_json(line), "it"))
            except ValueError as error:
                where = f"{path} is damaged in line {number}"
                raise ValueError(f"{where} ({error}); run it again.") from None
        return events

    @property
    def model_file(self) -> Path | None:
        """The file of its model; models of scikit-learn have none."""
        path = contained_path(self.path, MODEL_FILE)
        return path if path.is_file() else None

    def fitted_run(self) -> FittedRun | None:
        """The training of the run: what its model file and the events of its first member say."""
        if self.model_file is None:
            return None
        return read_fitted_run(str(self.path), self.model_file, self.events().get(0, ()))

    def write_record(self, record: RunRecord) -> None:
        """Write what was run."""
        _write_json(self.path / RECORD_FILE, record.to_dict())

    def write_result(self, result: RunResult) -> None:
        """Write the scores, last of all: from here on the run is whole."""
        _write_json(self.path / RESULT_FILE, asdict(result))

    def write_events(self, histories: Sequence[Sequence[Event]]) -> None:
        """Write the events of each model."""
        numbered = [(k, event) for k, events in enumerate(histories) for event in events]
        text = "".join(json.dumps({"model": k, **asdict(each)}) + "\n" for k, each in numbered)
        write_atomically(self.path / EVENTS_FILE, text.encode())

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Write the rows that a report shows."""
        snapshot.save(self.path / SNAPSHOT_FILE)


def load_fitted_run(path: Path) -> FittedRun:
    """The training in a model file, or that of a run's folder."""
    if path.is_file():
        return read_fitted_run(str(path), path)
    fitted_run = RunFolder.open(path).fitted_run()
    if fitted_run is None:
        raise ValueError(
            f"RUN is {path}, which kept no {MODEL_FILE}; methods of scikit-learn have no game to "
            "examine."
        )
    return fitted_run


def find_run_folders(path: Path) -> list[Path]:
    """The folders of all runs at or below this path, in order of their names."""
    if (path / RECORD_FILE).is_file():
        return [path]
    return sorted(found.parent for found in path.glob(f"**/{RECORD_FILE}"))


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


def _has_checkpoint(folder: Path) -> bool:
    return any((folder / CHECKPOINT_FOLDER_NAME).glob("*/*.safetensors"))


def _keep_only_checkpoints(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for leftover in folder.iterdir():
        if leftover.name != CHECKPOINT_FOLDER_NAME:
            is_folder = leftover.is_dir() and not leftover.is_symlink()
            shutil.rmtree(leftover) if is_folder else leftover.unlink()


def _add_event(events: dict[int, list[Event]], values: dict[str, Any]) -> None:
    """Add the event of a line to those of its model; refuses what cannot follow them."""
    model_events = events.setdefault(decode(int, values.get("model", 0), "model"), [])
    event = from_dict(Event, values, strict=False)
    if event.step < 1 or not 0 < event.learning_rate < MAX_LEARNING_RATE:
        raise ValueError(f"step {event.step} with learning rate {event.learning_rate:g}")
    if model_events and event.step <= model_events[-1].step:
        raise ValueError(f"step {event.step} after step {model_events[-1].step}")
    model_events.append(event)
