"""Encoders and settings for the rows of a user's own file, by their shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from cida.networks import (
    Convolution,
    ImageEncoder,
    RotationTransformer,
    SignalEncoder,
    TabularEncoder,
)
from cida.space import Space
from cida.training import isolated

if TYPE_CHECKING:  # it needs pyarrow, and the settings below do not
    from cida.tables import Schema

__all__ = [
    "PLAIN_SETTINGS",
    "TABLE_SETTINGS",
    "make_table_encoder",
    "network_shape",
    "table_settings",
]

# Few source rows, and a label that hangs on x in nearly the same way along u: a nearly linear
# model that keeps to the source rows next to the target (docs/methods/windows.md has the figures).
TABLE_SETTINGS: Mapping[str, Any] = {
    "predictor_hidden": (),
    "nearness": 0.5,
    "weight_decay": 3.0,
    "lambda_d": 2.0,
    "curriculum": 0.0,
    "discriminator_steps": 1,
    "source_batch_size": 128,
    "learning_rate": 1e-3,
    "averaging": 0.99,
}
# A plain network instead: every source row counts the same, and nothing holds it back.
PLAIN_SETTINGS: Mapping[str, Any] = {
    "nearness": 1.0,
    "weight_decay": 0.0,
    "predictor_hidden": (64,),
}
FEWEST_STEPS, MOST_STEPS, ROWS_A_STEP = 1000, 6000, 20
FEWEST_SAMPLES = 64  # of a signal: the paper's encoder strides 100 samples at a time
SIGNAL_WIDTH = 0.25
IMAGE_LAYERS = (Convolution(32, 3, 2), Convolution(64, 3, 2), Convolution(64, 3))


def network_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape that an encoder takes rows of this shape in; refuses those that have none."""
    if len(shape) == 1:
        return tuple(shape)
    *channels, height, width = shape
    if height == width and channels in ([], [1]):
        return (1, height, width)
    if not channels and width >= FEWEST_SAMPLES:
        return (height, width)
    raise ValueError(
        f"X has rows of shape {tuple(shape)}; give vectors, square images (size, size) or (1, "
        f"size, size), or signals (channels, samples) of at least {FEWEST_SAMPLES} samples."
    )


def table_settings(shape: Sequence[int], rows: int) -> dict[str, Any]:
    """The estimator's settings for rows of this shape: its own, but for vectors ours of tables."""
    if len(shape) > 1:
        return {}
    batch = min(128, rows)
    steps = min(MOST_STEPS, max(FEWEST_STEPS, rows // ROWS_A_STEP))
    return {**TABLE_SETTINGS, "steps": steps, "batch_size": batch, "source_batch_size": batch}


def make_table_encoder(
    shape: Sequence[int], schema: Schema, space: Space, seed: int, windows: bool = True
) -> nn.Module:
    """The encoder for rows of a shape of `network_shape`, its weights drawn with the seed."""
    makers: dict[int, Callable[[], nn.Module]] = {
        1: lambda: TabularEncoder(
            schema.numbers,
            schema.indicators,
            schema.sizes,
            space.embedding_width,
            window=windows,
        ),
        2: lambda: SignalEncoder(space.embedding_width, SIGNAL_WIDTH, channels=shape[0]),
        3: lambda: ImageEncoder(
            shape[-1],
            IMAGE_LAYERS,
            64,
            RotationTransformer(space.embedding_width, one_angle=not any(space.turns)),
        ),
    }
    with isolated(seed):
        return makers[len(shape)]()
