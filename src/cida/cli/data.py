"""``cida data``: the data sets that are downloaded, prepared or simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from cida.cli.prepare import PrepareNsrr
from cida.cli.simulate import SimulateSleep
from cida.datasets import DOWNLOADS
from cida.datasets.download import Dataset

__all__ = ["Data", "Fetch", "List", "fetch"]


@dataclass(frozen=True)
class Fetch:
    """Downloads a data set, verifies it and keeps it in the cache.

    Example:  cida data fetch mnist
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """The data set: mnist, nhanes, king-county or support2."""

    def run(self, console: Console) -> int:
        """Prints where the files came from and, last, where they are."""
        if self.name not in DOWNLOADS:
            raise ValueError(f"NAME is {self.name!r}; known data sets are {', '.join(DOWNLOADS)}.")
        dataset = DOWNLOADS[self.name]
        origin = fetch(dataset, console)
        for source in dict.fromkeys(origin.values()):
            count = list(origin.values()).count(source)
            _say(console, f"{count} of {len(dataset.files)} files from {source}, verified")
        if not origin:
            _say(console, f"all {len(dataset.files)} files were in the cache, verified")
        _say(console, str(dataset.folder))
        return 0


@dataclass(frozen=True)
class List:
    """Lists the data sets with their size and folder, and whether they are in the cache.

    Example:  cida data list
    """

    def run(self, console: Console) -> int:
        """Prints a line for each data set."""
        for name, dataset in DOWNLOADS.items():
            size = sum(item.size for item in dataset.files) / 1e6
            faults = dataset.faults()
            state = _state(len(dataset.files), len(faults))
            _say(console, f"{name}  {state}  {size:.1f} MB  {dataset.folder}")
            for fault in filter(None, faults.values()):
                _say(console, f"{fault}; cida data fetch {name} gets it again.")
        return 0


@dataclass(frozen=True)
class Data:
    """Fetches and lists what is downloaded, prepares or simulates what cannot be.

    $CIDA_DATA_HOME sets the folder of what is downloaded.

    Example:  cida data fetch mnist
    """

    what: Annotated[
        Annotated[Fetch, tyro.conf.subcommand("fetch", prefix_name=False)]
        | Annotated[List, tyro.conf.subcommand("list", prefix_name=False)]
        | Annotated[PrepareNsrr, tyro.conf.subcommand("prepare-nsrr", prefix_name=False)]
        | Annotated[SimulateSleep, tyro.conf.subcommand("simulate-sleep", prefix_name=False)],
        tyro.conf.arg(name=""),  # the flags are --study, not --what.study
    ]

    def run(self, console: Console) -> int:
        """Does what the word after ``data`` says."""
        return self.what.run(console)


def fetch(dataset: Dataset, console: Console) -> dict[str, str]:
    """Gets what is not there yet, with a bar; returns the source of each file that was got."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        DownloadColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        bar.add_task(dataset.name, total=None)
        task = bar.tasks[0]

        def watch(done: int, total: int | None) -> None:
            task.total = total  # update() cannot set it back to unknown for the next source
            bar.update(task.id, completed=done)

        return dataset.fetch(watch, lambda sentence: _say(console, sentence))


def _state(files: int, faults: int) -> str:
    if faults in (0, files):
        return "not in the cache" if faults else "in the cache"
    return f"{files - faults} of {files} files in the cache"


def _say(console: Console, words: str) -> None:
    console.print(words, soft_wrap=True, markup=False, highlight=False)
