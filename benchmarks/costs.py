"""Where time goes beside the networks: the machine's peak, loading rows, evaluating."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.measure import (
    Effort,
    Measurement,
    mean_ms,
    measure_interleaved,
    read_clock,
    step_ms,
)
from benchmarks.steps import GameSetup, circle_game, digits_game, signals_game, table_game
from cida.estimators import CidaWarning
from cida.experiments.rotating_mnist.rotating_tasks import (
    ROTATING_DIGITS,
    ROTATING_MNIST,
    RotatingTaskData,
)
from cida.experiments.spec import build_recipes
from cida.training import Sampler, TrainingConfig, seeded

__all__ = ["cost_figures", "peak_figures"]

PEAK_MATRIX_SIZE = 1024  # rows and columns: large enough for the peak, small enough for a cache
LOADING_GAMES: Mapping[str, Callable[[], GameSetup]] = {
    "circle": partial(circle_game, "histogram"),
    "table": table_game,
    "digits": digits_game,
}


# --- the peak ------------------------------------------------------------------------------------


def peak_figures(effort: Effort) -> Iterator[Measurement]:
    """What share of the machine's matrix products an encoder's pass forward and back reaches."""
    steps = effort.scaled_steps(20)
    with seeded(0), tempfile.TemporaryDirectory() as folder:
        left, right = (
            torch.rand(PEAK_MATRIX_SIZE, PEAK_MATRIX_SIZE),
            torch.rand(PEAK_MATRIX_SIZE, PEAK_MATRIX_SIZE),
        )
        passes = {
            "encoder of Rotating MNIST": _image_pass(),
            "encoder of signals": _encoder_pass(signals_game(Path(folder, "segments.npy"))),
            "encoder of Circle": _encoder_pass(circle_game("histogram")),
        }
        flops = {name: _flops(once) for name, once in passes.items()}
        measures = {
            name: partial(mean_ms, once, steps, read_clock) for name, once in passes.items()
        }
        measures["peak"] = partial(mean_ms, partial(torch.mm, left, right), steps, read_clock)
        timings = measure_interleaved(measures)
    peak = 2 * PEAK_MATRIX_SIZE**3 / (1e6 * timings.median_ms("peak"))
    matrix_note = f"matrices of {PEAK_MATRIX_SIZE} x {PEAK_MATRIX_SIZE}"
    yield Measurement("matrix product in float32", peak, "GFLOP/s", note=matrix_note)
    for name, count in flops.items():
        reached = count / (1e6 * timings.median_ms(name))
        share = 100 * count / (2 * PEAK_MATRIX_SIZE**3) / timings.median_ratio(name, "peak")
        beside = f"{reached:.0f} GFLOP/s, {timings.median_ms(name):.2f} ms"
        yield Measurement(f"{name}, forward and back", share, "% of peak", note=beside)


def _flops(once: partial[None]) -> int:
    with FlopCounterMode(display=False) as counter:
        once()
    return int(counter.get_total_flops())


def _image_pass() -> partial[None]:
    recipe = build_recipes(ROTATING_MNIST, "best")["histogram"]
    size, space = recipe.networks.size, recipe.settings["space"]
    count = recipe.settings["batch_size"] + recipe.settings["source_batch_size"]
    index = space.embed(360 * torch.rand(count, 1, dtype=torch.float64)).float()
    encoder = recipe.networks.encoder(space, 0).train()
    return partial(_forward_backward, encoder, (torch.rand(count, 1, size, size), index))


def _encoder_pass(setup: GameSetup) -> partial[None]:
    game, rows, training = setup
    source = rows[rows.source_rows[: training.source_batch_size]]
    pooled = rows[torch.arange(training.batch_size)]
    x, u = torch.cat([source.x, pooled.x]), torch.cat([source.u, pooled.u])
    inputs = (x, game.space.embed(u).to(x.dtype)) if game.index_in_encoder else (x,)
    return partial(_forward_backward, game.encoder.train(), inputs)


def _forward_backward(encoder: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    encoder.zero_grad()
    encoder(*inputs).square().mean().backward()


# --- loading and evaluating ----------------------------------------------------------------------


def cost_figures(effort: Effort) -> Iterator[Measurement]:
    """Drawing and looking up the rows of a step, and predicting after training."""
    steps = effort.scaled_steps(5)
    for name, made in LOADING_GAMES.items():
        with seeded(0):
            yield from _measure_loading(name, made(), steps)
    with tempfile.TemporaryDirectory() as folder, seeded(0):
        yield from _measure_loading(
            "signals, mapped", signals_game(Path(folder, "segments.npy")), steps
        )
    with seeded(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        yield _measure_evaluation(effort)


def _measure_loading(name: str, setup: GameSetup, steps: int) -> Iterator[Measurement]:
    """The share of a step that goes into drawing its rows and looking them up."""
    game, rows, training = setup
    timed = TrainingConfig(**{**vars(training), "steps": 2 * steps, "events": 2, "curriculum": 0.0})
    sampler = Sampler(rows, game.space, timed.n_balance_bins, torch.Generator().manual_seed(0))

    def load() -> None:
        rows[sampler.draw_source(timed.source_batch_size)]
        rows[sampler.draw_pooled(timed.batch_size)]

    measures = {
        "load": lambda: mean_ms(load, steps, read_clock),
        "step": lambda: step_ms(game, rows, timed, read_clock),
    }
    timings = measure_interleaved(measures, 5)
    n_rows = timed.batch_size + timed.source_batch_size
    beside = f"{timings.median_ms('load'):.3f} ms for {n_rows} rows"
    share = 100 * timings.median_ratio("load", "step")
    yield Measurement(f"loading, {name}", share, "% of a step", note=beside)


def _measure_evaluation(effort: Effort) -> Measurement:
    """The score of a run on rotating digits against its training, steps as in the recipe."""
    recipe = build_recipes(ROTATING_DIGITS, "best")["histogram"]
    sample = ROTATING_DIGITS.draw_data(0, "clean")
    assert isinstance(sample, RotatingTaskData)
    model = recipe.with_settings(steps=2).build_model(0)
    sample.train(model, oracle=False)
    game, rows, training = digits_game()
    steps = effort.scaled_steps(10)
    timed = TrainingConfig(**{**vars(training), "steps": 2 * steps, "events": 2, "curriculum": 0.0})
    measures = {
        "score": lambda: mean_ms(lambda: sample.evaluate(model), 1, read_clock),
        "step": lambda: step_ms(game, rows, timed, read_clock),
    }
    timings = measure_interleaved(measures, 5)
    share = 100 * timings.median_ratio("score", "step") / recipe.settings["steps"]
    rate = 1000 * len(sample.scored_dataset()) / timings.median_ms("score")
    beside = f"{timings.median_ms('score'):.0f} ms, {rate:,.0f} images/s turned and predicted"
    return Measurement("evaluation, digits", share, "% of its training", note=beside)
