"""MDD: the disparity by hand, its ceiling, and whom it moves."""

import math

import pytest
import torch
from scipy.optimize import minimize_scalar
from torch import nn

from cida.data import IndexedDataset
from cida.discriminators import L2
from cida.games import MDD, GameParts, cross_entropy, squared_error
from cida.games.mdd import margin_disparity
from cida.networks import MLP, PlainEncoder
from cida.spaces import Line
from cida.training import seeded

LOG = math.log


def some_rows(count=24):
    generator = torch.Generator().manual_seed(0)
    u = torch.linspace(0, 1, count, dtype=torch.float64)
    x = torch.randn(count, 2, generator=generator)
    return IndexedDataset(x, (x[:, 0] > 0).long(), u, u < 0.5)


ROWS = some_rows()
SOURCE, EVERYONE = ROWS[ROWS.source_rows], ROWS[torch.arange(len(ROWS))]


def some_game(margin_factor=MDD.margin_factor, **settings):
    with seeded(0):
        encoder, auxiliary = PlainEncoder(2, (8,), 3), MLP(3, (8,), 2)
        settings["index_in_encoder"] = False
        game = MDD(encoder, MLP(3, (), 2), auxiliary, Line(), **settings)
    game.margin_factor = margin_factor
    return game


def constant(game, chance, said):
    """The auxiliary gives this chance to what F says of every row; F is made to say one class."""
    for network, gap in ((game.discriminator, LOG(chance / (1 - chance))), (game.predictor, 9.0)):
        last = network[-1]
        nn.init.zeros_(last.weight)
        last.bias.data = torch.tensor([0.0, gap] if said else [gap, 0.0])


def last_move(game, everyone=EVERYONE):
    return list(game.moves(SOURCE, everyone))[-1]


def gradients(loss, module):
    return torch.autograd.grad(loss, list(module.parameters()), retain_graph=True)


def logits(*chances):
    return torch.tensor([[LOG(p) for p in row] for row in chances])


def test_the_disparity_of_two_classes_by_hand():
    source, target = logits((0.8, 0.2), (0.3, 0.7)), logits((0.6, 0.4))
    value = margin_disparity(source, torch.tensor([0, 0]), target, torch.tensor([1]), 4.0)
    assert value.item() == pytest.approx(-4 * (LOG(0.8) + LOG(0.3)) / 2 - LOG(1 - 0.4))


def test_the_disparity_of_three_classes_by_hand():
    source, target = logits((0.5, 0.2, 0.3)), logits((0.1, 0.2, 0.7), (0.25, 0.25, 0.5))
    value = margin_disparity(source, torch.tensor([2]), target, torch.tensor([1, 2]), 2.0)
    assert value.item() == pytest.approx(-2 * LOG(0.3) - (LOG(1 - 0.2) + LOG(1 - 0.5)) / 2)


def test_a_shift_of_the_logits_changes_no_disparity():
    said = torch.tensor([0, 2])
    source, target = torch.randn(2, 2, 3, generator=torch.Generator().manual_seed(1))
    shifted = margin_disparity(source + 7, said, target - 5, said, 4.0)
    assert shifted.item() == pytest.approx(margin_disparity(source, said, target, said, 4.0).item())


def test_very_large_logits_stay_finite_with_their_gradients():
    source = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    target = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    value = margin_disparity(source, torch.tensor([1]), target, torch.tensor([0]), 4.0)
    assert value.item() == pytest.approx(4 * 2e4 + 1e4)
    value.backward()
    assert source.grad.tolist() == [[4.0, -4.0, 0.0]]
    assert target.grad.tolist() == [[1.0, 0.0, -1.0]]


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0, 4.0])
def test_the_ceiling_is_the_least_disparity_of_a_constant_belief(gamma):
    highest = some_game(margin_factor=gamma).disparity_ceiling
    least = minimize_scalar(
        lambda p: -gamma * LOG(p) - LOG(1 - p), bounds=(1e-6, 1 - 1e-6), method="bounded"
    )
    assert highest == pytest.approx(least.fun, abs=1e-6)
    assert highest == pytest.approx((1 + gamma) * LOG(1 + gamma) - gamma * LOG(gamma))
    assert least.x == pytest.approx(gamma / (1 + gamma), abs=1e-3)


@pytest.mark.parametrize("said", [0, 1])
def test_an_auxiliary_at_the_best_constant_is_at_the_ceiling(said):
    game = some_game()
    constant(game, 0.8, said)  # gamma = 4
    move = last_move(game)
    assert move.metrics["discriminator"].item() == pytest.approx(game.disparity_ceiling, rel=1e-5)
    assert move.ceilings["discriminator"].item() == pytest.approx(game.disparity_ceiling)


def test_the_losses_of_the_encoders_move_by_hand():
    game = some_game(lambda_d=3.0, ceiling=False, margin_factor=2.0)
    move = last_move(game)
    z = game.encode(ROWS.x, ROWS.u)
    said = game.predictor(z).argmax(1)
    chance = game.discriminator(z).softmax(1).gather(1, said[:, None])[:, 0]
    near, far = chance[ROWS.labelled], chance[~ROWS.labelled]
    value = -2 * near.log().mean() - (1 - far).log().mean()
    prediction = nn.functional.cross_entropy(game.predictor(z)[ROWS.labelled], SOURCE.y)
    assert move.losses["predictor"].item() == pytest.approx(prediction.item(), rel=1e-5)
    assert move.losses["encoder"].item() == pytest.approx(-3 * value.item(), rel=1e-5)


def test_above_the_ceiling_the_encoder_takes_no_adversarial_gradient():
    game = some_game()
    game.discriminator[-1].weight.data *= 50
    move = last_move(game)
    assert move.metrics["discriminator"] > game.disparity_ceiling
    assert all(not g.any() for g in gradients(move.losses["encoder"], game.encoder))
    free = last_move(some_game(ceiling=False))
    assert free.losses["encoder"].item() == pytest.approx(-free.metrics["discriminator"].item())


def make_it_better_than_blind(game, steps=150):
    optimiser = torch.optim.Adam(game.discriminator.parameters(), 3e-2)
    for _ in range(steps):
        optimiser.zero_grad()
        next(game.moves(SOURCE, EVERYONE)).total_loss.backward()
        optimiser.step()


def test_below_the_ceiling_the_encoder_feels_the_auxiliary():
    game = some_game()
    make_it_better_than_blind(game)
    move = last_move(game)
    assert move.metrics["discriminator"] < game.disparity_ceiling
    assert max(g.abs().max() for g in gradients(move.losses["encoder"], game.encoder)) > 1e-4


def test_the_auxiliarys_move_gives_the_others_no_gradient():
    game = some_game()
    move = next(game.moves(SOURCE, EVERYONE))
    assert move.player == "discriminator"
    move.total_loss.backward()
    assert all(p.grad is None for m in (game.encoder, game.predictor) for p in m.parameters())
    assert all(p.grad is not None for p in game.discriminator.parameters())


def test_the_encoders_move_gives_the_auxiliary_no_gradient():
    game = some_game(ceiling=False)
    last_move(game).total_loss.backward()
    assert all(p.grad is None and p.requires_grad for p in game.discriminator.parameters())
    assert all(p.grad is not None for m in (game.encoder, game.predictor) for p in m.parameters())


def test_the_adversarial_loss_gives_the_predictor_no_gradient():
    game = some_game(ceiling=False)
    last_move(game).losses["encoder"].backward()
    assert all(p.grad is None for p in game.predictor.parameters())


def test_a_batch_without_target_rows_leaves_the_prediction_loss_alone():
    (move,) = some_game().moves(SOURCE, SOURCE)
    assert move.player == "encoder"
    assert list(move.losses) == ["predictor"]


def parts(**changes):
    players = (nn.Linear(2, 3), nn.Linear(3, 2), Line(), ROWS.u, 3, 2, L2(hidden=(5,)))
    return GameParts(*players, **changes)


def test_a_regression_is_refused_by_name():
    with pytest.raises(ValueError, match=r"game is 'mdd'.*regression.*choose another game"):
        MDD.assemble(parts(prediction_loss=squared_error))


def test_the_auxiliary_has_the_discriminators_capacity_and_one_output_a_class():
    game = MDD.assemble(parts(prediction_loss=cross_entropy))
    linear = [m for m in game.discriminator.modules() if isinstance(m, nn.Linear)]
    assert [(m.in_features, m.out_features) for m in linear] == [(3, 5), (5, 2)]
