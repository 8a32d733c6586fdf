"""Rotating digits: who is source, which angles there are, and what is dealt."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from cida.experiments.rotating_mnist.rotating_dataset import (
    CELL_DEGREES,
    INTERVAL_DEGREES,
    N_INTERVALS,
    Digits,
    RotatingDataset,
    make_fixed_angle_dataset,
    make_fresh_angle_dataset,
)
from cida.images import rotate_degrees
from cida.training import seeded

seeds = st.integers(0, 2**31 - 10)


def some_digits(count=20, size=6):
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (count, 1, size, size), generator=generator, dtype=torch.uint8)
    return Digits(images, 1 + torch.arange(count) % 9)  # no label is 0: a wiped one is known


DIGITS = some_digits()


def everything(rows, seed=0):
    with seeded(seed):
        return rows[torch.arange(len(rows))]


def interval_of(u):
    return (u / INTERVAL_DEGREES).floor().long().flatten()


def halves(rows):
    """The digits of the source rows and those of the target rows."""
    return rows.x[rows.labelled], rows.x[~rows.labelled]


def test_digits_are_looked_up_with_their_labels():
    which = torch.tensor([3, 0, 3])
    some = DIGITS[which]
    assert len(some) == 3
    assert torch.equal(some.images, DIGITS.images[which])
    assert torch.equal(some.labels, DIGITS.labels[which])


# --- fresh angles -----------------------------------------------------------------------------


@given(seed=seeds, count=st.integers(2, 30))
@settings(deadline=None, max_examples=30)
def test_source_and_target_digits_are_disjoint_halves(seed, count):
    source, target = halves(make_fresh_angle_dataset(some_digits(count), seed))
    assert len(source) == count // 2
    assert len(set(source.tolist())) == len(source)
    assert set(source.tolist()) | set(target.tolist()) == set(range(count))
    assert not set(source.tolist()) & set(target.tolist())


def test_which_half_is_the_source_depends_on_the_seed_alone():
    chosen = [halves(make_fresh_angle_dataset(DIGITS, seed))[0] for seed in range(5)]
    again = [halves(make_fresh_angle_dataset(DIGITS, seed))[0] for seed in range(5)]
    assert all(torch.equal(a, b) for a, b in zip(chosen, again, strict=True))
    assert len({frozenset(half.tolist()) for half in chosen}) == 5
    # Over many seeds each digit is source half of the time.
    many = torch.cat([halves(make_fresh_angle_dataset(DIGITS, seed))[0] for seed in range(400)])
    share = torch.bincount(many, minlength=20) / 400
    assert (share - 0.5).abs().max() < 0.1  # four deviations


@given(seed=seeds)
@settings(deadline=None, max_examples=30)
def test_a_target_digit_has_a_row_in_each_of_the_seven_intervals(seed):
    rows = make_fresh_angle_dataset(DIGITS, seed)
    target = ~rows.labelled
    for digit in rows.x[target].unique():
        mine = target & (rows.x == digit)
        assert sorted(interval_of(rows.u[mine]).tolist()) == list(range(1, N_INTERVALS))


@given(seed=seeds, dealing=seeds)
@settings(deadline=None, max_examples=30)
def test_source_angles_are_anywhere_in_the_source_and_target_angles_stay_in_their_cell(
    seed, dealing
):
    rows = make_fresh_angle_dataset(DIGITS, seed)
    dealt = everything(rows, dealing).u[:, 0]
    nominal, labelled = rows.u[:, 0], rows.labelled
    assert ((dealt[labelled] >= 0) & (dealt[labelled] < INTERVAL_DEGREES)).all()
    cell = (nominal[~labelled] / CELL_DEGREES).floor()
    assert torch.equal((dealt[~labelled] / CELL_DEGREES).floor(), cell)
    assert torch.equal(interval_of(dealt), interval_of(nominal))


def test_a_cell_lies_inside_one_interval():
    assert INTERVAL_DEGREES % CELL_DEGREES == 0
    assert N_INTERVALS * INTERVAL_DEGREES == 360


def test_each_look_up_draws_another_angle_and_the_same_random_state_the_same():
    rows = make_fresh_angle_dataset(DIGITS, 0)
    with seeded(0):
        first, second = rows[torch.arange(len(rows))], rows[torch.arange(len(rows))]
    assert (first.u != second.u).all()
    assert not torch.equal(first.x, second.x)
    again = everything(rows, 0)
    for name in ("x", "y", "u", "labelled", "weight", "row_ids"):
        assert torch.equal(getattr(again, name), getattr(first, name)), name


def test_a_row_asked_for_twice_in_a_batch_comes_at_two_angles():
    rows = make_fresh_angle_dataset(DIGITS, 0)
    batch = rows[torch.tensor([0, 0, 50, 50])]
    assert len(batch.u.unique()) == 4
    assert batch.row_ids.tolist() == [0, 0, 50, 50]
    assert batch.y[0] == batch.y[1] == DIGITS.labels[rows.x[0]]


@pytest.mark.parametrize("draw", [make_fresh_angle_dataset, make_fixed_angle_dataset])
@pytest.mark.parametrize("nearest", [False, True])
def test_what_is_dealt_is_the_digit_turned_by_the_index_that_is_dealt(draw, nearest):
    rows = draw(DIGITS, 0)
    rows.nearest_pixel = nearest
    which = torch.tensor([5, 70, 3, 5])
    with seeded(3):
        batch = rows[which]
    upright = DIGITS.images[rows.x[which]].float() / 255
    assert batch.u.shape == (4, 1)
    assert torch.equal(batch.x, rotate_degrees(upright, batch.u, nearest))
    assert batch.x.dtype == torch.float32
    assert batch.x.min() >= 0
    assert batch.x.max() <= 1


def test_angles_dealt_to_the_source_are_uniform_and_so_are_those_of_the_target():
    rows = make_fresh_angle_dataset(some_digits(400, size=1), 1)
    dealt = everything(rows).u[:, 0].numpy()
    labelled = rows.labelled.numpy()
    assert kstest(dealt[labelled] / 45, "uniform").pvalue > 0.01
    assert kstest((dealt[~labelled] - 45) / 315, "uniform").pvalue > 0.01
    # Within a cell too: all look-ups of one row.
    with seeded(0):
        mine = rows[torch.full((500,), 1000)].u[:, 0].numpy()
    assert kstest(mine % CELL_DEGREES / CELL_DEGREES, "uniform").pvalue > 0.01


def test_a_nominal_angle_lies_where_its_row_is_dealt():
    rows = make_fresh_angle_dataset(DIGITS, 4)
    nominal = rows.u[:, 0]
    assert ((nominal >= rows.min_angle) & (nominal < rows.min_angle + rows.angle_width)).all()


# --- labels -----------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [make_fresh_angle_dataset, make_fixed_angle_dataset])
def test_labels_of_target_rows_are_wiped_unless_an_oracle_asks(draw):
    rows, oracle = draw(DIGITS, 0), draw(DIGITS, 0, oracle=True)
    target = ~rows.labelled
    for found in (rows.y, everything(rows).y):
        assert not found[target].any()
        assert torch.equal(found[~target], DIGITS.labels[rows.x[~target]])
    assert oracle.labelled.all()
    assert len(oracle.source_rows) == len(oracle)
    assert torch.equal(oracle.y, DIGITS.labels[oracle.x])
    # The oracle sees the same images at the same angles.
    assert torch.equal(oracle.x, rows.x)
    assert torch.equal(everything(oracle).x, everything(rows).x)


# --- every interval ---------------------------------------------------------------------------


@given(seed=seeds)
@settings(deadline=None, max_examples=30)
def test_every_digit_comes_once_in_each_interval_and_the_first_is_the_source(seed):
    rows = make_fixed_angle_dataset(DIGITS, seed)
    assert len(rows) == N_INTERVALS * len(DIGITS)
    for digit in range(len(DIGITS)):
        assert sorted(interval_of(rows.u[rows.x == digit]).tolist()) == list(range(N_INTERVALS))
    assert torch.equal(rows.labelled, rows.u[:, 0] < INTERVAL_DEGREES)


def test_intervals_come_one_after_another_with_the_digits_in_order():
    rows = make_fixed_angle_dataset(DIGITS, 0)
    assert torch.equal(rows.x.view(N_INTERVALS, -1), torch.arange(20).expand(N_INTERVALS, 20))
    assert torch.equal(interval_of(rows.u), torch.arange(N_INTERVALS).repeat_interleave(20))


def test_its_angles_are_fixed_by_its_seed():
    rows = make_fixed_angle_dataset(DIGITS, 0)
    first, second = everything(rows, 0), everything(rows, 1)
    assert torch.equal(first.u, rows.u)
    assert torch.equal(first.u, second.u)
    assert torch.equal(first.x, second.x)
    assert torch.equal(make_fixed_angle_dataset(DIGITS, 0).u, rows.u)
    assert not torch.equal(make_fixed_angle_dataset(DIGITS, 1).u, rows.u)


def test_its_angles_are_uniform_over_the_whole_turn_and_in_each_interval():
    u = make_fixed_angle_dataset(some_digits(500, size=1), 2).u[:, 0].numpy()
    assert kstest(u / 360, "uniform").pvalue > 0.01
    places = (u % INTERVAL_DEGREES / INTERVAL_DEGREES).reshape(N_INTERVALS, -1)
    assert min(kstest(place, "uniform").pvalue for place in places) > 0.001
    # Angles of one digit in two intervals have nothing to do with each other.
    apart = np.corrcoef(places) - np.eye(N_INTERVALS)
    assert np.abs(apart).max() < 0.18  # four deviations of 1 / sqrt(500)


# --- the rows themselves ----------------------------------------------------------------------


@given(low=st.floats(-400, 400), width=st.floats(0, 100), dealing=seeds)
@settings(deadline=None, max_examples=40)
def test_an_angle_lies_between_the_bounds_of_its_row(low, width, dealing):
    bounds = torch.full((3,), low, dtype=torch.float64)
    rows = RotatingDataset(
        DIGITS,
        torch.tensor([0, 1, 2]),
        bounds,
        bounds,
        bounds + width,
        torch.tensor([True, True, False]),
    )
    dealt = everything(rows, dealing).u
    assert dealt.min() >= low
    assert dealt.max() <= low + width + 1e-9


def test_an_upright_digit_comes_as_it_is():
    still = torch.zeros(len(DIGITS), dtype=torch.float64)
    rows = RotatingDataset(DIGITS, torch.arange(20), still, still, still, still == 0)
    assert torch.allclose(everything(rows).x * 255, DIGITS.images.float(), atol=1e-2)
