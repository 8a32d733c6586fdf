"""A histogram whose anchors are given."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cida import CIDAClassifier, Histogram, Line, Periodic, Product, load
from cida.datasets import make_circle

MIDDLES = tuple(45.0 * k + 22.5 for k in range(8))


def placed(space=None, **settings):
    """A head on an index that need not cover the circle: anchors given do not look at it."""
    head = Histogram(bins=MIDDLES, **settings)
    space = space or Periodic(360)
    u = torch.linspace(0, 40, 50, dtype=torch.float64)[:, None]
    return head.build(3, space.fit(u), u)


@given(u=st.floats(-720, 1080))
@settings(deadline=None, max_examples=200)
def test_hard_bins_are_the_intervals_around_their_middles(u):
    gap = abs(u / 45 - round(u / 45))
    if gap < 1e-4:  # the border belongs to both
        return
    (target,) = placed(kernel=0).target(torch.tensor([[u]], dtype=torch.float64))
    assert target.tolist() == torch.eye(8)[int(u % 360 // 45)].tolist()


def test_borders_of_hard_bins_are_multiples_of_45_degrees():
    u = torch.arange(0, 360, 45, dtype=torch.float64)[:, None]
    below, above = (placed(kernel=0).target(u + hair).argmax(1) for hair in (-0.001, 0.001))
    assert above.tolist() == list(range(8))
    assert below.tolist() == [7, *range(7)]


def test_the_anchors_are_the_ones_given_wherever_the_rows_are():
    head = placed()
    assert head.anchors[:, 0].tolist() == list(MIDDLES)
    assert head.params_width == 8
    assert float(head.bandwidth) == pytest.approx(np.deg2rad(45.0))


def test_given_evenly_they_are_those_that_a_number_of_bins_gives():
    u = torch.linspace(0, 359, 720, dtype=torch.float64)[:, None]
    counted = Histogram(bins=8).build(3, Periodic(360), u)
    anchors = tuple(counted.anchors[:, 0].tolist())
    given_ = Histogram(bins=anchors).build(3, Periodic(360), u)
    assert torch.equal(counted.target(u), given_.target(u))


@pytest.mark.parametrize("kernel", [0.5, 1.0, 2.0])
def test_the_kernel_falls_with_the_arc_in_units_of_neighbouring_anchors(kernel):
    u = torch.tensor([[10.0], [200.0], [355.0]], dtype=torch.float64)
    away = torch.tensor(MIDDLES, dtype=torch.float64)[None, :] - u
    arc = (away + 180) % 360 - 180
    expected = torch.softmax(-(arc.square()) / (2 * (45 * kernel) ** 2), dim=1)
    found = placed(kernel=kernel).target(u).double()
    assert torch.allclose(found, expected, atol=1e-6)


def test_on_a_line_the_first_and_the_last_are_not_neighbours():
    head = placed(Line(), kernel=0)
    u = torch.tensor([[-100.0], [359.0], [700.0]], dtype=torch.float64)
    assert head.target(u).argmax(1).tolist() == [0, 7, 7]


@pytest.mark.parametrize("bins", [(), (1.0,), [5]])
def test_fewer_than_two_anchors_are_refused(bins):
    with pytest.raises(ValueError, match="two or more finite numbers"):
        Histogram(bins=bins)


def test_an_index_of_several_columns_is_refused_in_a_sentence():
    u = torch.rand(20, 2, dtype=torch.float64)
    space = Product([Line(), Line()]).fit(u)
    with pytest.raises(ValueError, match="8 anchors of one number and the index has 2 columns"):
        Histogram(bins=MIDDLES).build(3, space, u)


@pytest.mark.parametrize("anchors", [list(MIDDLES), np.array(MIDDLES)])
def test_anchors_may_come_in_any_sequence(anchors):
    head = Histogram(bins=anchors, kernel=0)
    u = torch.tensor([[1.0], [100.0]], dtype=torch.float64)
    assert head.build(3, Periodic(360), u).target(u).argmax(1).tolist() == [0, 2]


def test_an_estimator_keeps_them_through_a_file(tmp_path):
    world = make_circle(n_domains=6, n_per_domain=12, n_source_domains=2)
    head = Histogram(bins=(0.0, 0.25, 0.9), kernel=0, smoothing=0.1)
    model = CIDAClassifier(head, steps=3, encoder_hidden=(8,), random_state=0)
    model.fit(world.x, world.training_labels, domain_index=world.u)
    assert model.game_.discriminator.anchors[:, 0].tolist() == [0.0, 0.25, 0.9]
    model.save(tmp_path / "model.safetensors")
    read = load(tmp_path / "model.safetensors")
    assert read.discriminator.settings == head.settings
    assert read.discriminator.bins == (0.0, 0.25, 0.9)
    given_ = {"X": world.x, "domain_index": world.u}
    said = read.predict_proba(**given_)
    np.testing.assert_array_equal(said, model.predict_proba(**given_))
    # Fitted again it is the same model: nothing of the head was lost.
    read.set_params(random_state=0).fit(world.x, world.training_labels, domain_index=world.u)
    np.testing.assert_array_equal(read.predict_proba(**given_), said)
