"""The paper's lemmas and theorems, and what docs/theory.md says beyond them, on known joints.

Two kinds of evidence: networks trained on joints whose conditionals are known in closed form, and
small discrete joints where every quantity is computed exactly, without a network.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.quasirandom import SobolEngine

from cida.data import Batch
from cida.discriminators import DISCRIMINATORS, L1, L2, Discriminator, Gaussian, Histogram, Mixture
from cida.games import Adversarial, cross_entropy
from cida.networks import MLP
from cida.spaces import Line, Periodic
from cida.training import seeded

LOG = math.log
HIDDEN = (64, 64)
GRID = torch.linspace(-1.4, 1.4, 57)[:, None]  # where beliefs are compared, off the very edges


def uniforms(seed: int, columns: int = 2, rows: int = 8192) -> Tensor:
    """Quasi-random draws on the unit cube: fair, but with little noise of their own."""
    draws = SobolEngine(columns, scramble=True, seed=seed).draw(rows, dtype=torch.float64)
    return draws.clamp(1e-9, 1 - 1e-9)


def centre(z: Tensor) -> Tensor:
    return torch.sin(2 * z)


def spread(z: Tensor) -> Tensor:
    return 0.2 + 0.2 * z.square()


def skewed(seed: int) -> tuple[Tensor, Tensor]:
    """z uniform on [-1.5, 1.5]; u|z exponential, of mean sin 2z and deviation spread(z)."""
    draws = uniforms(seed)
    z = 3 * draws[:, :1] - 1.5
    return z.float(), centre(z) + spread(z) * (-torch.log1p(-draws[:, 1:]) - 1)


def bimodal(seed: int) -> tuple[Tensor, Tensor]:
    """z uniform on [-1.5, 1.5]; u|z = +-(1.2 + z/3) with even odds, plus noise of 0.2."""
    draws = uniforms(seed, columns=3)
    z = 3 * draws[:, :1] - 1.5
    side = torch.sign(draws[:, 1:2] - 0.5)
    return z.float(), side * (1.2 + z / 3) + 0.2 * torch.special.ndtri(draws[:, 2:])


def minimise(player: nn.Module, loss: Callable[[], Tensor], steps: int) -> None:
    optimiser = torch.optim.Adam(player.parameters(), fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=steps)
    for _ in range(steps):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()
        schedule.step()


def trained(head: Discriminator, z: Tensor, u: Tensor, steps: int = 300) -> Discriminator:
    with seeded(0):
        head.build(z.shape[1], Line(), u)
        minimise(head, lambda: head.loss(head(z), u).mean(), steps)
    return head.requires_grad_(False)


def value(head: Discriminator, z: Tensor, u: Tensor) -> float:
    """V_d on these rows."""
    return float(head.loss(head(z), u).mean())


def over_z(f: Callable[[Tensor], Tensor]) -> float:
    """E f(z) for z uniform on [-1.5, 1.5]."""
    return float(f(torch.linspace(-1.5, 1.5, 20_001, dtype=torch.float64)).mean())


def test_trained_l2_reaches_the_conditional_mean_and_its_loss_the_mean_variance():
    head = trained(L2(hidden=HIDDEN), *skewed(0))
    assert (head(GRID) - centre(GRID)).abs().max() < 0.03
    assert value(head, *skewed(1)) == pytest.approx(over_z(lambda z: spread(z) ** 2), abs=0.003)


def test_trained_l1_reaches_the_conditional_median_not_the_mean():
    head = trained(L1(hidden=HIDDEN), *skewed(0))
    median = centre(GRID) - (1 - LOG(2)) * spread(GRID)
    assert (head(GRID) - median).abs().max() < 0.03
    assert (head(GRID) - median).abs().mean() < (head(GRID) - centre(GRID)).abs().mean() / 4
    assert value(head, *skewed(1)) == pytest.approx(LOG(2) * over_z(spread), abs=0.003)


def test_trained_gaussian_reaches_the_conditional_mean_and_variance_of_a_skewed_index():
    head = trained(Gaussian(hidden=HIDDEN), *skewed(0))
    mean, variance = head.moments(head(GRID))
    assert (mean - centre(GRID)).abs().max() < 0.03
    assert (variance.sqrt() / spread(GRID) - 1).abs().max() < 0.1
    best = over_z(lambda z: 0.5 + spread(z).log())
    assert value(head, *skewed(1)) == pytest.approx(best, abs=0.005)


def test_trained_histogram_reaches_the_conditional_soft_histogram():
    head = trained(Histogram(bins=12, hidden=HIDDEN), *skewed(0), steps=500)
    quantiles = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
    noise = -torch.log1p(-quantiles)[:, None] - 1
    truth = torch.stack([head.target(centre(z) + spread(z) * noise).mean(0) for z in GRID.double()])
    gap = (head(GRID).softmax(1) - truth).abs().sum(1) / 2  # total variation
    assert gap.mean() < 0.04
    assert gap.max() < 0.12


def test_trained_mixture_beats_the_gaussian_by_the_known_divergence_on_a_bimodal_index():
    heads = (Mixture(2, hidden=HIDDEN), Gaussian(hidden=HIDDEN))
    mixture, gaussian = (value(trained(head, *bimodal(0)), *bimodal(1)) for head in heads)
    best_gaussian = over_z(lambda z: 0.5 + ((1.2 + z / 3).square() + 0.2**2).log() / 2)
    best_mixture = 0.5 + LOG(0.2) + LOG(2)  # the modes lie too far apart to overlap
    divergence = best_gaussian - best_mixture  # KL from p(u|z) to its best Gaussian
    assert divergence == pytest.approx(1.084, abs=0.001)
    assert gaussian - mixture == pytest.approx(divergence, abs=0.01)


@pytest.mark.parametrize("name", DISCRIMINATORS)
def test_an_independent_encoding_leaves_every_head_at_its_ceiling(name: str):
    with seeded(0):
        z, u = torch.randn(2, 4096, 2), torch.randn(2, 4096, 1).double()
    head = trained(DISCRIMINATORS[name](hidden=(16,)), z[0], u[0], steps=200)
    ceiling = float(head.ceiling(u[1]).mean())
    assert value(head, z[1], u[1]) == pytest.approx(ceiling, abs=0.02)


def test_trained_predictor_reaches_the_label_probabilities_and_the_conditional_entropy():
    def chance(z: Tensor) -> Tensor:
        return torch.sigmoid(2 * centre(z))

    draws = uniforms(0)
    z = (3 * draws[:, :1] - 1.5).float()
    y = (draws[:, 1] < chance(z[:, 0])).long()
    with seeded(0):
        predictor = MLP(1, HIDDEN, 2)
        minimise(predictor, lambda: cross_entropy(predictor(z), y).mean(), 300)
    assert (predictor(GRID).softmax(1)[:, 1:] - chance(GRID)).abs().max() < 0.05
    reached = float(cross_entropy(predictor(z), y).mean().detach())
    entropy = over_z(lambda z: torch.special.entr(chance(z)) + torch.special.entr(1 - chance(z)))
    assert reached == pytest.approx(entropy, abs=0.01)


# Ceilings in closed form

QUANTILES = ((torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000)[:, None]
NORMAL = 2 * torch.special.ndtri(QUANTILES)  # deviation 2
FLAT = 6 * QUANTILES
EXPONENTIAL = -torch.log1p(-QUANTILES)
MODES = torch.cat([0.5 * torch.special.ndtri(QUANTILES) + side for side in (-5, 5)])

CLOSED_FORMS = [
    (L2(), Line(), NORMAL, 4),
    (L2(), Line(), FLAT, 3),
    (L1(), Line(), NORMAL, 2 * math.sqrt(2 / math.pi)),
    (L1(), Line(), EXPONENTIAL, LOG(2)),
    (Gaussian(), Line(), FLAT, 0.5 + LOG(3) / 2),
    (Gaussian(), Line(), EXPONENTIAL, 0.5),
    (Mixture(1), Line(), NORMAL, 0.5 + LOG(4) / 2),
    (Mixture(2), Line(), MODES, 0.5 + LOG(0.5) + LOG(2)),
    (Histogram(bins=30, kernel=0), Line(), (FLAT * 5).floor(), LOG(30)),
    (L2(), Periodic(6), FLAT, 1),
    (Gaussian(), Periodic(6), FLAT, 1 - LOG(2)),
    (Histogram(bins=30), Periodic(6), FLAT, LOG(30)),
]


@pytest.mark.parametrize(("head", "space", "u", "closed_form"), CLOSED_FORMS)
def test_the_ceiling_has_its_closed_form(head, space, u, closed_form):
    ceiling = head.build(1, space, u).ceiling(u).double().mean()
    assert float(ceiling) == pytest.approx(closed_form, abs=2e-3)


def test_a_ceiling_fitted_on_the_batch_itself_is_too_low():
    """By about (bins - 1) / (2 rows): 35 / 768 = 0.046 nats."""
    u = 360 * uniforms(0, columns=1, rows=2**14)
    head = Histogram(bins=36, kernel=0).build(1, Periodic(360), u)
    with seeded(0):
        batches = [u[torch.randint(len(u), (384,))] for _ in range(200)]
    fitted_on_all = torch.stack([head.ceiling(batch).mean() for batch in batches]).mean()
    fitted_on_batch = sum(blind_loss(head, b, torch.ones(384)) for b in batches) / 200
    assert float(fitted_on_all) - fitted_on_batch == pytest.approx(0.046, abs=0.005)


def test_a_loss_above_the_ceiling_says_that_the_discriminator_lags_and_moves_no_encoder():
    """z = u and D reads it off; then the encoder flips z: as informative as before, the loss 4."""
    u = torch.special.ndtri(QUANTILES)
    ones, row = torch.ones(len(u)), torch.arange(len(u))
    everyone = Batch(u.float(), torch.zeros(len(u)).long(), u, u > 0, ones, row)
    head = L2(body=nn.Identity()).build(1, Line(), u)
    encoder = nn.Linear(1, 1)
    for layer, slope in ((head.head, 1.0), (encoder, -1.0)):
        nn.init.constant_(layer.weight, slope)
        nn.init.zeros_(layer.bias)
    for ceiling, pull in ((True, 0.0), (False, 4.0)):
        players = (encoder, MLP(1, (), 2), head, Line())
        game = Adversarial(*players, index_in_encoder=False, ceiling=ceiling)
        *_, move = game.moves(everyone, everyone)
        (gradient,) = torch.autograd.grad(move.losses["encoder"], encoder.weight)
        assert float(move.metrics["discriminator"].detach()) == pytest.approx(4, abs=0.01)
        assert float(move.ceilings["discriminator"]) == pytest.approx(1, abs=0.01)
        assert abs(float(gradient)) == pytest.approx(pull, abs=0.01)


# Discrete joints, exactly

Table = tuple[Sequence[int], Sequence[Sequence[int]]]  # values of u; for each z, counts of u


def moments(u: Sequence[int], counts: Sequence[int]) -> tuple[Fraction, Fraction]:
    rows = sum(counts)
    mean = Fraction(sum(n * v for n, v in zip(counts, u, strict=True)), rows)
    square = Fraction(sum(n * v * v for n, v in zip(counts, u, strict=True)), rows)
    return mean, square - mean**2


def exactly(table: Table) -> tuple[Fraction, Fraction, list[tuple[int, Fraction, Fraction]]]:
    """E[u] and V[u]; then for each z its rows, E[u|z] and V[u|z]."""
    u, counts = table
    all_rows = [sum(column) for column in zip(*counts, strict=True)]
    return *moments(u, all_rows), [(sum(row), *moments(u, row)) for row in counts]


def blind_loss(head: Discriminator, u: Tensor, counts: Tensor) -> float:
    """The loss of the best belief that knows these counts of u and nothing else."""
    share = counts.double() / counts.sum()
    belief = head.marginal_params(u, share)
    return float(share @ head.loss(belief.expand(len(u), -1), u))


def criterion_and_ceiling(head: Discriminator, table: Table) -> tuple[float, float]:
    """C_d(E), the loss of the best discriminator, and c*, that of the best one that ignores z."""
    u = torch.tensor(table[0], dtype=torch.float64)[:, None]
    counts = torch.tensor(table[1])
    head.build(1, Line(), u)
    best = sum(int(row.sum()) * blind_loss(head, u, row) for row in counts) / int(counts.sum())
    return best, blind_loss(head, u, counts.sum(0))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Any joint, an independent one, and those that match only the mean, or mean and variance."""
    some = st.integers(1, 6)
    encodings = draw(st.integers(2, 4))
    kind = draw(st.sampled_from(["any", "independent", "same mean", "same mean and variance"]))
    if kind == "same mean":
        near, wide = draw(some), draw(some)
        pairs = [(draw(some), draw(some)) for _ in range(encodings)]
        return [-near - wide, -near, near, near + wide], [(a, b, b, a) for a, b in pairs]
    if kind == "same mean and variance":  # third differences change neither moment
        bends = [draw(st.integers(-2, 2)) for _ in range(encodings)]
        return [1, 2, 3, 4], [(7 + k, 7 - 3 * k, 7 + 3 * k, 7 - k) for k in bends]
    u = draw(st.lists(st.integers(-6, 6), min_size=2, max_size=5, unique=True))
    rows = [[draw(some) for _ in u] for _ in range(encodings)]
    return u, [[n * row[0] for n in rows[0]] for row in rows] if kind == "independent" else rows


def on_many_joints(test: Callable[[Table], None]) -> Callable[[], None]:
    return settings(max_examples=80, deadline=None)(given(table=tables())(test))


@on_many_joints
def test_total_expectation_and_variance_hold_exactly(table: Table):
    mean, variance, by_z = exactly(table)
    rows = sum(n for n, _, _ in by_z)
    assert rows * mean == sum(n * m for n, m, _ in by_z)
    assert rows * variance == sum(n * v + n * (m - mean) ** 2 for n, m, v in by_z)
    if len({m for _, m, _ in by_z}) == 1:
        assert by_z[0][1] == mean  # Lemma 4.2
        if len({v for _, _, v in by_z}) == 1:
            assert by_z[0][2] == variance  # Lemma 4.4


@on_many_joints
def test_l2_stays_below_the_variance_and_meets_it_only_at_one_mean(table: Table):
    _, variance, by_z = exactly(table)
    criterion = sum(n * v for n, _, v in by_z) / sum(n for n, _, _ in by_z)
    assert criterion <= variance
    assert (criterion == variance) == (len({m for _, m, _ in by_z}) == 1)
    assert criterion_and_ceiling(L2(), table) == pytest.approx((criterion, variance))


@on_many_joints
def test_gaussian_stays_below_its_bound_and_meets_it_only_at_one_mean_and_variance(table: Table):
    _, variance, by_z = exactly(table)
    rows = sum(n for n, _, _ in by_z)
    # sum_z n_z log V[u|z] <= n log V[u], without the logarithms: exact in whole numbers.
    powers = math.prod(v**n for n, _, v in by_z)
    assert powers <= variance**rows
    assert (powers == variance**rows) == (len({(m, v) for _, m, v in by_z}) == 1)
    exact = (0.5 + sum(n * LOG(v) for n, _, v in by_z) / rows / 2, 0.5 + LOG(variance) / 2)
    assert criterion_and_ceiling(Gaussian(), table) == pytest.approx(exact, abs=1e-9)


@on_many_joints
def test_no_encoding_lifts_any_head_above_its_ceiling(table: Table):
    for head in (L2(), L1(), Gaussian(), Mixture(1), Histogram(4, kernel=0), Histogram(6)):
        criterion, ceiling = criterion_and_ceiling(head, table)
        assert criterion <= ceiling + 1e-9


ONE_MEDIAN = ([-1, 0, 1, 4], [(1, 1, 1, 0), (1, 1, 0, 1)])
ONE_MEAN = ([-3, -1, 1, 3], [(0, 1, 1, 0), (1, 0, 0, 1)])
ONE_MEAN_AND_VARIANCE = ([1, 2, 3, 4], [(2, 0, 3, 1), (1, 3, 0, 2)])


@pytest.mark.parametrize(
    ("head", "table", "criterion", "ceiling"),
    [
        (L1(), ONE_MEDIAN, 1.1667, 1.1667),
        (L2(), ONE_MEDIAN, 2.6667, 2.9167),
        (L2(), ONE_MEAN, 5, 5),
        (Gaussian(), ONE_MEAN, 1.0493, 1.3047),
        (Gaussian(), ONE_MEAN_AND_VARIANCE, 0.6116, 0.6116),
        (Histogram(4, kernel=0), ONE_MEAN_AND_VARIANCE, 1.0114, 1.3863),
    ],
)
def test_each_head_sees_what_it_models_and_no_more(head, table, criterion, ceiling):
    assert criterion_and_ceiling(head, table) == pytest.approx((criterion, ceiling), abs=1e-4)


def test_one_mean_and_variance_of_u_given_z_leaves_the_mean_of_z_given_u_free():
    u, counts = ONE_MEAN_AND_VARIANCE
    plus, minus = counts  # z = 1 and z = -1
    assert moments(u, plus) == moments(u, minus) == (Fraction(5, 2), Fraction(5, 4))
    of_z = [Fraction(a - b, a + b) for a, b in zip(plus, minus, strict=True)]
    assert of_z == [Fraction(1, 3), -1, 1, Fraction(-1, 3)]


# The three-player game, exactly

CELLS = [(0, 0), (0, 1), (1, 0), (1, 1)]  # (x, u), equally likely
KEEP_ALL, KEEP_X = (0, 1, 2, 3), (0, 0, 1, 1)


def entropy_of(*chances: float) -> float:
    """The mean entropy of labels with these chances, in nats."""
    return -sum(q * LOG(q) for p in chances for q in (p, 1 - p) if q > 0) / len(chances)


def noisy_labels(noise: tuple[float, float], encoder: Sequence[int]) -> tuple[float, float]:
    """y = x, flipped with chance noise[u]; the encoder names a z for each cell. H(y|z) and C_d."""
    entropy = criterion = 0.0
    for z in set(encoder):
        group = [cell for cell, code in zip(CELLS, encoder, strict=True) if code == z]
        chance = sum(abs(x - noise[u]) for x, u in group) / len(group)
        mean = sum(u for _, u in group) / len(group)
        entropy += len(group) / 4 * entropy_of(chance)
        criterion += len(group) / 4 * mean * (1 - mean)  # L2: E V[u|z], at most V[u] = 1/4
    return entropy, criterion


def test_no_encoder_is_sufficient_and_aligned_when_the_label_noise_changes_with_the_index():
    """u is independent of y, yet P(y|x,u) tells u: the conclusion of Theorem 4.3 fails."""
    encoders = {e: noisy_labels((0, 0.25), e) for e in product(range(4), repeat=4)}
    least = entropy_of(0, 1, 0.25, 0.75)  # H(y|x,u)
    assert least == pytest.approx(0.2812, abs=1e-4)
    assert {c for h, c in encoders.values() if h < least + 1e-9} == {0}
    aligned = min(h for h, c in encoders.values() if c > 0.25 - 1e-9)
    assert aligned == encoders[KEEP_X][0] == pytest.approx(0.3768, abs=1e-4)
    assert (aligned - least) / 0.25 == pytest.approx(0.3824, abs=1e-4)
    for lambda_d, best in ((0.38, KEEP_ALL), (0.39, KEEP_X)):
        costs = {e: h - lambda_d * c for e, (h, c) in encoders.items()}
        assert costs[best] == pytest.approx(min(costs.values()))


def test_an_encoder_is_sufficient_and_aligned_when_the_label_noise_is_the_same():
    for noise in (0, 0.25):
        assert noisy_labels((noise, noise), KEEP_X) == pytest.approx((entropy_of(noise), 0.25))


def test_alignment_costs_entropy_where_the_label_depends_on_the_index():
    """P(y = 1|u) for four equally likely u, seen whole, in two bins, and not at all."""
    chances = (0.1, 0.3, 0.7, 0.9)
    assert entropy_of(*chances) == pytest.approx(0.4680, abs=1e-4)
    assert entropy_of(0.2, 0.8) == pytest.approx(0.5004, abs=1e-4)
    assert entropy_of(0.5) == pytest.approx(0.6931, abs=1e-4)


@pytest.mark.parametrize("sides", [2, 12])
def test_alignment_cannot_tell_a_turned_target_from_a_right_one(sides: int):
    """x on a polygon, y its half. 2 sides: the free sign of Sine; 12: the free angle of Circle."""
    source = list(range(sides))
    for turn in range(sides):
        target = [(x + turn) % sides for x in source]
        assert sorted(target) == source  # p(z|u) is the same: every head is at its ceiling
        right = [(x < sides // 2) == (z < sides // 2) for x, z in zip(source, target, strict=True)]
        assert sum(right) / sides == pytest.approx(1 - 2 * min(turn, sides - turn) / sides)
