import os
from pathlib import Path
from typing import NamedTuple

import pytest

# One thread: tests run side by side, and threads waiting for a busy core cost more than they give.
os.environ["OMP_NUM_THREADS"] = "1"

import torch

torch.set_num_threads(1)


class Cohorts(NamedTuple):
    """Simulated recordings in the layout of NSRR, and the stores made of them."""

    recordings: Path
    stores: Path


@pytest.fixture(scope="session")
def cohorts(tmp_path_factory) -> Cohorts:
    """14 people in each study; of this seed, some are in every range of ages that a task has.

    To be read, not changed.
    """
    from cida.cli import main

    folder = tmp_path_factory.mktemp("cohorts")
    made = Cohorts(folder / "recordings", folder / "stores")
    who = ["--subjects", "14", "--seed", "168"]
    assert main(["data", "simulate-sleep", "--out", str(made.recordings), *who]) == 0
    for study in ("shhs", "mesa", "sof"):
        places = ["--root", str(made.recordings / study), "--out", str(made.stores / study)]
        assert main(["data", "prepare-nsrr", "--study", study, *places]) == 0
    return made
