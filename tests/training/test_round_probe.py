"""Figures of a round, on games small enough to work them out by hand."""

import itertools
import json
import math
from dataclasses import asdict

import pytest
import torch
from torch import nn

from cida.data import IndexedDataset
from cida.discriminators import Histogram
from cida.games import GAMES, Game, GameParts, Move, SourceOnly
from cida.networks import MLP, IndexedEncoder
from cida.spaces import Line
from cida.training import Event, Trainer, TrainingConfig, seeded
from cida.training import events as events_module
from cida.training.round_probe import (
    MIN_ROUNDS_BETWEEN_PROBES,
    RoundProbe,
    index_share_read,
    loss_above_ceiling,
    majority_share,
)


def batch_of(x, u, labelled, y=None):
    y = torch.zeros(len(x), dtype=torch.long) if y is None else y
    rows = IndexedDataset(x, y, torch.tensor(u, dtype=torch.float64), torch.tensor(labelled))
    return rows[torch.arange(len(x))]


class Pulling(Game):
    """``V_p = w_p z`` on the source, ``lambda w_a z`` on everyone; z is x, predicted as it is."""

    def __init__(self, lambda_d, w_p=(3.0, 4.0), w_a=(0.0, 2.0)):
        super().__init__(nn.Linear(2, 2, bias=False), nn.Identity(), Line(), index_in_encoder=False)
        nn.init.eye_(self.encoder.weight)
        self.lambda_d, self.w_p, self.w_a = lambda_d, torch.tensor(w_p), torch.tensor(w_a)

    def moves(self, source, pooled):
        z = self.encode(torch.cat([source.x, pooled.x]), torch.cat([source.u, pooled.u]))
        for value in (5.0, 4.0):
            yield Move("discriminator", {"discriminator": self.encoder.weight.sum() * 0 + value})
        prediction = (z[: len(source)] @ self.w_p).mean()
        adversary = (z[len(source) :] @ self.w_a).mean()
        yield Move(
            "encoder",
            {"predictor": prediction, "encoder": self.lambda_d * adversary},
            metrics={"prediction": prediction, "discriminator": torch.tensor(3.5)},
        )


def look_at(game, source, everyone):
    with RoundProbe(game, source, everyone) as look:
        for move in game.moves(source, everyone):
            move.total_loss.backward()
            look.add(move)
    return look.metrics()


def two_batches(sources=6, others=10):
    generator = torch.Generator().manual_seed(1)
    source = batch_of(
        torch.randn(sources, 2, generator=generator), [0.0] * sources, [True] * sources
    )
    everyone = batch_of(
        torch.randn(others, 2, generator=generator), [1.0] * others, [False] * others
    )
    return source, everyone


@pytest.mark.parametrize("lambda_d", [0.0, 0.1, 1.0, 50.0])
def test_the_pull_is_the_adversarys_share_of_the_gradient_whatever_the_batch_sizes(lambda_d):
    for sizes in ((6, 10), (16, 3)):
        figures = look_at(Pulling(lambda_d), *two_batches(*sizes))
        assert figures["adversarial_gradient_share"] == pytest.approx(
            2 * lambda_d / (2 * lambda_d + 5), abs=1e-6
        )


def test_the_spread_is_the_root_of_the_mean_variance_of_the_columns():
    source, everyone = two_batches()
    x = torch.cat([source.x, everyone.x])
    expected = math.sqrt(float(x.var(0, correction=0).mean()))
    assert look_at(Pulling(1.0), source, everyone)["encoding_std"] == pytest.approx(
        expected, rel=1e-5
    )


def test_a_constant_encoding_has_no_spread():
    game = Pulling(1.0)
    nn.init.zeros_(game.encoder.weight)
    assert look_at(game, *two_batches())["encoding_std"] == 0


def test_what_is_gained_is_the_loss_before_the_adversarys_moves_less_that_after():
    assert look_at(Pulling(1.0), *two_batches())["discriminator_gain"] == pytest.approx(5.0 - 3.5)


def test_the_far_rows_are_the_quarter_of_the_target_that_is_farthest_from_the_source():
    # 40 target rows along u; the ten farthest are all of class 1, the others all of class 0.
    source = batch_of(torch.eye(2).repeat(3, 1), [0.0, -1.0] * 3, [True] * 6)
    far = [position >= 30 for position in range(40)]
    x = torch.tensor([[0.0, 1.0] if away else [1.0, 0.0] for away in far])
    everyone = batch_of(x, [1.0 + k for k in range(40)], [False] * 40)
    figures = look_at(Pulling(1.0), source, everyone)
    assert (figures["majority_share_source"], figures["majority_share_far"]) == (0.5, 1.0)
    mixed = batch_of(torch.eye(2).repeat(20, 1), [1.0 + k for k in range(40)], [False] * 40)
    assert look_at(Pulling(1.0), source, mixed)["majority_share_far"] == 0.5


def test_few_target_rows_and_numbers_as_labels_have_no_most_frequent_class():
    source, everyone = two_batches()
    assert "majority_share_far" not in look_at(Pulling(1.0), source, everyone)  # 10 target rows
    source, everyone = two_batches(6, 64)
    assert "majority_share_far" in look_at(Pulling(1.0), source, everyone)
    numbers = batch_of(source.x, [0.0] * 6, [True] * 6, torch.zeros(6, 1))
    assert "majority_share_far" not in look_at(Pulling(1.0), numbers, everyone)


def test_source_only_has_a_spread_and_no_adversary():
    source, everyone = two_batches()
    game = SourceOnly(nn.Linear(2, 3), nn.Linear(3, 2), Line(), index_in_encoder=False)
    assert set(look_at(game, source, everyone)) == {"encoding_std"}


def test_the_share_of_the_most_frequent_class():
    assert majority_share(torch.tensor([0, 2, 2, 2])) == 0.75


# --- what the adversary reads --------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.9])
def test_what_is_known_of_a_gaussian_pair_is_its_squared_correlation(correlation):
    information = -0.5 * math.log(1 - correlation**2)
    share = index_share_read({"discriminator": 1.2 - information}, {"discriminator": 1.2})
    assert share == pytest.approx(correlation**2)


def test_at_its_ceiling_and_above_the_adversary_knows_nothing():
    for loss in (3.0, 3.5):
        assert index_share_read({"discriminator": loss}, {"discriminator": 3.0}) == 0
    assert loss_above_ceiling({"discriminator": 3.5}, {"discriminator": 3.0}) == 0.5


def test_a_measure_of_dependence_is_what_is_known():
    assert index_share_read({"prediction": 1.0, "dependence": 0.4}, {}) == 0.4
    assert index_share_read({"prediction": 1.0, "dependence": -0.01}, {}) == 0
    assert loss_above_ceiling({"dependence": 0.4}, {}) is None


def test_without_an_adversary_nothing_is_said_of_it():
    assert index_share_read({"prediction": 1.0}, {}) is None


# --- looking changes nothing ---------------------------------------------------------------------


def some_rows(count=60):
    generator = torch.Generator().manual_seed(0)
    u = torch.linspace(0, 1, count, dtype=torch.float64)
    x = torch.randn(count, 2, generator=generator)
    return IndexedDataset(x, (x[:, 0] > 0).long(), u, u < 0.3)


def played(kind, callbacks, steps=40):
    """A game with batch normalisation and dropout in all its players, and its end state."""
    rows = some_rows()
    with seeded(7):
        space = Line().fit(rows.u)
        head = Histogram(bins=5, hidden=(8,))
        head.batch_norm = True
        parts = GameParts(
            encoder=IndexedEncoder(2, 1, (8,), 4, dropout=0.2),
            predictor=nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.2), MLP(4, (8,), 2, True)),
            space=space,
            u=rows.u,
            encoding_width=4,
            output_width=2,
            discriminator=head,
        )
        game = kind.assemble(parts)
    settings = TrainingConfig(steps=steps, batch_size=48, source_batch_size=12, n_balance_bins=4)
    Trainer(settings, callbacks).run(game, rows)
    return game.state_dict()


@pytest.mark.parametrize("name", ["source-only", *GAMES])
def test_a_run_that_is_looked_at_is_the_same_bit_for_bit(name, monkeypatch):
    kind = GAMES.get(name, SourceOnly)
    monkeypatch.setattr(events_module, "MIN_ROUNDS_BETWEEN_PROBES", 1)
    events = []
    watched = played(kind, [events.append])
    assert any(event.health for event in events)
    unseen = played(kind, [])
    assert watched.keys() == unseen.keys()
    assert all(torch.equal(watched[key], unseen[key]) for key in watched)


def test_rounds_are_looked_at_at_most_once_in_so_many():
    events = []
    played(GAMES["adversarial"], [events.append], steps=100)
    looked = [event.step for event in events if event.health]
    assert len(events) == 100
    assert looked[0] == 1
    assert {later - earlier for earlier, later in itertools.pairwise(looked)} == {
        MIN_ROUNDS_BETWEEN_PROBES
    }


def test_the_last_event_of_a_long_run_has_figures():
    events = []
    played(GAMES["adversarial"], [events.append], steps=MIN_ROUNDS_BETWEEN_PROBES * 3 + 1)
    assert events[-1].health


# --- events in files -----------------------------------------------------------------------------


def test_events_go_to_json_and_back():
    events = []
    played(GAMES["adversarial"], [events.append])
    lines = [json.dumps(asdict(event), allow_nan=False) for event in events]
    assert [Event(**json.loads(line)) for line in lines] == events


def test_events_of_before_health_was_looked_at_still_load():
    words = {"step": 1, "steps": 2, "seconds": 0.1, "learning_rate": 0.1, "active_share": 1.0}
    assert Event(**words, losses={"prediction": 1.0}, ceilings={}).health == {}
