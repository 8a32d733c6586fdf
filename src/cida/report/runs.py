"""Runs as their folders tell them: all that a report is made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from cida.benchmarks.recipes import METHODS
from cida.benchmarks.runner import ORIGIN, Row
from cida.diagnostics.view import VIEW, View, read_view
from cida.files import own_file
from cida.plain import checked, from_words, parse_json
from cida.report.patients import RUN, TABLE, Patient, patients_of, read_run
from cida.training import Event

__all__ = ["Run", "Runs", "read_row", "read_runs"]

ROW = "row.json"
MOST = 1e100  # of a figure


@dataclass(frozen=True)
class Run:
    """One run: what its files say. A run of `cida fit` has no ``row``, an older one no ``view``."""

    folder: Path
    words: Mapping[str, Any]
    row: Row | None = None
    patients: tuple[Patient, ...] = ()
    view: View | None = None

    @property
    def own_table(self) -> bool:
        """Whether it is a run of `cida fit`."""
        return self.words.get("world") == TABLE

    @property
    def origin(self) -> Mapping[str, str]:
        """Benchmark, preset, protocol and command; a run of before they were kept has none."""
        found = self.words.get(ORIGIN)
        return found if isinstance(found, dict) else {}

    @property
    def benchmark(self) -> str:
        """The benchmark's name, which is also that of the data where no origin was kept."""
        return str(self.origin.get("benchmark") or self.words.get("world", ""))

    @property
    def method(self) -> str:
        return str(self.words.get("method", ""))

    @property
    def title(self) -> str:
        """How tables call the method."""
        return str(self.words.get("title") or METHODS.get(self.method, (self.method,))[0])

    @property
    def seed(self) -> int:
        return int(self.words.get("seed", 0))

    @property
    def oracle(self) -> bool:
        return bool(self.words.get("oracle", False))

    @property
    def settings(self) -> dict[str, Any]:
        """The recipe, without what differs from seed to seed."""
        found = self.words.get("settings")
        known = dict(found) if isinstance(found, dict) else {}
        return {name: value for name, value in known.items() if name != "random_state"}

    @property
    def command(self) -> str:
        """What makes the run again, where it is known."""
        return str(self.origin.get("command") or self.words.get("command") or "")

    @property
    def histories(self) -> list[Sequence[Event]]:
        """The events of each of its models."""
        return [patient.history for patient in self.patients]


@dataclass(frozen=True)
class Runs:
    """All runs of a report, and sentences on those that were left out."""

    found: tuple[Run, ...]
    left_out: tuple[str, ...] = field(default=())

    def __iter__(self) -> Iterator[Run]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


def read_runs(paths: Sequence[Path]) -> Runs:
    """The runs in these folders, in their order: each that of a run, or one that holds runs."""
    if not paths:
        raise ValueError("RUN is missing; name the folder of a run, or one that holds runs.")
    named = [(folder, path) for path in paths for folder in _folders(path)]
    alone: dict[Path, tuple[Path, Path]] = {}
    for folder, path in named:
        alone.setdefault(folder.resolve(), (folder, path))
    found, left_out = [], []
    for folder, path in alone.values():
        if _cut_short(folder):
            if folder == path:
                raise ValueError(
                    f"RUN is {folder}, which has no {ROW}: it was cut short; run it again."
                )
            left_out.append(f"{folder} is left out: it has no {ROW}, so it was cut short.")
        else:
            found.append(_read(folder))
    if not found:
        raise ValueError(f"RUN is {paths[0]}, where no run came to its end; run them again.")
    return Runs(tuple(found), tuple(left_out))


def _folders(path: Path) -> list[Path]:
    """The folders of all runs in this place."""
    if not path.is_dir():
        there = "no folder" if path.exists() else "not there"
        raise FileNotFoundError(f"RUN is {path}, which is {there}; give the folder of a run.")
    if (path / RUN).is_file():
        return [path]
    inside = sorted(found.parent for found in path.glob(f"**/{RUN}"))
    if not inside:
        raise ValueError(
            f"RUN is {path}, which has no {RUN}, and nor has a folder in it; give what cida fit, "
            "demo or reproduce wrote."
        )
    return inside


def _cut_short(folder: Path) -> bool:
    return not (folder / ROW).is_file() and read_run(folder).get("world") != TABLE


def _read(folder: Path) -> Run:
    words = read_run(folder)
    view = own_file(folder, VIEW)
    return Run(
        folder=folder,
        words=words,
        row=read_row(own_file(folder, ROW)) if words.get("world") != TABLE else None,
        patients=tuple(patients_of(folder, words)),
        view=read_view(view) if view.is_file() else None,
    )


def _check_figures(row: Row) -> None:
    """Refuses numbers that nobody can have measured; NaN is one that is not known."""
    found = [row.source_accuracy, row.target_accuracy, row.all_accuracy, row.seconds]
    found += [(row.fresh or {}).get(name, 0.0) for name in ("target_accuracy", "all_accuracy")]
    for cell in row.by_index:
        found += [cell["accuracy"], cell["n"], *np.hstack([cell["lo"], cell["hi"]])]
    if (np.abs(np.array(found, dtype=float)) > MOST).any():
        raise ValueError("it has a number beyond all measure")
    if len({(np.shape(cell["lo"]), np.shape(cell["hi"])) for cell in row.by_index}) > 1:
        raise ValueError("by_index has cells of different widths")


class _Cell(TypedDict):
    """A cell along u."""

    lo: float | list[float]
    hi: float | list[float]
    accuracy: float
    n: int


class _Fresh(TypedDict):
    """The accuracies on a fresh draw."""

    target_accuracy: float
    all_accuracy: float


def read_row(path: Path) -> Row:
    """The figures in a run's row.json."""
    try:
        row = from_words(Row, parse_json(path.read_bytes()))
        checked(list[_Cell], row.by_index, "by_index")
        checked(_Fresh | None, row.fresh, "fresh")
        _check_figures(row)
        return row
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); run it again.") from None
