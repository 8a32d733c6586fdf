"""How much time the training loop adds to what the networks need anyway."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from cida.arrays import map_array
from cida.batch import Batch, Rows
from cida.benchmarks.recipes import Recipe, recipes
from cida.benchmarks.rotating import ROTATING_DIGITS, Turning
from cida.benchmarks.sleep_tasks import SLEEP_INTRA
from cida.benchmarks.speed import ROUNDS, Effort, Figure, clock, in_turns, mean_ms, step_ms
from cida.datasets import circle
from cida.datasets.sleep import NightRows
from cida.discriminators import DISCRIMINATORS
from cida.estimators import CIDAClassifier
from cida.estimators.table_networks import TABLE_SETTINGS
from cida.games import Adversarial, cross_entropy
from cida.games.base import frozen, joined
from cida.networks import TabularEncoder
from cida.space import Line
from cida.training import Training, isolated
from cida.training.descent import Descent

__all__ = [
    "STEP_LIMIT",
    "circle_game",
    "digits_game",
    "floor_of",
    "signals_game",
    "step_figures",
    "step_over_floor",
    "table_game",
]

Array = np.ndarray[Any, Any]
Played = tuple[Adversarial, Rows, Training]

STEP_LIMIT = 1.15
SEGMENTS, SAMPLES, STAGES = 2000, 300, 4  # of a night's store: 30 s at 10 Hz
TABLE_ROWS, NUMBERS = 20_000, 17
# Rounds are short, and steps on digits and signals take so many times as long.
POINTS_ONE_IN, DIGITS_ONE_IN, SIGNALS_ONE_IN = 3, 15, 60


def step_figures(effort: Effort) -> Iterator[Figure]:
    """A full step over its floor: toys with every head, digits, signals and tables."""
    points = effort.share(POINTS_ONE_IN)
    for head in DISCRIMINATORS:
        if head == "flow" and find_spec("zuko") is None:
            continue
        yield step_over_floor(f"circle, {head}", partial(circle_game, head), points)
    yield step_over_floor("table of 20 columns", table_game, points)
    yield step_over_floor("rotating digits", digits_game, effort.share(DIGITS_ONE_IN))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "segments.npy")
        yield step_over_floor(
            "signals of 300 samples", lambda: signals_game(path), effort.share(SIGNALS_ONE_IN)
        )


def step_over_floor(
    name: str, made: Callable[[], Played], steps: int, rounds: int = 3 * ROUNDS
) -> Figure:
    """A full step (data, game, descents, averaging) against its floor.

    The floor is a bare loop over one fixed batch: the same forward passes, losses, backward passes
    and descents in the same order, and nothing else. Rounds are many and short, since what else the
    machine does comes and goes within seconds.
    """
    with isolated(0):
        game, rows, training = made()
        timed = Training(**{**vars(training), "steps": 2 * steps, "events": 2, "curriculum": 0.0})
        floor = floor_of(game.train(), rows, timed)
        measures = {
            "step": lambda: step_ms(game, rows, timed, clock),
            "floor": lambda: mean_ms(floor, steps, clock),
        }
        found = in_turns(measures, rounds)
    beside = f"{found.ms('step'):.2f} ms over {found.ms('floor'):.2f} ms"
    return Figure(name, found.ratio("step", "floor"), "x floor", STEP_LIMIT, beside=beside)


def floor_of(game: Adversarial, rows: Rows, training: Training) -> Callable[[], None]:
    """One step of the bare loop."""
    source: Batch = rows[rows.sources[: training.source_batch_size]]
    everyone: Batch = rows[torch.arange(training.batch_size)]
    x, u = joined(source, everyone)
    given = [x, game.space.embed(u).to(x.dtype)] if game.index_in_encoder else [x]
    target = game.discriminator.target(everyone.u).to(x.dtype)
    rate, head = training.learning_rate, game.discriminator
    discriminate, encode = (Descent(game.players()[who]) for who in ("discriminator", "encoder"))

    def step() -> None:
        game.train()  # a training in between leaves the game at rest
        z_source, z = torch.split(game.encoder(*given), [len(source), len(everyone)])
        for _ in range(game.discriminator_steps):
            discriminate.forget()
            head.score(head(z.detach()), target).mean().backward()  # type: ignore[no-untyped-call]
            discriminate.step(rate)
        with frozen(head):
            adversarial = head.score(head(z), target).mean()
        prediction = cross_entropy(game.predictor(z_source), source.y).mean()
        encode.forget()
        (prediction - game.lambda_d * adversarial).backward()  # type: ignore[no-untyped-call]
        encode.step(rate)

    return step


# --- the games -----------------------------------------------------------------------------------


def circle_game(head: str) -> Played:
    """Circle with the default networks and this head."""
    world = circle()
    u = torch.from_numpy(world.u)[:, None]
    x = torch.from_numpy(world.x.astype(np.float32))
    rows = Rows(x, torch.from_numpy(world.y), u, torch.from_numpy(world.source))
    model = CIDAClassifier(head, index_in_encoder=False, steps=1, random_state=0)
    game = model.fit(world.x, world.training_labels, domain_index=world.u).game_
    return _adversarial(game), rows, Training()


def digits_game() -> Played:
    """The histogram head on rotating digits, which are turned as they are dealt."""
    recipe = recipes(ROTATING_DIGITS, "best")["histogram"]
    sample = ROTATING_DIGITS.draw(0, "clean")
    assert isinstance(sample, Turning)
    return _of_recipe(recipe, sample.rows())


def signals_game(path: Path) -> Played:
    """The PCIDA of the sleep tables on segments of noise, in a mapped file at this path."""
    rng = np.random.default_rng(0)
    np.save(path, rng.normal(size=(SEGMENTS, SAMPLES)).astype(np.float16))
    age = torch.from_numpy(rng.uniform(44, 90, SEGMENTS))
    rows = NightRows(
        [map_array(path)],
        torch.zeros(SEGMENTS),
        torch.arange(SEGMENTS),
        torch.from_numpy(rng.integers(0, STAGES, SEGMENTS)),
        age,
        age <= 60,
    )
    return _of_recipe(recipes(SLEEP_INTRA[0], "best")["pcida"], rows)


def table_game() -> Played:
    """What ``cida fit`` trains on a table of numbers, one with holes, and a category."""
    rng = np.random.default_rng(0)
    u = torch.from_numpy(rng.uniform(0, 1, TABLE_ROWS))
    numbers = rng.normal(size=(TABLE_ROWS, NUMBERS))
    others = [rng.random(TABLE_ROWS) < 0.05, rng.integers(0, 4, TABLE_ROWS)]
    x = torch.from_numpy(np.column_stack([numbers, *others]).astype(np.float32))
    y = torch.from_numpy((numbers[:, 0] > 0).astype(np.int64))
    encoder = TabularEncoder(NUMBERS, (0,), (4,), 1)
    settings = {"discriminator": "histogram", "space": Line(), "index_in_encoder": True}
    sizes = {"batch_size": 128, "source_batch_size": 128}
    rows = Rows(x, y, u, u < 0.5)
    return _fitted({**settings, **TABLE_SETTINGS, **sizes}, encoder, rows)


def _of_recipe(recipe: Recipe, rows: Rows) -> Played:
    encoder = recipe.networks.encoder(recipe.settings["space"], 0)
    return _fitted(recipe.settings, encoder, rows)


def _fitted(settings: Mapping[str, Any], encoder: nn.Module, rows: Rows) -> Played:
    """The game after one step, its rows, and a training as these settings have it."""
    model = CIDAClassifier(**{**settings, "steps": 1}, encoder=encoder, random_state=0)
    game = model.fit_rows(rows).game_
    names = ("batch_size", "source_batch_size", "learning_rate", "averaging", "balance_bins")
    given = {name: settings[name] for name in names if name in settings}
    return _adversarial(game), rows, Training(**given)


def _adversarial(game: object) -> Adversarial:
    assert isinstance(game, Adversarial)
    return game
