"""Models of real tables: our encoders as plain values, and what a user would take otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from cida.coordinates import WindowsLayer
from cida.data import IndexedDataset
from cida.experiments.fetch import RemoteDataset
from cida.experiments.real_tables import table_data
from cida.experiments.spec import Recipe
from cida.methods import Role
from cida.networks import TabularEncoder
from cida.spaces import Space
from cida.training import Callback, Event, seeded

if TYPE_CHECKING:  # pyarrow, which only tables need
    from cida.tables import Schema


REAL_TABLES: Mapping[str, tuple[RemoteDataset, Callable[[], table_data.IndexedTable]]] = {
    "nhanes": (table_data.NHANES_DATASET, table_data.fetch_nhanes),
    "king-county": (table_data.KING_COUNTY_DATASET, table_data.fetch_king_county),
    "support2": (table_data.SUPPORT2_DATASET, table_data.fetch_support2),
}


@dataclass(frozen=True)
class EncodedDataset:
    """A data set as an encoder sees it, and the schema that says what its columns are."""

    x: np.ndarray
    y: np.ndarray
    u: np.ndarray
    schema: Schema


@cache
def load_encoded_dataset(name: str) -> EncodedDataset:
    """The data set of this name, its columns scaled and coded as those of a user's own table."""
    from cida.tables import encode_columns

    data = REAL_TABLES[name][1]()
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


@dataclass(frozen=True)
class ScikitRecipe(Recipe):
    """``boosting`` or a linear model, as they come, on rows as they are or in windows along u."""

    role: Role = Role.BASELINE
    boosting: bool = True
    windows: bool = False

    has_expected_score = False

    def to_dict(self) -> dict[str, Any]:
        names = ("boosting", "regression", "windows")
        return {name: getattr(self, name) for name in names} | super().to_dict()

    def build_model(self, seed: int, callbacks: Sequence[Callback] = ()) -> Any:
        """The model, not fitted yet; it has no steps to call back at."""
        return ScikitModel(self, seed)

    def save_model(self, model: Any, folder: Path) -> None:
        """Keeps nothing: without pickle there is no file for it, and it is fitted in seconds."""


class ScikitModel:
    """A scikit-learn model behind the few methods that an experiment calls."""

    def __init__(self, recipe: ScikitRecipe, seed: int) -> None:
        self.recipe = recipe
        self.history_: list[Event] = []
        self.windows: WindowsLayer | None = None
        self.space: Space = recipe.settings["space"]
        self.schema: Schema = recipe.networks.schema
        self.model = self._build_model(seed)

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        return {}

    def fit_dataset(self, dataset: IndexedDataset) -> Self:
        """Fits the windows to all rows, the model to the labelled ones."""
        self.space = self.space.fit(dataset.u)
        if self.recipe.windows:
            numbers, present = self._numeric_columns(dataset.x)
            windows = WindowsLayer(self.schema.n_numeric, self.space.embedding_width)
            self.windows = windows.fit(numbers, self.space.embed(dataset.u), present)
        source_rows = dataset.source_rows
        features = self._build_features(dataset.x[source_rows], dataset.u[source_rows])
        self.model.fit(features, dataset.y[source_rows].reshape(-1).numpy())
        return self

    def predict(self, X: np.ndarray, domain_index: np.ndarray) -> np.ndarray:
        features = self._build_features(torch.from_numpy(X), torch.from_numpy(domain_index))
        return np.asarray(self.model.predict(features))

    def _build_model(self, seed: int) -> Any:
        regression, schema = self.recipe.regression, self.schema
        if not self.recipe.boosting:
            model = Ridge() if regression else LogisticRegression(max_iter=1000)
            return Pipeline([("scale", StandardScaler()), ("model", model)])
        boosting = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
        categorical = list(range(schema.width - len(schema.category_sizes), schema.width))
        return boosting(random_state=seed, categorical_features=categorical)

    def _numeric_columns(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The numeric columns, and which of their cells are there."""
        n_numeric, indicator_columns = self.schema.n_numeric, list(self.schema.missing_indicators)
        present = torch.ones(len(x), n_numeric, dtype=torch.bool)
        present[:, indicator_columns] = x[:, n_numeric : n_numeric + len(indicator_columns)] < 0.5
        return x[:, :n_numeric], present

    def _build_features(self, x: torch.Tensor, u: torch.Tensor) -> np.ndarray:
        numbers, present = self._numeric_columns(x)
        if self.windows is not None:
            pair = (numbers, self.space.embed(u))
            parts = zip(*(torch.split(each, 4096) for each in pair), strict=True)
            numbers = torch.cat([self.windows(a, b.float()) for a, b in parts])
        numbers = numbers.masked_fill(~present, float("nan") if self.recipe.boosting else 0.0)
        other_columns = x[:, self.schema.n_numeric :]
        if not self.recipe.boosting:
            other_columns = self._one_hot(other_columns)
        return torch.cat([numbers, other_columns], dim=1).double().numpy()

    def _one_hot(self, columns: torch.Tensor) -> torch.Tensor:
        """Indicators as they are, a column of 0 and 1 for each category."""
        sizes = self.schema.category_sizes
        first = columns.shape[1] - len(sizes)
        pairs = zip(columns[:, first:].long().T, sizes, strict=True)
        codes = [torch.nn.functional.one_hot(column, size) for column, size in pairs]
        return torch.cat([columns[:, :first], *codes], dim=1)
