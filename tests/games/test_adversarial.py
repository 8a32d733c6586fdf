"""The adversarial game: the ceiling's gate, lambda_d, the order of moves."""

import pytest
import torch
from torch import nn

from cida.data import Batch, IndexedDataset
from cida.discriminators import L2, Gaussian, Histogram, Mixture
from cida.games import Adversarial, SourceOnly, cross_entropy, squared_error
from cida.games.base import freeze
from cida.networks import MLP, IndexedEncoder, PlainEncoder
from cida.spaces import Line, Periodic
from cida.training import seeded

HEADS = {"l2": L2, "gaussian": Gaussian, "mixture": Mixture, "histogram": Histogram}
heads = pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)


def some_batch(rows, seed, low=-1.0, high=1.0):
    generator = torch.Generator().manual_seed(seed)
    u = low + (high - low) * torch.rand(rows, 1, generator=generator, dtype=torch.float64)
    return Batch(
        x=torch.randn(rows, 3, generator=generator),
        y=torch.randint(2, (rows,), generator=generator),
        u=u,
        labelled=torch.ones(rows, dtype=torch.bool),
        weight=torch.ones(rows),
        row_ids=torch.arange(rows),
    )


SOURCE, EVERYONE = some_batch(16, 0, high=0.0), some_batch(48, 1)


def some_game(make=L2, index_in_encoder=True, **settings):
    space = Line().fit(EVERYONE.u)
    settings["index_in_encoder"] = index_in_encoder
    with seeded(0):
        if index_in_encoder:
            encoder = IndexedEncoder(3, 1, (16, 16), 4)
        else:
            encoder = PlainEncoder(3, (16, 16), 4)
        discriminator = make(hidden=(16,)).build(4, space, EVERYONE.u)
        return Adversarial(encoder, MLP(4, (8,), 2), discriminator, space, **settings)


def value(game, z):
    return game.discriminator.loss(game.discriminator(z), EVERYONE.u).mean()


def bias_of_the_head(game):
    """Shifting it makes D's every belief as wrong as we like, whatever z is."""
    return game.discriminator.head.bias.data


def make_it_worse_than_blind(game):
    # Random in place of equal shifts: a histogram's softmax would not feel an equal one.
    generator = torch.Generator().manual_seed(3)
    bias = bias_of_the_head(game)
    bias += 30 * torch.randn(bias.shape, generator=generator)


def make_it_better_than_blind(game, steps=150):
    """Trains D on fixed encodings from which u can be read."""
    optimiser = torch.optim.Adam(game.discriminator.parameters(), 1e-2)
    with torch.no_grad():
        z = game.encode(EVERYONE.x, EVERYONE.u)
    for _ in range(steps):
        optimiser.zero_grad()
        value(game, z).backward()
        optimiser.step()
    game.zero_grad(set_to_none=True)


def adversarial_gradient(game):
    """The gradient that reaches the encoder from the discriminator alone."""
    *_, move = game.moves(SOURCE, EVERYONE)
    game.zero_grad(set_to_none=True)
    move.losses["encoder"].backward()
    gradient = [p.grad for p in game.encoder.parameters() if p.grad is not None]
    return move, torch.cat([g.flatten() for g in gradient])


@heads
def test_above_the_ceiling_the_encoder_takes_no_adversarial_gradient(make):
    game = some_game(make)
    make_it_worse_than_blind(game)
    move, gradient = adversarial_gradient(game)
    assert move.metrics["discriminator"] > move.ceilings["discriminator"]
    assert torch.equal(gradient, torch.zeros_like(gradient))


@heads
def test_below_the_ceiling_the_encoder_feels_the_discriminator(make):
    game = some_game(make)
    make_it_better_than_blind(game)
    move, gradient = adversarial_gradient(game)
    assert move.metrics["discriminator"] < move.ceilings["discriminator"]
    assert gradient.abs().max() > 1e-4


@heads
def test_without_the_ceiling_the_gradient_always_passes(make):
    game = some_game(make, ceiling=False)
    make_it_worse_than_blind(game)
    move, gradient = adversarial_gradient(game)
    assert move.metrics["discriminator"] > move.ceilings["discriminator"]
    assert gradient.abs().max() > 1e-4


@heads
def test_below_the_ceiling_it_changes_nothing(make):
    gradients = []
    for ceiling in (True, False):
        game = some_game(make, ceiling=ceiling)
        make_it_better_than_blind(game)
        gradients.append(adversarial_gradient(game)[1])
    assert torch.equal(*gradients)


def enter(game, u, weights):
    """A stage in which rows of this index are active, among others that are not."""
    count = len(u)
    table = torch.cat([torch.full_like(u, 1e3), u])
    rows = IndexedDataset(
        torch.zeros(2 * count, 3), torch.zeros(2 * count).long(), table, table[:, 0] < 0
    )
    game.enter_stage(rows, torch.arange(count, 2 * count), weights)


def test_the_ceiling_of_a_batch_is_the_blind_belief_of_the_stage_scored_on_its_rows():
    game = some_game(L2)
    stage = torch.linspace(-1, 3, 101, dtype=torch.float64)[:, None]
    enter(game, stage, torch.ones(101))
    *_, move = game.moves(SOURCE, EVERYONE)
    coordinates = game.space.metric_coordinates(EVERYONE.u)
    mean = game.space.metric_coordinates(stage).mean()
    expected = (coordinates - mean).square().mean().item()
    assert move.ceilings["discriminator"].item() == pytest.approx(expected, rel=1e-5)


def test_the_stages_weights_reach_the_ceiling():
    game = some_game(L2)
    u = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    enter(game, u, torch.tensor([3.0, 1.0]))
    assert game.discriminator.blind.item() == pytest.approx(
        game.space.metric_coordinates(torch.tensor(0.25)).item(), rel=1e-5
    )


@heads
def test_the_discriminators_move_gives_the_encoder_no_gradient(make):
    game = some_game(make)
    move = next(game.moves(SOURCE, EVERYONE))
    assert move.player == "discriminator"
    move.total_loss.backward()
    others = [*game.encoder.parameters(), *game.predictor.parameters()]
    assert all(p.grad is None for p in others)
    assert all(p.grad is not None for p in game.discriminator.parameters())


@heads
def test_the_encoders_move_gives_the_discriminator_no_gradient(make):
    game = some_game(make)
    make_it_better_than_blind(game)
    *_, move = game.moves(SOURCE, EVERYONE)
    assert move.player == "encoder"
    move.total_loss.backward()
    assert all(p.grad is None for p in game.discriminator.parameters())
    assert all(p.requires_grad for p in game.discriminator.parameters())
    assert all(p.grad is not None for p in game.predictor.parameters())


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_discriminator_moves_as_often_as_asked_then_the_encoder_once(steps):
    game = some_game(discriminator_steps=steps)
    players = [move.player for move in game.moves(SOURCE, EVERYONE)]
    assert players == ["discriminator"] * steps + ["encoder"]


def test_the_encoder_answers_the_discriminator_as_it_is_after_its_moves():
    game = some_game(discriminator_steps=1)
    moves = game.moves(SOURCE, EVERYONE)
    before = next(moves).total_loss.item()
    with torch.no_grad():
        bias_of_the_head(game).add_(1.0)
    answered = next(moves).metrics["discriminator"].item()
    assert answered != pytest.approx(before)
    z = game.encode(EVERYONE.x, EVERYONE.u)
    assert answered == pytest.approx(value(game, z).item(), rel=1e-6)


def test_the_losses_of_the_encoders_move_are_those_of_equation_1():
    game = some_game(lambda_d=3.0, ceiling=False)
    *_, move = game.moves(SOURCE, EVERYONE)
    output = game.predict(SOURCE.x, SOURCE.u)
    prediction = nn.functional.cross_entropy(output, SOURCE.y)
    beliefs = game.discriminator(game.encode(EVERYONE.x, EVERYONE.u))
    value = (beliefs - game.space.embed(EVERYONE.u)).square().mean()
    assert move.losses["predictor"].item() == pytest.approx(prediction.item(), rel=1e-5)
    assert move.losses["encoder"].item() == pytest.approx(-3 * value.item(), rel=1e-5)
    assert move.total_loss.item() == pytest.approx((prediction - 3 * value).item(), rel=1e-5)


def test_prediction_weights_count_in_the_prediction_alone():
    game = some_game(ceiling=False)
    weight = torch.rand(16, generator=torch.Generator().manual_seed(5))
    source = Batch(SOURCE.x, SOURCE.y, SOURCE.u, SOURCE.labelled, weight, SOURCE.row_ids)
    *_, move = game.moves(source, EVERYONE)
    *_, plain = game.moves(SOURCE, EVERYONE)
    losses = cross_entropy(game.predict(SOURCE.x, SOURCE.u), SOURCE.y)
    assert move.losses["predictor"].item() == pytest.approx((weight * losses).mean().item())
    assert torch.equal(move.losses["encoder"], plain.losses["encoder"])


def test_an_encoder_without_the_index_does_not_depend_on_it():
    game = some_game(index_in_encoder=False)
    assert torch.equal(game.encode(EVERYONE.x, EVERYONE.u), game.encode(EVERYONE.x, -EVERYONE.u))


def test_an_indexed_encoder_starts_blind_to_the_index_but_can_learn_to_use_it():
    game = some_game()
    z = game.encode(EVERYONE.x, EVERYONE.u)
    assert torch.equal(z, game.encode(EVERYONE.x, -EVERYONE.u))
    z.square().sum().backward()
    assert game.encoder.from_u[-1].weight.grad.abs().max() > 0


def test_a_periodic_index_reaches_the_encoder_without_a_seam():
    encoder = IndexedEncoder(3, 2, (16,), 4)
    nn.init.normal_(encoder.from_u[-1].weight)
    game = SourceOnly(encoder, nn.Linear(4, 2), Periodic(24.0))
    hour = torch.full((48, 1), 23.0, dtype=torch.float64)
    assert torch.allclose(game.encode(EVERYONE.x, hour), game.encode(EVERYONE.x, hour - 24))


def test_source_only_has_one_player_and_never_looks_at_the_target():
    game = SourceOnly(PlainEncoder(3, (8,), 4), nn.Linear(4, 2), Line(), index_in_encoder=False)
    first, *rest = game.moves(SOURCE, EVERYONE)
    assert not rest
    assert list(game.player_parameters()) == [first.player] == ["encoder"]
    other = next(game.moves(SOURCE, some_batch(48, 9)))
    assert torch.equal(first.total_loss, other.total_loss)


def test_each_parameter_belongs_to_exactly_one_player():
    game = some_game()
    owned = [p for parameters in game.player_parameters().values() for p in parameters]
    assert {id(p) for p in owned} == {id(p) for p in game.parameters()}
    assert len(owned) == len(list(game.parameters()))


def test_squared_error_is_summed_over_outputs():
    output = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    assert squared_error(output, torch.tensor([[0.0, 4.0], [3.0, 0.0]])).tolist() == [5.0, 9.0]


def test_frozen_gives_requires_grad_back_as_it_was_even_after_an_error():
    module = nn.Linear(2, 2)
    module.bias.requires_grad_(False)
    seen = []

    def fail_inside():
        with freeze(module):
            seen.extend(p.requires_grad for p in module.parameters())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_inside()
    assert seen == [False, False]
    assert module.weight.requires_grad
    assert not module.bias.requires_grad
