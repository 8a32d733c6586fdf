"""The blind belief on more rows than it is fitted on."""

import pytest
import torch

from cida import (
    L1,
    L2,
    FullGaussian,
    Gaussian,
    Histogram,
    Line,
    Mixture,
    Periodic,
    SkewNormal,
    VonMises,
)
from cida.data import IndexedDataset
from cida.discriminators.base import MAX_MARGINAL_FIT_ROWS
from cida.training import Sampler

MANY = 3 * MAX_MARGINAL_FIT_ROWS + 17
HEADS = {
    "l2": L2,
    "l1": L1,
    "gaussian": Gaussian,
    "mixture": lambda **given: Mixture(components=2, **given),
    "histogram": lambda **given: Histogram(bins=8, **given),
    "hard bins": lambda **given: Histogram(bins=8, kernel=0, **given),
    "skew": SkewNormal,
    "von mises": VonMises,
    "full gaussian": FullGaussian,
}
SPACES = {"line": Line(), "circle": Periodic(360)}


def ordered(count=MANY):
    """Skewed along u, and in its order: most rows near 0."""
    return 350 * (torch.arange(count, dtype=torch.float64) / count).square()[:, None]


def built(head, space, u):
    return HEADS[head](hidden=(4,)).build(2, SPACES[space].fit(u), u)


def exact_loss(head, u, share, blind):
    """The weighted mean loss of a blind belief over all rows."""
    with torch.no_grad():
        head.blind = blind.to(torch.float32)[None]
        return float(share @ head.ceiling(u).double())


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", HEADS)
def test_in_the_order_of_u_it_is_as_good_as_the_exact_one(name, space):
    u = ordered()
    head = built(name, space, u)
    weights = torch.linspace(1, 3, MANY, dtype=torch.float64)
    share = weights / weights.sum()
    head.fit_marginal(u, weights)
    thin = head.blind[0]
    with torch.no_grad():
        whole = head.marginal_params(u, share)
    if name not in ("mixture", "skew"):  # whose numbers are not unique
        torch.testing.assert_close(thin.double(), whole.double(), rtol=1e-3, atol=1e-3)
    best = exact_loss(head, u, share, whole)
    assert exact_loss(head, u, share, thin) == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("name", HEADS)
def test_rows_in_any_order_are_handed_over_in_that_of_their_cells(name):
    """As in training: shuffled rows, balanced along u by the sampler."""
    u = ordered()[torch.randperm(MANY, generator=torch.Generator().manual_seed(0))]
    head = built(name, "line", u)
    rows = IndexedDataset(
        torch.zeros(MANY, 1), torch.zeros(MANY), u, torch.ones(MANY, dtype=torch.bool)
    )
    sampler = Sampler(rows, head.space, 30, torch.Generator())
    share = sampler.row_weights / sampler.row_weights.sum()
    head.fit_marginal(u[sampler.active_rows], sampler.row_weights)
    thin = head.blind[0]
    with torch.no_grad():
        whole = head.marginal_params(u[sampler.active_rows], share)
    losses = [exact_loss(head, u[sampler.active_rows], share, blind) for blind in (thin, whole)]
    assert losses[0] == pytest.approx(losses[1], abs=2e-3)


def test_so_many_rows_and_no_fewer_are_all_used():
    u = ordered(MAX_MARGINAL_FIT_ROWS)
    head = built("l2", "line", u)
    exact = head.target(u).mean(0)
    torch.testing.assert_close(head.blind[0].double(), exact, rtol=0, atol=1e-7)
