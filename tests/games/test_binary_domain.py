"""Two merged groups of rows, each side counted the same."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from cida.games.binary_domain import BINARY_CEILING, BinaryDomainClassifier, balanced_mean


def sides(first, second):
    return torch.arange(first + second) >= first


def test_each_side_counts_the_same_whatever_its_rows():
    values = torch.tensor([1.0, 2.0, 6.0, 10.0])
    second = torch.tensor([False, False, False, True])
    assert balanced_mean(values, second).item() == (3.0 + 10.0) / 2


@pytest.mark.parametrize("second", [True, False])
def test_a_side_without_rows_counts_as_nothing(second):
    values = torch.tensor([4.0, 8.0])
    assert balanced_mean(values, torch.full((2,), second)).item() == 6.0 / 2


def test_the_loss_is_the_cross_entropy_of_the_log_odds():
    discriminator = BinaryDomainClassifier(nn.Linear(1, 1))
    nn.init.constant_(discriminator.network.weight, 2.0)
    nn.init.constant_(discriminator.network.bias, -1.0)
    z = torch.tensor([[0.0], [1.0], [3.0]])  # odds -1, 1 and 5
    loss = discriminator.loss(z, torch.tensor([False, False, True]))
    first = (math.log1p(math.exp(-1)) + math.log1p(math.exp(1))) / 2
    assert discriminator(z).tolist() == [-1.0, 1.0, 5.0]
    assert loss.item() == pytest.approx((first + math.log1p(math.exp(-5))) / 2)


@given(st.integers(1, 50), st.integers(1, 50))
def test_odds_of_one_everywhere_cost_the_ceiling_whatever_the_sides(first, second):
    discriminator = BinaryDomainClassifier(nn.Linear(1, 1))
    nn.init.zeros_(discriminator.network.weight)
    nn.init.zeros_(discriminator.network.bias)
    loss = discriminator.loss(torch.ones(first + second, 1), sides(first, second))
    assert loss.item() == pytest.approx(math.log(2))
    assert math.log(2) == BINARY_CEILING


@given(st.integers(1, 50), st.integers(1, 50), st.floats(-20, 20))
def test_no_constant_odds_get_below_the_ceiling(first, second, odds):
    discriminator = BinaryDomainClassifier(nn.Linear(1, 1))
    nn.init.zeros_(discriminator.network.weight)
    nn.init.constant_(discriminator.network.bias, odds)
    loss = discriminator.loss(torch.ones(first + second, 1), sides(first, second))
    assert loss.item() >= BINARY_CEILING - 1e-6
