"""The regressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, overload

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from torch import Tensor

from cida.data import IndexedDataset
from cida.estimators import inputs, prediction
from cida.estimators.base import CIDAEstimator
from cida.estimators.inputs import Array, Labels
from cida.estimators.scaling import check_magnitude
from cida.games import PredictionLoss, squared_error
from cida.io.json_decode import decode
from cida.metrics import Metric, root_mean_squared_error

__all__ = ["CIDARegressor"]


@dataclass(eq=False, repr=False)
class CIDARegressor(RegressorMixin, CIDAEstimator):  # type: ignore[misc]
    """A regressor that adapts across a continuous domain index.

    Parameters are those of `CIDAClassifier`, without ``class_weight``. y is a number, unlabelled
    only where it is NaN or None; the predictor minimises the squared error of the standardised y.
    With a probabilistic encoder (``stochastic``) `predict` can give a deviation for each row.
    """

    __metadata_request__predict: ClassVar = {"domain_index": True, "return_std": True}

    def _fit_labels(self, labels: Labels, weight: Array) -> Array:
        source_labels = inputs.parse_number_labels(labels.source_labels)
        inputs.check_finite_labels(source_labels)
        check_magnitude("y", source_labels)
        share = weight[labels.labelled] / weight[labels.labelled].sum()
        self._y_mean = float(share @ source_labels)
        self._y_scale = float(np.sqrt(share @ (source_labels - self._y_mean) ** 2)) or 1.0
        targets = np.zeros((len(labels.values), 1), dtype=np.float32)
        targets[labels.labelled, 0] = (source_labels - self._y_mean) / self._y_scale
        return targets

    def _fit_dataset_labels(self, y: Tensor) -> None:
        if y.dim() != 2 or y.shape[1] != 1 or not y.is_floating_point():
            raise ValueError(
                f"rows have labels of shape {tuple(y.shape)} and type {y.dtype}; a regressor needs "
                "one column of floating-point numbers."
            )
        self._y_mean, self._y_scale = 0.0, 1.0

    def _output_width(self) -> int:
        return 1

    def _label_state(self) -> dict[str, Any]:
        return {"mean": self._y_mean, "scale": self._y_scale, "residual": self._residual_variance}

    def _restore_labels(self, state: dict[str, Any]) -> None:
        self._y_mean, self._y_scale = (decode(float, state[k], k) for k in ("mean", "scale"))
        self._residual_variance: float | None = decode(
            float | None, state.get("residual"), "residual"
        )

    def _prediction_loss(self) -> PredictionLoss:
        return squared_error

    def _bin_metric(self) -> Metric:
        return root_mean_squared_error

    def _fit_residuals(self, dataset: IndexedDataset) -> None:
        is_stochastic = self._is_stochastic
        self._residual_variance = (
            prediction.residual_variance(self._prediction_network(self.game_), dataset)
            if is_stochastic
            else None
        )

    def _merge_draws(self, outputs: Tensor) -> Tensor:
        # Mean and variance as two columns. Divided by the number of draws: so they are those of
        # the mixture of all draws, which is what is predicted.
        variance, mean = torch.var_mean(outputs.double(), 0, correction=0)
        return torch.cat([mean, variance], dim=1)

    @overload
    def predict(
        self, X: Any, domain_index: Any = None, return_std: Literal[False] = False
    ) -> Array: ...

    @overload
    def predict(
        self, X: Any, domain_index: Any = None, *, return_std: Literal[True]
    ) -> tuple[Array, Array]: ...

    def predict(
        self, X: Any, domain_index: Any = None, return_std: bool = False
    ) -> Array | tuple[Array, Array]:
        """The predicted number of each row: where the encoder is probabilistic, its mean.

        With ``return_std`` also the deviation of each row: ``std^2`` is the variance over draws of
        the encoder, plus the mean squared error on the source rows of the fit, one number. So far
        from the source only the first part can grow, and noise that differs along u is not seen.
        """
        output = self._compute_outputs(X, domain_index).astype(np.float64)
        predicted: Array = output[:, 0] * self._y_scale + self._y_mean
        if not return_std:
            return predicted
        if self._residual_variance is None or not self._is_stochastic:
            raise ValueError(
                "return_std is True, but the model was fitted with no probabilistic encoder; fit "
                "it with stochastic='gaussian' or stochastic='dropout'."
            )
        deviation: Array = np.sqrt(output[:, 1] + self._residual_variance) * self._y_scale
        return predicted, deviation

    def score(self, X: Any, y: Any, domain_index: Any = None, sample_weight: Any = None) -> float:
        """R^2 over the labelled rows."""
        return self._score(r2_score, X, y, domain_index, sample_weight)
