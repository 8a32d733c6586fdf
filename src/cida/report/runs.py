"""Runs as their folders tell them: all that a report is made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from cida.io.files import contained_path
from cida.io.json_decode import decode, from_dict, parse_json
from cida.report.patients import RECORD_FILE, TABLE_WORLD, FittedRun, iter_fitted_runs, read_record
from cida.runs.records import ORIGIN_KEY, RunResult
from cida.runs.snapshot import SNAPSHOT_FILE, Snapshot, load_snapshot
from cida.training import Event

__all__ = ["Run", "RunCollection", "read_result", "read_runs"]

RESULT_FILE = "row.json"
MAX_ABS_FIGURE = 1e100  # of a figure


@dataclass(frozen=True)
class Run:
    """One run: what its files say. A run of `cida fit` has no ``row``, an older one no ``view``."""

    folder: Path
    record: Mapping[str, Any]
    result: RunResult | None = None
    fitted_runs: tuple[FittedRun, ...] = ()
    snapshot: Snapshot | None = None

    @property
    def is_user_table(self) -> bool:
        """Whether it is a run of `cida fit`."""
        return self.record.get("world") == TABLE_WORLD

    @property
    def origin(self) -> Mapping[str, str]:
        """Benchmark, preset, protocol and command; a run of before they were kept has none."""
        origin_record = self.record.get(ORIGIN_KEY)
        return origin_record if isinstance(origin_record, dict) else {}

    @property
    def benchmark(self) -> str:
        """The benchmark's name, which is also that of the data where no origin was kept."""
        return str(self.origin.get("benchmark") or self.record.get("world", ""))

    @property
    def method(self) -> str:
        return str(self.record.get("method", ""))

    @property
    def title(self) -> str:
        """How tables call the method."""
        return str(self.record.get("title") or self.method)

    @property
    def seed(self) -> int:
        return int(self.record.get("seed", 0))

    @property
    def is_oracle(self) -> bool:
        return bool(self.record.get("oracle", False))

    @property
    def settings(self) -> dict[str, Any]:
        """The recipe, without what differs from seed to seed."""
        saved_settings = self.record.get("settings")
        settings = dict(saved_settings) if isinstance(saved_settings, dict) else {}
        return {name: value for name, value in settings.items() if name != "random_state"}

    @property
    def command(self) -> str:
        """What makes the run again, where it is known."""
        return str(self.origin.get("command") or self.record.get("command") or "")

    @property
    def histories(self) -> list[Sequence[Event]]:
        """The events of each of its models."""
        return [patient.history for patient in self.fitted_runs]


@dataclass(frozen=True)
class RunCollection:
    """All runs of a report, and sentences on those that were left out."""

    runs: tuple[Run, ...]
    skip_messages: tuple[str, ...] = field(default=())

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)


def read_runs(paths: Sequence[Path]) -> RunCollection:
    """The runs in these folders, in their order: each that of a run, or one that holds runs."""
    if not paths:
        raise ValueError("RUN is missing; name the folder of a run, or one that holds runs.")
    folder_pairs = [(folder, path) for path in paths for folder in _find_run_folders(path)]
    unique_folders: dict[Path, tuple[Path, Path]] = {}
    for folder, path in folder_pairs:
        unique_folders.setdefault(folder.resolve(), (folder, path))
    runs, skip_messages = [], []
    for folder, path in unique_folders.values():
        if _is_incomplete(folder):
            if folder == path:
                raise ValueError(
                    f"RUN is {folder}, which has no {RESULT_FILE}: it was cut short; run it again."
                )
            skip_messages.append(
                f"{folder} is left out: it has no {RESULT_FILE}, so it was cut short."
            )
        else:
            runs.append(_read_run(folder))
    if not runs:
        raise ValueError(f"RUN is {paths[0]}, where no run came to its end; run them again.")
    return RunCollection(tuple(runs), tuple(skip_messages))


def _find_run_folders(path: Path) -> list[Path]:
    """The folders of all runs in this place."""
    if not path.is_dir():
        problem = "no folder" if path.exists() else "not there"
        raise FileNotFoundError(f"RUN is {path}, which is {problem}; give the folder of a run.")
    if (path / RECORD_FILE).is_file():
        return [path]
    run_folders = sorted(found.parent for found in path.glob(f"**/{RECORD_FILE}"))
    if not run_folders:
        raise ValueError(
            f"RUN is {path}, which has no {RECORD_FILE}, and nor has a folder in it; give what "
            "cida fit, "
            "demo or reproduce wrote."
        )
    return run_folders


def _is_incomplete(folder: Path) -> bool:
    return not (folder / RESULT_FILE).is_file() and read_record(folder).get("world") != TABLE_WORLD


def _read_run(folder: Path) -> Run:
    record = read_record(folder)
    snapshot = contained_path(folder, SNAPSHOT_FILE)
    return Run(
        folder=folder,
        record=record,
        result=read_result(contained_path(folder, RESULT_FILE))
        if record.get("world") != TABLE_WORLD
        else None,
        fitted_runs=tuple(iter_fitted_runs(folder, record)),
        snapshot=load_snapshot(snapshot) if snapshot.is_file() else None,
    )


def _check_figures(result: RunResult) -> None:
    """Refuses numbers that nobody can have measured; NaN is one that is not known."""
    figures = [result.source_score, result.target_score, result.all_score, result.seconds]
    figures += [(result.fresh or {}).get(name, 0.0) for name in ("target_score", "all_score")]
    for cell in result.by_index:
        figures += [cell["score"], cell["n"], *np.hstack([cell["lo"], cell["hi"]])]
    if (np.abs(np.array(figures, dtype=float)) > MAX_ABS_FIGURE).any():
        raise ValueError("it has a number beyond all measure")
    if len({(np.shape(cell["lo"]), np.shape(cell["hi"])) for cell in result.by_index}) > 1:
        raise ValueError("by_index has cells of different widths")


class _ScoreCell(TypedDict):
    """A cell along u."""

    lo: float | list[float]
    hi: float | list[float]
    score: float
    n: int


class _FreshScores(TypedDict):
    """The accuracies on a fresh draw."""

    target_score: float
    all_score: float


def read_result(path: Path) -> RunResult:
    """The figures in a run's row.json."""
    try:
        result = from_dict(RunResult, parse_json(path.read_bytes()))
        decode(list[_ScoreCell], result.by_index, "by_index")
        decode(_FreshScores | None, result.fresh, "fresh")
        _check_figures(result)
        return result
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); run it again.") from None
