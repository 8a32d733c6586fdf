"""Encoders and predictors from plain arguments: what a plan says and what a row consists of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import nn

from cida.coordinates import MAX_FRAME_FEATURES, can_use_moving_frame
from cida.coordinates.trial import Capacity, CoordinateMode, is_frame
from cida.data import RowLayout
from cida.networks.framed import FramedEncoder
from cida.networks.image import Convolution, ImageEncoder
from cida.networks.mlp import MLP, IndexedEncoder, PlainEncoder
from cida.networks.rotation import RotationTransformer
from cida.networks.signal import SignalEncoder
from cida.networks.stochastic import GaussianEncoder, convert_dropout
from cida.networks.tabular import TabularEncoder
from cida.spaces import Space

__all__ = ["Stochastic", "build_encoder", "build_predictor", "image_or_signal_shape"]

Stochastic = Literal["gaussian", "dropout"] | None

ENCODER_DROPOUT = 0.1  # the share dropped in a probabilistic encoder: that of `TabularEncoder`
MIN_SIGNAL_SAMPLES = 64  # the paper's encoder strides 100 samples at a time
SIGNAL_WIDTH = 0.25  # of the paper's encoder
IMAGE_LAYERS = (Convolution(32, 3, 2), Convolution(64, 3, 2), Convolution(64, 3))
IMAGE_ENCODING_WIDTH = 64


def image_or_signal_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape that an encoder takes rows of this shape in; refuses those that have none."""
    *channels, height, width = shape
    if height == width and channels in ([], [1]):
        return (1, height, width)
    if not channels and width >= MIN_SIGNAL_SAMPLES:
        return (height, width)
    raise ValueError(
        f"X has rows of shape {tuple(shape)}; give vectors, square images (size, size) or (1, "
        f"size, size), or signals (channels, samples) of at least {MIN_SIGNAL_SAMPLES} samples, or "
        "an encoder of your own."
    )


def build_encoder(
    layout: RowLayout,
    space: Space,
    coordinates: CoordinateMode,
    capacity: Capacity,
    hidden: Sequence[int],
    encoding_width: int,
    stochastic: Stochastic = None,
) -> nn.Module:
    """An encoder for rows of this layout.

    Parameters
    ----------
    layout : RowLayout
        What a row consists of.
    space : Space
        What the index is.
    coordinates : CoordinateMode
        How x is expressed given the index before it is encoded.
    capacity : {"linear", "mlp"}
        Whether few rows must be enough.
    hidden : sequence of int
        The widths of the hidden layers.
    encoding_width : int
        The width of the encoding z.
    stochastic : {"gaussian", "dropout"}, optional
        A probabilistic encoder.

    Returns
    -------
    torch.nn.Module
        A module of x, or of x and the embedded index.
    """
    if layout.kind == "image":
        rotation = RotationTransformer(space.embedding_width, one_angle=not any(space.periods))
        return ImageEncoder(layout.shape[-1], IMAGE_LAYERS, IMAGE_ENCODING_WIDTH, rotation)
    if layout.kind == "signal":
        return SignalEncoder(space.embedding_width, SIGNAL_WIDTH, channels=layout.shape[0])
    _check_coordinates(coordinates, space, layout)
    numbers, index_width = layout.n_numbers, space.embedding_width
    width = 2 * encoding_width if stochastic == "gaussian" else encoding_width
    dropout = ENCODER_DROPOUT if stochastic == "dropout" else 0.0
    has_windows = coordinates == "windows"
    encoder: nn.Module
    if is_frame(coordinates):
        follow: Literal["path", "axes"] = "axes" if coordinates == "principal-axes" else "path"
        encoder = FramedEncoder(numbers, hidden, width, dropout, follow)
    elif coordinates == "learned":
        encoder = IndexedEncoder(numbers, index_width, hidden, width, dropout=dropout)
    elif has_windows or capacity == "linear" or not layout.is_numbers_only:
        extra = (layout.missing_indicators, layout.category_sizes, index_width)
        # It has dropout of its own, probabilistic or not.
        encoder = TabularEncoder(numbers, *extra, hidden, width, window=has_windows)
    else:
        encoder = PlainEncoder(numbers, hidden, width, dropout)
    if stochastic == "gaussian":
        return GaussianEncoder(encoder)
    return convert_dropout(encoder) if stochastic == "dropout" else encoder


def _check_coordinates(coordinates: CoordinateMode, space: Space, layout: RowLayout) -> None:
    """Refuses a frame where the index is no line, x has gaps, or a turn is too large a matrix."""
    if is_frame(coordinates) and space.embedding_width != 1:
        raise ValueError(
            f"coordinates is {coordinates!r}, which needs an index of one number on a Line, and "
            f"the space is {space!r}; use 'windows', 'raw' or 'learned'."
        )
    if (is_frame(coordinates) or coordinates == "learned") and not layout.is_numbers_only:
        raise ValueError(
            f"coordinates is {coordinates!r}, which needs columns of numbers without missing "
            "values, and X has categories or missing values; use 'windows' or 'raw'."
        )
    if is_frame(coordinates) and not can_use_moving_frame(space, layout.n_numbers):
        raise ValueError(
            f"coordinates is {coordinates!r} and X has {layout.n_numbers} columns; a moving frame "
            f"takes at most {MAX_FRAME_FEATURES}: choose columns, or use 'windows' or 'raw'."
        )


def build_predictor(
    encoding_width: int, hidden: Sequence[int], output_width: int, batch_norm: bool
) -> nn.Module:
    """A predictor for encodings of this width; without hidden layers a linear one."""
    return MLP(encoding_width, hidden, output_width, batch_norm)
