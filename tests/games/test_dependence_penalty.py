"""The games without an adversary: what the encoder pays, and what gains it nothing."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from cida import L2, CIDAClassifier, Line, Periodic, Product
from cida.data import IndexedDataset
from cida.dependence import distance_correlation, normalized_hsic
from cida.games import HSIC, DistanceCorrelation, GameParts
from cida.networks import PlainEncoder
from cida.training import seeded

MEASURES = {DistanceCorrelation: distance_correlation, HSIC: normalized_hsic}
kinds = pytest.mark.parametrize("kind", MEASURES)


class Scaled(nn.Module):
    """An encoder with nothing to learn but the scale of z."""

    def __init__(self, scale):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, x):
        return self.scale * x


def some_rows(count=60, drift=2.0):
    generator = torch.Generator().manual_seed(0)
    u = torch.linspace(0, 1, count, dtype=torch.float64)[:, None]
    x = torch.randn(count, 3, generator=generator)
    x[:, 0] += drift * u[:, 0].float()
    return IndexedDataset(x, (x[:, 1] > 0).long(), u, u[:, 0] < 0.5)


def some_game(kind, rows, space=None, encoder=None, **settings):
    with seeded(0):
        encoder = encoder or PlainEncoder(3, (8,), 4)
        width = encoder(rows.x[:2]).shape[1]
        space = (space or Line()).fit(rows.u)
        players = encoder, nn.Linear(width, 2), space
        parts = GameParts(*players, rows.u, width, 2, L2(), index_in_encoder=False)
        return kind.assemble(replace(parts, **settings))


def the_move(game, rows):
    (move,) = game.moves(rows[rows.source_rows], rows[torch.arange(len(rows))])
    return move


@kinds
def test_one_move_of_the_encoder_with_what_it_pays_and_no_ceiling(kind):
    rows = some_rows()
    game = some_game(kind, rows, lambda_d=3.0)
    move = the_move(game, rows)
    assert move.player == "encoder"
    assert list(game.player_parameters()) == ["encoder"]
    assert list(move.losses) == ["predictor", "encoder"]
    assert list(move.metrics) == ["prediction", "dependence"]
    assert move.ceilings == {}
    z = game.encode(rows.x, rows.u)
    expected = MEASURES[kind](z, game.space.embed(rows.u).float())
    assert move.metrics["dependence"].item() == pytest.approx(expected.item(), rel=1e-5)
    assert move.losses["encoder"].item() == pytest.approx(3 * expected.item(), rel=1e-5)


@kinds
@pytest.mark.parametrize("lambda_d", [0.5, 4.0])
def test_the_gradient_is_lambda_d_times_that_of_the_measure(kind, lambda_d):
    rows = some_rows()
    game = some_game(kind, rows, lambda_d=lambda_d)
    parameters = list(game.encoder.parameters())
    got = torch.autograd.grad(the_move(game, rows).losses["encoder"], parameters)
    z = game.encode(rows.x, rows.u)
    measured = MEASURES[kind](z, game.space.embed(rows.u).float())
    expected = torch.autograd.grad(measured, parameters)
    for mine, theirs in zip(got, expected, strict=True):
        assert torch.allclose(mine, lambda_d * theirs, rtol=1e-4, atol=1e-6)
    assert max(float(g.abs().max()) for g in got) > 1e-3


@kinds
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_an_encoder_that_only_scales_gains_nothing(kind, scale):
    rows = some_rows()
    paid = []
    for factor in (scale, 2 * scale):
        game = some_game(kind, rows, encoder=Scaled(factor))
        move = the_move(game, rows)
        (gradient,) = torch.autograd.grad(move.losses["encoder"], game.encoder.scale)
        assert abs(gradient.item()) * factor < 1e-5  # what a change by so many times itself gains
        paid.append(move.losses["encoder"].item())
    assert paid[0] > 0.1
    assert paid[1] == pytest.approx(paid[0], rel=1e-4)


@kinds
def test_target_labels_are_never_read_and_the_target_counts(kind):
    rows = some_rows()
    game = some_game(kind, rows)
    source, everyone = rows[rows.source_rows], rows[torch.arange(len(rows))]
    (plain,) = game.moves(source, everyone)
    (other,) = game.moves(source, replace(everyone, y=torch.full_like(everyone.y, 7)))
    assert plain.total_loss.item() == other.total_loss.item()
    (alone,) = game.moves(source, source)
    assert alone.metrics["dependence"].item() != plain.metrics["dependence"].item()


@kinds
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_fewer_than_four_rows_cost_nothing_and_break_nothing(kind, count):
    rows = some_rows()
    game = some_game(kind, rows)
    few = rows[rows.source_rows[:count]]
    (move,) = game.moves(few, few)
    move.total_loss.backward()
    assert all(p.grad.isfinite().all() for p in game.encoder.parameters())
    assert (move.metrics["dependence"].item() == 0) == (count < 4)


@kinds
def test_an_index_that_stands_still_costs_nothing(kind):
    rows = some_rows()
    still = IndexedDataset(
        rows.x, rows.y, torch.ones(len(rows), 1, dtype=torch.float64), rows.labelled
    )
    game = some_game(kind, still)
    assert the_move(game, still).metrics["dependence"].item() == 0


@kinds
@pytest.mark.parametrize("turn", [0, 7, 23.5])
def test_on_a_circle_no_hour_is_a_seam(kind, turn):
    hours = 24 * torch.rand(60, 1, generator=torch.Generator().manual_seed(0)).double()
    rows = some_rows()
    figures = []
    for u in (hours, (hours + turn) % 24):
        game = some_game(kind, IndexedDataset(rows.x, rows.y, u, rows.labelled), Periodic(24))
        figures.append(game._dependence_penalty(game.encode(rows.x, u), u).item())
    assert figures[1] == pytest.approx(figures[0], abs=1e-5)


def test_chords_see_what_arcs_do_not():
    """East or west against north or south: all pairs within and between are 90 degrees apart."""
    one, other = torch.tensor([[0.0], [180.0]]).double(), torch.tensor([[90.0], [270.0]]).double()
    space = Periodic(360)

    def energy(distance):
        """Twice the mean distance between the two groups, less the means inside each."""
        inside = distance(one, one).mean() + distance(other, other).mean()
        return 2 * distance(one, other).mean() - inside

    def chord(a, b):
        return torch.cdist(space.embed(a), space.embed(b))

    assert energy(space.distance).item() == pytest.approx(0, abs=1e-12)
    assert energy(chord).item() > 0.5
    u = torch.cat([one, other]).repeat(10, 1)
    z = torch.tensor([0.0, 0, 1, 1]).repeat(10)[:, None]
    for kind in MEASURES:
        rows = IndexedDataset(torch.zeros(40, 3), torch.zeros(40).long(), u, torch.ones(40).bool())
        assert some_game(kind, rows, space)._dependence_penalty(z, u).item() > 0.1


@kinds
def test_a_product_of_a_line_and_a_circle_is_embedded_column_by_column(kind):
    rows = some_rows()
    u = torch.cat([rows.u, 24 * rows.u.flip(0)], dim=1)
    both = IndexedDataset(rows.x, rows.y, u, rows.labelled)
    game = some_game(kind, both, Product([Line(), Periodic(24)]))
    index = game.space.embed(u).float()
    assert index.shape[1] == 3
    expected = MEASURES[kind](game.encode(both.x, u), index)
    assert the_move(game, both).metrics["dependence"].item() == pytest.approx(expected.item())


@pytest.mark.parametrize(
    ("name", "kind"), [("distance-correlation", DistanceCorrelation), ("hsic", HSIC)]
)
def test_in_an_estimator_most_of_the_dependence_goes_and_the_head_is_ignored(name, kind):
    rows = some_rows(400, drift=8.0)
    settings = {"game": name, "coordinates": "raw", "encoder_hidden": (16,), "random_state": 0}
    y = torch.where(rows.labelled, rows.y, -1).numpy()
    left = {}
    for lambda_d in (0.0, 3.0):
        model = CIDAClassifier(lambda_d=lambda_d, steps=150, learning_rate=3e-3, **settings)
        model.fit(rows.x.numpy(), y, domain_index=rows.u.numpy())
        assert type(model.game_) is kind
        z = torch.from_numpy(model.transform(rows.x.numpy()))
        left[lambda_d] = MEASURES[kind](z, rows.u.float()).item()
    assert left[0.0] > 0.05
    assert left[3.0] < 0.2 * left[0.0]
    head = CIDAClassifier("l2", lambda_d=3.0, steps=150, learning_rate=3e-3, **settings)
    head.fit(rows.x.numpy(), y, domain_index=rows.u.numpy())
    assert torch.equal(torch.from_numpy(head.transform(rows.x.numpy())), z)
