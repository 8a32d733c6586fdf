"""``cida data``: the data sets that are downloaded, prepared or simulated.

Nothing here imports torch, so that help is quick.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro
from rich.console import Console
from rich.progress import Progress
from tyro.conf import UseAppendAction

from cida.cli.console import print_json, print_lines, progress_bar
from cida.errors import did_you_mean

if TYPE_CHECKING:
    from cida.experiments.fetch import RemoteDataset

NIGHTS_INTERRUPTED = (
    "interrupted; finished nights are kept: the same command goes on with the others."
)


@dataclass(frozen=True)
class FetchDataset:
    """Downloads a data set, verifies it and keeps it in the cache.

    Example:  cida data fetch mnist
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """The data set: mnist, nhanes, king-county or support2."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    interrupted: ClassVar[str] = (
        "interrupted; what was fetched is kept: the same command goes on with it."
    )

    def run(self, console: Console) -> int:
        """Prints where the files came from and, last, where they are."""
        from cida.experiments.registry import DATASET_BY_NAME  # it imports torch

        if self.name not in DATASET_BY_NAME:
            hint, known = did_you_mean(self.name, DATASET_BY_NAME), ", ".join(DATASET_BY_NAME)
            raise ValueError(f"NAME is {self.name!r}; {hint}known data sets are {known}.")
        dataset = DATASET_BY_NAME[self.name]
        source_by_file = fetch_dataset(dataset, console)
        for source, count in Counter(source_by_file.values()).items():
            print_lines(console, f"{count} of {len(dataset.files)} files from {source}, verified")
        if not source_by_file:
            print_lines(console, f"all {len(dataset.files)} files were in the cache, verified")
        print_lines(console, str(dataset.folder))
        if self.json:
            files = [dataset.folder / item.name for item in dataset.files]
            print_json("data fetch", name=self.name, files=files, fetched=source_by_file)
        return 0


@dataclass(frozen=True)
class ListDatasets:
    """Lists the data sets with their size and folder, and whether they are in the cache.

    Example:  cida data list
    """

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Prints a line for each data set."""
        from cida.experiments.registry import DATASET_BY_NAME  # it imports torch

        entries = []
        for name, dataset in DATASET_BY_NAME.items():
            faults, n_files, folder = dataset.find_faults(), len(dataset.files), dataset.folder
            damaged = {file: fault for file, fault in faults.items() if fault is not None}
            megabytes = round(sum(item.size for item in dataset.files) / 1e6, 1)
            entries.append(
                {
                    "name": name,
                    "folder": folder,
                    "megabytes": megabytes,
                    "cached": not faults,
                    "missing": [file for file in faults if file not in damaged],
                    "damaged": list(damaged),
                }
            )
            state = f"{n_files - len(faults)} of {n_files} files in the cache"
            if len(faults) in (0, n_files):
                state = "not in the cache" if faults else "in the cache"
            if not self.json:
                print_lines(console, f"{name}  {state}  {megabytes:.1f} MB  {folder}")
                advice = f"cida data fetch {name} gets it again."
                print_lines(console, *(f"{fault}; {advice}" for fault in damaged.values()))
        if self.json:
            print_json("data list", datasets=entries)
        return 0


@dataclass(frozen=True)
class PrepareNsrr:
    """Makes a store of 30 s segments of breathing from a study as NSRR lays it out.

    Example:  cida data prepare-nsrr --study shhs --root ~/nsrr/shhs --out shhs-store --jobs 4

    Stopped, it goes on where it was when started again.
    """

    study: Literal["shhs", "mesa", "sof"]
    """The study."""
    root: Path
    """The study's folder, the one with polysomnography/ and datasets/ in it."""
    out: Path
    """The folder of the store."""
    jobs: int = 1
    """Nights that are read side by side."""
    channel: str | None = None
    """The channel to read instead of the chest belt, or else the belly belt."""
    column: Annotated[
        UseAppendAction[tuple[tuple[str, ...], ...]], tyro.conf.arg(metavar="INDEX=COLUMN ...")
    ] = ()
    """Columns of the study's table by another name: age=my_age gender=sex."""

    resume: bool = True
    """By default the nights that are missing are made; with --no-resume a folder that has nights
    already is refused."""

    interrupted: ClassVar[str] = NIGHTS_INTERRUPTED

    def run(self, console: Console) -> int:
        """Prints what was prepared, what failed and, last, where the store is."""
        from cida.experiments.sleep.prepare import prepare_study
        from cida.experiments.sleep.studies import STUDIES  # it imports torch

        columns = _parse_columns([*chain(*self.column)])
        _check_empty_or_resuming(self.out, self.resume)
        study = STUDIES[self.study]
        with progress_bar(console) as bar:
            bar.add_task(self.study, total=0)
            watch = partial(_update_bar, bar)
            where, channel = (self.root, self.out, self.jobs), self.channel
            report = prepare_study(study, *where, channel, columns, watch)
        counts, store = report.counts, report.store
        people = "simulated subjects" if store.is_simulated else "subjects"
        lines = [
            f"{len(store.subjects)} {people} with {counts.segments} segments of 30 s; "
            f"{report.n_nights_read} nights were read now",
            f"left out: {counts.unscored} epochs without a stage, {counts.gaps} without a signal, "
            f"{counts.cut} beyond the end of recording or annotation",
        ]
        if report.failures:
            lines.append(f"{len(report.failures)} subjects failed; why is in {report.path}")
        print_lines(console, *lines, str(store.folder))
        return 0


@dataclass(frozen=True)
class SimulateSleep:
    """Makes simulated nights of shhs, mesa and sof, as NSRR would lay them out.

    Example:  cida data simulate-sleep --out simulated --subjects 100 --seed 0 --jobs 2

    Stopped, it goes on where it was when started again.
    """

    out: Path
    """The folder for the three cohorts."""
    subjects: int
    """People in each cohort; a night is 1 to 4 MB."""
    seed: int
    """Decides everything; more subjects of the same seed leave the first ones as they were."""
    jobs: int = 1
    """Nights that are written side by side."""

    resume: bool = True
    """By default the nights that are missing are made; with --no-resume a folder that has nights
    already is refused."""

    interrupted: ClassVar[str] = NIGHTS_INTERRUPTED

    def run(self, console: Console) -> int:
        """Prints who was made, what to run next and, last, where they are."""
        from cida.experiments.sleep.simulate import simulate_cohorts  # it imports torch
        from cida.experiments.sleep.studies import STUDIES

        out = self.out.expanduser()
        if out.exists() and not out.is_dir():
            raise ValueError(f"out is {out}, which is not a folder; choose another name.")
        _check_empty_or_resuming(out, self.resume)
        with progress_bar(console) as bar:
            bar.add_task("nights", total=0)
            watch = partial(_update_bar, bar)
            roots = simulate_cohorts(out, self.subjects, self.seed, self.jobs, watch)
        n_written = int(bar.tasks[0].completed)
        n_subjects = {root.name: len(STUDIES[root.name].find_recordings(root)) for root in roots}
        counts = ", ".join(f"{count} in {name}" for name, count in n_subjects.items())
        command = ("cida", "data", "prepare-nsrr", "--study")
        stores = {root: out / "stores" / root.name for root in roots}
        print_lines(
            console,
            f"simulated people: {counts}; nobody was recorded; {n_written} nights were written now",
            "next, for each study that is wanted:",
            *(
                shlex.join([*command, root.name, "--root", str(root), "--out", str(store)])
                for root, store in stores.items()
            ),
            str(out),
        )
        return 0


@dataclass(frozen=True)
class Data:
    """Fetches and lists what is downloaded, prepares or simulates what cannot be.

    $CIDA_DATA_HOME sets the folder of what is downloaded.

    Example:  cida data list

    Example:  cida data fetch mnist
    """

    command: (
        Annotated[ListDatasets, tyro.conf.subcommand("list")]
        | Annotated[FetchDataset, tyro.conf.subcommand("fetch")]
        | Annotated[PrepareNsrr, tyro.conf.subcommand("prepare-nsrr")]
        | Annotated[SimulateSleep, tyro.conf.subcommand("simulate-sleep")]
    )


def _update_bar(bar: Progress, done: int, total: int | None) -> None:
    bar.tasks[0].total = total  # update() cannot set it back to unknown
    bar.update(bar.task_ids[0], completed=done)


def _check_empty_or_resuming(out: Path, resume: bool) -> None:
    """Refuses a folder with something in it where nothing is to be gone on with."""
    if not resume and out.expanduser().is_dir() and any(out.expanduser().iterdir()):
        advice = "leave --no-resume out to go on, or choose another"
        raise ValueError(f"out is {out}, which is not empty; {advice}.")


def _parse_columns(pairs: Sequence[str]) -> dict[str, str]:
    columns = {}
    for pair in pairs:
        index, equals, column = pair.partition("=")
        if not equals or not index or not column:
            raise ValueError(f"column is {pair!r}; write INDEX=COLUMN, for example age=my_age.")
        if index in columns:
            raise ValueError(f"column has {index} twice; keep one.")
        columns[index] = column
    return columns


def fetch_dataset(dataset: RemoteDataset, console: Console) -> dict[str, str]:
    """Gets what is not there yet, with a bar; returns the source of each file that was got."""
    with progress_bar(console, counts_bytes=True) as bar:
        bar.add_task(dataset.name, total=None)
        return dataset.fetch(partial(_update_bar, bar), partial(print_lines, console))
