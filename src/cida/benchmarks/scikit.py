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

from cida.batch import Rows
from cida.benchmarks.networks import TableNetworks
from cida.benchmarks.recipes import Recipe
from cida.networks import IndexWindows
from cida.space import Space
from cida.training import Callback, Event

__all__ = ["ScikitModel", "ScikitRecipe"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ScikitRecipe(Recipe):
    """``boosting`` or a linear model, as they come, on rows as they are or in windows along u."""

    boosting: bool = True
    regression: bool = False
    windows: bool = False

    tells_expected = False

    def words(self) -> dict[str, Any]:
        names = ("boosting", "regression", "windows")
        return {name: getattr(self, name) for name in names} | super().words()

    def model(self, seed: int, callbacks: Sequence[Callback] = ()) -> Any:
        """The model, not fitted yet; it has no steps to call back at."""
        return ScikitModel(self, seed)

    def keep(self, model: Any, folder: Path) -> None:
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
        self.model = self._boosting(seed) if recipe.boosting else self._linear()

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        return {}

    def fit_rows(self, rows: Rows) -> Self:
        """Fits the windows to all rows, the model to the labelled ones."""
        self.space = self.space.fit(rows.u)
        if self.recipe.windows:
            numbers, present = self._numbers(rows.x)
            windows = IndexWindows(self.schema.numbers, self.space.embedding_width)
            self.windows = windows.fit(numbers, self.space.embed(rows.u), present)
        known = rows.sources
        features = self._features(rows.x[known], rows.u[known])
        self.model.fit(features, rows.y[known].reshape(-1).numpy())
        return self

    def predict(self, X: Array, domain_index: Array) -> Array:
        features = self._features(torch.from_numpy(X), torch.from_numpy(domain_index))
        predicted: Array = self.model.predict(features)
        return predicted

    def _boosting(self, seed: int) -> Any:
        kind = (
            HistGradientBoostingRegressor
            if self.recipe.regression
            else HistGradientBoostingClassifier
        )
        width, codes = self.schema.width, len(self.schema.sizes)
        return kind(random_state=seed, categorical_features=list(range(width - codes, width)))

    def _linear(self) -> Any:
        model = Ridge() if self.recipe.regression else LogisticRegression(max_iter=1000)
        return Pipeline([("scale", StandardScaler()), ("model", model)])

    def _numbers(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The numeric columns, and which of their cells are there."""
        count, holes = self.schema.numbers, list(self.schema.indicators)
        present = torch.ones(len(x), count, dtype=torch.bool)
        present[:, holes] = x[:, count : count + len(holes)] < 0.5
        return x[:, :count], present

    def _features(self, x: torch.Tensor, u: torch.Tensor) -> Array:
        numbers, present = self._numbers(x)
        if self.windows is not None:
            parts = zip(
                torch.split(numbers, 4096), torch.split(self.space.embed(u), 4096), strict=True
            )
            numbers = torch.cat([self.windows(a, b.float()) for a, b in parts])
        numbers = numbers.masked_fill(~present, float("nan") if self.recipe.boosting else 0.0)
        rest = x[:, self.schema.numbers :]
        if not self.recipe.boosting:
            rest = self._one_hot(rest)
        return torch.cat([numbers, rest], dim=1).double().numpy()

    def _one_hot(self, rest: torch.Tensor) -> torch.Tensor:
        """Indicators as they are, a column of 0 and 1 for each category."""
        sizes = self.schema.sizes
        first = rest.shape[1] - len(sizes)
        codes = [
            torch.nn.functional.one_hot(rest[:, first + k].long(), size)
            for k, size in enumerate(sizes)
        ]
        return torch.cat([rest[:, :first], *codes], dim=1)
