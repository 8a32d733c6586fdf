"""What every estimator does with its fitted state: predict, score, certify, save."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from cida import array_checks
from cida.array_checks import Array, Labels
from cida.certificate import Certificate, certify
from cida.discriminators import Discriminator
from cida.estimators import model_file
from cida.estimators.fitted_state import FITTED_ATTRIBUTES, FittedState
from cida.estimators.labels import ClassLabels
from cida.estimators.prediction_inputs import iter_inputs
from cida.metrics import BinScore, score_by_bin

__all__ = ["FittedClassifier", "FittedEstimator", "FittedRegressor"]


class FittedEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose ``state_`` is a `FittedState`; how it came about is a subclass's own."""

    state_: FittedState
    n_draws = 1  # of a probabilistic encoder, where there is one
    random_state: Any = None

    # Requested by default, so that the index travels through pipelines and searches.
    __metadata_request__predict: ClassVar = {"domain_index": True}
    __metadata_request__transform: ClassVar = {"domain_index": True}
    __metadata_request__score: ClassVar = {"domain_index": True}

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__.get("state_")
        if state is not None:
            if name in FITTED_ATTRIBUTES:
                return FITTED_ATTRIBUTES[name](state)
            if name == "feature_names_in_" and state.feature_names is not None:
                return np.array(state.feature_names, dtype=object)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _fitted_state(self) -> FittedState:
        check_is_fitted(self)
        return self.state_

    def _apply(self, method: Callable[..., Array], X: Any, domain_index: Any, *more: Any) -> Array:
        """What a method of the fitted state gives for all rows."""
        state = self._fitted_state()
        rows = iter_inputs(self, state, X, domain_index)
        parts = [method(state, x, u, *more) for x, u in rows]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _outputs(self, X: Any, domain_index: Any) -> Array:
        return self._apply(FittedState.outputs, X, domain_index, self.n_draws)

    def predict(self, X: Any, domain_index: Any = None) -> Array:
        """Return the predicted label of each row; of classes the most probable one.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        domain_index : array-like, optional
            The index of each row; a table has its own.

        Returns
        -------
        ndarray of shape (rows,)
            Predicted labels.
        """
        outputs = self._outputs(X, domain_index)
        return self.state_.labels.decode(outputs)

    def transform(self, X: Any, domain_index: Any = None) -> Array:
        """The encoding z of each row; its mean where the encoder is probabilistic.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        domain_index : array-like, optional
            The index of each row; a table has its own.

        Returns
        -------
        ndarray of shape (rows, encoding width)
            The encodings.
        """
        return self._apply(FittedState.encodings, X, domain_index)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, then give the encoding of the same rows."""
        domain_index = fit_params.get("domain_index")
        encodings: Array = self.fit(X, y, **fit_params).transform(X, domain_index=domain_index)
        return encodings

    def is_extrapolated(self, X: Any, domain_index: Any = None) -> Array:
        """Which rows have an index far from all seen in training: do not trust those.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        domain_index : array-like, optional
            The index of each row; a table has its own.

        Returns
        -------
        ndarray of bool
            True where the index is farther than a tenth of its range from any index seen.
        """
        return self._apply(lambda state, _, u: state.is_extrapolated(u), X, domain_index)

    def score_by_index(self, X: Any, y: Any, domain_index: Any, n_bins: int = 10) -> list[BinScore]:
        """The score in each of ``n_bins`` cells along u, over labelled rows.

        Accuracy for the classifier, root mean squared error for the regressor.
        """
        self._indexed(domain_index, "score along")
        if n_bins < 1:
            raise ValueError(f"n_bins is {n_bins}; it must be at least 1.")
        predicted = self.predict(X, domain_index=domain_index)
        labels = self._known_labels(y, len(predicted))
        u = array_checks.check_domain_index(domain_index, len(predicted), self.index_width_)
        rows, codec = labels.labelled, self.state_.labels
        return score_by_bin(
            self.space_, u[rows], labels.source_labels, predicted[rows], n_bins, codec.metric
        )

    def certify(self, X: Any, domain_index: Any) -> Certificate:
        """Test whether z still tells u, best asked of held-out rows; no label is read.

        Parameters
        ----------
        X : array-like
            Rows as in `fit`.
        domain_index : array-like
            The index of each row.

        Returns
        -------
        Certificate
            Its `summary` tells the verdict. It can refute alignment, never prove it.
        """
        self._indexed(domain_index, "be free of")
        z = self.transform(X, domain_index=domain_index)
        u = array_checks.check_domain_index(domain_index, len(z), self.index_width_)
        predicted = self.predict(X, domain_index=domain_index)
        return certify(self.space_, z, u, predicted, index_names=self.state_.index_names)

    def _indexed(self, domain_index: Any, purpose: str) -> None:
        """Refuses a model without an index, and a call without one."""
        if self._fitted_state().index_width is None:
            raise ValueError(
                f"domain_index was not given to fit, so there is no index to {purpose}; fit again "
                "with domain_index."
            )
        if domain_index is None:
            raise ValueError("domain_index is missing; give the index of each row of X.")

    def _score(
        self, metric: Callable[..., Any], X: Any, y: Any, domain_index: Any, sample_weight: Any
    ) -> float:
        """A metric of scikit-learn's over the labelled rows."""
        predicted = self.predict(X, domain_index=domain_index)
        labels = self._known_labels(y, len(predicted))
        if sample_weight is not None:
            sample_weight = array_checks.as_array(sample_weight)
            array_checks.check_length("sample_weight", sample_weight, len(predicted))
            sample_weight = sample_weight[labels.labelled]
        rows = predicted[labels.labelled]
        return float(metric(labels.source_labels, rows, sample_weight=sample_weight))

    def _known_labels(self, y: Any, n_rows: int) -> Labels:
        """The labels that can be scored against; unlabelled rows are left out."""
        may_hide = self.index_width_ is not None and hasattr(self, "classes_")
        hides = may_hide and -1 not in self.classes_.tolist()
        return array_checks.read_labels(y, n_rows, hides_minus_one=hides)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one safetensors file with a JSON header; no pickle."""
        state = self._fitted_state()
        model_file.save_model(path, type(self).__name__, self.get_params(deep=False), state)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        encoder: nn.Module | None = None,
        predictor: nn.Module | None = None,
        discriminator: Discriminator | None = None,
    ) -> Self:
        """Read a file that `save` wrote; pass modules of your own again."""
        model = model_file.load(path, encoder, predictor, discriminator)
        if not isinstance(model, cls):
            raise model_file.ModelFileError(
                f"{path} holds a {type(model).__name__}, not a {cls.__name__}; "
                f"use {type(model).__name__}.load or cida.load."
            )
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return "state_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # encodings are float32, whatever X is
        return tags


class FittedClassifier(ClassifierMixin, FittedEstimator):  # type: ignore[misc]
    """A classifier: it also gives probabilities, and is scored by its accuracy."""

    __metadata_request__predict_proba: ClassVar = {"domain_index": True}

    def predict_proba(self, X: Any, domain_index: Any = None) -> Array:
        """Return the probability of each class in ``classes_``.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        domain_index : array-like, optional
            The index of each row; a table has its own.

        Returns
        -------
        ndarray of shape (rows, classes)
            The probabilities; their mean over draws where the encoder is probabilistic.
        """
        outputs = self._outputs(X, domain_index)
        codec = self.state_.labels
        assert isinstance(codec, ClassLabels)
        return codec.probabilities(outputs)

    def score(self, X: Any, y: Any, domain_index: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled rows.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        y : array-like
            Labels; unlabelled rows are left out.
        domain_index : array-like, optional
            The index of each row; a table has its own.
        sample_weight : array-like, optional
            Weights of the rows.

        Returns
        -------
        float
            Between 0 and 1.
        """
        return self._score(accuracy_score, X, y, domain_index, sample_weight)


class FittedRegressor(RegressorMixin, FittedEstimator):  # type: ignore[misc]
    """A regressor, which is scored by R^2."""

    def score(self, X: Any, y: Any, domain_index: Any = None, sample_weight: Any = None) -> float:
        """Return R^2 on the labelled rows.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        y : array-like
            Labels; unlabelled rows are left out.
        domain_index : array-like, optional
            The index of each row; a table has its own.
        sample_weight : array-like, optional
            Weights of the rows.

        Returns
        -------
        float
            At most 1.
        """
        return self._score(r2_score, X, y, domain_index, sample_weight)
