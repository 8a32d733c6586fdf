"""``cida demo`` and ``cida reproduce``: their flags; the work is in `demo` and `reproduce`.

Nothing here imports torch, so that help is quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import tyro
from rich.console import Console

DEMO_METHODS = ("source-only", "cida", "pcida", "histogram", "default")


@dataclass(frozen=True)
class Demo:
    """Adapts across the Circle world with five methods and writes a report to open.

    Source-Only, CIDA, PCIDA, the histogram head and the default (the histogram head in the moving
    frame) learn from the labels of 6 domains and predict the other 24.

    Example:  cida demo

    Example:  cida demo --seeds 5 --methods source-only histogram
    """

    out: Path = Path("runs/demo")
    """The folder for models, events, results.json and report.html."""

    seeds: int = 1
    """How many seeds, counted from --first-seed; each draws its own points and its own start."""

    first_seed: int = 0
    """The first seed."""

    steps: int | None = None
    """Training steps of every method; fewer give a quicker look and a worse model."""

    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = DEMO_METHODS
    """Which methods to run: source-only, cida, pcida, histogram, default."""

    resume: bool = False
    """Keeps the runs that are finished in the folder, goes on with one that was cut off, and makes
    the others."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    interrupted: ClassVar[str] = (
        "interrupted; what is done is kept: the same command with --resume goes on."
    )

    @property
    def folder(self) -> Path:
        """Where runs are made."""
        return self.out

    def run(self, console: Console) -> int:
        """Trains, prints the table, writes the files and prints the report's path last."""
        from cida.experiments.demo import DemoRun

        return DemoRun(**vars(self)).run(console)


@dataclass(frozen=True)
class Reproduce:
    """Runs an experiment of the paper with every method over seeds, and writes table and figures.

    Example:  cida reproduce circle --seeds 5 --methods source-only dann histogram --jobs 2

    Example:  cida reproduce rotating-digits --seeds 2 --resume
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """The experiment: circle, sine, rotating-mnist, rotating-digits (no download), sleep-intra,
    sleep-cross, sleep-multi, nhanes, king-county, support2; moments: the moment ladder; worlds: the
    default in small worlds; selection: which of many runs each validator keeps; restarts: the best
    of four games."""

    seeds: int = 5
    """How many seeds, counted from --first-seed; each draws its own points and its own start."""

    methods: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME ...")] = None
    """Which methods: source-only, adda, dann, cdann, mdd, cua, cida, pcida, histogram, oracle; for
    points also cida-l1, mixture; for digits also dann-merged, histogram-line, von-mises,
    von-mises-mixture; for sleep also source-only-along; for tables logistic, boosting, these and
    source-only with -windows behind, and conditional; for moments cida-l1, cida, pcida, skew,
    mixture, flow, histogram, distance-correlation, hsic; for worlds histogram, given-prediction,
    distance-correlation, default; for both source-only, oracle; for selection a head and a weight,
    such as l2-0.2; for restarts default, restarts. All by default."""

    preset: str = "best"
    """best: our strongest recipe of each method; paper: the paper's settings, nothing added. For
    rotating-mnist also accurate: a larger network, trained longer; steady: the paper's networks in
    our game. For moments best, and start: the encoder begins as the shortcut. For worlds,
    selection and restarts best alone."""

    protocol: str | None = None
    """For digits, clean: other digits are scored than trained on; paper: the same images are;
    development: training digits held out are scored. By default the preset's own."""

    jobs: int | None = None
    """How many runs at a time, with one thread each; the numbers are the same. By default 1, on a
    cluster as many as it has workers."""

    scheduler: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None
    """The address that dask scheduler prints, such as tcp://10.0.0.1:8786: the workers of that
    cluster make the runs, and must see the folder of --out under the same path."""

    out: Path | None = None
    """The folder for runs, results.json, table.md, figures and report.html; by default
    runs/NAME-PRESET."""

    resume: bool = False
    """Keeps the runs that are finished in the folder, goes on with those that were cut off, and
    makes the others."""

    checkpoint_seconds: float = 30.0
    """Seconds between two checkpoints of a run's training."""

    first_seed: int = 0
    """The first seed."""

    steps: int | None = None
    """Training steps of every method; fewer give a quicker look and a worse model."""

    tasks: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME ...")] = None
    """Which tasks of an experiment that has several, such as shhs-extrapolation. All by default."""

    root: Path | None = None
    """For sleep: the folder with your own stores, shhs, mesa and sof, as cida data prepare-nsrr
    makes them. Without it the cohorts are simulated at first use."""

    expected: bool = False
    """Also tell the accuracy to expect on the target, without its labels; every run is then
    trained a second time."""

    device: str = "cpu"
    """Where to train: cpu or cuda."""

    precision: str = "float32"
    """What the encoder computes in while it is trained: float32 or bf16."""

    compile: bool = False
    """Lets torch compile the encoder for the training."""

    figures: bool = True
    """By default figures are also drawn as PNG and SVG, for which matplotlib is needed."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    @property
    def folder(self) -> Path:
        """Where runs are made."""
        suffix = "" if self.protocol is None else f"-{self.protocol}"
        return self.out or Path("runs") / f"{self.name}-{self.preset}{suffix}"

    def run(self, console: Console) -> int:
        """Makes the runs, prints the table, writes the files and prints the report's path last."""
        from cida.experiments.reproduce import ReproduceRun

        return ReproduceRun(**vars(self)).run(console)
