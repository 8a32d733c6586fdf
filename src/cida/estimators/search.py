"""A search over settings that needs no target label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cida import array_checks
from cida.array_checks import Array, Labels
from cida.data import IndexedDataset
from cida.estimators.base import CIDAEstimator
from cida.estimators.prediction_inputs import read_rows
from cida.estimators.validation import read_labels
from cida.selection.source_ranges import nearest_source_third
from cida.selection.validation_set import CandidateOutputs, ValidationSet
from cida.selection.validators import Validator, get_validator

__all__ = ["CIDASearch", "SearchResult", "candidate_from_predictions"]

HELD_OUT_STRIDE = 10  # one source row in so many, where the validator asks for rows that nobody saw


@dataclass(frozen=True)
class SearchResult:
    """One point of the grid and its score."""

    params: Mapping[str, Any]
    score: float


class CIDASearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits an estimator with each point of a grid, and keeps the one with the best validator score.

    Parameters
    ----------
    estimator : CIDAClassifier or CIDARegressor
        Its other parameters are kept.
    param_grid : mapping, or sequence of mappings
        The values to try of each parameter, such as ``{"discriminator": ["l2", "histogram"],
        "lambda_d": [0.2, 1, 5]}``.
    validator : str or Validator, default "consensus"
        A name in `cida.selection.VALIDATORS` or an instance. No validator sees a target label. For
        "importance-weighted" a tenth of the source rows is held out of every fit.

    Attributes
    ----------
    results_ : list of SearchResult
        The score of each point.
    best_params_ : dict
        The point that was kept.
    best_estimator_ : CIDAClassifier or CIDARegressor
        Its fitted estimator.

    Examples
    --------
    >>> from cida import CIDAClassifier, CIDASearch
    >>> from cida.datasets import make_rotating_moons
    >>> data = make_rotating_moons(n_samples=600)
    >>> search = CIDASearch(CIDAClassifier(steps=20, random_state=0), {"lambda_d": [0.2, 2.0]})
    >>> search = search.fit(data.x, data.training_labels, domain_index=data.u)
    >>> sorted(search.best_params_)
    ['lambda_d']
    """

    def __init__(
        self,
        estimator: CIDAEstimator,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        validator: str | Validator = "consensus",
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.validator = validator

    def fit(self, X: Any, y: Any, domain_index: Any, source: Any = None) -> Self:
        """Fit every point of the grid.

        Parameters
        ----------
        X : array-like
            Rows as in the estimator's ``fit``.
        y : array-like
            Labels, with unlabelled rows.
        domain_index : array-like
            The index of each row.
        source : array-like of bool, optional
            As in the estimator's ``fit``.

        Returns
        -------
        CIDASearch
            This search, fitted.
        """
        validator = get_validator(self.validator)
        param_sets = list(ParameterGrid(self.param_grid))
        labels = read_labels(self.estimator, y, len(y), source)
        training_mask = labels.labelled.copy()
        if validator.needs_held_out:
            training_mask[np.flatnonzero(training_mask)[::HELD_OUT_STRIDE]] = False
        estimators = [
            clone(self.estimator).set_params(**point).fit(X, y, domain_index, source=training_mask)
            for point in param_sets
        ]
        data = _SearchData(X, y, domain_index, labels, training_mask)
        validation_set = data.validation_set(estimators[0])
        scores = validator(
            validation_set, [data.make_candidate(model, validation_set) for model in estimators]
        )
        self.results_ = [SearchResult(p, float(s)) for p, s in zip(param_sets, scores, strict=True)]
        best = int(np.argmax(scores))
        self.best_params_: dict[str, Any] = param_sets[best]
        self.best_estimator_: CIDAEstimator = estimators[best]
        return self

    def predict(self, X: Any, domain_index: Any = None) -> Array:
        """Return the predictions of the estimator that was kept.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        domain_index : array-like, optional
            The index of each row; a table has its own.

        Returns
        -------
        ndarray of shape (rows,)
            Predicted classes or numbers.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X, domain_index=domain_index)

    def score(self, X: Any, y: Any, domain_index: Any = None) -> float:
        """Return the score of the estimator that was kept, on the labelled rows.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        y : array-like
            Labels; unlabelled rows are left out.
        domain_index : array-like, optional
            The index of each row; a table has its own.

        Returns
        -------
        float
            Accuracy or R^2.
        """
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, domain_index=domain_index))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, domain_index: Any = None) -> Array:
        """Return the probabilities of the classifier that was kept.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        domain_index : array-like, optional
            The index of each row; a table has its own.

        Returns
        -------
        ndarray of shape (rows, classes)
            The probabilities.
        """
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_proba(X, domain_index=domain_index))


def candidate_from_predictions(
    model: Any, validation_set: ValidationSet, loss: float
) -> CandidateOutputs:
    """What a fitted estimator makes of a field whose x is as the estimator is given it."""
    x, u = validation_set.x.numpy(), validation_set.u.numpy()
    if validation_set.has_classes:
        outputs: Array = model.predict_proba(x, domain_index=u)
    else:
        outputs = np.asarray(model.predict(x, domain_index=u)).reshape(len(x), 1)
    return CandidateOutputs(outputs, model.transform(x, domain_index=u), loss)


@dataclass(frozen=True)
class _SearchData:
    """What was given to fit, and which rows were shown with their labels."""

    X: Any
    y: Any
    domain_index: Any
    labels: Labels
    training_mask: Array

    def validation_set(self, model: CIDAEstimator) -> ValidationSet:
        x = torch.from_numpy(read_rows(model, model.state_, self.X)).float()
        labelled = self.labels.labelled
        if is_classifier(model):
            y = model.state_.labels.encode(self.labels)
        else:
            y = np.zeros((len(labelled), 1))
            y[labelled, 0] = array_checks.parse_number_labels(self.labels.source_labels)
        mask, held_out = torch.from_numpy(labelled), labelled & ~self.training_mask
        dataset = IndexedDataset(x, torch.from_numpy(y), self._index(model), mask)
        return ValidationSet.from_dataset(model.space_, dataset, torch.from_numpy(held_out))

    def make_candidate(self, model: CIDAEstimator, rows: ValidationSet) -> CandidateOutputs:
        loss = model.history_[-1].losses["prediction"]
        candidate = candidate_from_predictions(model, rows, loss)
        return replace(candidate, refit=partial(self._score_left_out_range, model))

    def _index(self, model: CIDAEstimator) -> torch.Tensor:
        n_rows = len(self.training_mask)
        return array_checks.check_domain_index(self.domain_index, n_rows, model.index_width_)

    def _score_left_out_range(self, model: CIDAEstimator) -> float:
        """The score on the outermost source range of the same settings fitted without it."""
        u, mask = self._index(model), self.training_mask
        hidden = nearest_source_third(model.space_, u, torch.from_numpy(mask)).numpy()
        refitted = clone(model).fit(self.X, self.y, self.domain_index, source=mask & ~hidden)
        x, truth = read_rows(model, model.state_, self.X)[hidden], self.labels.values[hidden]
        return float(refitted.score(x, truth, domain_index=u.numpy()[hidden]))
