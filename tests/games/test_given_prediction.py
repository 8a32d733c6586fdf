"""The game given the prediction: what the two beliefs see, and what the encoder may keep."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from cida.data import IndexedDataset
from cida.discriminators import L2, Gaussian, Histogram
from cida.games import Adversarial, GameParts, GivenPrediction, squared_error
from cida.networks import PlainEncoder
from cida.spaces import Line
from cida.training import seeded


class Spy(nn.Module):
    """A body that keeps what it is given."""

    def __init__(self, inputs):
        super().__init__()
        self.layer = nn.Linear(inputs, 6)
        self.output_width = 6
        self.seen = []

    def forward(self, evidence):
        self.seen.append(evidence.detach().clone())
        return torch.tanh(self.layer(evidence))


def some_rows(count=20, regression=False):
    generator = torch.Generator().manual_seed(0)
    u = torch.linspace(0, 1, count, dtype=torch.float64)
    x = torch.randn(count, 2, generator=generator)
    y = x[:, :1] if regression else (x[:, 0] > 0).long()
    return IndexedDataset(x, y, u, u < 0.5)


def some_game(rows, head=L2, outputs=3, **settings):
    with seeded(0):
        players = PlainEncoder(2, (8,), 4), nn.Linear(4, outputs), Line().fit(rows.u)
        made = head(body=Spy(4 + outputs))
        parts = GameParts(*players, rows.u, 4, outputs, made, index_in_encoder=False)
        return GivenPrediction.assemble(replace(parts, **settings))


def dealt(game, rows):
    return list(game.moves(rows[rows.source_rows], rows[torch.arange(len(rows))]))


# --- what is seen ---------------------------------------------------------------------------------


def test_one_belief_sees_the_encoding_and_the_class_the_other_the_class_alone():
    rows = some_rows()
    game = some_game(rows)
    dealt(game, rows)
    z = game.encode(rows.x, rows.u).detach()
    winners = torch.zeros(len(rows), 3)
    winners[torch.arange(len(rows)), game.predictor(z).argmax(1)] = 1
    assert len(winners.unique(dim=0)) > 1
    heads = game.discriminator
    assert len(heads.beyond.body.seen) == len(heads.reference.body.seen) == 3
    for seen in heads.beyond.body.seen:
        assert torch.allclose(seen, torch.cat([z, winners], dim=1), atol=1e-6)
    for seen in heads.reference.body.seen:
        assert torch.equal(seen, torch.cat([torch.zeros_like(z), winners], dim=1))


def test_in_a_regression_they_see_the_predicted_number():
    rows = some_rows(regression=True)
    game = some_game(rows, outputs=1, prediction_loss=squared_error)
    dealt(game, rows)
    said = game.predictor(game.encode(rows.x, rows.u)).detach()
    for seen in game.discriminator.reference.body.seen:
        assert torch.allclose(seen[:, 4:], said, atol=1e-6)


def test_the_prediction_is_made_at_rest_and_moves_no_statistics():
    rows = some_rows()
    game = some_game(rows)
    game.predictor = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3))
    game.train()
    z = game.encode(rows.x, rows.u)
    before = game.predictor[0].running_mean.clone()
    assert not game.predicted_labels(z, rows[torch.arange(20)]).requires_grad
    assert torch.equal(before, game.predictor[0].running_mean)
    assert game.predictor.training


# --- the losses -----------------------------------------------------------------------------------


def by_hand(game, rows):
    z = game.encode(rows.x, rows.u)
    said = nn.functional.one_hot(game.predictor(z).argmax(1), 3).float()
    u = game.space.embed(rows.u).float()
    heads = game.discriminator
    before = heads.reference(torch.cat([0 * z.detach(), said], dim=1))
    after = before.detach() + heads.beyond(torch.cat([z, said], dim=1))
    return (after - u).square().mean(), (before - u).square().mean()


def test_the_losses_by_hand():
    rows = some_rows()
    game = some_game(rows, lambda_d=3.0, ceiling=False)
    *guesses, answer = dealt(game, rows)
    value, reference = (v.item() for v in by_hand(game, rows))
    for guess in guesses:
        assert guess.player == "discriminator"
        assert guess.losses["discriminator"].item() == pytest.approx(value, rel=1e-5)
        assert guess.losses["reference"].item() == pytest.approx(reference, rel=1e-5)
    assert answer.losses["encoder"].item() == pytest.approx(-3 * value, rel=1e-5)
    assert answer.metrics["discriminator"].item() == pytest.approx(value, rel=1e-5)
    assert answer.ceilings["discriminator"].item() == pytest.approx(reference, rel=1e-5)


def test_each_belief_learns_from_its_own_loss_alone():
    rows = some_rows()
    game = some_game(rows)
    move = dealt(game, rows)[0]
    heads = game.discriminator
    mine, twins = list(heads.beyond.parameters()), list(heads.reference.parameters())
    for name, learns, rests in (("discriminator", mine, twins), ("reference", twins, mine)):
        game.zero_grad(set_to_none=True)
        move.losses[name].backward(retain_graph=True)
        assert all(p.grad is not None for p in learns)
        assert all(p.grad is None for p in rests)
    others = [*game.encoder.parameters(), *game.predictor.parameters()]
    assert all(p.grad is None for p in others)
    assert {id(p) for p in game.player_parameters()["discriminator"]} == {
        id(p) for p in (*mine, *twins)
    }


def test_the_encoder_feels_the_belief_beyond_the_prediction_and_nothing_through_it():
    rows = some_rows()
    game = some_game(rows, ceiling=False)
    *_, answer = dealt(game, rows)
    parameters = list(game.encoder.parameters())
    got = torch.autograd.grad(answer.losses["encoder"], parameters, retain_graph=True)
    expected = torch.autograd.grad(-by_hand(game, rows)[0], parameters)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(got, expected, strict=True))
    game.zero_grad(set_to_none=True)
    answer.losses["encoder"].backward()
    others = [*game.predictor.parameters(), *game.discriminator.parameters()]
    assert all(p.grad is None for p in others)


@pytest.mark.parametrize("shift", [-5.0, 5.0])
def test_above_the_loss_of_the_reference_the_encoder_rests(shift):
    rows = some_rows()
    game = some_game(rows)
    worse = game.discriminator.beyond if shift > 0 else game.discriminator.reference
    with torch.no_grad():
        worse.head.bias += 5.0
        if shift < 0:  # what z adds takes the mistake of the reference back
            game.discriminator.beyond.head.bias -= 5.0
    *_, answer = dealt(game, rows)
    parameters = list(game.encoder.parameters())
    gradients = torch.autograd.grad(answer.losses["encoder"], parameters)
    assert (max(float(g.abs().max()) for g in gradients) == 0) == (shift > 0)


def test_the_blind_beliefs_follow_the_active_rows():
    rows = some_rows()
    game = some_game(rows)
    active = torch.arange(5)
    game.enter_stage(rows, active, torch.ones(5))
    expected = game.space.embed(rows.u[active]).mean().item()
    for head in (game.discriminator.beyond, game.discriminator.reference):
        assert head.blind.item() == pytest.approx(expected)


def test_target_labels_are_never_read():
    rows = some_rows()
    game = some_game(rows)
    source, everyone = rows[rows.source_rows], rows[torch.arange(len(rows))]
    other = replace(everyone, y=torch.where(everyone.labelled, everyone.y, 2))
    totals = [
        [m.total_loss.item() for m in game.moves(source, batch)] for batch in (everyone, other)
    ]
    assert totals[0] == totals[1]


# --- label shift ----------------------------------------------------------------------------------


def shifting(leak, count, generator):
    """P(y = 1) rises with u, x given y does not change; a second column may follow u."""
    u = torch.rand(count, 1, generator=generator, dtype=torch.float64)
    y = (torch.rand(count, generator=generator) < u[:, 0]).long()
    x = 0.15 * torch.randn(count, 2, generator=generator)
    x[:, 0] = (2 * y - 1) * (0.05 + 0.95 * torch.rand(count, generator=generator))
    x[:, 1] += leak * (2 * u[:, 0].float() - 1)
    return IndexedDataset(x, y, u, u[:, 0] < 0.5)


def always_right():
    """An encoder at z = x, and the predictor that tells y from it without an error."""
    encoder, predictor = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        encoder.weight.copy_(torch.eye(2))
        encoder.bias.zero_()
        predictor.weight.copy_(torch.tensor([[-1.0, 0], [1, 0]]))
    return encoder, predictor


def adversarial_gradient(kind, head, leak, rounds=150):
    """Its mean size against beliefs that learned on fresh rows in every round, so none by heart."""
    generator = torch.Generator().manual_seed(0)
    first = shifting(leak, 2000, generator)
    with seeded(0):
        players = *always_right(), Line().fit(first.u)
        made = head(hidden=(64, 64))
        game = kind.assemble(GameParts(*players, first.u, 2, 2, made, index_in_encoder=False))
        optimiser = torch.optim.Adam(game.player_parameters()["discriminator"], 3e-3)
        sizes = []
        for number in range(rounds):
            rows = shifting(leak, 256 if number < rounds - 20 else 2000, generator)
            for move in game.moves(rows[rows.source_rows], rows[torch.arange(len(rows))]):
                if move.player == "discriminator":
                    optimiser.zero_grad()
                    move.total_loss.backward()
                    optimiser.step()
            (gradient,) = torch.autograd.grad(move.losses["encoder"], game.encoder.weight)
            sizes.append(float(gradient.norm()))
    return sum(sizes[-20:]) / 20


@pytest.mark.parametrize("head", [L2, Gaussian, Histogram])
def test_where_the_label_depends_on_the_index_it_may_stay_in_the_encoding(head):
    hides = adversarial_gradient(Adversarial, head, leak=0.0)
    keeps = adversarial_gradient(GivenPrediction, head, leak=0.0)
    leaks = adversarial_gradient(GivenPrediction, head, leak=1.0)
    assert hides > 0.003
    assert keeps < 0.1 * hides
    assert leaks > hides
    assert leaks > 20 * keeps
