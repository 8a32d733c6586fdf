"""What the classifier and the regressor share: everything but the meaning of y."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from cida.certificate.certificate import Certificate
from cida.data import IndexedDataset
from cida.discriminators import Discriminator, make_discriminator
from cida.estimators import (
    checkup,
    inputs,
    parameters,
    prediction,
    restarts,
    saving,
    schedule,
    trust,
)
from cida.estimators.balance import warn_label_shift, weight_by_proximity
from cida.estimators.choices import choose_space, resolve_plan
from cida.estimators.inputs import Array, CidaWarning, Labels
from cida.estimators.scaling import Scaler
from cida.games import Game, PredictionLoss, get_game_class
from cida.metrics import BinScore, Metric
from cida.networks import is_stochastic
from cida.selection.validators import Validator
from cida.spaces import Line, Space, make_line_space
from cida.training import Callback, seeded

__all__ = ["CIDAEstimator"]


@dataclass(eq=False, repr=False)
class CIDAEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """The common half of `CIDAClassifier` and `CIDARegressor`; use those."""

    # Requested by default, so that the index travels through pipelines and searches.
    __metadata_request__fit: ClassVar = {"domain_index": True, "source": True}
    __metadata_request__predict: ClassVar = {"domain_index": True}
    __metadata_request__transform: ClassVar = {"domain_index": True}
    __metadata_request__score: ClassVar = {"domain_index": True}

    discriminator: str | Discriminator | None = "auto"
    game: str | type[Game] = "adversarial"
    space: Space | None = None
    encoder: nn.Module | None = None
    predictor: nn.Module | None = None
    coordinates: Literal["auto", "raw", "windows", "moving-frame", "principal-axes", "learned"] = (
        "auto"
    )
    stochastic: Literal["gaussian", "dropout"] | None = None
    n_draws: int = 32
    encoder_hidden: Sequence[int] | None = None
    encoding_width: int = 32
    predictor_hidden: Sequence[int] = (64,)
    batch_norm: bool = False
    lambda_d: float | None = None
    discriminator_steps: int = 2
    ceiling: bool = True
    curriculum: float | None = None
    curriculum_stages: int = 20
    n_balance_bins: int = 30
    steps: int | None = None
    batch_size: int | None = None
    source_batch_size: int | None = None
    learning_rate: float = 5e-4
    schedule: Literal["cosine", "constant"] = "cosine"
    weight_decay: float = 0.0
    ema_decay: float = 0.999
    proximity: float = 1.0
    standardize: bool = True
    device: str = "cpu"
    precision: Literal["float32", "bf16"] = "float32"
    compile: bool = False
    n_restarts: int = 1
    validator: str | Validator = "consensus"
    random_state: Any = None
    verbose: bool = False
    callbacks: Sequence[Callback] | None = None

    # --- what y means: each estimator says -------------------------------------------------------

    @abstractmethod
    def _fit_labels(self, labels: Labels, weight: Array) -> Array:
        """The labels as numbers to train on; keeps what `predict` needs to turn them back."""

    @abstractmethod
    def _fit_dataset_labels(self, y: Tensor) -> None:
        """The same for labels that are numbers to train on already."""

    @abstractmethod
    def _output_width(self) -> int:
        """How many numbers the predictor gives."""

    @abstractmethod
    def _prediction_loss(self) -> PredictionLoss:
        """``L_p``, one number a row."""

    @abstractmethod
    def _bin_metric(self) -> Metric:
        """The figure of `score_by_index`."""

    @abstractmethod
    def _label_state(self) -> dict[str, Any]:
        """What `_learn_labels` kept, as JSON values."""

    @abstractmethod
    def _restore_labels(self, state: dict[str, Any]) -> None:
        """Takes back what `_label_state` gave."""

    @abstractmethod
    def _merge_draws(self, outputs: Tensor) -> Tensor:
        """One output a row from those of each draw, of shape ``(draws, rows, outputs)``."""

    def _fit_residuals(self, dataset: IndexedDataset) -> None:
        """Keeps what predictions need to know of the errors on the rows trained on."""

    @abstractmethod
    def predict(self, X: Any, domain_index: Any = None) -> Array:
        """The predicted label of each row."""

    # --- fitting ---------------------------------------------------------------------------------

    @parameters.restore_on_failure
    def fit(
        self,
        X: Any,
        y: Any = None,
        domain_index: Any = None,
        source: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Trains on labelled source rows and, where ``domain_index`` is given, on target rows.

        Parameters
        ----------
        X : rows of numbers (numpy, pandas, polars, torch); any shape with an encoder of your own.
        y : labels. NaN or None is unlabelled; so is -1 in the integer labels of a classifier when
            ``domain_index`` is given and ``source`` is not. Otherwise -1 is a class.
        domain_index : u, one number or one row of numbers for each row of X. Without it this is a
            plain classifier or regressor.
        source : booleans; when given, labels outside it are never read.
        sample_weight : weights of the prediction loss alone.
        """
        x = self._read_x(X, reset=True)
        parameters.check_parameters(self.get_params(deep=False), len(x))
        get_game_class(self.game)  # a misspelt name is told even where none plays
        if self.discriminator not in (None, "auto"):
            make_discriminator(self.discriminator)
        labels = self._read_labels(y, len(x), domain_index is not None, source)
        weight = inputs.read_sample_weight(labels, sample_weight, x)
        self._index_names = inputs.get_index_names(domain_index)
        if domain_index is None:
            x, labels, weight = inputs.drop_zero_weight(x, labels, weight)
            if len(x) <= schedule.resolve_batch_size(self, len(x)):
                x, labels, weight = inputs.merge_duplicate_rows(x, labels, weight)
            u = torch.zeros(len(x), 1, dtype=torch.float64)
            self.space_: Space = Line()
            self.index_width_: int | None = None
        else:
            u = inputs.check_domain_index(domain_index, len(x))
            self.space_ = inputs.fit_space(self.space or choose_space(x, u), u)
            self.index_width_ = self.space_.width
            if self.discriminator is not None and labels.labelled.all():
                warnings.warn(
                    f"y has no unlabelled row among its {len(x)}, so there is no target to adapt "
                    "to; training on the source alone.",
                    CidaWarning,
                    stacklevel=inputs.caller_stacklevel(),
                )
        self._training_index = inputs.sample_index(u)
        dataset = self._build_dataset(x, labels, u, weight)
        if self.discriminator is not None and not get_game_class(self.game).conditional:
            warn_label_shift(self.space_, dataset)
        self._train(dataset)
        return self

    @parameters.restore_on_failure
    def fit_dataset(self, dataset: IndexedDataset) -> Self:
        """Trains on `Rows` as they are dealt: turned on the fly, or larger than memory.

        Inputs are not scaled, and labels must be as the game wants them: classes 0 .. K - 1, or
        numbers of about unit size. Needs an encoder of your own unless rows are vectors.
        """
        parameters.check_parameters(self.get_params(deep=False), len(dataset))
        self._row_shape = inputs.check_dataset(dataset)
        self.n_features_in_ = self._row_shape[0]
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # an earlier fit's
        self.space_ = inputs.fit_space(self.space or make_line_space(dataset.u.shape[1]), dataset.u)
        self.index_width_ = self.space_.width
        self._index_names = None
        self._scaler = Scaler.identity()
        self._fit_dataset_labels(dataset.source_labels)
        self._training_index = inputs.sample_index(dataset.u)
        self._train(dataset)
        return self

    def _build_dataset(self, x: Array, labels: Labels, u: Tensor, weight: Array) -> IndexedDataset:
        targets = self._fit_labels(labels, weight)
        # Where there is a target, its rows count as much as the source's for what x looks like.
        counts = weight if self.index_width_ is None else np.ones(len(x))
        self._scaler = Scaler.fit(x, counts) if self.standardize else Scaler.identity()
        weight = self._prediction_weight(labels, weight)
        weight = weight / weight[labels.labelled].mean()
        return IndexedDataset(
            self._scaler.transform(x),
            torch.from_numpy(targets),
            u,
            torch.from_numpy(labels.labelled),
            torch.from_numpy(weight).float(),
        )

    def _train(self, dataset: IndexedDataset) -> None:
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        has_target = self.discriminator is not None and len(dataset.source_rows) < len(dataset)
        if self.proximity < 1 and 0 < len(dataset.source_rows) < len(dataset):
            dataset = weight_by_proximity(self.space_, dataset, self.proximity)
        self.plan_ = resolve_plan(self, dataset)
        training = schedule.make_training_config(self, len(dataset), has_target, seed)
        completed, self.selection_ = restarts.train_best_of(self, dataset, training, has_target)
        self.game_, self.history_ = completed.game, completed.history
        self.n_steps_ = training.steps
        with seeded(seed):  # rows may be made as they are dealt
            self._fit_residuals(dataset)
            checkup.summarize_and_diagnose(self, dataset)

    @property
    def _has_index_input(self) -> bool:
        return self.plan_.coordinates != "raw"

    # --- reading what the user passes ------------------------------------------------------------

    def _read_x(self, X: Any, *, reset: bool) -> Array:
        if isinstance(X, Tensor):
            X = inputs.as_array(X)
        x: Array = validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            allow_nd=self.encoder is not None,
        )
        inputs.check_finite("X", x)
        if reset:
            self._row_shape = x.shape[1:]
        elif x.shape[1:] != self._row_shape:
            raise ValueError(
                f"X has rows of shape {x.shape[1:]} but the model was fitted with "
                f"{self._row_shape}; give rows of the same shape."
            )
        return x

    def _read_labels(self, y: Any, n_rows: int, has_index: bool, source: Any) -> Labels:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        return inputs.read_labels(y, n_rows, has_index=has_index, source=source)

    def _prediction_weight(self, labels: Labels, weight: Array) -> Array:
        return weight

    def _read_u(self, domain_index: Any, n_rows: int) -> Tensor:
        if self.index_width_ is None:
            if domain_index is not None:
                raise ValueError(
                    "domain_index was given, but the model was fitted without one; leave it out or "
                    "fit again with domain_index."
                )
            return torch.zeros(n_rows, 1, dtype=torch.float64)
        if domain_index is None:
            if self._has_index_input:
                raise ValueError(
                    "domain_index is missing, and the encoder takes it as an input "
                    f"(coordinates={self.plan_.coordinates!r}); give the index of each row."
                )
            return torch.zeros(n_rows, self.index_width_, dtype=torch.float64)
        u = inputs.check_domain_index(domain_index, n_rows, self.index_width_)
        inputs.check_index_names(domain_index, self._index_names)
        inputs.warn_far_index(self.space_, u, self._training_index)
        return u

    # --- using the fitted model ------------------------------------------------------------------

    def _compute_outputs(self, X: Any, domain_index: Any, *, encoding: bool = False) -> Array:
        check_is_fitted(self)
        x = self._read_x(X, reset=False)
        u = self._read_u(domain_index, len(x))
        network = self.game_.encode if encoding else self._prediction_network(self.game_)
        return prediction.compute_outputs(network, self._scaler, x, u)

    def _prediction_network(self, game: Game) -> prediction.NetworkFunction:
        """What predicts: one pass, or one for each draw where a player is probabilistic."""
        if not _is_stochastic(game):
            return game.predict
        parameters.check_minimum("n_draws", self.n_draws)  # it may change after the fit
        return prediction.merge_over_draws(game, self.n_draws, self._merge_draws)

    @property
    def _is_stochastic(self) -> bool:
        return _is_stochastic(self.game_)

    def transform(self, X: Any, domain_index: Any = None) -> Array:
        """The encoding z of each row; its mean where the encoder is probabilistic."""
        return self._compute_outputs(X, domain_index, encoding=True)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fits, then gives the encoding of the same rows."""
        domain_index = fit_params.get("domain_index")
        encoding: Array = self.fit(X, y, **fit_params).transform(X, domain_index=domain_index)
        return encoding

    def score_by_index(self, X: Any, y: Any, domain_index: Any, n_bins: int = 10) -> list[BinScore]:
        """The score in each of ``bins`` cells along u, over labelled rows.

        Accuracy for the classifier, root mean squared error for the regressor.
        """
        return trust.score_by_index(self, X, y, domain_index, n_bins)

    def certify(self, X: Any, domain_index: Any) -> Certificate:
        """Whether z still tells u, best asked of held-out rows: a `Certificate` with `words()`.

        It can refute alignment, never prove it. No label is read.
        """
        return trust.certify_model(self, X, domain_index)

    def _score(
        self, metric: Callable[..., Any], X: Any, y: Any, domain_index: Any, sample_weight: Any
    ) -> float:
        """A metric of scikit-learn's over the labelled rows."""
        predicted = self.predict(X, domain_index=domain_index)
        labels = self._scorable_labels(y, len(predicted))
        rows = labels.labelled
        weight = inputs.read_score_weight(sample_weight, rows)
        return float(metric(labels.source_labels, predicted[rows], sample_weight=weight))

    def _scorable_labels(self, y: Any, n_rows: int) -> Labels:
        """The labels that can be scored against; unlabelled rows are left out."""
        return inputs.read_labels(y, n_rows, has_index=True, source=None)

    # --- files -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one safetensors file with a JSON header; no pickle."""
        check_is_fitted(self)
        saving.save_estimator(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        encoder: nn.Module | None = None,
        predictor: nn.Module | None = None,
        discriminator: Discriminator | None = None,
    ) -> Self:
        """Reads a file that `save` wrote; pass modules of your own again."""
        model = saving.load_estimator(path, encoder, predictor, discriminator)
        if not isinstance(model, cls):
            raise saving.ModelFileError(
                f"{path} holds a {type(model).__name__}, not a {cls.__name__}; "
                f"use {type(model).__name__}.load or cida.load."
            )
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "game_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # encodings are float32, whatever X is
        return tags


def _is_stochastic(game: Game) -> bool:
    return is_stochastic(game.encoder) or is_stochastic(game.predictor)
