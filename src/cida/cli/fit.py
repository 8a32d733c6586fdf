"""``cida fit``: a model of your own table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console

from cida import distributed
from cida.cli.arguments import check_counts, check_name
from cida.cli.output import print_json
from cida.cli.report import REPORT_FILE, save_report
from cida.discriminators import Discriminator, Histogram
from cida.estimators.saving import library_versions, to_json_value
from cida.estimators.table_networks import PLAIN_SETTINGS
from cida.experiments.spec import ComputeConfig
from cida.report import RunCollection, read_runs
from cida.runs.records import FitRecord, Origin, RunRecord
from cida.runs.run_folder import RunFolder, check_checkpoint_seconds
from cida.selection.expected_score import ExpectedScore
from cida.training import Callback
from cida.training.progress import ProgressBar

if TYPE_CHECKING:
    from cida.estimators.table import TableModel
    from cida.tables import ColumnRoles, EncodedTable, TableSource

__all__ = ["FIT_METHODS", "Fit"]


@dataclass(frozen=True)
class MethodSettings:
    """The estimator's settings, and whether columns are standardised along the index."""

    discriminator: str | Discriminator | None
    game: str = "adversarial"
    use_windows: bool = True
    extra_settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_marginal_alignment(self) -> bool:
        """Whether it makes z independent of the index, labels or not."""
        return self.use_windows or (self.discriminator is not None and self.game == "adversarial")


FIT_METHODS: Mapping[str, MethodSettings] = {
    "auto": MethodSettings("histogram"),
    "source-only": MethodSettings(None, use_windows=False, extra_settings=PLAIN_SETTINGS),
    "windows": MethodSettings(None),
    "cida": MethodSettings("l2"),
    "pcida": MethodSettings("gaussian"),
    "histogram": MethodSettings("histogram"),
    "dann": MethodSettings(Histogram(kernel=0)),
    "cdann": MethodSettings(Histogram(kernel=0), "conditional"),
    "conditional": MethodSettings("histogram", "conditional", use_windows=False),
}


@dataclass(frozen=True)
class Fit:
    """Fits a model to your own table; rows with an empty label are the target.

    Example:  cida fit patients.csv --label outcome --index age --out runs/patients

    Example:  cida fit loads.parquet --label load --index hour day --periodic hour:24 --regression
    --out runs/loads
    """

    data: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DATA")]
    """The table: a .csv or .parquet file, an .npz file with the arrays X, y and u, or a folder with
    X.npy, y.npy and u.npy, which may be larger than memory."""

    out: Annotated[Path, tyro.conf.arg(metavar="RUN")]
    """The folder for the model, which must not exist yet or be empty."""

    label: Annotated[str, tyro.conf.arg(metavar="COLUMN")] = ""
    """The column to predict; the rows where it is empty are the target. y for an .npz file."""

    index: Annotated[tuple[str, ...], tyro.conf.arg(metavar="U [U2 ...]")] = ()
    """The columns along which labels end: numbers or dates. All of u for an .npz file."""

    periodic: Annotated[tuple[str, ...], tyro.conf.arg(metavar="U:PERIOD ...")] = ()
    """Index columns that wrap round, such as hour:24; dates count in days."""

    regression: bool = False
    """Predict a number rather than a class."""

    drop: Annotated[tuple[str, ...], tyro.conf.arg(metavar="COL ...")] = ()
    """Columns to leave out."""

    method: str = "auto"
    """The method: auto (the histogram head), source-only, windows (columns standardised along the
    index, and no more), cida, pcida, histogram, dann, cdann, conditional (for labels whose balance
    moves along the index)."""

    seeds: int = 1
    """How many models, each of a seed of its own; their predictions are averaged."""

    seed: int = 0
    """The first seed; it also chooses the source rows that are held out."""

    steps: int | None = None
    """Training steps of each model; fewer give a quicker look and a worse model."""

    expected: bool = True
    """Also tell the accuracy to expect on the target, for which the first model is trained once
    more, without the labels of the outermost source range."""

    resume: bool = False
    """Goes on with a run that was cut off: the same command again, with this flag."""

    checkpoint_seconds: float = 30.0
    """Seconds between two checkpoints of the training."""

    device: str = "cpu"
    """Where to train: cpu or cuda."""

    precision: str = "float32"
    """What the encoder computes in while it is trained: float32 or bf16."""

    compile: bool = False
    """Lets torch compile the encoder for the training."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Prints what was understood, trains, prints the figures and, last, the run's path."""
        # Here, since these need pyarrow, which the other verbs do without.
        from cida.cli.table_words import (
            data_lines,
            expected_lines,
            figure_lines,
            shift_words,
        )
        from cida.estimators.table import TableModel, encode_rows, hold_out
        from cida.estimators.table_figures import (
            compute_table_figures,
            make_table_snapshot,
            measure_table_label_shift,
        )
        from cida.tables import open_table, read_table

        if self._check():
            _print_lines(console, [f"{self.out} is finished.", str(self.out.resolve())])
            return 0
        file = open_table(self.data)
        data = read_table(file, self._column_roles(file))
        with _new_run(self) as folder:
            run_folder = folder.path
            data_summary = data_lines(data)
            _print_lines(console, data_summary)
            warnings = []
            if (
                FIT_METHODS[self.method].has_marginal_alignment
                and (shift := measure_table_label_shift(data)).is_suspected
            ):
                warnings.append(shift_words(data, shift))
            _print_lines(console, warnings, style="yellow")
            x = encode_rows(data, run_folder / "rows")
            held_out = hold_out(data, self.seed)
            seeds = range(self.seed, self.seed + self.seeds)
            progress = _SeedProgress(console)
            windows = FIT_METHODS[self.method].use_windows
            model = TableModel.fit(data, x, held_out, self._settings(), seeds, progress, windows)
            figures = compute_table_figures(model, data, x, held_out)
            expected = self._estimate_expected_scores(model, data, x, held_out, console)
            result_lines = [*figure_lines(data, figures), *expected_lines(data, expected)]
            certificate, certificate_lines = _certify(model, data, x)
            folder.write_snapshot(make_table_snapshot(model, data, x, held_out, expected))
            messages = {
                "data": data_summary,
                "warnings": warnings,
                "results": result_lines,
                "certificate": certificate_lines,
            }
            (run_folder / "rows").unlink(missing_ok=True)
            fit = FitRecord(
                label=model.label,
                index_names=list(model.index),
                n_rows=len(data),
                n_source_rows=int(data.labelled.sum()),
                n_models=self.seeds,
                scores=figures.scores,
                certificate=certificate,
                messages=messages,
            )
            model.save(run_folder, replace(self._record(), fit=fit))
            (run,) = read_runs([run_folder])
            save_report(
                RunCollection((replace(run, folder=self.out),)), run_folder / REPORT_FILE, console
            )
        _print_lines(console, [*result_lines, certificate_lines[0]])
        diagnoses = [each for one in model.estimators for each in one.diagnoses_]
        _print_lines(console, list(dict.fromkeys(map(str, diagnoses))), style="yellow")
        _print_lines(console, ["The report, to open in a browser:"])
        _print_lines(console, [str((self.out / REPORT_FILE).resolve()), str(self.out.resolve())])
        if self.json:
            print_json(
                "fit",
                folder=self.out.resolve(),
                files=sorted(path.resolve() for path in self.out.iterdir()),
                messages=messages,
                figures=figures.to_dict(),
                expected=[asdict(one) for one in expected],
                certificate=certificate,
                diagnoses=[diagnosis.to_dict() for diagnosis in diagnoses],
            )
        return 0

    def _estimate_expected_scores(
        self, model: TableModel, data: EncodedTable, x: Any, held_out: Any, console: Console
    ) -> tuple[ExpectedScore, ...]:
        """The accuracy to expect along the index; none where it cannot be told, or is not asked."""
        from cida.estimators.table_figures import estimate_table_scores

        if not self.expected or data.classes is None:
            return ()
        try:
            with console.status("training once more, to tell what to expect"):
                return estimate_table_scores(model, data, x, held_out)
        except ValueError as error:  # a source too small to leave a part out: the sentence says so
            _print_lines(console, [f"No expected accuracy: {error}"])
            return ()

    def _check(self) -> bool:
        """Refuses what cannot be done; whether all is done already."""
        check_checkpoint_seconds(self.checkpoint_seconds)
        check_counts(seeds=self.seeds, steps=self.steps)
        check_name("method", self.method, FIT_METHODS)
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; it must not be negative.")
        if distributed.any_rank(self.resume and self._is_finished()):
            return True
        if self.out.exists() and not (self.out.is_dir() and not any(self.out.iterdir())):
            raise ValueError(
                f"out is {self.out}, which is no empty folder; name one, or one that is not there."
            )
        return False

    @property
    def folder(self) -> Path:
        """Where the run is made."""
        return self.out

    def _is_finished(self) -> bool:
        """Whether the folder has this very run."""
        try:
            return RunFolder(self.out).record.identity == self._record().identity
        except (OSError, ValueError):
            return False

    def _column_roles(self, file: TableSource) -> ColumnRoles:
        """What is asked of the file; an npz file has its own names for label and index."""
        from cida.tables import ColumnRoles
        from cida.tables.array_source import ArraySource

        label, index = self.label, self.index
        if isinstance(file, ArraySource):
            label, index = label or "y", index or file.index
        if not label:
            raise ValueError("label is missing; name the column to predict: --label outcome.")
        if not index:
            raise ValueError(
                "index is missing; name the column along which labels end: --index age."
            )
        return ColumnRoles(label, index, _parse_periods(self.periodic), self.drop, self.regression)

    def _settings(self) -> dict[str, Any]:
        method = FIT_METHODS[self.method]
        settings = {
            "discriminator": method.discriminator,
            "game": method.game,
            **method.extra_settings,
        }
        return {**settings, **self._machine.non_default_settings(), "steps": self.steps}

    @property
    def _machine(self) -> ComputeConfig:
        return ComputeConfig(self.device, self.precision, self.compile)

    def _record(self) -> RunRecord:
        """What is run: the settings are those of the method and what is asked of the table."""
        import torch

        from cida.tables.encoded_table import hash_table_file

        names = ("label", "index", "periodic", "drop", "regression", "seeds", "expected")
        settings = {**self._settings(), **{name: getattr(self, name) for name in names}}
        return RunRecord(
            task="table",
            method=self.method,
            seed=self.seed,
            settings={name: to_json_value(value) for name, value in settings.items()},
            data=hash_table_file(self.data),
            versions=library_versions(),
            threads=torch.get_num_threads(),
            origin=Origin(command=self._command()),
        )

    def _command(self) -> str:
        """What was asked for, to be typed again."""
        args = ["cida", "fit", str(self.data), "--out", str(self.out)]
        args += ["--label", self.label] if self.label else []
        for flag in ("index", "periodic", "drop"):
            values: tuple[str, ...] = getattr(self, flag)
            args += [f"--{flag}", *values] if values else []
        args += ["--regression"] if self.regression else []
        args += ["--method", self.method, "--seeds", str(self.seeds), "--seed", str(self.seed)]
        args += ["--steps", str(self.steps)] if self.steps is not None else []
        args += [] if self.expected else ["--no-expected"]
        return " ".join([shlex.join(args), *self._machine.to_flags()])


def _certify(
    model: TableModel, data: EncodedTable, x: Any
) -> tuple[dict[str, Any] | None, list[str]]:
    """Whether the encoding still reveals the index: the record, and its sentences."""
    from cida.estimators.table_figures import certify_table

    try:
        certificate = certify_table(model, data, x)
    except ValueError as error:  # too few rows, or nothing to test: the sentence says which
        return None, [f"No certificate of alignment: {error}"]
    return {"dependence_found": certificate.is_dependent}, certificate.summary()


@dataclass(frozen=True)
class _SeedProgress:
    """A progress bar for each seed, where somebody looks."""

    console: Console

    @contextmanager
    def __call__(self, seed: int) -> Iterator[Sequence[Callback]]:
        if not self.console.is_terminal:
            yield ()
            return
        with ProgressBar(f"training, seed {seed}", self.console) as bar:
            yield (bar,)


@contextmanager
def _new_run(command: Fit) -> Iterator[RunFolder]:
    """The run's folder, while it is made; a place where nothing can be written is one sentence."""
    try:
        with RunFolder.create(
            command.out, command.resume, command.checkpoint_seconds
        ) as run_folder:
            yield run_folder
    except OSError as error:
        raise ValueError(
            f"out is {command.out}, where nothing can be written ({error.strerror}); choose "
            "another "
            "place."
        ) from error


def _parse_periods(pairs: Sequence[str]) -> dict[str, float]:
    periods = {}
    for pair in pairs:
        column, _, period = pair.rpartition(":")
        try:
            periods[column] = float(period)
        except ValueError:
            column = ""
        if not column:
            raise ValueError(f"periodic is {pair!r}; write COLUMN:PERIOD, for example hour:24.")
    return periods


def _print_lines(console: Console, lines: Sequence[str], style: str = "") -> None:
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False, style=style)
