"""The cohorts of the experiments: a user's own stores, or simulated ones, made at first use."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cida.datasets.download import data_home
from cida.datasets.sleep.prepare import prepare
from cida.datasets.sleep.simulate import COHORTS, simulate
from cida.datasets.sleep.store import SleepStore
from cida.datasets.sleep.studies import STUDIES

__all__ = ["SUBJECTS", "make_simulated", "open_cohort", "simulated_home"]

SUBJECTS = 400  # a cohort; enough that some dozens are in the narrowest range of ages
SEED = 0
VERSION = 1  # of the simulator: another one makes other people, in another folder


def simulated_home() -> Path:
    """Where the simulated stores of the experiments are kept."""
    return data_home() / f"sleep-simulated-{VERSION}"


def make_simulated(
    home: Path,
    subjects: int = SUBJECTS,
    jobs: int = 1,
    watch: Callable[[str, int, int], None] = lambda *_: None,
) -> None:
    """Simulates and prepares the cohorts that are not there yet; ``watch`` hears what is done.

    The recordings are removed once they are in the store.
    """
    for name in COHORTS:
        if (home / name / "store.json").exists():
            continue
        raw = home / "recordings"
        simulate(raw, subjects, SEED, jobs, partial(watch, f"simulating {name}"), [name])
        told = partial(watch, f"preparing {name}")
        prepare(STUDIES[name], raw / name, home / name, jobs, watch=told)
        shutil.rmtree(raw)


def open_cohort(study: str, root: Path | None) -> SleepStore:
    """The study's store below ``root``, or the simulated one."""
    if root is not None:
        if not (root / study).is_dir():
            raise ValueError(
                f"root is {root}, which has no folder {study}; prepare the study into it: "
                f"cida data prepare-nsrr --study {study} --root DIR --out {root / study}."
            )
        return SleepStore.open(root / study)
    store = simulated_home() / study
    if not (store / "store.json").exists():
        raise ValueError(f"the simulated cohort {study} is not there; cida reproduce makes it.")
    return SleepStore.open(store)
