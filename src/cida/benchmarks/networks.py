"""The networks of the experiments on images, signals and tables, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from cida.datasets import load_king_county, load_nhanes, load_support2
from cida.networks import (
    Convolution,
    ImageEncoder,
    RotationTransformer,
    SignalEncoder,
    TabularEncoder,
)
from cida.space import Space
from cida.training import isolated

if TYPE_CHECKING:  # pyarrow, which only tables need
    from cida.tables import Schema

__all__ = ["EncodedTable", "ImageNetworks", "SignalNetworks", "TableNetworks", "encoded_table"]

Array = np.ndarray[Any, Any]
TABLES = {"nhanes": load_nhanes, "king-county": load_king_county, "support2": load_support2}


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
        with isolated(seed):
            transformer = RotationTransformer(
                space.embedding_width,
                pixels,
                self.transformer_hidden,
                self.dropout,
                one_angle=not pixels and not any(space.turns),
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
    follow: bool = False

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""
        with isolated(seed):
            return SignalEncoder(space.embedding_width, self.width, self.follow)


@dataclass(frozen=True)
class EncodedTable:
    """A data set as an encoder sees it, and the schema that says what its columns are."""

    x: Array
    y: Array
    u: Array
    schema: Schema


@cache
def encoded_table(name: str) -> EncodedTable:
    """The data set of this name, its columns scaled and coded as those of a user's own table."""
    from cida.tables import encode_columns

    data = TABLES[name]()
    x, schema = encode_columns(data.columns)
    return EncodedTable(x, data.y, data.u, schema)


@dataclass(frozen=True)
class TableNetworks:
    """A `TabularEncoder` for the columns of a data set; with no ``window`` u is not seen."""

    data: str
    window: bool = True
    hidden: tuple[int, ...] = (64,)

    @property
    def schema(self) -> Schema:
        """What the columns are."""
        return encoded_table(self.data).schema

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""
        schema = self.schema
        with isolated(seed):
            return TabularEncoder(
                schema.numbers,
                schema.indicators,
                schema.sizes,
                space.embedding_width,
                self.hidden,
                window=self.window,
            )
