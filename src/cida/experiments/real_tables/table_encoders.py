"""The real tables as encoders see them, and their encoders as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from cida.experiments.fetch import RemoteDataset
from cida.experiments.real_tables.king_county import KING_COUNTY_DATASET, fetch_king_county
from cida.experiments.real_tables.nhanes import NHANES_DATASET, fetch_nhanes
from cida.experiments.real_tables.real_table import IndexedTable
from cida.experiments.real_tables.support2 import SUPPORT2_DATASET, fetch_support2
from cida.networks import TabularEncoder
from cida.spaces import Space
from cida.training import seeded

if TYPE_CHECKING:  # pyarrow, which only tables need
    from cida.tables import Schema

__all__ = ["REAL_TABLES", "EncodedDataset", "TableNetworks", "load_encoded_dataset"]

Array = np.ndarray[Any, Any]

REAL_TABLES: Mapping[str, tuple[RemoteDataset, Callable[[], IndexedTable]]] = {
    "nhanes": (NHANES_DATASET, fetch_nhanes),
    "king-county": (KING_COUNTY_DATASET, fetch_king_county),
    "support2": (SUPPORT2_DATASET, fetch_support2),
}


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

    _, fetch_table = REAL_TABLES[name]
    data = fetch_table()
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
