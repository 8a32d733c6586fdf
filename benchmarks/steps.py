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

from benchmarks.measure import (
    N_ROUNDS,
    Effort,
    Measurement,
    mean_ms,
    measure_interleaved,
    read_clock,
    step_ms,
)
from cida.data import Batch, IndexedDataset
from cida.datasets import make_circle
from cida.discriminators import DISCRIMINATORS
from cida.estimators import CIDAClassifier
from cida.experiments.rotating_mnist.rotating_tasks import ROTATING_DIGITS, RotatingTaskData
from cida.experiments.sleep.sleep_data import NightDataset
from cida.experiments.sleep.sleep_tasks import SLEEP_INTRA
from cida.experiments.spec import Recipe, build_recipes
from cida.games import Adversarial, cross_entropy
from cida.games.base import freeze
from cida.io.arrays import map_array
from cida.networks import TabularEncoder
from cida.policy import LINEAR_SETTINGS
from cida.spaces import Line
from cida.training import TrainingConfig, seeded
from cida.training.optimizer import FusedAdamW

__all__ = [
    "MAX_STEP_OVER_FLOOR",
    "circle_game",
    "digits_game",
    "make_floor_step",
    "measure_step_over_floor",
    "signals_game",
    "step_figures",
    "table_game",
]

GameSetup = tuple[Adversarial, IndexedDataset, TrainingConfig]

MAX_STEP_OVER_FLOOR = 1.15
N_SEGMENTS, SEGMENT_SAMPLES, N_STAGES = 2000, 300, 4  # of a night's store: 30 s at 10 Hz
N_TABLE_ROWS, N_NUMERIC_COLUMNS = 20_000, 17
# Rounds are short, and steps on digits and signals take so many times as long.
POINTS_STEP_DIVISOR, DIGITS_STEP_DIVISOR, SIGNALS_STEP_DIVISOR = 3, 15, 60


def step_figures(effort: Effort) -> Iterator[Measurement]:
    """A full step over its floor: toys with every head, digits, signals and tables."""
    points = effort.scaled_steps(POINTS_STEP_DIVISOR)
    for head in DISCRIMINATORS:
        if head == "flow" and find_spec("zuko") is None:
            continue
        yield measure_step_over_floor(f"circle, {head}", partial(circle_game, head), points)
    yield measure_step_over_floor("table of 20 columns", table_game, points)
    yield measure_step_over_floor(
        "rotating digits", digits_game, effort.scaled_steps(DIGITS_STEP_DIVISOR)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "segments.npy")
        yield measure_step_over_floor(
            "signals of 300 samples",
            lambda: signals_game(path),
            effort.scaled_steps(SIGNALS_STEP_DIVISOR),
        )


def measure_step_over_floor(
    name: str, make_setup: Callable[[], GameSetup], steps: int, rounds: int = 3 * N_ROUNDS
) -> Measurement:
    """A full step (data, game, descents, averaging) against its floor.

    The floor is a bare loop over one fixed batch: the same forward passes, losses, backward passes
    and descents in the same order, and nothing else. Rounds are many and short, since what else the
    machine does comes and goes within seconds.
    """
    with seeded(0):
        game, rows, training = make_setup()
        training_config = TrainingConfig(
            **{**vars(training), "steps": 2 * steps, "events": 2, "curriculum": 0.0}
        )
        floor = make_floor_step(game.train(), rows, training_config)
        measures = {
            "step": lambda: step_ms(game, rows, training_config, read_clock),
            "floor": lambda: mean_ms(floor, steps, read_clock),
        }
        timings = measure_interleaved(measures, rounds)
    beside = f"{timings.median_ms('step'):.2f} ms over {timings.median_ms('floor'):.2f} ms"
    return Measurement(
        name, timings.median_ratio("step", "floor"), "x floor", MAX_STEP_OVER_FLOOR, note=beside
    )


def make_floor_step(
    game: Adversarial, rows: IndexedDataset, training: TrainingConfig
) -> Callable[[], None]:
    """One step of the bare loop."""
    source: Batch = rows[rows.source_rows[: training.source_batch_size]]
    pooled: Batch = rows[torch.arange(training.batch_size)]
    x, u = torch.cat([source.x, pooled.x]), torch.cat([source.u, pooled.u])
    inputs = [x, game.space.embed(u).to(x.dtype)] if game.index_in_encoder else [x]
    target = game.discriminator.target(pooled.u).to(x.dtype)
    rate, head = training.learning_rate, game.discriminator
    discriminate, encode = (
        FusedAdamW(game.player_parameters()[who]) for who in ("discriminator", "encoder")
    )

    def step() -> None:
        game.train()  # a training in between leaves the game at rest
        z_source, z = torch.split(game.encoder(*inputs), [len(source), len(pooled)])
        for _ in range(game.discriminator_steps):
            discriminate.zero_grad()
            head.score(head(z.detach()), target).mean().backward()  # type: ignore[no-untyped-call]
            discriminate.step(rate)
        with freeze(head):
            adversarial = head.score(head(z), target).mean()
        prediction = cross_entropy(game.predictor(z_source), source.y).mean()
        encode.zero_grad()
        (prediction - game.lambda_d * adversarial).backward()  # type: ignore[no-untyped-call]
        encode.step(rate)

    return step


# --- the games -----------------------------------------------------------------------------------


def circle_game(head: str) -> GameSetup:
    """Circle with the default networks and this head."""
    world = make_circle()
    u = torch.from_numpy(world.u)[:, None]
    x = torch.from_numpy(world.x.astype(np.float32))
    rows = IndexedDataset(x, torch.from_numpy(world.y), u, torch.from_numpy(world.source))
    model = CIDAClassifier(head, coordinates="raw", steps=1, random_state=0)
    game = model.fit(world.x, world.training_labels, domain_index=world.u).game_
    return _require_adversarial(game), rows, TrainingConfig()


def digits_game() -> GameSetup:
    """The histogram head on rotating digits, which are turned as they are dealt."""
    recipe = build_recipes(ROTATING_DIGITS, "best")["histogram"]
    sample = ROTATING_DIGITS.draw_data(0, "clean")
    assert isinstance(sample, RotatingTaskData)
    return _setup_from_recipe(recipe, sample.training_dataset())


def signals_game(path: Path) -> GameSetup:
    """The PCIDA of the sleep tables on segments of noise, in a mapped file at this path."""
    rng = np.random.default_rng(0)
    np.save(path, rng.normal(size=(N_SEGMENTS, SEGMENT_SAMPLES)).astype(np.float16))
    age = torch.from_numpy(rng.uniform(44, 90, N_SEGMENTS))
    rows = NightDataset(
        [map_array(path)],
        torch.zeros(N_SEGMENTS),
        torch.arange(N_SEGMENTS),
        torch.from_numpy(rng.integers(0, N_STAGES, N_SEGMENTS)),
        age,
        age <= 60,
    )
    return _setup_from_recipe(build_recipes(SLEEP_INTRA[0], "best")["pcida"], rows)


def table_game() -> GameSetup:
    """What ``cida fit`` trains on a table of numbers, one with holes, and a category."""
    rng = np.random.default_rng(0)
    u = torch.from_numpy(rng.uniform(0, 1, N_TABLE_ROWS))
    numbers = rng.normal(size=(N_TABLE_ROWS, N_NUMERIC_COLUMNS))
    others = [rng.random(N_TABLE_ROWS) < 0.05, rng.integers(0, 4, N_TABLE_ROWS)]
    x = torch.from_numpy(np.column_stack([numbers, *others]).astype(np.float32))
    y = torch.from_numpy((numbers[:, 0] > 0).astype(np.int64))
    encoder = TabularEncoder(N_NUMERIC_COLUMNS, (0,), (4,), 1)
    settings = {"discriminator": "histogram", "space": Line(), "coordinates": "learned"}
    sizes = {"batch_size": 128, "source_batch_size": 128}
    rows = IndexedDataset(x, y, u, u < 0.5)
    return _fit_setup({**settings, **LINEAR_SETTINGS, **sizes}, encoder, rows)


def _setup_from_recipe(recipe: Recipe, rows: IndexedDataset) -> GameSetup:
    encoder = recipe.networks.encoder(recipe.settings["space"], 0)
    return _fit_setup(recipe.settings, encoder, rows)


def _fit_setup(settings: Mapping[str, Any], encoder: nn.Module, rows: IndexedDataset) -> GameSetup:
    """The game after one step, its rows, and a training as these settings have it."""
    model = CIDAClassifier(**{**settings, "steps": 1}, encoder=encoder, random_state=0)
    game = model.fit_dataset(rows).game_
    names = ("batch_size", "source_batch_size", "learning_rate", "ema_decay", "n_balance_bins")
    config_values = {name: settings[name] for name in names if name in settings}
    return _require_adversarial(game), rows, TrainingConfig(**config_values)


def _require_adversarial(game: object) -> Adversarial:
    assert isinstance(game, Adversarial)
    return game
