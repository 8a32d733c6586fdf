"""What a histogram takes for a number of bins, for anchors, or for a mistake."""

import numpy as np
import pytest
import torch

from cida import Histogram, Periodic


@pytest.mark.parametrize("bins", [np.int64(7), np.int32(7), np.uint8(7), 7])
def test_integers_of_any_kind_are_a_number_of_bins(bins):
    head = Histogram(bins=bins)
    assert head.bins == 7
    assert type(head.bins) is int
    u = torch.linspace(0, 359, 100, dtype=torch.float64)[:, None]
    assert head.build(3, Periodic(360), u).params_width == 7


@pytest.mark.parametrize(
    "bins", [(1, 2.5), [1, 2.5], (np.int64(1), np.float32(2.5)), (True, 2.5)], ids=repr
)
def test_anchors_are_kept_as_plain_numbers(bins):
    head = Histogram(bins=bins)
    assert head.bins == (1.0, 2.5)
    assert all(type(anchor) is float for anchor in head.bins)


def test_a_range_is_a_sequence_of_anchors():
    assert Histogram(bins=range(0, 360, 90)).bins == (0.0, 90.0, 180.0, 270.0)


@pytest.mark.parametrize(
    "bins",
    [
        "30",
        "",
        "12",
        1,
        0,
        -4,
        np.int64(1),
        2.0,
        30.5,
        float("nan"),
        True,
        None,
        {},
        ["a", "b"],
        ["1", "2"],
        [[1, 2], [3, 4]],
        [1, None],
    ],
    ids=repr,
)
def test_neither_a_number_of_bins_nor_anchors_is_refused_by_name(bins):
    with pytest.raises(ValueError, match=r"^bins must be at least 2, got|^bins are"):
        Histogram(bins=bins)


@pytest.mark.parametrize(
    "bins",
    [
        (),
        (1.0,),
        (1.0, float("nan")),
        (float("nan"), float("nan")),
        (0.0, float("inf")),
        (-float("inf"), 0.0),
        (1.0, 1.0),
        (3, 1, 3.0),
        (0.0, -0.0),
    ],
    ids=repr,
)
def test_anchors_that_are_few_equal_or_no_numbers_are_refused(bins):
    words = r"bins are the anchors .* two or more finite numbers, all different"
    with pytest.raises(ValueError, match=words):
        Histogram(bins=bins)


def test_anchors_on_one_place_of_the_circle_are_refused():
    u = torch.linspace(0, 359, 100, dtype=torch.float64)[:, None]
    with pytest.raises(ValueError, match="the same place"):
        Histogram(bins=(0, 360)).build(3, Periodic(360), u)
