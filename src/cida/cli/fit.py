"""``cida fit``: the estimator on your own table, with a folder and a report."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console

from cida.cli.arguments import check_counts, check_name
from cida.cli.console import print_json, print_lines, titled_warnings
from cida.cli.report import REPORT_FILE, save_report
from cida.errors import did_you_mean
from cida.methods import METHODS

if TYPE_CHECKING:
    from cida.estimators.adaptive_base import AdaptiveEstimator
    from cida.estimators.base import CIDAEstimator
    from cida.estimators.fitted_estimator import FittedEstimator
    from cida.estimators.validation import TrainingData
    from cida.runs.records import RunRecord
    from cida.runs.run_folder import RunFolder
    from cida.selection import ExpectedScore
    from cida.spaces import Space

ALIGNING_METHODS = ("cida", "pcida", "histogram", "dann", "cdann", "conditional")
FIT_METHODS = ("auto", "adaptive", "source-only", "windows", *ALIGNING_METHODS)
NETWORK_FLAGS = ("seeds", "steps", "device", "precision", "compile")  # what a committee has not
# The flags that do not decide what is run, and those that its command has even as they are.
HOW_IT_IS_RUN = ("resume", "checkpoint_seconds", "json")
ALWAYS_GIVEN = ("out", "method", "seeds", "seed")
N_EXPECTED_CELLS = 12  # along one index column; as many in all over several


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
    """The method: auto (as CIDAClassifier() decides), adaptive (as AdaptiveClassifier() does: a
    weighted mean of linear and boosted models and networks, by trials on the source), source-only,
    windows (columns standardised along the index, and no more), cida, pcida, histogram, dann,
    cdann, conditional (for labels whose balance moves along the index)."""

    seeds: int = 1
    """How many models to train, each from a start of its own; their predictions are averaged."""

    seed: int = 0
    """The random state: the same seed, data and threads give the same model."""

    steps: int | None = None
    """Training steps of each model; fewer give a quicker look and a worse model."""

    expected: bool = True
    """Also tell the accuracy to expect on the target, for which the first model is trained once
    more, without the labels of the source range nearest to the target."""

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
        from cida.estimators.base import CIDAEstimator
        from cida.estimators.validation import FitArguments
        from cida.io.tensors import MODEL_FILE
        from cida.report import RunCollection, read_runs
        from cida.runs.fit_lines import data_lines, result_lines
        from cida.runs.fit_record import DataSummary, FitRecord
        from cida.runs.probe import FitProbe
        from cida.training.progress import ProgressBar

        path = self.out.resolve()
        if self._check():
            print_lines(console, f"{self.out} is finished.", str(path))
            return 0
        model = self._estimator()
        given = FitArguments(self.data, self.label or None, self.index or None, drop=self.drop)
        data = model.read_training_data(given)
        with _new_run(self) as folder:
            data_summary = DataSummary.of(data)
            print_lines(console, *data_lines(data_summary))
            with titled_warnings("warning", console) as messages, ExitStack() as stack:
                if console.is_terminal and isinstance(model, CIDAEstimator):
                    model.callbacks = [stack.enter_context(ProgressBar("training", console))]
                model.fit_data(data)
            if isinstance(model, CIDAEstimator):
                model.callbacks = None
            state = model.state_
            probe = FitProbe(state, data, model.n_draws)
            fit = FitRecord(
                data=data_summary,
                figures=probe.figures(),
                n_members=self.seeds,
                plan=state.plan.to_dict(),
                # Predictions may tell the index; of a committee there is no one encoding to ask.
                certificate=(certificate := None if state.decision else probe.certify()),
                expected=(expected := self._expected(model, data, console)),
                warnings=tuple(messages),
                decision=state.decision,
            )
            folder.write_snapshot(probe.snapshot(expected))
            model.save(folder.path / MODEL_FILE)
            folder.write_events(state.histories)
            folder.write_record(replace(self._record(), fit=fit))
            (run,) = read_runs([folder.path])
            own_run = RunCollection((replace(run, folder=self.out),))
            save_report(own_run, folder.path / REPORT_FILE, console)
        print_lines(
            console, *result_lines(fit), *(certificate.summary()[:1] if certificate else ())
        )
        print_lines(console, "The report, to open in a browser:")
        print_lines(console, str(path / REPORT_FILE), str(path))
        if self.json:
            diagnoses = [diagnosis.to_dict() for diagnosis in state.diagnoses]
            files = sorted(file.resolve() for file in self.out.iterdir())
            print_json("fit", folder=path, files=files, **asdict(fit), diagnoses=diagnoses)
        return 0

    def _estimator(self) -> CIDAEstimator | AdaptiveEstimator:
        """The estimator of the method; all that is left open is decided by the policy."""
        from cida.discriminators import DISCRIMINATORS
        from cida.estimators import (
            AdaptiveClassifier,
            AdaptiveRegressor,
            CIDAClassifier,
            CIDARegressor,
        )

        if self.method == "adaptive":
            kind = AdaptiveRegressor if self.regression else AdaptiveClassifier
            return kind(space=self._space(), random_state=self.seed)
        method = METHODS[self.method]
        settings = dict(method.settings)
        if method.head_settings:
            head = DISCRIMINATORS[settings["discriminator"]]
            settings["discriminator"] = head(**method.head_settings)
        names = ("steps", "device", "precision", "compile")
        settings |= {name: getattr(self, name) for name in names}
        settings |= {"space": self._space(), "n_members": self.seeds, "random_state": self.seed}
        return (CIDARegressor if self.regression else CIDAClassifier)(**settings)

    def _space(self) -> Space | None:
        """A space where a period is given; else the policy finds one."""
        from cida.spaces import Line, Periodic, Product

        if not (periods := _parse_periods(self.periodic, self.index)):
            return None
        parts: list[Space] = [Periodic(periods[n]) if n in periods else Line() for n in self.index]
        return parts[0] if len(parts) == 1 else Product(parts)

    def _expected(
        self, model: FittedEstimator, data: TrainingData, console: Console
    ) -> tuple[ExpectedScore, ...]:
        """The accuracy to expect along the index; none where it cannot be told, or is not asked."""
        from cida.estimators import AdaptiveClassifier, CIDAClassifier

        if not self.expected or not isinstance(model, AdaptiveClassifier | CIDAClassifier):
            return ()
        try:
            with console.status("training once more, to tell what to expect"):
                return tuple(model.expected_scores_of(data, N_EXPECTED_CELLS))
        except ValueError as error:  # a source too small to leave a part out: the sentence says so
            print_lines(console, f"No expected accuracy: {error}")
            return ()

    def _check(self) -> bool:
        """Refuses what cannot be done; whether all is done already."""
        from cida import distributed
        from cida.io.files import check_empty_folder
        from cida.runs.run_folder import check_checkpoint_seconds

        check_checkpoint_seconds(self.checkpoint_seconds)
        check_counts(seeds=self.seeds, steps=self.steps)
        check_name("method", self.method, FIT_METHODS)
        changed = [name for name in NETWORK_FLAGS if getattr(self, name) != getattr(Fit, name)]
        if self.method == "adaptive" and changed:
            raise ValueError(
                f"{changed[0]} is given, and method adaptive does not take it; leave it out, or "
                "choose a method that trains one network."
            )
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; it must not be negative.")
        needs_names = self.data.suffix not in ("", ".npz") and self.data.is_file()
        if needs_names and not self.label:
            raise ValueError("label is missing; name the column to predict: --label outcome.")
        if needs_names and not self.index:
            end = "name the column along which labels end: --index age."
            raise ValueError(f"index is missing; {end}")
        is_finished = distributed.any_rank(self.resume and self._is_finished())
        if not is_finished:
            check_empty_folder(self.out, "out")
        return is_finished

    @property
    def folder(self) -> Path:
        """Where the run is made."""
        return self.out

    def _is_finished(self) -> bool:
        """Whether the folder has this very run."""
        from cida.runs.run_folder import RunFolder

        try:
            return RunFolder(self.out).record.identity == self._record().identity
        except (OSError, ValueError):
            return False

    def _record(self) -> RunRecord:
        """What is run: the method, and what is asked of the table."""
        import torch

        from cida.estimators.model_file import library_versions
        from cida.runs.records import Origin, RunRecord
        from cida.tables.encoded_table import hash_table_file

        ignored = ("data", "out", "method", "seed", *HOW_IT_IS_RUN)
        settings = {k: v for k, v in vars(self).items() if k not in ignored}
        return RunRecord(
            task="table",
            method=self.method,
            seed=self.seed,
            settings=json.loads(json.dumps(settings)),
            data=hash_table_file(self.data),
            versions=library_versions(),
            threads=torch.get_num_threads(),
            origin=Origin(command=self._command()),
        )

    def _command(self) -> str:
        """What was asked for, to be typed again."""
        parts = ["cida", "fit", str(self.data)]
        for each in fields(self)[1:]:
            flag, value = f"--{each.name}", getattr(self, each.name)
            is_left_out = value == each.default and each.name not in ALWAYS_GIVEN
            if is_left_out or each.name in HOW_IT_IS_RUN:
                continue
            if isinstance(value, bool):
                parts.append(flag if value else f"--no-{each.name}")
            else:
                parts += [flag, *(value if isinstance(value, tuple) else [str(value)])]
        return shlex.join(parts)


@contextmanager
def _new_run(command: Fit) -> Iterator[RunFolder]:
    """The run's folder, while it is made; a place where nothing can be written is one sentence."""
    from cida.runs.run_folder import RunFolder

    try:
        with RunFolder.create(command.out, command.resume, command.checkpoint_seconds) as folder:
            yield folder
    except OSError as error:
        raise ValueError(
            f"out is {command.out}, where nothing can be written ({error.strerror}); choose "
            "another place."
        ) from error


def _parse_periods(pairs: Sequence[str], index: Sequence[str]) -> dict[str, float]:
    periods = {}
    for pair in pairs:
        column, _, period = pair.rpartition(":")
        try:
            periods[column] = float(period)
        except ValueError:
            column = ""
        if not column:
            raise ValueError(f"periodic is {pair!r}; write COLUMN:PERIOD, for example hour:24.")
        if column not in index:
            hint, known = did_you_mean(column, index).strip(), ", ".join(index)
            end = f"; {hint}" if hint else "."
            raise ValueError(f"periodic has {column}, which is no index column ({known}){end}")
        length = periods[column]
        if not (math.isfinite(length) and length > 0):
            raise ValueError(f"periodic has the period {length:g} for {column}; it must be > 0.")
    return periods
