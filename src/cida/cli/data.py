"""``cida data``: the data sets that are downloaded, prepared or simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import tyro
from rich.console import Console

from cida.cli.bars import download_bar
from cida.cli.output import print_json, say
from cida.cli.prepare import PrepareNsrr
from cida.cli.simulate import SimulateSleep
from cida.datasets import DOWNLOADS
from cida.datasets.download import Dataset
from cida.words import did_you_mean

__all__ = ["Data", "Fetch", "List", "fetch"]


@dataclass(frozen=True)
class Fetch:
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
        if self.name not in DOWNLOADS:
            hint = did_you_mean(self.name, DOWNLOADS)
            known = ", ".join(DOWNLOADS)
            raise ValueError(f"NAME is {self.name!r}; {hint}known data sets are {known}.")
        dataset = DOWNLOADS[self.name]
        origin = fetch(dataset, console)
        for source in dict.fromkeys(origin.values()):
            count = list(origin.values()).count(source)
            say(console, f"{count} of {len(dataset.files)} files from {source}, verified")
        if not origin:
            say(console, f"all {len(dataset.files)} files were in the cache, verified")
        say(console, str(dataset.folder))
        if self.json:
            files = [dataset.folder / item.name for item in dataset.files]
            print_json("data fetch", name=self.name, files=files, fetched=origin)
        return 0


@dataclass(frozen=True)
class List:
    """Lists the data sets with their size and folder, and whether they are in the cache.

    Example:  cida data list
    """

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Prints a line for each data set."""
        if self.json:
            print_json("data list", datasets=[_words(dataset) for dataset in DOWNLOADS.values()])
            return 0
        for name, dataset in DOWNLOADS.items():
            faults = dataset.faults()
            state = _state(len(dataset.files), len(faults))
            say(console, f"{name}  {state}  {_megabytes(dataset):.1f} MB  {dataset.folder}")
            for fault in filter(None, faults.values()):
                say(console, f"{fault}; cida data fetch {name} gets it again.")
        return 0


class Data:
    """Fetches and lists what is downloaded, prepares or simulates what cannot be.

    $CIDA_DATA_HOME sets the folder of what is downloaded.

    Example:  cida data list

    Example:  cida data fetch mnist
    """

    verbs: ClassVar[dict[str, type]] = {
        "list": List,
        "fetch": Fetch,
        "prepare-nsrr": PrepareNsrr,
        "simulate-sleep": SimulateSleep,
    }


def fetch(dataset: Dataset, console: Console) -> dict[str, str]:
    """Gets what is not there yet, with a bar; returns the source of each file that was got."""
    with download_bar(console) as bar:
        bar.add_task(dataset.name, total=None)
        task = bar.tasks[0]

        def watch(done: int, total: int | None) -> None:
            task.total = total  # update() cannot set it back to unknown for the next source
            bar.update(task.id, completed=done)

        return dataset.fetch(watch, lambda sentence: say(console, sentence))


def _words(dataset: Dataset) -> dict[str, Any]:
    faults = dataset.faults()
    return {
        "name": dataset.name,
        "folder": dataset.folder,
        "megabytes": round(_megabytes(dataset), 1),
        "cached": not faults,
        "missing": [name for name, fault in faults.items() if fault is None],
        "damaged": [name for name, fault in faults.items() if fault is not None],
    }


def _megabytes(dataset: Dataset) -> float:
    return sum(item.size for item in dataset.files) / 1e6


def _state(files: int, faults: int) -> str:
    if faults in (0, files):
        return "not in the cache" if faults else "in the cache"
    return f"{files - faults} of {files} files in the cache"
