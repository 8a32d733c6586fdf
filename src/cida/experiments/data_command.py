"""``cida data``: the data sets that are downloaded, prepared or simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro
from rich.console import Console

from cida.cli.console import print_json, print_lines, progress_bar
from cida.errors import did_you_mean
from cida.experiments.prepare_command import PrepareNsrr
from cida.experiments.simulate_command import SimulateSleep

if TYPE_CHECKING:
    from cida.experiments.fetch import RemoteDataset

__all__ = ["Data", "FetchDataset", "ListDatasets", "fetch_dataset"]


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
            hint = did_you_mean(self.name, DATASET_BY_NAME)
            dataset_names = ", ".join(DATASET_BY_NAME)
            raise ValueError(f"NAME is {self.name!r}; {hint}known data sets are {dataset_names}.")
        dataset = DATASET_BY_NAME[self.name]
        source_by_file = fetch_dataset(dataset, console)
        for source in dict.fromkeys(source_by_file.values()):
            count = list(source_by_file.values()).count(source)
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

        if self.json:
            print_json(
                "data list",
                datasets=[_dataset_entry(dataset) for dataset in DATASET_BY_NAME.values()],
            )
            return 0
        for name, dataset in DATASET_BY_NAME.items():
            faults = dataset.find_faults()
            state = _cache_state(len(dataset.files), len(faults))
            print_lines(console, f"{name}  {state}  {_megabytes(dataset):.1f} MB  {dataset.folder}")
            for fault in filter(None, faults.values()):
                print_lines(console, f"{fault}; cida data fetch {name} gets it again.")
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


def fetch_dataset(dataset: RemoteDataset, console: Console) -> dict[str, str]:
    """Gets what is not there yet, with a bar; returns the source of each file that was got."""
    with progress_bar(console, counts_bytes=True) as bar:
        bar.add_task(dataset.name, total=None)
        task = bar.tasks[0]

        def update_bar(done: int, total: int | None) -> None:
            task.total = total  # update() cannot set it back to unknown for the next source
            bar.update(task.id, completed=done)

        return dataset.fetch(update_bar, lambda sentence: print_lines(console, sentence))


def _dataset_entry(dataset: RemoteDataset) -> dict[str, Any]:
    faults = dataset.find_faults()
    return {
        "name": dataset.name,
        "folder": dataset.folder,
        "megabytes": round(_megabytes(dataset), 1),
        "cached": not faults,
        "missing": [name for name, fault in faults.items() if fault is None],
        "damaged": [name for name, fault in faults.items() if fault is not None],
    }


def _megabytes(dataset: RemoteDataset) -> float:
    return sum(item.size for item in dataset.files) / 1e6


def _cache_state(n_files: int, n_faults: int) -> str:
    if n_faults in (0, n_files):
        return "not in the cache" if n_faults else "in the cache"
    return f"{n_files - n_faults} of {n_files} files in the cache"
