"""ADDA: the half on the source, and the half that teaches the target's encoder."""

import math

import pytest
import torch
from torch import nn

from cida.data import IndexedDataset
from cida.discriminators import L2
from cida.games import ADDA, GameParts, SourceOnly
from cida.games.binary_domain import BinaryDomainClassifier
from cida.networks import MLP, PlainEncoder
from cida.spaces import Line
from cida.training import Trainer, TrainingConfig, seeded


def some_rows(count=30):
    generator = torch.Generator().manual_seed(0)
    u = torch.linspace(0, 1, count, dtype=torch.float64)
    x = torch.randn(count, 2, generator=generator) + 3 * u[:, None].float()
    return IndexedDataset(x, (x[:, 0] > x[:, 1]).long(), u, u < 0.4)


ROWS = some_rows()
SOURCE, EVERYONE = ROWS[ROWS.source_rows], ROWS[torch.arange(len(ROWS))]
TARGET = ~ROWS.labelled


def some_players():
    with seeded(0):
        return PlainEncoder(2, (8,), 3), MLP(3, (), 2), BinaryDomainClassifier(MLP(3, (8,), 1))


def some_game(**settings):
    return ADDA(*some_players(), Line(), index_in_encoder=False, **settings)


def half_way(**settings):
    game = some_game(**settings)
    game.set_progress(0.5)
    return game


def step(move, parameters, rate=0.1):
    optimiser = torch.optim.SGD(parameters, rate)
    optimiser.zero_grad()
    move.total_loss.backward()
    optimiser.step()


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize("done", [0.0, 0.25, 0.499])
def test_before_half_way_it_is_source_only(done):
    game = some_game()
    game.set_progress(done)
    encoder, predictor, _ = some_players()
    alone = SourceOnly(encoder, predictor, Line(), index_in_encoder=False)
    (mine,), (other,) = game.moves(SOURCE, EVERYONE), alone.moves(SOURCE, EVERYONE)
    assert mine.player == other.player
    assert mine.losses.keys() == other.losses.keys()
    assert torch.equal(mine.total_loss, other.total_loss)
    mine.total_loss.backward()
    other.total_loss.backward()
    for a, b in zip(game.encoder.parameters(), alone.encoder.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)
    assert all(p.grad is None for p in game.discriminator.parameters())


def test_the_first_half_of_a_run_ends_with_the_weights_of_source_only():
    settings = {"batch_size": 16, "source_batch_size": 8, "n_balance_bins": 4, "ema_decay": 0.0}
    constant = {"schedule": "constant", "learning_rate": 0.01, **settings}
    game = some_game()
    Trainer(TrainingConfig(steps=10, **constant)).run(game, ROWS)
    encoder, predictor, _ = some_players()
    alone = SourceOnly(encoder, predictor, Line(), index_in_encoder=False)
    Trainer(TrainingConfig(steps=5, **constant)).run(alone, ROWS)
    assert torch.equal(weights(game.source_encoder), weights(alone.encoder))
    assert torch.equal(weights(game.predictor), weights(alone.predictor))
    assert not torch.equal(weights(game.encoder), weights(alone.encoder))


def test_from_half_way_on_the_source_encoder_is_a_copy_that_stands_still():
    game = half_way(ceiling=False)
    before, said = weights(game.encoder), weights(game.predictor)
    assert torch.equal(weights(game.source_encoder), before)
    assert not any(p.requires_grad for p in game.source_encoder.parameters())
    assert not game.source_encoder.training
    for done in (0.5, 0.7, 0.9):
        game.set_progress(done)
        for move in game.moves(SOURCE, EVERYONE):
            step(move, game.player_parameters()[move.player])
    assert torch.equal(weights(game.source_encoder), before)
    assert not torch.equal(weights(game.encoder), before)
    assert torch.equal(weights(game.predictor), said)


def test_from_half_way_on_the_predictor_gets_no_gradient():
    game = half_way(ceiling=False)
    for move in game.moves(SOURCE, EVERYONE):
        move.total_loss.backward()
    assert all(p.grad is None for p in game.predictor.parameters())
    assert all(p.grad is not None for p in game.encoder.parameters())


def test_the_players_take_turns():
    moves = list(half_way(discriminator_steps=3).moves(SOURCE, EVERYONE))
    assert [move.player for move in moves] == ["discriminator"] * 3 + ["encoder"]


def test_the_losses_by_hand_with_inverted_labels_for_the_encoder():
    game = half_way(lambda_d=3.0, ceiling=False)
    with torch.no_grad():
        for parameter in game.encoder.parameters():
            parameter.add_(0.1)  # E is not E_s any more
    first, *_, last = game.moves(SOURCE, EVERYONE)
    with torch.no_grad():
        near = game.discriminator(game.source_encoder(SOURCE.x))
        far = game.discriminator(game.encoder(ROWS.x[TARGET]))
    sides = -(1 - torch.sigmoid(near)).log().mean(), -torch.sigmoid(far).log().mean()
    assert first.total_loss.item() == pytest.approx(sum(sides).item() / 2, rel=1e-5)
    assert last.metrics["discriminator"].item() == pytest.approx(first.total_loss.item(), rel=1e-5)
    inverted = torch.log1p(far.exp()).mean().item()
    assert last.losses["encoder"].item() == pytest.approx(3 * inverted, rel=1e-5)
    said = game.predictor(game.source_encoder(SOURCE.x))
    loss = nn.functional.cross_entropy(said, SOURCE.y).item()
    assert last.metrics["prediction"].item() == pytest.approx(loss, rel=1e-5)


def test_the_discriminators_move_gives_the_encoder_no_gradient_nor_the_other_way_round():
    game = half_way(ceiling=False)
    first, *_, last = game.moves(SOURCE, EVERYONE)
    first.total_loss.backward()
    assert all(p.grad is None for p in game.encoder.parameters())
    game.zero_grad(set_to_none=True)
    last.total_loss.backward()
    assert all(p.grad is None and p.requires_grad for p in game.discriminator.parameters())


def wrong_way_round(game):
    """The discriminator's odds, turned: it takes most source rows for target rows."""
    with torch.no_grad():
        z_source, z_target = game.encoder(SOURCE.x), game.encoder(ROWS.x[TARGET])
        head = nn.Linear(3, 1)
        head.weight.copy_(10 * (z_source.mean(0) - z_target.mean(0))[None])
        head.bias.copy_(-head.weight[0] @ (z_source.mean(0) + z_target.mean(0)) / 2)
    game.discriminator.network = head


@pytest.mark.parametrize(("ceiling", "moved"), [(True, False), (False, True)])
def test_above_log_two_only_a_game_without_the_ceiling_moves_the_encoder(ceiling, moved):
    game = half_way(ceiling=ceiling)
    wrong_way_round(game)
    *_, last = game.moves(SOURCE, EVERYONE)
    assert last.metrics["discriminator"] > math.log(2)
    assert last.ceilings["discriminator"].item() == pytest.approx(math.log(2))
    last.total_loss.backward()
    assert any(bool(p.grad.any()) for p in game.encoder.parameters()) == moved


def test_below_log_two_the_ceiling_changes_nothing():
    gradients = []
    for ceiling in (True, False):
        game = half_way(ceiling=ceiling)
        wrong_way_round(game)
        with torch.no_grad():
            for parameter in game.discriminator.parameters():
                parameter.neg_()
        *_, last = game.moves(SOURCE, EVERYONE)
        assert last.metrics["discriminator"] < math.log(2)
        last.total_loss.backward()
        gradients.append(torch.cat([p.grad.flatten() for p in game.encoder.parameters()]))
    assert torch.equal(*gradients)
    assert gradients[0].abs().max() > 1e-4


def test_a_batch_without_target_rows_deals_no_moves():
    assert list(half_way().moves(SOURCE, SOURCE)) == []


def test_the_discriminator_is_assembled_with_the_capacity_of_the_head_and_one_output():
    parts = GameParts(nn.Linear(2, 3), nn.Linear(3, 2), Line(), ROWS.u, 3, 2, L2(hidden=(5,)))
    game = ADDA.assemble(parts)
    linear = [m for m in game.discriminator.modules() if isinstance(m, nn.Linear)]
    assert [(m.in_features, m.out_features) for m in linear] == [(3, 5), (5, 1)]
