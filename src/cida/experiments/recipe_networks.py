"""The networks of the experiments on images, signals and tables, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from cida.experiments.real_tables.king_county import fetch_king_county
from cida.experiments.real_tables.nhanes import fetch_nhanes
from cida.experiments.real_tables.support2 import fetch_support2
from cida.networks import (
    Convolution,
    ImageEncoder,
    RotationTransformer,
    SignalEncoder,
    TabularEncoder,
)
from cida.spaces import Space
from cida.training import seeded

if TYPE_CHECKING:  # pyarrow, which only tables need
    from cida.tables import Schema

__all__ = [
    "EncodedDataset",
    "ImageNetworks",
    "SignalNetworks",
    "TableNetworks",
    "load_encoded_dataset",
]

Array = np.ndarray[Any, Any]
DATASET_LOADERS = {
    "nhanes": fetch_nhanes,
    "king-county": fetch_king_county,
    "support2": fetch_support2,
}


@dataclass(frozen=True)
class ImageNetworks:
    """An `ImageEncoder`: its transformer, its convolutions and the width of z."""

    size: int
    layers: tuple[Convolution, ...]
    encoding_width: int = 64
    transformer_sees_image: bool = False
    transformer_hidden: tuple[int, ...] = (64, 64)
    dropout: float = 0.0
    fold: int = 1

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""
        pixels = self.size**2 if self.transformer_sees_image else 0
        with seeded(seed):
            transformer = RotationTransformer(
                space.embedding_width,
                pixels,
                self.transformer_hidden,
                self.dropout,
                one_angle=not pixels and not any(space.periods),
            )
            return ImageEncoder(
                self.size,
                self.layers,
                self.encoding_width,
                transformer,
                self.dropout,
                self.fold,
            )


@dataclass(frozen=True)
class SignalNetworks:
    """A `SignalEncoder` with the blocks of the paper, so many times as wide."""

    width: float = 1.0
    norm_follows_index: bool = False

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""
        with seeded(seed):
            return SignalEncoder(space.embedding_width, self.width, self.norm_follows_index)


@dataclass(frozen=True)
class EncodedDataset:
    """A data set as an encoder sees it, and the schema that says what its columns are."""

    x: Array
    y: Array
    u: Array
    schema: Schema


@cache
def load_encoded_dataset(name: str) -> EncodedDataset:
    """The data set of this name, its columns scaled and coded as those of a user's own table."""
    from cida.tables import encode_columns

    data = DATASET_LOADERS[name]()
    x, schema = encode_columns(data.columns)
    return EncodedDataset(x, data.y, data.u, schema)


@dataclass(frozen=True)
class TableNetworks:
    """A `TabularEncoder` for the columns of a data set; with no ``window`` u is not seen."""

    dataset_name: str
    use_windows: bool = True
    hidden: tuple[int, ...] = (64,)

    @property
    def schema(self) -> Schema:
        """What the columns are."""
        return load_encoded_dataset(self.dataset_name).schema

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""
        schema = self.schema
        with seeded(seed):
            return TabularEncoder(
                schema.n_numeric,
                schema.missing_indicators,
                schema.category_sizes,
                space.embedding_width,
                self.hidden,
                window=self.use_windows,
            )
