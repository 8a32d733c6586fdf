"""Where along u an encoding depends on it, in the units of u."""

import numpy as np
import pytest
import torch

from cida.certificate import certify
from cida.spaces import Line, Periodic, Product

ROWS = 1200


def certificate(z, u, space=None, **more):
    u = torch.as_tensor(np.asarray(u, dtype=float).reshape(len(z), -1))
    return certify((space or Line()).fit(u), z, u, None, **more)


def first_words(certificate):
    return certificate.summary()[0]


def test_where_it_is_worst_is_told_in_the_units_of_u():
    rng = np.random.default_rng(102)
    u = rng.uniform(20, 80, ROWS)
    z = rng.normal(size=(ROWS, 3)) + 1.5 * ((u > 62) & (u < 68))[:, None]
    told = certificate(z, u, index_names=["age"])
    assert told.is_dependent
    assert told.cellwise.worst_cell.lo[0] == pytest.approx(62, abs=0.1)
    assert told.cellwise.worst_cell.hi[0] == pytest.approx(68, abs=0.1)
    assert any("z elsewhere at age from 62.0 to 68.0" in line for line in told.summary())


def test_dependence_within_one_cell_is_told_there():
    rng = np.random.default_rng(103)
    u = rng.uniform(0, 10, 2000)
    inside = (u > 4) & (u < 5)
    z = rng.normal(size=(2000, 3))
    z[:, 0] += 5 * np.where(inside, u - 4.5, 0)
    told = certificate(z, u)
    assert told.cellwise.worst_cell_within.lo[0] == pytest.approx(4, abs=0.01)
    assert told.cellwise.worst_cell_within.within_p_value <= 0.02
    assert sum((cell.within_p_value or 1) <= 0.05 for cell in told.cellwise.cells) == 1
    assert any("Within 1 of 10 cells" in line for line in told.summary())


def test_a_trend_lies_between_cells_and_a_saw_within_them():
    rng = np.random.default_rng(104)
    u = rng.uniform(0, 10, ROWS)
    trend = certificate((u + rng.normal(size=ROWS))[:, None], u)
    assert trend.cellwise.between_share > 0.9
    saw = certificate((u % 1 + 0.05 * rng.normal(size=ROWS))[:, None], u)
    assert saw.cellwise.worst_cell_within is not None
    assert saw.cellwise.between_share is None or saw.cellwise.between_share < 0.5


def test_an_hour_of_the_day_and_a_place_beside_it():
    rng = np.random.default_rng(105)
    hour, north = rng.uniform(0, 24, 500), rng.normal(size=500)
    late = np.cos(2 * np.pi * (hour - 23) / 24)
    z = rng.normal(size=(500, 3)) + 0.4 * late[:, None]
    space = Product([Periodic(24), Line()])
    told = certificate(
        z, np.column_stack([hour, north]), space=space, index_names=["hour", "north"]
    )
    assert told.is_dependent
    assert first_words(told).startswith("The encoding still tells the index (hour, north): z dep")
    assert "z still tells the mean of u" in first_words(told)
    assert any("hour from" in line and "north from" in line for line in told.summary())
    again = certificate(z, north)
    assert not again.is_dependent


def test_a_seam_is_no_matter():
    rng = np.random.default_rng(106)
    hour = rng.uniform(0, 24, 500)
    z = np.cos(2 * np.pi * hour / 24)[:, None] + rng.normal(size=(500, 2))
    one = certificate(z, hour, space=Periodic(24)).marginal
    other = certificate(z, (hour + 48) % 24 - 24, space=Periodic(24)).marginal
    assert one.linear_f_test.f_statistic == pytest.approx(other.linear_f_test.f_statistic)
    assert one.linear_r2 == pytest.approx(other.linear_r2)
