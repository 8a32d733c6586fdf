"""The alignment certificate given the prediction: what is label shift, and what is more."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cida.certificate.certificate import certify
from cida.spaces import Line

ROWS = 1200


def certificate(z, u, predicted):
    u = torch.from_numpy(u)[:, None]
    return certify(Line().fit(u), z, u, predicted)


def apart(rows=ROWS, seed=100):
    """z and u that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 4)), rng.normal(size=rows)


def shifted(rows=ROWS, regression=False, more=0.0, seed=101):
    """z tells y and nothing else; y moves along u; ``more``: z also tells u itself."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(0, 10, rows)
    y = rng.normal(size=rows) + 0.3 * u if regression else (rng.random(rows) < u / 10) * 1
    z = np.column_stack([y, 0.3 * y, np.zeros(rows)]) + 0.5 * rng.normal(size=(rows, 3))
    z[:, 2] += more * u
    return z, u, y


@pytest.mark.parametrize("regression", [False, True])
def test_what_is_label_shift_alone_vanishes_given_the_prediction(regression):
    z, u, y = shifted(regression=regression)
    told = certificate(z, u, y)
    assert told.is_dependent
    assert told.given_prediction is not None
    assert not told.given_prediction.is_dependent
    assert told.is_explained_by_label_shift
    what = "number" if regression else "class"
    words = next(line for line in told.summary() if line.startswith(f"Given the predicted {what}"))
    assert "(label shift)" in words
    assert "aligning it away would do harm" in words


@pytest.mark.parametrize("regression", [False, True])
def test_what_is_more_than_label_shift_stays(regression):
    told = certificate(*shifted(regression=regression, more=0.1))
    assert told.given_prediction.is_dependent
    assert not told.is_explained_by_label_shift
    assert any("Label shift does not explain it." in line for line in told.summary())


def test_where_predictions_do_not_move_along_u_it_is_not_called_label_shift():
    told = certificate(*shifted(rows=400))
    assert told.prediction_p_value < 1e-6
    still = replace(told, prediction_p_value=0.4)
    assert not still.is_explained_by_label_shift
    assert any("so it is no label shift" in line for line in still.summary())
    z, u, y = shifted(rows=400)
    apart = certificate(z, u, np.random.default_rng(0).permutation(y))
    assert apart.prediction_p_value > 0.05


def test_without_dependence_neither_is_found():
    z, u = apart()
    told = certificate(z, u, z[:, 0] > 0)
    assert not told.is_dependent
    assert any("none was found either" in line for line in told.summary())


def test_one_class_alone_is_nothing_to_look_within():
    z, u = apart(200)
    told = certificate(z, u, np.full(200, "well"))
    assert told.given_prediction is None
    assert any("nothing can be tested" in line for line in told.summary())
