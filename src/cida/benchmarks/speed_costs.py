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

from cida.benchmarks.recipes import recipes
from cida.benchmarks.rotating import ROTATING_DIGITS, ROTATING_MNIST, Turning
from cida.benchmarks.speed import Effort, Figure, clock, in_turns, mean_ms, step_ms
from cida.benchmarks.speed_steps import Played, circle_game, digits_game, signals_game, table_game
from cida.estimators import CidaWarning
from cida.games.base import joined
from cida.training import Sampler, Training, isolated

__all__ = ["cost_figures", "peak_figures"]

MATRIX = 1024  # rows and columns: large enough for the peak, small enough for a cache
GAMES: Mapping[str, Callable[[], Played]] = {
    "circle": partial(circle_game, "histogram"),
    "table": table_game,
    "digits": digits_game,
}


# --- the peak ------------------------------------------------------------------------------------


def peak_figures(effort: Effort) -> Iterator[Figure]:
    """What share of the machine's matrix products an encoder's pass forward and back reaches."""
    steps = effort.share(20)
    with isolated(0), tempfile.TemporaryDirectory() as folder:
        left, right = torch.rand(MATRIX, MATRIX), torch.rand(MATRIX, MATRIX)
        passes = {
            "encoder of Rotating MNIST": _image_pass(),
            "encoder of signals": _encoder_pass(signals_game(Path(folder, "segments.npy"))),
            "encoder of Circle": _encoder_pass(circle_game("histogram")),
        }
        flops = {name: _flops(once) for name, once in passes.items()}
        measures = {name: partial(mean_ms, once, steps, clock) for name, once in passes.items()}
        measures["peak"] = partial(mean_ms, partial(torch.mm, left, right), steps, clock)
        found = in_turns(measures)
    peak = 2 * MATRIX**3 / (1e6 * found.ms("peak"))
    words = f"matrices of {MATRIX} x {MATRIX}"
    yield Figure("matrix product in float32", peak, "GFLOP/s", beside=words)
    for name, count in flops.items():
        reached = count / (1e6 * found.ms(name))
        share = 100 * count / (2 * MATRIX**3) / found.ratio(name, "peak")
        beside = f"{reached:.0f} GFLOP/s, {found.ms(name):.2f} ms"
        yield Figure(f"{name}, forward and back", share, "% of peak", beside=beside)


def _flops(once: partial[None]) -> int:
    with FlopCounterMode(display=False) as counter:
        once()
    return int(counter.get_total_flops())


def _image_pass() -> partial[None]:
    recipe = recipes(ROTATING_MNIST, "best")["histogram"]
    size, space = recipe.networks.size, recipe.settings["space"]
    count = recipe.settings["batch_size"] + recipe.settings["source_batch_size"]
    index = space.embed(360 * torch.rand(count, 1, dtype=torch.float64)).float()
    encoder = recipe.networks.encoder(space, 0).train()
    return partial(_pass, encoder, (torch.rand(count, 1, size, size), index))


def _encoder_pass(played: Played) -> partial[None]:
    game, rows, training = played
    source = rows[rows.sources[: training.source_batch_size]]
    x, u = joined(source, rows[torch.arange(training.batch_size)])
    given = (x, game.space.embed(u).to(x.dtype)) if game.index_in_encoder else (x,)
    return partial(_pass, game.encoder.train(), given)


def _pass(encoder: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
    encoder.zero_grad()
    encoder(*given).square().mean().backward()


# --- loading and evaluating ----------------------------------------------------------------------


def cost_figures(effort: Effort) -> Iterator[Figure]:
    """Drawing and looking up the rows of a step, and predicting after training."""
    steps = effort.share(5)
    for name, made in GAMES.items():
        with isolated(0):
            yield from _loading(name, made(), steps)
    with tempfile.TemporaryDirectory() as folder, isolated(0):
        yield from _loading("signals, mapped", signals_game(Path(folder, "segments.npy")), steps)
    with isolated(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        yield _evaluating(effort)


def _loading(name: str, played: Played, steps: int) -> Iterator[Figure]:
    """The share of a step that goes into drawing its rows and looking them up."""
    game, rows, training = played
    timed = Training(**{**vars(training), "steps": 2 * steps, "events": 2, "curriculum": 0.0})
    sampler = Sampler(rows, game.space, timed.balance_bins, torch.Generator().manual_seed(0))

    def load() -> None:
        rows[sampler.source(timed.source_batch_size)]
        rows[sampler.everyone(timed.batch_size)]

    measures = {
        "load": lambda: mean_ms(load, steps, clock),
        "step": lambda: step_ms(game, rows, timed, clock),
    }
    found = in_turns(measures, 5)
    dealt = timed.batch_size + timed.source_batch_size
    beside = f"{found.ms('load'):.3f} ms for {dealt} rows"
    share = 100 * found.ratio("load", "step")
    yield Figure(f"loading, {name}", share, "% of a step", beside=beside)


def _evaluating(effort: Effort) -> Figure:
    """The score of a run on rotating digits against its training, steps as in the recipe."""
    recipe = recipes(ROTATING_DIGITS, "best")["histogram"]
    sample = ROTATING_DIGITS.draw(0, "clean")
    assert isinstance(sample, Turning)
    model = recipe.with_settings(steps=2).model(0)
    sample.train(model, oracle=False)
    game, rows, training = digits_game()
    steps = effort.share(10)
    timed = Training(**{**vars(training), "steps": 2 * steps, "events": 2, "curriculum": 0.0})
    measures = {
        "score": lambda: mean_ms(lambda: sample.scores(model), 1, clock),
        "step": lambda: step_ms(game, rows, timed, clock),
    }
    found = in_turns(measures, 5)
    share = 100 * found.ratio("score", "step") / recipe.settings["steps"]
    rate = 1000 * len(sample.scored()) / found.ms("score")
    beside = f"{found.ms('score'):.0f} ms, {rate:,.0f} images/s turned and predicted"
    return Figure("evaluation, digits", share, "% of its training", beside=beside)
