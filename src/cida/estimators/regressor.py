"""The regressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, overload

from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from cida.estimators.array_checks import Array
from cida.estimators.base import CIDAEstimator
from cida.estimators.labels import NumberLabels

__all__ = ["CIDARegressor"]


@dataclass(eq=False, repr=False)
class CIDARegressor(RegressorMixin, CIDAEstimator):  # type: ignore[misc]
    """A regressor that adapts across a continuous domain index.

    Parameters are those of `CIDAClassifier`, without ``class_weight``. y is a number, unlabelled
    only where it is NaN or None; the predictor minimises the squared error of the standardised y.
    With a probabilistic encoder (``stochastic``) `predict` can give a deviation for each row.
    """

    __metadata_request__predict: ClassVar = {"domain_index": True, "return_std": True}

    @property
    def _is_classifier(self) -> bool:
        return False

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

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        domain_index : array-like, optional
            The index of each row; a table has its own.
        return_std : bool
            Also give the deviation of each row: ``std^2`` is the variance over draws of the
            encoder, plus the mean squared error on the source rows of the fit, one number. So far
            from the source only the first part can grow, and noise that differs along u is not
            seen.

        Returns
        -------
        ndarray, or a tuple of two
            The predictions, and the deviations if asked for.
        """
        outputs = self._outputs(X, domain_index)
        codec = self.state_.labels
        assert isinstance(codec, NumberLabels)
        if not return_std:
            return codec.decode(outputs)
        if codec.residual_variance is None or not self.state_.is_stochastic:
            raise ValueError(
                "return_std is True, but the model was fitted with no probabilistic encoder; fit "
                "it with stochastic='gaussian' or stochastic='dropout'."
            )
        return codec.decode(outputs), codec.deviation(outputs)

    def score(self, X: Any, y: Any, domain_index: Any = None, sample_weight: Any = None) -> float:
        """R^2 over the labelled rows."""
        return self._score(r2_score, X, y, domain_index, sample_weight)
