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
from cida.spaces import Space
from cida.training import seeded

if TYPE_CHECKING:  # it needs pyarrow, and the settings below do not
    from cida.tables import Schema

__all__ = [
    "PLAIN_SETTINGS",
    "TABLE_SETTINGS",
    "encoder_input_shape",
    "make_table_encoder",
    "resolve_table_settings",
]

# Few source rows, and a label that hangs on x in nearly the same way along u: a nearly linear
# model that keeps to the source rows next to the target (docs/methods/windows.md has the figures).
TABLE_SETTINGS: Mapping[str, Any] = {
    "predictor_hidden": (),
    "proximity": 0.5,
    "weight_decay": 3.0,
    "lambda_d": 2.0,
    "curriculum": 0.0,
    "discriminator_steps": 1,
    "source_batch_size": 128,
    "learning_rate": 1e-3,
    "ema_decay": 0.99,
}
# A plain network instead: every source row counts the same, and nothing holds it back.
PLAIN_SETTINGS: Mapping[str, Any] = {
    "proximity": 1.0,
    "weight_decay": 0.0,
    "predictor_hidden": (64,),
}
MIN_TABLE_STEPS, MAX_TABLE_STEPS, TABLE_ROWS_PER_STEP = 1000, 6000, 20
MIN_SIGNAL_SAMPLES = 64  # of a signal: the paper's encoder strides 100 samples at a time
SIGNAL_WIDTH_FACTOR = 0.25
IMAGE_ENCODER_LAYERS = (Convolution(32, 3, 2), Convolution(64, 3, 2), Convolution(64, 3))


def encoder_input_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape that an encoder takes rows of this shape in; refuses those that have none."""
    if len(shape) == 1:
        return tuple(shape)
    *channels, height, width = shape
    if height == width and channels in ([], [1]):
        return (1, height, width)
    if not channels and width >= MIN_SIGNAL_SAMPLES:
        return (height, width)
    raise ValueError(
        f"X has rows of shape {tuple(shape)}; give vectors, square images (size, size) or (1, "
        f"size, size), or signals (channels, samples) of at least {MIN_SIGNAL_SAMPLES} samples."
    )


def resolve_table_settings(shape: Sequence[int], n_rows: int) -> dict[str, Any]:
    """The estimator's settings for rows of this shape: its own, but for vectors ours of tables."""
    if len(shape) > 1:
        return {}
    batch = min(128, n_rows)
    steps = min(MAX_TABLE_STEPS, max(MIN_TABLE_STEPS, n_rows // TABLE_ROWS_PER_STEP))
    return {**TABLE_SETTINGS, "steps": steps, "batch_size": batch, "source_batch_size": batch}


def make_table_encoder(
    shape: Sequence[int], schema: Schema, space: Space, seed: int, windows: bool = True
) -> nn.Module:
    """The encoder for rows of a shape of `network_shape`, its weights drawn with the seed."""
    builders: dict[int, Callable[[], nn.Module]] = {
        1: lambda: TabularEncoder(
            schema.n_numeric,
            schema.missing_indicators,
            schema.category_sizes,
            space.embedding_width,
            window=windows,
        ),
        2: lambda: SignalEncoder(space.embedding_width, SIGNAL_WIDTH_FACTOR, channels=shape[0]),
        3: lambda: ImageEncoder(
            shape[-1],
            IMAGE_ENCODER_LAYERS,
            64,
            RotationTransformer(space.embedding_width, one_angle=not any(space.periods)),
        ),
    }
    with seeded(seed):
        return builders[len(shape)]()
