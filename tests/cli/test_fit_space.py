"""The space that the periods of the command line make."""

from pathlib import Path

import pytest

from cida.cli.fit import Fit
from cida.spaces import Line, Periodic, Product


@pytest.mark.parametrize(
    ("index", "periodic", "space"),
    [
        (("a",), (), None),  # left to the policy
        (("a",), ("a:24",), Periodic(24)),
        (("a", "b"), ("b:7",), Product([Line(), Periodic(7)])),
    ],
)
def test_the_space_follows_from_the_periods(index, periodic, space):
    command = Fit(Path("table.csv"), Path("run"), label="y", index=index, periodic=periodic)
    assert command._estimator().space == space


def test_a_period_must_be_positive():
    command = Fit(Path("table.csv"), Path("run"), label="y", index=("a",), periodic=("a:0",))
    with pytest.raises(ValueError, match="periodic has the period 0 for a; it must be > 0"):
        command._estimator()
