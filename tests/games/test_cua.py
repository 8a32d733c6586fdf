"""CUA: one bin after another, and what is remembered of each."""

import math

import pytest
import torch
from torch import nn

from cida.data import IndexedDataset
from cida.datasets import make_circle
from cida.games import CUA, squared_error
from cida.games.binary_domain import BinaryDomainClassifier
from cida.games.pseudo_labels import PseudoLabelMemory
from cida.networks import MLP, PlainEncoder
from cida.spaces import Line
from cida.training import Trainer, TrainingConfig, seeded

WORLD = make_circle(n_domains=8, n_per_domain=6, n_source_domains=3)
bin_of = torch.from_numpy(WORLD.u * 7).round().long()  # 0, 1 and 2 are the source


def world_rows(regression=False):
    x = torch.from_numpy(WORLD.x).float()
    y = x[:, :1] if regression else torch.from_numpy(WORLD.y).long()
    u = torch.from_numpy(WORLD.u).double()
    return IndexedDataset(x, y, u, torch.from_numpy(WORLD.source))


class Recording(CUA):
    """Keeps what each stage is given, what it knows then, and every round's batch."""

    def enter_stage(self, dataset, active, weights):
        with torch.no_grad():
            said = self.eval().predict(dataset.x, dataset.u)
        self.train()
        super().enter_stage(dataset, active, weights)
        self.stages.append(
            (active.clone(), self.memory.known.clone(), self.memory.labels.clone(), said)
        )

    def moves(self, source, pooled):
        self.dealt.append((len(self.stages) - 1, pooled.row_ids))
        return super().moves(source, pooled)


def some_game(kind=CUA, outputs=2, **settings):
    with seeded(0):
        players = (
            PlainEncoder(2, (8,), 3),
            MLP(3, (), outputs),
            BinaryDomainClassifier(MLP(3, (8,), 1)),
        )
    game = kind(*players, Line(), index_in_encoder=False, **settings)
    game.stages, game.dealt = [], []
    return game


def played(regression=False):
    rows = world_rows(regression)
    settings = {"outputs": 1, "prediction_loss": squared_error} if regression else {}
    game = some_game(Recording, **settings)
    game.space = Line().fit(rows.u)
    training = TrainingConfig(
        steps=36,
        batch_size=16,
        source_batch_size=8,
        learning_rate=0.02,
        curriculum=1.0,
        curriculum_stages=6,
    )
    Trainer(training).run(game, rows)
    return game, rows


@pytest.fixture(scope="module", params=[False, True], ids=["classes", "numbers"])
def run(request):
    return played(request.param)


def test_the_source_comes_alone_then_one_bin_after_another_from_near_to_far(run):
    game, _ = run
    bins = [sorted(set(bin_of[active].tolist())) for active, *_ in game.stages]
    assert bins == [list(range(3 + stage)) for stage in range(6)]
    assert all(len(active) == 6 * len(b) for (active, *_), b in zip(game.stages, bins, strict=True))


def test_each_bin_is_known_when_the_next_one_comes(run):
    game, _ = run
    for stage, (_, known, *_) in enumerate(game.stages):
        assert torch.equal(known, bin_of < max(3, 2 + stage))


def test_the_labels_of_a_bin_are_what_is_predicted_when_the_next_one_comes(run):
    game, rows = run
    for stage in range(2, 6):
        _, _, remembered, output = game.stages[stage]
        left = bin_of == 1 + stage
        said = output if rows.y.is_floating_point() else output.argmax(1)
        torch.testing.assert_close(remembered[left], said[left])
        assert remembered.dtype == rows.y.dtype


def test_what_is_remembered_never_changes_although_the_weights_do(run):
    game, _ = run
    outputs = [output for *_, output in game.stages]
    assert not torch.equal(outputs[2], outputs[5])
    for stage in range(6):
        _, known, remembered, _ = game.stages[stage]
        assert torch.equal(game.memory.labels[known], remembered[known])


def test_the_labels_of_the_source_are_never_overwritten(run):
    game, rows = run
    for _, _, remembered, _ in game.stages:
        assert torch.equal(remembered[rows.source_rows], rows.y[rows.source_rows])
    assert torch.equal(rows.y[~rows.labelled], torch.zeros_like(rows.y[~rows.labelled]))


def test_half_of_each_batch_at_least_is_drawn_from_the_new_bin(run):
    game, _ = run
    for stage, row in game.dealt:
        new = (bin_of[row] == 2 + stage).sum().item()
        assert new >= 8 if stage else new <= 16
        assert bin_of[row].max() <= 2 + stage


def test_the_last_bin_is_never_remembered(run):
    game, _ = run
    assert torch.equal(game.memory.known, bin_of < 7)


def entered(**settings):
    """A game in its third stage: bin 3 is remembered, bin 4 is new."""
    rows, game = world_rows(), some_game(**settings)
    for reach in (2, 3, 4):
        active = (bin_of <= reach).nonzero()[:, 0]
        game.enter_stage(rows, active, torch.ones(len(active)))
    return game, rows, rows[(bin_of <= 4).nonzero()[:, 0]]


def test_the_replay_loss_by_hand():
    game, rows, everyone = entered()
    game.memory.labels[bin_of == 3] = torch.tensor([0, 1, 1, 0, 1, 0])
    *_, move = game.moves(rows[rows.source_rows], everyone)
    with torch.no_grad():
        chance = game.predict(rows.x[bin_of == 3], rows.u[bin_of == 3]).softmax(1)
    expected = -chance[torch.arange(6), torch.tensor([0, 1, 1, 0, 1, 0])].log().mean()
    assert move.losses["replay"].item() == pytest.approx(expected.item(), rel=1e-5)
    source = nn.functional.cross_entropy(
        game.predict(rows.x[rows.source_rows], rows.u[rows.source_rows]), rows.y[rows.source_rows]
    )
    assert move.losses["predictor"].item() == pytest.approx(source.item(), rel=1e-5)


def test_numbers_are_replayed_by_the_squared_error():
    rows, game = world_rows(regression=True), some_game(outputs=1, prediction_loss=squared_error)
    for reach in (2, 3, 4):
        active = (bin_of <= reach).nonzero()[:, 0]
        game.enter_stage(rows, active, torch.ones(len(active)))
    with torch.no_grad():
        said = game.predict(rows.x[bin_of == 3], rows.u[bin_of == 3])
    assert torch.allclose(game.memory.labels[bin_of == 3], said, atol=1e-6)
    game.predictor[-1].bias.data += 2.0  # from now on every prediction is 2 higher
    *_, move = game.moves(rows[rows.source_rows], rows[(bin_of <= 4).nonzero()[:, 0]])
    assert move.losses["replay"].item() == pytest.approx(4.0, rel=1e-5)


def test_the_discriminator_tells_the_new_bin_from_all_that_is_known():
    game, rows, everyone = entered(lambda_d=3.0, ceiling=False)
    first, *_, last = game.moves(rows[rows.source_rows], everyone)
    with torch.no_grad():
        odds = game.discriminator(game.encode(everyone.x, everyone.u))
    new = bin_of[everyone.row_ids] == 4
    known, fresh = nn.functional.softplus(odds[~new]), nn.functional.softplus(-odds[new])
    value = (known.mean() + fresh.mean()).item() / 2
    assert first.player == "discriminator"
    assert first.total_loss.item() == pytest.approx(value, rel=1e-5)
    assert last.losses["encoder"].item() == pytest.approx(-3 * value, rel=1e-5)
    assert last.ceilings["discriminator"].item() == pytest.approx(math.log(2))
    first.total_loss.backward()
    assert all(p.grad is None for m in (game.encoder, game.predictor) for p in m.parameters())


@pytest.mark.parametrize(("ceiling", "moved"), [(True, False), (False, True)])
def test_above_log_two_only_a_game_without_the_ceiling_moves_the_encoder(ceiling, moved):
    game, rows, everyone = entered(ceiling=ceiling)
    game.discriminator.network[-1].weight.data *= 100
    *_, last = game.moves(rows[rows.source_rows], everyone)
    assert last.metrics["discriminator"] > math.log(2)
    last.losses["encoder"].backward()
    assert any(bool(p.grad.any()) for p in game.encoder.parameters()) == moved
    assert all(p.grad is None for p in game.discriminator.parameters())


def test_where_every_row_is_known_the_discriminator_does_not_move():
    game, rows, _ = entered()
    known = rows[(bin_of <= 3).nonzero()[:, 0]]
    (move,) = game.moves(rows[rows.source_rows], known)
    assert move.player == "encoder"
    assert list(move.losses) == ["predictor", "replay"]
    (move,) = game.moves(rows[rows.source_rows], rows[rows.source_rows])
    assert list(move.losses) == ["predictor"]


def test_labels_are_predicted_in_evaluation_mode_and_training_goes_on():
    rows, game = world_rows(), some_game()
    game.predictor = nn.Sequential(nn.Dropout(0.9), game.predictor)
    game.train()
    for reach in (3, 4):
        active = (bin_of <= reach).nonzero()[:, 0]
        game.enter_stage(rows, active, torch.ones(len(active)))
    assert game.training
    assert game.predictor[0].training
    said = game.eval().predict(rows.x[bin_of == 3], rows.u[bin_of == 3]).argmax(1)
    assert torch.equal(game.memory.labels[bin_of == 3], said)


def test_nothing_is_predicted_when_no_row_is_waiting():
    rows = IndexedDataset(
        torch.zeros(3, 2), torch.tensor([0, 1, 0]), torch.zeros(3), torch.ones(3) == 1
    )

    def predict(x, u):
        raise AssertionError("no row to predict")

    memory = PseudoLabelMemory()
    memory.enter_stage(rows, torch.arange(3), predict)
    memory.enter_stage(rows, torch.arange(3), predict)
    assert memory.known.all()
