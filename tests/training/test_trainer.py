"""The trainer: determinism, schedules, averages, what ends a training."""

import math

import pytest
import torch
from torch import nn

from cida.data import IndexedDataset
from cida.discriminators import L2, Histogram
from cida.games import Adversarial, Game, Move, SourceOnly, squared_error
from cida.networks import MLP, IndexedEncoder
from cida.spaces import Line
from cida.training import NonFiniteLossError, Trainer, TrainingConfig, seeded, state
from cida.training.state import WeightAverage

SHORT = {"batch_size": 16, "source_batch_size": 8, "n_balance_bins": 4}


def some_rows(count=60):
    generator = torch.Generator().manual_seed(0)
    u = torch.linspace(0, 1, count, dtype=torch.float64)
    x = torch.randn(count, 2, generator=generator)
    return IndexedDataset(x, (x[:, 0] > 0).long(), u, u < 0.3)


def some_game(rows, head=None, **settings):
    with seeded(7):
        space = Line().fit(rows.u)
        discriminator = (head or Histogram(bins=5, hidden=(8,))).build(4, space, rows.u)
        encoder = IndexedEncoder(2, 1, (8,), 4)
        return Adversarial(encoder, MLP(4, (), 2), discriminator, space, **settings)


def weights_of(game):
    return torch.cat([p.detach().flatten() for p in game.parameters()])


def played(seed=0, callbacks=(), **settings):
    rows = some_rows()
    game = some_game(rows)
    Trainer(TrainingConfig(seed=seed, **(SHORT | {"steps": 12} | settings)), callbacks).run(
        game, rows
    )
    return game


def events_of(**settings):
    events = []
    played(callbacks=[events.append], **settings)
    return events


def test_the_same_seed_gives_the_same_weights_bit_for_bit():
    assert torch.equal(weights_of(played(3)), weights_of(played(3)))


def test_another_seed_gives_other_weights():
    assert not torch.equal(weights_of(played(3)), weights_of(played(4)))


def test_the_outer_random_state_does_not_reach_a_run_with_dropout():
    runs = []
    for outer in (1, 2):
        rows = some_rows()
        game = some_game(rows)
        game.encoder.body = nn.Sequential(nn.Dropout(0.5), game.encoder.body)
        with torch.random.fork_rng():
            torch.manual_seed(outer)
            Trainer(TrainingConfig(steps=5, **SHORT)).run(game, rows)
        runs.append(weights_of(game))
    assert torch.equal(*runs)


def test_callbacks_do_not_change_the_weights():
    assert torch.equal(weights_of(played()), weights_of(played(callbacks=[lambda event: None])))


def test_a_run_leaves_the_global_random_state_and_the_thread_count_alone():
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    played()
    assert torch.equal(state, torch.get_rng_state())
    assert threads == torch.get_num_threads()


def test_a_run_that_fails_puts_the_random_state_back():
    state = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError):
        played(callbacks=[lambda event: 1 / 0])
    assert torch.equal(state, torch.get_rng_state())


def test_a_run_ends_in_evaluation_mode():
    assert not any(module.training for module in played().modules())


class TurnsInfinite(nn.Module):
    """Passes its input on, until the given call."""

    def __init__(self, call):
        super().__init__()
        self.left = call

    def forward(self, x):
        self.left -= 1
        return x * math.inf if self.left <= 0 else x


def test_a_predictors_infinite_loss_is_named_with_its_step_and_what_to_try():
    rows = some_rows()
    game = SourceOnly(
        nn.Linear(2, 4),
        nn.Sequential(nn.Linear(4, 1), TurnsInfinite(call=3)),
        Line(),
        prediction_loss=lambda output, y: squared_error(output, y[:, None]),
        index_in_encoder=False,
    )
    trainer = Trainer(TrainingConfig(steps=9, learning_rate=0.02, **SHORT))
    with pytest.raises(NonFiniteLossError) as caught:
        trainer.run(game, rows)
    assert str(caught.value) == (
        "the predictor's loss became inf at step 3 of 9; try a lower learning_rate (now 0.02) or a "
        "lower lambda_d, and look for extreme values in X."
    )


def test_a_discriminators_infinite_loss_is_named_with_its_step():
    rows = some_rows()
    # Two calls a round; the width of the body is known, so that building it makes none.
    body = nn.Sequential(nn.Linear(4, 6), TurnsInfinite(call=5))
    body.output_width = 6
    game = some_game(rows, L2(body=body), discriminator_steps=1)
    with pytest.raises(NonFiniteLossError, match=r"discriminator's loss became .* at step 3 of 9"):
        Trainer(TrainingConfig(steps=9, **SHORT)).run(game, rows)


def test_an_encoders_infinite_adversarial_loss_is_named_where_there_is_no_ceiling():
    rows = some_rows()
    body = nn.Sequential(nn.Linear(4, 6), TurnsInfinite(call=6))
    body.output_width = 6
    game = some_game(rows, L2(body=body), ceiling=False, discriminator_steps=1)
    with pytest.raises(NonFiniteLossError, match=r"the encoder's loss became (-inf|nan) at step 3"):
        Trainer(TrainingConfig(steps=9, **SHORT)).run(game, rows)


class Counter(Game):
    """A game whose one number moves by exactly the learning rate: Adam's first steps do so."""

    def __init__(self):
        super().__init__(nn.Linear(1, 1, bias=False), nn.Identity(), Line())
        nn.init.zeros_(self.encoder.weight)
        self.stages = []
        self.seen = []
        self.done = []

    def enter_stage(self, dataset, active, weights):
        self.stages.append((dataset.u[active], weights.clone()))

    def set_progress(self, fraction):
        assert len(self.done) == len(self.seen)  # once before each round
        self.done.append(fraction)

    def moves(self, source, pooled):
        self.seen.append((source, pooled))
        value = self.encoder.weight.sum()
        yield Move("encoder", {"encoder": -value}, metrics={"value": value})


def test_the_cosine_schedule_falls_from_the_learning_rate_to_a_hundredth_of_it():
    rates = [event.learning_rate for event in events_of(steps=50, events=50, learning_rate=0.02)]
    expected = [0.02 * max(0.01, (1 + math.cos(math.pi * s / 50)) / 2) for s in range(50)]
    assert rates == pytest.approx(expected)
    assert rates[0] == 0.02
    assert rates[-1] == pytest.approx(0.0002)


def test_the_constant_schedule_keeps_the_learning_rate():
    rates = {e.learning_rate for e in events_of(events=12, learning_rate=0.02, schedule="constant")}
    assert rates == {0.02}


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_the_schedule_is_what_the_weights_step_by(schedule):
    # Under a constant gradient each step of Adam has the length of the learning rate.
    game, rows, steps = Counter(), some_rows(), 20
    settings = TrainingConfig(steps, learning_rate=0.01, schedule=schedule, ema_decay=0.0, **SHORT)
    Trainer(settings).run(game, rows)
    cosine = [max(0.01, (1 + math.cos(math.pi * s / steps)) / 2) for s in range(steps)]
    expected = 0.01 * (sum(cosine) if schedule == "cosine" else steps)
    assert game.encoder.weight.item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("decay", [0.05, 0.5, 0.999])
def test_averaging_is_an_exponential_moving_average_with_a_short_memory_at_first(decay):
    game, steps = Counter(), 20
    settings = TrainingConfig(
        steps, learning_rate=0.01, schedule="constant", ema_decay=decay, **SHORT
    )
    Trainer(settings).run(game, some_rows())
    mean = 0.0
    for step in range(1, steps + 1):
        keep = min(decay, (1 + step) / (10 + step))
        mean = keep * mean + (1 - keep) * 0.01 * step
    assert game.encoder.weight.item() == pytest.approx(mean, rel=1e-4)


def test_averaging_takes_running_statistics_along_and_leaves_counts_alone():
    norm = nn.BatchNorm1d(2)
    average = WeightAverage([norm], 0.5)
    norm.running_mean.fill_(8.0)
    norm.num_batches_tracked.fill_(5)
    average.update()
    average.apply()
    assert norm.running_mean.tolist() == pytest.approx([8 * (1 - 2 / 11)] * 2)
    assert norm.num_batches_tracked.item() == 5


def test_without_averaging_the_last_weights_stay():
    linear = nn.Linear(2, 2)
    average = WeightAverage([linear], 0.0)
    nn.init.ones_(linear.weight)
    average.update()
    average.apply()
    assert torch.equal(linear.weight, torch.ones(2, 2))


def test_each_stage_is_announced_with_its_rows_and_the_samplers_weights():
    game, rows = Counter(), some_rows()
    Trainer(TrainingConfig(steps=40, curriculum=0.5, **SHORT)).run(game, rows)
    reach = [float(u.max()) for u, _ in game.stages]
    assert len(game.stages) == 20
    assert reach == sorted(reach)
    assert len(game.stages[-1][0]) == len(rows)
    edges = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    for u, weights in game.stages:
        cell = torch.bucketize(u[:, 0], edges)
        each = torch.zeros(4, dtype=torch.float64).index_add_(0, cell, weights)
        each = each[each > 0]
        assert each.tolist() == pytest.approx([1 / len(each)] * len(each))


@pytest.mark.parametrize("stages", [1, 3, 7])
def test_the_range_widens_in_as_many_stages_as_asked_for(stages):
    game, rows = Counter(), some_rows()
    Trainer(TrainingConfig(steps=40, curriculum=0.5, curriculum_stages=stages, **SHORT)).run(
        game, rows
    )
    assert len(game.stages) == stages
    assert len(game.stages[-1][0]) == len(rows)


def test_the_game_is_told_before_each_round_how_much_is_done():
    game = Counter()
    Trainer(TrainingConfig(steps=8, **SHORT)).run(game, some_rows())
    assert game.done == [step / 8 for step in range(8)]


def test_a_games_newest_share_of_each_batch_joined_in_the_last_stage():
    game, rows = Counter(), some_rows()
    game.newest_share = 0.75
    Trainer(TrainingConfig(steps=40, curriculum=1.0, curriculum_stages=4, **SHORT)).run(game, rows)
    for step, (_, everyone) in enumerate(game.seen):
        stage = step // 10
        if stage:
            before, now = (game.stages[s][0].max() for s in (stage - 1, stage))
            assert bool((everyone.u[:12] > before).all())
            assert bool((everyone.u <= now).all())


def test_rows_beyond_reach_are_never_dealt():
    game, rows = Counter(), some_rows()
    Trainer(TrainingConfig(steps=40, curriculum=0.5, **SHORT)).run(game, rows)
    edge = float(rows.u[rows.source_rows].max())
    for step, (_, everyone) in enumerate(game.seen):
        reach = (1 - edge) * min(20, step + 1) / 20
        assert float(everyone.u.max()) <= edge + reach + 1e-6


def test_every_source_batch_is_labelled_and_of_the_size_asked_for():
    game = Counter()
    Trainer(TrainingConfig(steps=5, **SHORT)).run(game, some_rows())
    assert all(source.labelled.all() and len(source) == 8 for source, _ in game.seen)
    assert all(len(everyone) == 16 for _, everyone in game.seen)


@pytest.mark.parametrize(("steps", "events", "count"), [(40, 10, 10), (12, 100, 12), (7, 1, 1)])
def test_events_come_as_often_as_asked_and_the_last_at_the_last_step(steps, events, count):
    seen = events_of(steps=steps, events=events)
    assert len(seen) == count
    assert seen[-1].step == seen[-1].steps == steps
    assert [e.step for e in seen] == sorted({e.step for e in seen})


@pytest.mark.parametrize(("steps", "events"), [(19, 10), (25, 10), (30, 20)])
def test_events_are_no_more_than_asked_for_where_they_do_not_divide_the_steps(steps, events):
    seen = events_of(steps=steps, events=events)
    assert len(seen) <= events
    assert seen[-1].step == steps


def test_events_hold_the_mean_losses_since_the_last_event_and_their_ceilings():
    every = events_of(steps=12, events=12)
    thirds = events_of(steps=12, events=3)
    for number, event in enumerate(thirds):
        own = every[4 * number : 4 * number + 4]
        assert set(event.losses) == {"prediction", "discriminator"}
        assert set(event.ceilings) == {"discriminator"}
        for name in event.losses:
            mean = sum(e.losses[name] for e in own) / 4
            assert event.losses[name] == pytest.approx(mean)
        mean = sum(e.ceilings["discriminator"] for e in own) / 4
        assert event.ceilings["discriminator"] == pytest.approx(mean)


def test_several_discriminator_steps_do_not_count_twice_in_an_event():
    losses = []
    for discriminator_steps in (1, 4):
        rows, events = some_rows(), []
        game = some_game(rows, discriminator_steps=discriminator_steps)
        # At a learning rate of zero the number of steps can change nothing but the count.
        still = TrainingConfig(steps=6, events=1, learning_rate=0.0, **SHORT)
        Trainer(still, [events.append]).run(game, rows)
        losses.append(events[0].losses)
    assert losses[0] == losses[1]


def test_events_tell_how_many_rows_are_active():
    active = [event.active_share for event in events_of(steps=40, events=40, curriculum=0.5)]
    assert active == sorted(active)
    assert active[0] < 0.5
    assert active[-1] == 1.0


def test_weights_are_averaged_alike_one_by_one_and_all_at_once(monkeypatch):
    """The function that takes all tensors at once is not public, and may go."""
    averages = []
    for function in (state._lerp_each, state._lerp_in_turn):
        monkeypatch.setattr(state, "_lerp_each", function)
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        average = WeightAverage([network], 0.9)
        for _ in range(5):
            nn.init.normal_(network[0].weight)
            average.update()
        average.apply()
        averages.append(network.state_dict())
    for name, tensor in averages[0].items():
        assert torch.equal(tensor, averages[1][name])
