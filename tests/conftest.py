"""Fixtures for all tests: one thread, simulated cohorts, small copies of the real tables."""

import os

# One thread: tests run side by side, and threads waiting for a busy core cost more than they give.
# Libraries read this when they are first imported, and so do the commands that tests start.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch

from cida.experiments.fetch import RemoteFile
from cida.experiments.real_tables import table_data
from cida.experiments.real_tables.table_data import (
    BODY_COLUMNS,
    CATEGORY_COLUMNS,
    FEATURE_COLUMNS,
    METAL_COLUMNS,
    NUMERIC_COLUMNS,
)
from cida.experiments.real_tables.table_models import load_encoded_dataset
from cida.experiments.real_tables.table_tasks import _load_labels
from cida.experiments.registry import DATASET_BY_NAME

torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def certificates_once():
    """A report's certificate of the very same rows is computed once: it has no chance in it."""
    from cida.report.sections import trust_section as trust

    known, certify = {}, trust.certify_or_decline

    def remembered(space, z, u, said, **names):
        parts = [np.ascontiguousarray(np.asarray(part)) for part in (z, u, said)]
        key = repr(space), repr(names), *(hashlib.sha256(part).hexdigest() for part in parts)
        if key not in known:
            known[key] = certify(space, z, u, said, **names)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trust, "certify_or_decline", remembered)
        yield


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


def _people(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Of NHANES: men are taller, everybody is heavier with age, and some values are missing."""
    age = rng.integers(8, 81, rows)
    male = rng.random(rows) < 0.5
    grown = np.minimum(age, 20)
    columns = {name: rng.normal(80 + age / 2, 10).round(2) for name in BODY_COLUMNS.values()}
    columns |= {name: np.exp(rng.normal(age / 80, 0.4)).round(4) for name in METAL_COLUMNS.values()}
    columns["StandingHeightCm"] = (80 + 4 * grown + 10 * male + rng.normal(0, 4, rows)).round(1)
    frame = pd.DataFrame(columns).mask(rng.random((rows, len(columns))) < 0.05)
    return frame.assign(Gender=np.where(male, "Male", "Female"), AgeInYearsAtScreening=age)


def _houses(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Of King County: dear are the large, and those in the north."""
    place = rng.uniform([47.2, -122.5], [47.8, -121.5], (rows, 2))
    columns = {name: rng.normal(10, 2, rows).round(2) for name in FEATURE_COLUMNS}
    price = np.exp(13 + 2 * (place[:, 0] - 47.5) + 0.1 * columns[FEATURE_COLUMNS[2]]).round()
    where = {"latitude": place[:, 0], "longitude": place[:, 1], "price": price}
    return pd.DataFrame(columns | where)


def _patients(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Of SUPPORT2: the colder and the poorer die first."""
    numbers = {name: rng.normal(5, 2, rows).round(2) for name in NUMERIC_COLUMNS}
    words = {name: rng.choice(["a", "b", "c"], rows) for name in CATEGORY_COLUMNS}
    frame = pd.DataFrame(words | numbers).mask(rng.random((rows, 28)) < 0.1)
    dead = numbers["temp"] - 5 + 2 * (words["income"] == "a") + rng.normal(size=rows) > 0.5
    days = np.where(dead, rng.integers(1, 181, rows), 500)
    return frame.assign(age=rng.uniform(20, 90, rows).round(1), death=dead.astype(int), **{
        "d.time": days,
    })  # fmt: skip


@pytest.fixture(scope="module")
def small_tables(tmp_path_factory) -> Iterator[Path]:
    """The three real data sets with small made-up files instead, verified, in their own cache."""
    rng = np.random.default_rng(0)
    made = {
        "NHANES_DATASET": (_people(rng, 500), "\t"),
        "KING_COUNTY_DATASET": (_houses(rng, 600), ","),
        "SUPPORT2_DATASET": (_patients(rng, 400), ","),
    }
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CIDA_DATA_HOME", str(folder))
        for name, (frame, delimiter) in made.items():
            dataset = getattr(table_data, name)
            content = frame.to_csv(index=False, sep=delimiter).encode()
            file = RemoteFile(dataset.files[0].name, len(content), hashlib.md5(content).hexdigest())
            dataset = replace(dataset, files=(file,), sources=())
            dataset.folder.mkdir()
            (dataset.folder / file.name).write_bytes(content)
            patch.setattr(table_data, name, dataset)
            patch.setitem(DATASET_BY_NAME, dataset.name, dataset)
        _forget_tables()
        yield folder
    _forget_tables()


def _forget_tables() -> None:
    load_encoded_dataset.cache_clear()
    _load_labels.cache_clear()
