"""Runs as their folders record them: all that a report is made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cida.runs.fit_lines import FitTopic, fit_lines
from cida.runs.fitted_run import FittedRun
from cida.runs.records import RunRecord, RunResult
from cida.runs.run_folder import RECORD_FILE, RESULT_FILE, RunFolder, find_run_folders
from cida.runs.snapshot import Snapshot


@dataclass(frozen=True)
class Run:
    """One run: what its files say. A fit of a user's own table has no ``result``."""

    folder: Path
    record: RunRecord
    result: RunResult | None = None
    fitted_run: FittedRun | None = None
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
    def settings(self) -> dict[str, Any]:
        """The recipe, without what differs from seed to seed."""
        settings = self.record.settings
        return {name: value for name, value in settings.items() if name != "random_state"}

    @property
    def command(self) -> str:
        """The command that makes the run again."""
        return self.record.origin.command

    def fit_lines(self, topic: FitTopic) -> list[str]:
        """What is said of the fit of a user's own table on a topic."""
        return [] if self.record.fit is None else fit_lines(self.record.fit, topic)


@dataclass(frozen=True)
class RunCollection:
    """All runs of a report, and the folders of those that were interrupted and left out."""

    runs: tuple[Run, ...]
    incomplete_folders: tuple[Path, ...] = ()

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)


def read_runs(paths: Sequence[Path]) -> RunCollection:
    """The runs in these folders, in their order: each that of a run, or one that holds runs."""
    if not paths:
        raise ValueError("RUN is missing; name the folder of a run, or one that holds runs.")
    folders: dict[Path, Path] = {}
    for folder in (folder for path in paths for folder in _find_folders(path)):
        folders.setdefault(folder.resolve(), folder)
    runs, incomplete_folders = [], []
    for path in folders.values():
        run = RunFolder.open(path)
        if run.is_complete:
            fitted_run = run.fitted_run()
            runs.append(Run(path, run.record, run.result, fitted_run, run.snapshot))
        elif path in paths:
            raise ValueError(
                f"RUN is {path}, which has no {RESULT_FILE}: it was cut short; run it again."
            )
        else:
            incomplete_folders.append(path)
    if not runs:
        raise ValueError(f"RUN is {paths[0]}, where no run came to its end; run them again.")
    return RunCollection(tuple(runs), tuple(incomplete_folders))


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
