"""DANN with one target domain: the merged source against the merged target."""

import math

import pytest
import torch
from torch import nn

from cida import CIDAClassifier
from cida.data import IndexedDataset
from cida.datasets import make_circle
from cida.discriminators import L2
from cida.games import DANN, GameParts, SourceOnly, squared_error
from cida.games.binary_domain import BinaryDomainClassifier
from cida.networks import MLP, PlainEncoder
from cida.spaces import Line
from cida.training import seeded


def some_rows(count=30, regression=False):
    generator = torch.Generator().manual_seed(0)
    u = torch.linspace(0, 1, count, dtype=torch.float64)
    x = torch.randn(count, 2, generator=generator) + 3 * u[:, None].float()
    y = x[:, :1] if regression else (x[:, 0] > x[:, 1]).long()
    weight = 0.5 + torch.rand(count, generator=generator)
    return IndexedDataset(x, y, u, u < 0.4, weight)


ROWS = some_rows()
SOURCE, EVERYONE = ROWS[ROWS.source_rows[:8]], ROWS[torch.arange(len(ROWS))]
TARGET = ~ROWS.labelled


def some_game(outputs=2, **settings):
    with seeded(0):
        players = (
            PlainEncoder(2, (8,), 3),
            MLP(3, (), outputs),
            BinaryDomainClassifier(MLP(3, (8,), 1)),
        )
    return DANN(*players, Line(), index_in_encoder=False, **settings)


def gradient(module):
    return torch.cat([p.grad.flatten() for p in module.parameters()])


def sides_by_hand(game):
    """The two halves of ``V_d``: source rows that are dealt as such, and all target rows."""
    with torch.no_grad():
        near = game.discriminator(game.encoder(SOURCE.x))
        far = game.discriminator(game.encoder(ROWS.x[TARGET]))
    return -(1 - torch.sigmoid(near)).log().mean(), -torch.sigmoid(far).log().mean()


def test_the_players_take_turns_on_the_same_encodings():
    moves = list(some_game(discriminator_steps=3).moves(SOURCE, EVERYONE))
    assert [move.player for move in moves] == ["discriminator"] * 3 + ["encoder"]
    assert len({move.total_loss.item() for move in moves[:3]}) == 1


def test_the_losses_by_hand():
    game = some_game(lambda_d=3.0, ceiling=False)
    first, *_, last = game.moves(SOURCE, EVERYONE)
    value = sum(sides_by_hand(game)).item() / 2
    assert first.total_loss.item() == pytest.approx(value, rel=1e-5)
    assert last.metrics["discriminator"].item() == pytest.approx(value, rel=1e-5)
    assert last.losses["encoder"].item() == pytest.approx(-3 * value, rel=1e-5)
    said = game.predictor(game.encoder(SOURCE.x)).log_softmax(1)
    missed = -said[torch.arange(len(SOURCE)), SOURCE.y]
    prediction = (SOURCE.weight * missed).mean().item()
    assert last.losses["predictor"].item() == pytest.approx(prediction, rel=1e-5)
    assert last.metrics["prediction"].item() == pytest.approx(prediction, rel=1e-5)
    assert last.total_loss.item() == pytest.approx(prediction - 3 * value, rel=1e-5)


def test_a_tiny_example_by_hand():
    """One number a row, encoded as it is; the log odds are the encoding."""
    rows = IndexedDataset(
        torch.tensor([[-1.0], [0.0], [2.0]]),
        torch.tensor([0, 1, 0]),
        torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64),
        torch.tensor([True, True, False]),
    )
    game = DANN(
        nn.Identity(),
        nn.Linear(1, 2),
        BinaryDomainClassifier(nn.Identity()),
        Line(),
        index_in_encoder=False,
    )
    first, *_ = game.moves(rows[torch.tensor([0, 1])], rows[torch.tensor([0, 2])])
    source = (math.log1p(math.exp(-1)) + math.log(2)) / 2
    target = math.log1p(math.exp(-2))
    assert first.total_loss.item() == pytest.approx((source + target) / 2, rel=1e-6)


def test_source_rows_among_everyone_do_not_count_twice():
    game = some_game()
    target_alone = ROWS[TARGET.nonzero()[:, 0]]
    values = [
        next(iter(game.moves(SOURCE, batch))).total_loss for batch in (EVERYONE, target_alone)
    ]
    assert torch.allclose(*values)


def test_each_side_counts_the_same_whatever_its_numbers():
    game = some_game()
    few = ROWS[TARGET.nonzero()[:, 0]]
    thrice = ROWS[TARGET.nonzero()[:, 0].repeat(3)]
    values = [next(iter(game.moves(SOURCE, batch))).total_loss for batch in (few, thrice)]
    assert torch.allclose(*values)


def test_numbers_are_predicted_by_the_squared_error():
    rows = some_rows(regression=True)
    game = some_game(outputs=1, prediction_loss=squared_error)
    *_, last = game.moves(rows[rows.source_rows], rows[torch.arange(len(rows))])
    mine = rows.x[rows.source_rows]
    error = (game.predictor(game.encoder(mine)) - rows.y[rows.source_rows]).square()[:, 0]
    expected = (rows.weight[rows.source_rows] * error).mean().item()
    assert last.losses["predictor"].item() == pytest.approx(expected, rel=1e-5)


# --- gradients --------------------------------------------------------------------------------


def test_the_discriminators_move_gives_the_others_no_gradient_nor_the_other_way_round():
    game = some_game(ceiling=False)
    first, *_, last = game.moves(SOURCE, EVERYONE)
    first.total_loss.backward()
    assert all(p.grad is None for m in (game.encoder, game.predictor) for p in m.parameters())
    assert gradient(game.discriminator).any()
    game.zero_grad(set_to_none=True)
    last.total_loss.backward()
    assert all(p.grad is None and p.requires_grad for p in game.discriminator.parameters())
    assert gradient(game.encoder).any()
    assert gradient(game.predictor).any()


def test_the_encoder_climbs_what_the_discriminator_goes_down():
    game = some_game(lambda_d=2.0, ceiling=False)
    *_, last = game.moves(SOURCE, EVERYONE)
    last.losses["encoder"].backward()
    pushed = gradient(game.encoder)
    game.zero_grad(set_to_none=True)
    z = game.encoder(torch.cat([SOURCE.x, ROWS.x[TARGET]]))
    side = torch.arange(len(z)) >= len(SOURCE)
    game.discriminator.loss(z, side).backward()
    assert torch.allclose(pushed, -2.0 * gradient(game.encoder), atol=1e-6)
    assert pushed.abs().max() > 1e-4


def test_a_step_of_the_encoder_makes_the_sides_harder_to_tell_apart():
    game = some_game(ceiling=False)
    before = sum(sides_by_hand(game))
    *_, last = game.moves(SOURCE, EVERYONE)
    last.losses["encoder"].backward()
    squared = gradient(game.encoder).square().sum()
    with torch.no_grad():
        for parameter in game.encoder.parameters():
            parameter.sub_(1e-3 * parameter.grad)
    gained = (sum(sides_by_hand(game)) - before) / 2
    assert gained.item() == pytest.approx(1e-3 * squared.item(), rel=0.05)


def test_the_predictor_gets_the_gradient_of_source_only():
    game = some_game(ceiling=False)
    *_, last = game.moves(SOURCE, EVERYONE)
    last.total_loss.backward()
    other = some_game()
    alone = SourceOnly(other.encoder, other.predictor, Line(), index_in_encoder=False)
    (move,) = alone.moves(SOURCE, EVERYONE)
    move.total_loss.backward()
    assert torch.allclose(gradient(game.predictor), gradient(alone.predictor), atol=1e-7)


# --- the ceiling ------------------------------------------------------------------------------


def telling(game, right):
    """A discriminator that tells the sides apart, the right way round or the wrong one."""
    with torch.no_grad():
        z_source, z_target = game.encoder(SOURCE.x), game.encoder(ROWS.x[TARGET])
        head = nn.Linear(3, 1)
        apart = z_target.mean(0) - z_source.mean(0)
        head.weight.copy_((1.0 if right else -10.0) * apart[None])
        head.bias.copy_(-head.weight[0] @ (z_source.mean(0) + z_target.mean(0)) / 2)
    game.discriminator.network = head


@pytest.mark.parametrize(("ceiling", "moved"), [(True, False), (False, True)])
def test_above_log_two_only_a_game_without_the_ceiling_moves_the_encoder(ceiling, moved):
    game = some_game(ceiling=ceiling)
    telling(game, right=False)
    *_, last = game.moves(SOURCE, EVERYONE)
    assert last.metrics["discriminator"] > math.log(2)
    assert last.ceilings["discriminator"].item() == pytest.approx(math.log(2))
    last.losses["encoder"].backward()
    assert bool(gradient(game.encoder).any()) == moved


def test_below_log_two_the_ceiling_changes_nothing():
    gradients = []
    for ceiling in (True, False):
        game = some_game(ceiling=ceiling)
        telling(game, right=True)
        *_, last = game.moves(SOURCE, EVERYONE)
        assert last.metrics["discriminator"] < math.log(2)
        last.total_loss.backward()
        gradients.append(gradient(game.encoder))
    assert torch.equal(*gradients)
    assert gradients[0].abs().max() > 1e-4


def test_a_discriminator_that_says_the_same_everywhere_is_at_the_ceiling_at_best():
    game = some_game()
    for bias in (-2.0, 0.0, 1.0):
        head = nn.Linear(3, 1)
        nn.init.zeros_(head.weight)
        nn.init.constant_(head.bias, bias)
        game.discriminator.network = head
        value = next(iter(game.moves(SOURCE, EVERYONE))).total_loss.item()
        expected = (math.log1p(math.exp(bias)) + math.log1p(math.exp(-bias))) / 2
        assert value == pytest.approx(expected, rel=1e-6)
        assert value >= math.log(2) - 1e-6


# --- edges ------------------------------------------------------------------------------------


def test_a_batch_without_target_rows_is_a_round_of_source_only():
    game = some_game()
    (move,) = game.moves(SOURCE, SOURCE)
    assert move.player == "encoder"
    assert list(move.losses) == ["predictor"]
    assert list(move.metrics) == ["prediction"]
    assert not move.ceilings
    move.total_loss.backward()
    assert all(p.grad is None for p in game.discriminator.parameters())


def test_the_discriminator_is_assembled_with_the_capacity_of_the_head_and_one_output():
    parts = GameParts(
        nn.Linear(2, 3), nn.Linear(3, 2), Line(), ROWS.u, 3, 2, L2(hidden=(5,)), lambda_d=7.0
    )
    game = DANN.assemble(parts)
    linear = [m for m in game.discriminator.modules() if isinstance(m, nn.Linear)]
    assert [(m.in_features, m.out_features) for m in linear] == [(3, 5), (5, 1)]
    assert game.lambda_d == 7.0
    assert set(game.player_parameters()) == {"discriminator", "encoder"}


def test_an_estimator_plays_it_by_name_and_tells_its_ceiling():
    world = make_circle(n_domains=6, n_per_domain=12, n_source_domains=2)
    model = CIDAClassifier(game="dann", steps=5, random_state=0)
    model.fit(world.x, world.training_labels, domain_index=world.u)
    assert type(model.game_) is DANN
    assert model.history_[-1].ceilings["discriminator"] == pytest.approx(math.log(2))
