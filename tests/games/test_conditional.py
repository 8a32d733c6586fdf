"""The conditional game: what the discriminator sees, and what the encoder feels of it."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from cida.data import IndexedDataset
from cida.discriminators import L2, Histogram
from cida.games import Conditional, GameParts, squared_error
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
        self.seen.append(evidence)
        return torch.tanh(self.layer(evidence))


def some_rows(count=20, regression=False):
    generator = torch.Generator().manual_seed(0)
    u = torch.linspace(0, 1, count, dtype=torch.float64)
    x = torch.randn(count, 2, generator=generator)
    y = x[:, :1] if regression else (x[:, 0] > 0).long()
    return IndexedDataset(x, y, u, u < 0.5)


def some_game(rows, head=L2, outputs=3, **settings):
    with seeded(0):
        space = Line().fit(rows.u)
        parts = GameParts(
            PlainEncoder(2, (8,), 4),
            nn.Linear(4, outputs),
            space,
            rows.u,
            4,
            outputs,
            head(body=Spy(4 + outputs)),
            index_in_encoder=False,
        )
        return Conditional.assemble(replace(parts, **settings))


def dealt(game, rows):
    return list(game.moves(rows[rows.source_rows], rows[torch.arange(len(rows))]))


def test_the_discriminator_sees_the_encoding_beside_the_predicted_probabilities():
    rows = some_rows()
    game = some_game(rows)
    dealt(game, rows)
    z = game.encode(rows.x, rows.u)
    raised = game.predictor(z).exp()
    expected = torch.cat([z, raised / raised.sum(1, keepdim=True)], dim=1)
    assert len(game.discriminator.body.seen) == 3
    for seen in game.discriminator.body.seen:
        assert torch.allclose(seen, expected, atol=1e-6)


def test_in_a_regression_the_discriminator_sees_the_raw_output():
    rows = some_rows(regression=True)
    game = some_game(rows, outputs=1, prediction_loss=squared_error)
    dealt(game, rows)
    z = game.encode(rows.x, rows.u)
    expected = torch.cat([z, game.predictor(z)], dim=1)
    assert all(torch.allclose(s, expected, atol=1e-6) for s in game.discriminator.body.seen)


@pytest.mark.parametrize(("encoding", "outputs"), [(4, 3), (32, 1)])
def test_the_evidence_is_as_wide_as_the_encoding_and_the_output(encoding, outputs):
    assert Conditional.discriminator_input_width(encoding, outputs) == encoding + outputs


def test_the_layers_are_built_for_the_whole_evidence():
    rows = some_rows()
    with seeded(0):
        players = (PlainEncoder(2, (8,), 4), nn.Linear(4, 3), Line().fit(rows.u))
        parts = GameParts(*players, rows.u, 4, 3, L2(hidden=(5,)), index_in_encoder=False)
    game = Conditional.assemble(parts)
    assert game.discriminator.body[0].in_features == 7
    assert [m.player for m in dealt(game, rows)] == ["discriminator", "discriminator", "encoder"]


def test_the_losses_by_hand_with_the_squared_error():
    rows = some_rows()
    game = some_game(rows, lambda_d=3.0, ceiling=False)
    *guesses, answer = dealt(game, rows)
    z = game.encode(rows.x, rows.u)
    evidence = torch.cat([z, game.predictor(z).softmax(1)], dim=1)
    body, head = game.discriminator.body.layer, game.discriminator.head
    hidden = torch.tanh(evidence @ body.weight.T + body.bias)
    belief = hidden @ head.weight.T + head.bias
    value = (belief - game.space.embed(rows.u)).square().sum(1).mean().item()
    assert [g.total_loss.item() for g in guesses] == pytest.approx([value] * 2, rel=1e-5)
    assert answer.losses["encoder"].item() == pytest.approx(-3 * value, rel=1e-5)
    assert answer.metrics["discriminator"].item() == pytest.approx(value, rel=1e-5)


def test_the_losses_by_hand_with_hard_bins():
    rows = some_rows()
    game = some_game(rows, lambda body: Histogram(bins=4, kernel=0, body=body), ceiling=False)
    *_, answer = dealt(game, rows)
    z = game.encode(rows.x, rows.u)
    belief = game.discriminator(torch.cat([z, game.predictor(z).softmax(1)], dim=1))
    bins = (rows.u - game.discriminator.anchors.T).abs().argmin(1)
    chance = belief.softmax(1)[torch.arange(len(rows)), bins]
    assert answer.losses["encoder"].item() == pytest.approx(chance.log().mean().item(), rel=1e-5)


def test_no_adversarial_gradient_passes_through_the_prediction():
    rows = some_rows()
    game = some_game(rows, ceiling=False)
    *_, answer = dealt(game, rows)
    parameters = list(game.encoder.parameters())
    got = torch.autograd.grad(answer.losses["encoder"], parameters, retain_graph=True)

    def by_hand(block):
        z = game.encode(rows.x, rows.u)
        prediction = game.predictor(z).softmax(1)
        seen = torch.cat([z, prediction.detach() if block else prediction], dim=1)
        value = (game.discriminator(seen) - game.space.embed(rows.u)).square().sum(1).mean()
        return torch.autograd.grad(-value, parameters)

    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(got, by_hand(True), strict=True))
    through = by_hand(False)
    assert not all(torch.allclose(a, b, atol=1e-4) for a, b in zip(got, through, strict=True))
    answer.losses["encoder"].backward()
    assert all(p.grad is None for p in game.predictor.parameters())


def test_the_discriminators_move_gives_encoder_and_predictor_no_gradient():
    rows = some_rows()
    game = some_game(rows)
    dealt(game, rows)[0].total_loss.backward()
    others = [*game.encoder.parameters(), *game.predictor.parameters()]
    assert all(p.grad is None for p in others)
    assert all(p.grad is not None for p in game.discriminator.parameters())
