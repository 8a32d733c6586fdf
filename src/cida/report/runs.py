"""Runs as their folders record them: all that a report is made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cida.runs.fitted_run import FittedRun
from cida.runs.records import RunRecord, RunResult
from cida.runs.run_folder import RECORD_FILE, RESULT_FILE, RunFolder, find_run_folders
from cida.runs.snapshot import Snapshot
from cida.training import Event

__all__ = ["Run", "RunCollection", "read_runs"]


@dataclass(frozen=True)
class Run:
    """One run: what its files say. A fit of a user's own table has no ``result``."""

    folder: Path
    record: RunRecord
    result: RunResult | None = None
    fitted_runs: tuple[FittedRun, ...] = ()
    snapshot: Snapshot | None = None

    @property
    def is_user_table(self) -> bool:
        """Whether it is a run of `cida fit`."""
        return self.record.fit is not None

    @property
    def task(self) -> str:
        """The name of the experiment's task, or of the data where there is no experiment."""
        return self.record.origin.task or self.record.task

    @property
    def method(self) -> str:
        return self.record.method

    @property
    def title(self) -> str:
        """The method's name in tables."""
        return self.record.title or self.method

    @property
    def seed(self) -> int:
        return self.record.seed

    @property
    def is_oracle(self) -> bool:
        return self.record.is_oracle

    @property
    def settings(self) -> dict[str, Any]:
        """The recipe, without what differs from seed to seed."""
        settings = self.record.settings
        return {name: value for name, value in settings.items() if name != "random_state"}

    @property
    def command(self) -> str:
        """The command that makes the run again."""
        return self.record.origin.command

    @property
    def histories(self) -> list[Sequence[Event]]:
        """The events of each of its models."""
        return [fitted_run.history for fitted_run in self.fitted_runs]


@dataclass(frozen=True)
class RunCollection:
    """All runs of a report, and the folders of those that were interrupted and left out."""

    runs: tuple[Run, ...]
    incomplete_folders: tuple[Path, ...] = field(default=())

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)


def read_runs(paths: Sequence[Path]) -> RunCollection:
    """The runs in these folders, in their order: each that of a run, or one that holds runs."""
    if not paths:
        raise ValueError("RUN is missing; name the folder of a run, or one that holds runs.")
    unique_folders: dict[Path, Path] = {}
    for path in paths:
        for folder in _find_folders(path):
            unique_folders.setdefault(folder.resolve(), folder)
    runs, incomplete_folders = [], []
    for path in unique_folders.values():
        run_folder = RunFolder.open(path)
        if run_folder.is_complete:
            runs.append(_read_run(run_folder))
        elif path in paths:
            raise ValueError(
                f"RUN is {path}, which has no {RESULT_FILE}: it was cut short; run it again."
            )
        else:
            incomplete_folders.append(path)
    if not runs:
        raise ValueError(f"RUN is {paths[0]}, where no run came to its end; run them again.")
    return RunCollection(tuple(runs), tuple(incomplete_folders))


def _read_run(folder: RunFolder) -> Run:
    fitted_run = folder.fitted_run()
    fitted_runs = () if fitted_run is None else (fitted_run,)
    return Run(folder.path, folder.record, folder.result, fitted_runs, folder.snapshot)


def _find_folders(path: Path) -> list[Path]:
    if not path.is_dir():
        problem = "no folder" if path.exists() else "not there"
        raise FileNotFoundError(f"RUN is {path}, which is {problem}; give the folder of a run.")
    folders = find_run_folders(path)
    if not folders:
        raise ValueError(
            f"RUN is {path}, which has no {RECORD_FILE}, and nor has a folder in it; give what "
            "cida fit, demo or reproduce wrote."
        )
    return folders
