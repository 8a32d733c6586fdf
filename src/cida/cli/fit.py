"""``cida fit``: a model of your own table."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console

from cida import ranks
from cida.benchmarks.recipes import Machine
from cida.cli.output import print_json
from cida.cli.report import REPORT, leave_report
from cida.cli.reproduce import check_counts, check_name
from cida.cli.unfinished import check_seconds, unfinished
from cida.diagnostics import Expected
from cida.diagnostics.view import VIEW
from cida.discriminators import Discriminator, Histogram
from cida.estimators.saving import plain
from cida.estimators.table_networks import PLAIN_SETTINGS
from cida.report import Runs, read_runs
from cida.training import Callback
from cida.training.progress import ProgressBar

if TYPE_CHECKING:
    from cida.estimators.table import TableModel
    from cida.tables import Question, TableData, TableFile

__all__ = ["METHODS", "Fit"]


@dataclass(frozen=True)
class Method:
    """The estimator's settings, and whether columns are standardised along the index."""

    discriminator: str | Discriminator | None
    game: str = "adversarial"
    windows: bool = True
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def warns(self) -> bool:
        """Whether it makes z independent of the index, labels or not."""
        return self.windows or (self.discriminator is not None and self.game == "adversarial")


METHODS: Mapping[str, Method] = {
    "auto": Method("histogram"),
    "source-only": Method(None, windows=False, more=PLAIN_SETTINGS),
    "windows": Method(None),
    "cida": Method("l2"),
    "pcida": Method("gaussian"),
    "histogram": Method("histogram"),
    "dann": Method(Histogram(kernel=0)),
    "cdann": Method(Histogram(kernel=0), "conditional"),
    "conditional": Method("histogram", "conditional", windows=False),
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
        from cida.estimators.table import TableModel, hold_out, read_rows
        from cida.estimators.table_figures import balance, table_figures, table_view
        from cida.tables import open_table, read_table
        from cida.tables.frame import fingerprint

        if self._check():
            _say(console, [f"{self.out} is finished.", str(self.out.resolve())])
            return 0
        file = open_table(self.data)
        data = read_table(file, self._question(file))
        with _new_run(self) as room:
            understood = data_lines(data)
            _say(console, understood)
            told = []
            if METHODS[self.method].warns and (shift := balance(data)).suspected:
                told.append(shift_words(data, shift))
            _say(console, told, style="yellow")
            x = read_rows(data, room / "rows")
            held = hold_out(data, self.seed)
            seeds = range(self.seed, self.seed + self.seeds)
            watch = _Watch(console)
            windows = METHODS[self.method].windows
            model = TableModel.fit(data, x, held, self._settings(), seeds, watch, windows)
            figures = table_figures(model, data, x, held)
            facts = {**self._facts(data), "data": fingerprint(self.data)}
            expected = self._expected(model, data, x, held, console)
            came_to = [*figure_lines(data, figures), *expected_lines(data, expected)]
            trust = _trust(model, data, x)
            table_view(model, data, x, held, expected).write(room / VIEW)
            words = {"understood": understood, "warnings": told, "came_to": came_to}
            (room / "rows").unlink(missing_ok=True)
            model.save(room, {**facts, "words": words, "figures": figures.words(), "trust": trust})
            (run,) = read_runs([room])
            leave_report(Runs((replace(run, folder=self.out),)), room / REPORT, console)
        _say(console, [*came_to, trust["certificate"][0]])
        _say(console, trust["faults"], style="yellow")
        _say(console, ["The report, to open in a browser:"])
        _say(console, [str((self.out / REPORT).resolve()), str(self.out.resolve())])
        if self.json:
            print_json(
                "fit",
                folder=self.out.resolve(),
                files=sorted(path.resolve() for path in self.out.iterdir()),
                **words,
                figures=figures.words(),
                expected=[asdict(one) for one in expected],
                trust=trust,
            )
        return 0

    def _expected(
        self, model: TableModel, data: TableData, x: Any, held: Any, console: Console
    ) -> tuple[Expected, ...]:
        """The accuracy to expect along the index; none where it cannot be told, or is not asked."""
        from cida.estimators.table_figures import table_expected

        if not self.expected or data.classes is None:
            return ()
        try:
            with console.status("training once more, to tell what to expect"):
                return table_expected(model, data, x, held)
        except ValueError as error:  # a source too small to leave a part out: the sentence says so
            _say(console, [f"No expected accuracy: {error}"])
            return ()

    def _check(self) -> bool:
        """Refuses what cannot be done; whether all is done already."""
        check_seconds(self.checkpoint_seconds)
        check_counts(seeds=self.seeds, steps=self.steps)
        check_name("method", self.method, METHODS)
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; it must not be negative.")
        if ranks.anywhere(self.resume and self._is_done()):
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

    def _is_done(self) -> bool:
        """Whether the folder has the run of this very command."""
        try:
            words = json.loads((self.out / "run.json").read_text())
        except (OSError, ValueError):
            return False
        return isinstance(words, dict) and words.get("command") == self._command()

    def _question(self, file: TableFile) -> Question:
        """What is asked of the file; an npz file has its own names for label and index."""
        from cida.tables import Question
        from cida.tables.arrays import ArraysFile

        label, index = self.label, self.index
        if isinstance(file, ArraysFile):
            label, index = label or "y", index or file.index
        if not label:
            raise ValueError("label is missing; name the column to predict: --label outcome.")
        if not index:
            raise ValueError(
                "index is missing; name the column along which labels end: --index age."
            )
        return Question(label, index, _periods(self.periodic), self.drop, self.regression)

    def _settings(self) -> dict[str, Any]:
        method = METHODS[self.method]
        settings = {"discriminator": method.discriminator, "game": method.game, **method.more}
        return {**settings, **self._machine.settings(), "steps": self.steps}

    @property
    def _machine(self) -> Machine:
        return Machine(self.device, self.precision, self.compile)

    def _facts(self, data: TableData) -> dict[str, Any]:
        return {
            "method": self.method,
            "settings": {name: plain(value) for name, value in self._settings().items()},
            "seeds": self.seeds,
            "seed": self.seed,
            "command": self._command(),
            "rows": len(data),
            "source_rows": int(data.labelled.sum()),
        }

    def _command(self) -> str:
        """What was asked for, to be typed again."""
        words = ["cida", "fit", str(self.data), "--out", str(self.out)]
        words += ["--label", self.label] if self.label else []
        for flag in ("index", "periodic", "drop"):
            given: tuple[str, ...] = getattr(self, flag)
            words += [f"--{flag}", *given] if given else []
        words += ["--regression"] if self.regression else []
        words += ["--method", self.method, "--seeds", str(self.seeds), "--seed", str(self.seed)]
        words += ["--steps", str(self.steps)] if self.steps is not None else []
        words += [] if self.expected else ["--no-expected"]
        return " ".join([shlex.join(words), *self._machine.flags()])


def _trust(model: TableModel, data: TableData, x: Any) -> dict[str, list[str]]:
    """Whether the encoding still tells the index, and what went wrong in training, in words."""
    from cida.estimators.table_figures import table_certificate

    try:
        certificate = table_certificate(model, data, x).words()
    except ValueError as error:  # too few rows, or nothing to tell: the sentence says which
        certificate = [f"No certificate of alignment: {error}"]
    findings = [finding for one in model.estimators for finding in one.findings_]
    faults = dict.fromkeys(f"{f.fault}: {f.found} {f.fix}" for f in findings)
    return {"certificate": certificate, "faults": list(faults)}


@dataclass(frozen=True)
class _Watch:
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
def _new_run(asked: Fit) -> Iterator[Path]:
    """The run's folder, while it is made; a place where nothing can be written is one sentence."""
    try:
        with unfinished(asked.out, asked.resume, asked.checkpoint_seconds) as room:
            yield room
    except OSError as error:
        raise ValueError(
            f"out is {asked.out}, where nothing can be written ({error.strerror}); choose another "
            "place."
        ) from error


def _periods(pairs: Sequence[str]) -> dict[str, float]:
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


def _say(console: Console, lines: Sequence[str], style: str = "") -> None:
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False, style=style)
