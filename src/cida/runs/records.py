"""What runs leave on disk as data: results, and what an experiment adds to a report of its runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self, TypedDict

import numpy as np

from cida.certificate import Certificate
from cida.io.files import contained_path, write_atomically
from cida.io.json_decode import decode, from_dict, parse_json
from cida.methods import Role
from cida.runs.fit_record import FitRecord
from cida.runs.result_table import ResultTable

MANIFEST_FILE = "manifest.json"
RECORD_SCHEMA = 2
MAX_ABS_FIGURE = 1e100


@dataclass(frozen=True)
class Origin:
    """Where a run comes from; its numbers do not depend on it.

    ``task`` is the name of an experiment's task, such as sleep-intra/shhs.
    """

    task: str = ""
    preset: str = ""
    protocol: str = ""
    command: str = ""


@dataclass(frozen=True)
class RunRecord:
    """What was run: enough to do it again, and to know that two runs are the same.

    ``task`` names the data and ``data`` is their fingerprint. ``fit`` is there for a user's own
    table alone.
    """

    task: str
    method: str
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    data: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    threads: int = 1
    title: str = ""
    is_oracle: bool = False
    is_simulated: bool = False
    origin: Origin = Origin()
    fit: FitRecord | None = None

    @property
    def identity(self) -> str:
        """A hash of all that decides the run's numbers: settings, data, seed, versions, threads."""
        names = ("task", "method", "seed", "settings", "data", "versions", "threads", "is_oracle")
        values = {name: getattr(self, name) for name in names}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        values = asdict(self)
        if self.fit is None:
            del values["fit"]
        return {"schema": RECORD_SCHEMA, **values}

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what `to_dict` returned; what a newer version may add is passed over."""
        values = decode(dict[str, Any], data, "it")
        if values.get("schema") != RECORD_SCHEMA:
            raise ValueError(f"its schema is {values.get('schema')!r}, not {RECORD_SCHEMA}")
        record = from_dict(cls, values, strict=False)
        if record.fit is not None and record.fit.certificate is not None:
            Certificate.from_dict(record.fit.certificate.to_dict())  # whose tests are checked
        return record


@dataclass(frozen=True)
class RunResult:
    """One run's scores, as results.json holds them: fractions of the ``metric``.

    ``fresh`` has the same scores on a fresh draw of the same domains, ``extra_metrics`` the figures
    that one field reads beside them; ``task`` is the task's name where an experiment has several.
    """

    method: str
    seed: int
    source_score: float
    target_score: float
    all_score: float
    by_index: list[dict[str, Any]]
    seconds: float
    fresh: dict[str, Any] | None = None
    extra_metrics: dict[str, Any] | None = None
    task: str = ""
    metric: str = "accuracy"
    role: str = Role.ADAPTIVE

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read JSON values; NaN is a figure that is not known."""
        result = from_dict(cls, data)
        decode(list[_ScoreCell], result.by_index, "by_index")
        decode(_FreshScores | None, result.fresh, "fresh")
        figures = [result.source_score, result.target_score, result.all_score, result.seconds]
        figures += [(result.fresh or {}).get(name, 0.0) for name in ("target_score", "all_score")]
        for cell in result.by_index:
            figures += [cell["score"], cell["n"], *np.hstack([cell["lo"], cell["hi"]])]
        if (np.abs(np.array(figures, dtype=float)) > MAX_ABS_FIGURE).any():
            raise ValueError(f"it has a figure above {MAX_ABS_FIGURE:g}")
        if len({(np.shape(cell["lo"]), np.shape(cell["hi"])) for cell in result.by_index}) > 1:
            raise ValueError("by_index has cells of different widths")
        return result


class _ScoreCell(TypedDict):
    """A cell along u."""

    lo: float | list[float]
    hi: float | list[float]
    score: float
    n: int


class _FreshScores(TypedDict):
    """The scores on a fresh draw."""

    target_score: float
    all_score: float


@dataclass(frozen=True)
class PublishedScore:
    """A published accuracy, as a fraction, over target domains or over all of them.

    ``by_index`` has the accuracies of the intervals along u, the source's first, where the paper
    has a table of them; it shows its toy experiments as pictures alone.
    """

    accuracy: float
    scored_domains: str
    source_note: str
    by_index: tuple[float, ...] = ()


@dataclass(frozen=True)
class ExperimentText:
    """An experiment's title, what it is about, and what its columns and figures show."""

    title: str
    lead: str = ""
    columns_note: str = ""
    figures_note: str = ""


@dataclass(frozen=True)
class TaskRecord:
    """What a report needs to know of a task: names, the order of its methods, published scores."""

    name: str
    title: str
    methods: tuple[str, ...] = ()
    published_scores: Mapping[str, PublishedScore] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """What an experiment adds to the report of its runs; kept in its folder, beside them.

    ``runs`` are the folders of its runs, relative to its own: sentences, tables and figures are
    shown of all of them or not at all. ``figures`` are the files of SVG figures there, by title;
    ``tables`` have their captions as names. ``methods_as_rows`` is how the main table is turned,
    ``by_interval`` whether each interval along u has a column.
    """

    runs: Sequence[str] = ()
    command: str = ""
    protocol: str = ""
    experiment: str = ""
    text: ExperimentText = ExperimentText("")
    tasks: tuple[TaskRecord, ...] = ()
    is_simulated: bool = False
    methods_as_rows: bool = False
    by_interval: bool = False
    sentences: Sequence[str] = ()
    tables: Mapping[str, ResultTable] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Writes it into the experiment's folder."""
        values = {"schema": RECORD_SCHEMA, **asdict(self)}
        text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
        write_atomically(folder / MANIFEST_FILE, text.encode())

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` left there."""
        path = contained_path(folder, MANIFEST_FILE)
        try:
            data = decode(dict[str, Any], parse_json(path.read_bytes()), "it")
            if data.pop("schema", None) != RECORD_SCHEMA:
                raise ValueError("of another version")
            return from_dict(cls, data)
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} is damaged ({error}); run the experiment again.") from None

    def has_exactly_runs(self, folder: Path, runs: Collection[Path]) -> bool:
        """Whether these are all its runs, and no others."""
        manifest_runs = {(folder / name).resolve() for name in self.runs}
        return manifest_runs == {run.resolve() for run in runs}

    def read_figures(self, folder: Path) -> dict[str, str]:
        """The SVG texts by title, of those figures that are still there."""
        paths = {title: contained_path(folder, name) for title, name in self.figures.items()}
        return {t: p.read_text(encoding="utf-8") for t, p in paths.items() if p.is_file()}
