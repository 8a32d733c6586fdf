"""The cohorts of the experiments: a user's own stores, or simulated ones, made at first use."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cida.experiments.fetch import data_home
from cida.experiments.sleep.prepare import prepare_study
from cida.experiments.sleep.simulate import simulate_cohorts
from cida.experiments.sleep.sleep_store import SleepStore
from cida.experiments.sleep.studies import SIMULATED_COHORTS, STUDIES

__all__ = ["SUBJECTS_PER_COHORT", "open_cohort", "simulate_missing_cohorts", "simulated_data_home"]

SUBJECTS_PER_COHORT = 400  # a cohort; enough that some dozens are in the narrowest range of ages
SIMULATION_SEED = 0
SIMULATOR_VERSION = 1  # of the simulator: another one makes other people, in another folder


def simulated_data_home() -> Path:
    """Where the simulated stores of the experiments are kept."""
    return data_home() / f"sleep-simulated-{SIMULATOR_VERSION}"


def simulate_missing_cohorts(
    home: Path,
    n_subjects: int = SUBJECTS_PER_COHORT,
    n_jobs: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda *_: None,
) -> None:
    """Simulates and prepares the cohorts that are not there yet; ``watch`` hears what is done.

    The recordings are removed once they are in the store.
    """
    for name in SIMULATED_COHORTS:
        if (home / name / "store.json").exists():
            continue
        raw = home / "recordings"
        simulate_cohorts(
            raw,
            n_subjects,
            SIMULATION_SEED,
            n_jobs,
            partial(on_progress, f"simulating {name}"),
            [name],
        )
        report_progress = partial(on_progress, f"preparing {name}")
        prepare_study(STUDIES[name], raw / name, home / name, n_jobs, on_progress=report_progress)
        shutil.rmtree(raw)


def open_cohort(study: str, data_root: Path | None) -> SleepStore:
    """The study's store below ``root``, or the simulated one."""
    if data_root is not None:
        if not (data_root / study).is_dir():
            raise ValueError(
                f"root is {data_root}, which has no folder {study}; prepare the study into it: "
                f"cida data prepare-nsrr --study {study} --root DIR --out {data_root / study}."
            )
        return SleepStore.open(data_root / study)
    store = simulated_data_home() / study
    if not (store / "store.json").exists():
        raise ValueError(f"the simulated cohort {study} is not there; cida reproduce makes it.")
    return SleepStore.open(store)
