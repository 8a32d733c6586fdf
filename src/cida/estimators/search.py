"""Settings chosen without a label of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cida.batch import Rows
from cida.diagnostics import Candidate, Field, Validator, named_validator, outermost
from cida.estimators import inputs
from cida.estimators.base import CIDAEstimator
from cida.estimators.inputs import Array, Labels

__all__ = ["CIDASearch", "Tried", "candidate_by_predicting"]

HELD_OUT = 10  # one source row in so many, where the validator asks for rows that nobody saw


@dataclass(frozen=True)
class Tried:
    """One point of the grid and what the validator said of it."""

    settings: Mapping[str, Any]
    score: float


class CIDASearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits an estimator with each point of a grid and keeps the one a validator likes best.

    >>> from cida import CIDAClassifier, CIDASearch
    >>> from cida.datasets import moons
    >>> world = moons(rows=600)
    >>> search = CIDASearch(CIDAClassifier(steps=20, random_state=0), {"lambda_d": [0.2, 2.0]})
    >>> search = search.fit(world.x, world.training_labels, domain_index=world.u)
    >>> sorted(search.best_settings_)
    ['lambda_d']

    Parameters
    ----------
    estimator : a `CIDAClassifier` or `CIDARegressor`; its other settings are kept.
    grid : the values to try of each setting, such as ``{"discriminator": ["l2", "histogram"],
        "lambda_d": [0.2, 1, 5]}``, or a list of such.
    validator : "consensus", another name of `cida.diagnostics.VALIDATORS`, or one of your own. No
        validator sees a label of the target. For "importance-weighted" a tenth of the source
        rows is held out of every fit.

    Afterwards ``tried_`` has the score of each point, ``best_settings_`` the point that was kept
    and ``best_estimator_`` its fitted estimator, which predicts.
    """

    def __init__(
        self,
        estimator: CIDAEstimator,
        grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        validator: str | Validator = "consensus",
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.validator = validator

    def fit(self, X: Any, y: Any, domain_index: Any, source: Any = None) -> Self:
        """Fits every point; the arguments are those of the estimator's ``fit``."""
        validator = named_validator(self.validator)
        points = list(ParameterGrid(self.grid))
        labels = self.estimator._read_labels(y, len(y), True, source)
        shown = labels.labelled.copy()
        if validator.needs_held_out:
            shown[np.flatnonzero(shown)[::HELD_OUT]] = False
        fitted = [
            clone(self.estimator).set_params(**point).fit(X, y, domain_index, source=shown)
            for point in points
        ]
        known = _Known(X, y, domain_index, labels, shown)
        field = known.field(fitted[0])
        scores = validator(field, [known.candidate(model, field) for model in fitted])
        self.tried_ = [Tried(p, float(s)) for p, s in zip(points, scores, strict=True)]
        best = int(np.argmax(scores))
        self.best_settings_: dict[str, Any] = points[best]
        self.best_estimator_: CIDAEstimator = fitted[best]
        return self

    def predict(self, X: Any, domain_index: Any = None) -> Array:
        """The prediction of the estimator that was kept."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, domain_index=domain_index)

    def score(self, X: Any, y: Any, domain_index: Any = None) -> float:
        """The score of the estimator that was kept, over labelled rows."""
        check_is_fitted(self)
        found: float = self.best_estimator_.score(X, y, domain_index=domain_index)
        return found

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, domain_index: Any = None) -> Array:
        """The probabilities of the classifier that was kept."""
        check_is_fitted(self)
        found: Array = self.best_estimator_.predict_proba(X, domain_index=domain_index)
        return found


def candidate_by_predicting(model: Any, field: Field, loss: float) -> Candidate:
    """What a fitted estimator makes of a field whose x is as the estimator is given it."""
    x, u = field.x.numpy(), field.u.numpy()
    if field.has_classes:
        outputs: Array = model.predict_proba(x, domain_index=u)
    else:
        outputs = np.asarray(model.predict(x, domain_index=u)).reshape(len(x), 1)
    return Candidate(outputs, model.transform(x, domain_index=u), loss)


@dataclass(frozen=True)
class _Known:
    """What was given to fit, and which rows were shown with their labels."""

    X: Any
    y: Any
    domain_index: Any
    labels: Labels
    shown: Array

    def field(self, model: CIDAEstimator) -> Field:
        x = torch.from_numpy(model._read_x(self.X, reset=False)).float()
        u = inputs.check_index(self.domain_index, len(x), model.index_width_)
        labelled = torch.from_numpy(self.labels.labelled)
        rows = Rows(x, self._numbers(model), u, labelled)
        return Field.of(model.space_, rows, labelled & ~torch.from_numpy(self.shown))

    def candidate(self, model: CIDAEstimator, field: Field) -> Candidate:
        found = candidate_by_predicting(model, field, model.history_[-1].losses["prediction"])
        return replace(found, refit=partial(self._left_out, model))

    def _numbers(self, model: CIDAEstimator) -> torch.Tensor:
        """Class numbers, or the numbers themselves as a column; 0 where there is no label."""
        rows = self.labels.labelled
        if not hasattr(model, "classes_"):
            numbers = np.zeros((len(rows), 1))
            numbers[rows, 0] = inputs.as_numbers(self.labels.known)
            return torch.from_numpy(numbers)
        codes = np.zeros(len(rows), dtype=np.int64)
        codes[rows] = np.searchsorted(model.classes_, self.labels.known)
        return torch.from_numpy(codes)

    def _left_out(self, model: CIDAEstimator) -> float:
        """The score on the outermost source range of the same settings fitted without it."""
        u = inputs.check_index(self.domain_index, len(self.shown), model.index_width_)
        shown = torch.from_numpy(self.shown)
        hidden = outermost(model.space_, u, shown).numpy()
        twin = clone(model).fit(self.X, self.y, self.domain_index, source=self.shown & ~hidden)
        x, truth = model._read_x(self.X, reset=False)[hidden], self.labels.values[hidden]
        found: float = twin.score(x, truth, domain_index=u.numpy()[hidden])
        return found
