"""Faults planted for real, on worlds that no threshold was set on, are named; healthy runs are not.

Thresholds come from circle, sine, plane, ladder and irrelevant_index (docs/doctor.md).
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from cida import CIDAClassifier, CIDARegressor, CidaWarning, Line
from cida.datasets import (
    make_drifting_regression,
    make_hours,
    make_noise_index,
    make_noisy_index,
    make_rotating_moons,
    make_shifting_labels,
)
from cida.datasets.base import IndexedData
from cida.discriminators import L2, Histogram
from cida.doctor import DIAGNOSIS_CODES

SEED = 110
QUICK = {"steps": 400, "learning_rate": 2e-3, "random_state": SEED}
PLAIN = {**QUICK, "coordinates": "raw"}


def fitted(world, model, u=None):
    """The model, with its findings; every finding but the shift of labels is also a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(world.x, world.training_labels, domain_index=world.u if u is None else u)
    told = [str(w.message) for w in caught if issubclass(w.category, CidaWarning)]
    ended = [words for words in told if words.split(":")[0] in DIAGNOSIS_CODES]
    assert ended == [str(f) for f in model.diagnoses_ if f.code != "label-shift"]
    return model


def some(world, source, target):
    """So many rows of each side."""
    kept = np.concatenate(
        [np.flatnonzero(world.source)[:source], np.flatnonzero(~world.source)[:target]]
    )
    return replace(
        world, x=world.x[kept], y=world.y[kept], u=world.u[kept], source=world.source[kept]
    )


def dead(width):
    """An encoder whose last ReLU lets nothing through."""
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
    nn.init.constant_(encoder[2].bias, -30.0)
    return encoder


def strewn(u, share, value):
    """The index with a share of its values replaced."""
    return np.where(np.random.default_rng(SEED).random(len(u)) < share, value, u)


class Metres(Line):
    """A line of the user's own that leaves the index as it is."""

    def fit(self, u):
        return self


def turning_digits(rows=1200):
    """Digits 0 to 4 whose pixels are shifted to the side as u goes from 0 to 1."""
    random = np.random.default_rng(SEED)
    images, labels = load_digits(return_X_y=True)
    kept = random.permutation(np.flatnonzero(labels < 5))[: rows // 2]
    kept = np.concatenate([kept, kept])
    u = random.uniform(size=len(kept))
    x = images[kept] / 16 + 0.5 * u[:, None] * np.linspace(-1, 1, 64)
    return IndexedData("digits", x, labels[kept], u, u <= 0.5)


PLANTED = {
    "lagging": (
        "discriminator-lagging",
        lambda: make_noisy_index(seed=SEED),
        CIDAClassifier(Histogram(hidden=(1,)), **PLAIN),
    ),
    "lagging without the ceiling": (
        "discriminator-lagging",
        lambda: make_hours(seed=SEED),
        CIDAClassifier(
            L2(hidden=(8,)),
            ceiling=False,
            lambda_d=2.0,
            discriminator_steps=1,
            curriculum=0.0,
            **{**QUICK, "coordinates": "learned"},
        ),
    ),
    "overpowering": (
        "discriminator-overpowering",
        lambda: make_hours(seed=SEED),
        CIDAClassifier(discriminator_steps=12, **{**PLAIN, "steps": 250}),
    ),
    "collapsed": (
        "encoder-collapsed",
        lambda: make_hours(seed=SEED),
        CIDAClassifier(encoder=dead(3), **PLAIN),
    ),
    "collapsed by decay": (
        "encoder-collapsed",
        lambda: make_rotating_moons(seed=SEED),
        CIDAClassifier(weight_decay=100.0, **PLAIN),
    ),
    "lambda too large": (
        "lambda-too-large",
        lambda: make_rotating_moons(seed=SEED),
        CIDAClassifier(lambda_d=500.0, **PLAIN),
    ),
    "lambda too small": (
        "lambda-too-small",
        lambda: make_noisy_index(seed=SEED),
        CIDAClassifier(lambda_d=0.001, **PLAIN),
    ),
    "stray index values": (
        "index-unscaled",
        lambda: (w := make_drifting_regression(seed=SEED), strewn(w.u, 0.01, -9999.0)),
        CIDARegressor(**QUICK),
    ),
    "an unfitted space": (
        "index-unscaled",
        lambda: make_rotating_moons(seed=SEED),
        CIDAClassifier(space=Metres(), **QUICK),
    ),
    "an index that hardly changes": (
        "index-constant",
        lambda: (w := make_hours(seed=SEED), strewn(w.u, 0.95, 12.0)),
        CIDAClassifier(**QUICK),
    ),
    "labels that move": (
        "label-shift",
        lambda: make_shifting_labels(seed=SEED),
        CIDAClassifier(**QUICK),
    ),
    "one class far away": (
        "predictions-collapsed",
        lambda: make_noisy_index(seed=SEED),
        CIDAClassifier(None, **QUICK),
    ),
    "few labels": (
        "too-few-rows",
        lambda: some(make_rotating_moons(seed=SEED), 25, 1500),
        CIDAClassifier(**QUICK),
    ),
    "a hasty curriculum": (
        "curriculum-too-fast",
        lambda: make_noisy_index(seed=SEED),
        CIDAClassifier("gaussian", curriculum=0.05, **PLAIN),
    ),
    "too little training": (
        "not-converged",
        lambda: make_hours(seed=SEED),
        CIDAClassifier(**{**PLAIN, "learning_rate": 2e-5}),
    ),
}

HEALTHY = {
    "moons": (lambda: make_rotating_moons(seed=SEED), CIDAClassifier(**QUICK)),
    "moons, gaussian": (
        lambda: make_rotating_moons(seed=SEED),
        CIDAClassifier("gaussian", **QUICK),
    ),
    "hours": (lambda: make_hours(seed=SEED), CIDAClassifier(**QUICK)),
    "hours, l2": (lambda: make_hours(seed=SEED), CIDAClassifier("l2", **QUICK)),
    "hours, windows": (
        lambda: make_hours(seed=SEED),
        CIDAClassifier(coordinates="windows", **QUICK),
    ),
    "noisy index": (lambda: make_noisy_index(seed=SEED), CIDAClassifier(**QUICK)),
    "noisy index, l2": (lambda: make_noisy_index(seed=SEED), CIDAClassifier("l2", **QUICK)),
    "noise index": (lambda: make_noise_index(seed=SEED), CIDAClassifier(**PLAIN)),
    "regression": (lambda: make_drifting_regression(seed=SEED), CIDARegressor(**QUICK)),
    "regression, gaussian": (
        lambda: make_drifting_regression(seed=SEED),
        CIDARegressor("gaussian", **QUICK),
    ),
    "moving labels, conditional": (
        lambda: make_shifting_labels(seed=SEED),
        CIDAClassifier("histogram", game="conditional", **PLAIN),
    ),
    "digits": (turning_digits, CIDAClassifier(**QUICK)),
}


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_fault_is_named_first_and_warned_of(case):
    fault, make, model = PLANTED[case]
    made = make()
    world, u = made if isinstance(made, tuple) else (made, None)
    findings = fitted(world, model, u).diagnoses_
    assert [finding.code for finding in findings][:1] == [fault]


@pytest.mark.parametrize("case", HEALTHY)
def test_no_fault_is_named_in_a_healthy_run(case):
    make, model = HEALTHY[case]
    assert fitted(make(), model).diagnoses_ == []


def test_every_fault_was_planted():
    assert {fault for fault, _, _ in PLANTED.values()} == set(DIAGNOSIS_CODES)
