"""What the classifier and the regressor share: everything but the meaning of y."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from cida.certificate import Certificate, certify
from cida.data import IndexedDataset
from cida.discriminators import Discriminator, make_discriminator
from cida.errors import warn_user
from cida.estimators import array_checks, model_file, parameters, validation
from cida.estimators.array_checks import Array, Labels
from cida.estimators.fitted_state import FITTED_ATTRIBUTES, FittedState
from cida.estimators.fitting import fit_state
from cida.estimators.prediction_inputs import iter_inputs
from cida.estimators.summarize import warn_label_shift
from cida.estimators.validation import FitArguments, TrainingData
from cida.games import get_game_class
from cida.metrics import BinScore, score_by_bin
from cida.policy import FitRequest, resolve
from cida.training import seeded

__all__ = ["CIDAEstimator"]


@dataclass(eq=False, repr=False)
class CIDAEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, FitRequest):  # type: ignore[misc]
    """The common half of `CIDAClassifier` and `CIDARegressor`; use those."""

    # Requested by default, so that the index travels through pipelines and searches.
    __metadata_request__fit: ClassVar = {"domain_index": True, "source": True}
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

    # --- fitting ---------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        domain_index: Any = None,
        source: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit on labelled source rows and, where there is an index, on unlabelled target rows.

        Parameters
        ----------
        X : array-like, frame, mapping of columns, or path
            Rows of numbers (numpy, pandas, polars, torch); images or signals; or a table with
            numbers, texts, dates and missing values (pandas, polars, pyarrow, a mapping of
            columns, or the path of a .csv, .parquet or .npz file).
        y : array-like or str
            Labels, or the name of the table's label column. NaN, None or an empty cell is
            unlabelled; so is -1 in the integer labels of a classifier when ``domain_index`` is
            given and ``source`` is not. Otherwise -1 is a class.
        domain_index : array-like, str or sequence of str, optional
            The index u, one number or one row of numbers for each row of X, or the names of index
            columns of the table. Without it this is a plain classifier or regressor.
        source : array-like of bool, optional
            Where given, labels outside it are never read.
        sample_weight : array-like, optional
            Weights of the prediction loss alone.

        Returns
        -------
        self
            The fitted estimator; a fit that fails leaves it as it was.
        """
        given = FitArguments(X, y, domain_index, source, sample_weight)
        return self.fit_data(self.read_training_data(given))

    def fit_dataset(self, dataset: IndexedDataset) -> Self:
        """Fit on an `IndexedDataset` as it is: rows made on the fly, or larger than memory.

        Parameters
        ----------
        dataset : IndexedDataset
            Inputs are not scaled, and labels must be as the game wants them: classes 0 .. K - 1,
            or numbers of about unit size. Rows that are no vectors need an encoder of your own.

        Returns
        -------
        self
            The fitted estimator.
        """
        parameters.check_parameters(self.get_params(deep=False), len(dataset))
        if getattr(self, "class_weight", None) is not None:
            raise ValueError(
                f"class_weight is {self.class_weight!r}, which fit_dataset does not read; give "
                "the data set's rows their weight."
            )
        return self.fit_data(validation.dataset_training_data(self, dataset), warns_of_shift=False)

    def fit_data(self, data: TrainingData, warns_of_shift: bool = True) -> Self:
        """Fit on data that was read and checked already.

        Parameters
        ----------
        data : TrainingData
            From `cida.estimators.validation.training_data`.
        warns_of_shift : bool
            Whether to warn where the balance of source labels moves along the index.

        Returns
        -------
        self
            The fitted estimator.
        """
        parameters.check_parameters(self.get_params(deep=False), len(data))
        game = get_game_class(self.game)  # a misspelt name is told even where none plays
        if self.discriminator not in (None, "auto"):
            make_discriminator(self.discriminator)
        can_adapt = data.layout.has_index and self.discriminator is not None and warns_of_shift
        if can_adapt and len(data.dataset.source_rows) == len(data):
            warn_user(
                f"y has no unlabelled row among its {len(data)}, so there is no target to adapt "
                "to; training on the source alone."
            )
        seed = self._draw_seed()
        with seeded(seed):  # a look-up of rows may draw, and that must not be felt outside
            plan = resolve(self, data.dataset, data.layout)
            hides_index = not game.conditional if plan.is_adapting else plan.standardizes_along_u
            if hides_index and warns_of_shift:
                warn_label_shift(plan.space, data.dataset)
            self.state_ = fit_state(plan, data, self, seed)
        return self

    def read_training_data(self, given: FitArguments) -> TrainingData:
        """Read and check the arguments of a fit, without fitting."""
        parameters.check_static(self.get_params(deep=False))
        unfitted = copy.copy(self)
        unfitted.__dict__.pop("state_", None)  # names of a former fit must not be taken for these
        return validation.training_data(unfitted, given)

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    # --- using the fitted model ------------------------------------------------------------------

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
        parameters.check_minimum("n_draws", self.n_draws)  # it may change after the fit
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
        return self.fit(X, y, **fit_params).transform(X, domain_index=domain_index)

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

    # --- files -----------------------------------------------------------------------------------

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
