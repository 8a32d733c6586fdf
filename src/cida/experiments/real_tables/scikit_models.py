"""Models of scikit-learn as methods of a table: what a user would take otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from cida.coordinates import IndexWindows
from cida.data import IndexedDataset
from cida.experiments.real_tables.table_encoders import TableNetworks
from cida.experiments.spec import Recipe
from cida.methods import Role
from cida.spaces import Space
from cida.training import Callback, Event

__all__ = ["ScikitModel", "ScikitRecipe"]

Array = np.ndarray[Any, Any]


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
        self.windows: IndexWindows | None = None
        self.space: Space = recipe.settings["space"]
        networks = recipe.networks
        assert isinstance(networks, TableNetworks)
        self.schema = networks.schema
        self.model = self._build_boosting(seed) if recipe.boosting else self._build_linear()

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        return {}

    def fit_dataset(self, dataset: IndexedDataset) -> Self:
        """Fits the windows to all rows, the model to the labelled ones."""
        self.space = self.space.fit(dataset.u)
        if self.recipe.windows:
            numbers, present = self._numeric_columns(dataset.x)
            windows = IndexWindows(self.schema.n_numeric, self.space.embedding_width)
            self.windows = windows.fit(numbers, self.space.embed(dataset.u), present)
        source_rows = dataset.source_rows
        features = self._build_features(dataset.x[source_rows], dataset.u[source_rows])
        self.model.fit(features, dataset.y[source_rows].reshape(-1).numpy())
        return self

    def predict(self, X: Array, domain_index: Array) -> Array:
        features = self._build_features(torch.from_numpy(X), torch.from_numpy(domain_index))
        predicted: Array = self.model.predict(features)
        return predicted

    def _build_boosting(self, seed: int) -> Any:
        estimator_class = (
            HistGradientBoostingRegressor
            if self.recipe.regression
            else HistGradientBoostingClassifier
        )
        width, n_categorical = self.schema.width, len(self.schema.category_sizes)
        return estimator_class(
            random_state=seed, categorical_features=list(range(width - n_categorical, width))
        )

    def _build_linear(self) -> Any:
        model = Ridge() if self.recipe.regression else LogisticRegression(max_iter=1000)
        return Pipeline([("scale", StandardScaler()), ("model", model)])

    def _numeric_columns(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The numeric columns, and which of their cells are there."""
        n_numeric, indicator_columns = self.schema.n_numeric, list(self.schema.missing_indicators)
        present = torch.ones(len(x), n_numeric, dtype=torch.bool)
        present[:, indicator_columns] = x[:, n_numeric : n_numeric + len(indicator_columns)] < 0.5
        return x[:, :n_numeric], present

    def _build_features(self, x: torch.Tensor, u: torch.Tensor) -> Array:
        numbers, present = self._numeric_columns(x)
        if self.windows is not None:
            parts = zip(
                torch.split(numbers, 4096), torch.split(self.space.embed(u), 4096), strict=True
            )
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
        codes = [
            torch.nn.functional.one_hot(columns[:, first + k].long(), size)
            for k, size in enumerate(sizes)
        ]
        return torch.cat([columns[:, :first], *codes], dim=1)
