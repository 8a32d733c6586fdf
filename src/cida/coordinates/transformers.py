"""Coordinates along the index for any model: scikit-learn transformers around the layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from cida.array_checks import Array, check_domain_index
from cida.coordinates.moving_frame import MAX_FRAME_FEATURES, MovingFrameLayer, can_use_moving_frame
from cida.coordinates.windows import CenteringLayer, WindowsLayer
from cida.spaces import Space, make_line_space
from cida.spaces.space_fit import fit_space

__all__ = ["IndexCentering", "IndexWindows", "MovingFrame", "PrincipalAxes"]

CHUNK_ROWS = 4096


class IndexTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What the transformers share; use one of those."""

    __metadata_request__fit: ClassVar = {"domain_index": True}
    __metadata_request__transform: ClassVar = {"domain_index": True}

    def __init__(self, space: Space | None = None) -> None:
        self.space = space

    def fit(self, X: Any, y: Any = None, domain_index: Any = None) -> Self:
        """Find the coordinates in all rows, those of the target too; labels are not used.

        Parameters
        ----------
        X : array-like of shape (rows, columns)
            Numbers; NaN is a missing value, where the coordinates allow for it.
        y : ignored
            There for scikit-learn's sake.
        domain_index : array-like
            The index of each row.

        Returns
        -------
        self
            The fitted transformer.
        """
        x = self._check_rows(X, reset=True)
        u = self._check_index(domain_index, len(x))
        space = make_line_space(u.shape[1]) if self.space is None else self.space
        space = fit_space(space, u)
        numbers = torch.from_numpy(x)
        layer = self._fit_layer(space, numbers.nan_to_num(0.0), space.embed(u), ~numbers.isnan())
        self.space_, self.layer_, self.index_width_ = space, layer.eval(), u.shape[1]
        return self

    def transform(self, X: Any, domain_index: Any = None) -> Array:
        """Express rows in the coordinates; a missing value stays missing.

        Parameters
        ----------
        X : array-like of shape (rows, columns)
            Numbers.
        domain_index : array-like
            The index of each row.

        Returns
        -------
        ndarray of shape (rows, columns)
            The new columns.
        """
        check_is_fitted(self)
        x = self._check_rows(X, reset=False)
        index = self.space_.embed(self._check_index(domain_index, len(x), self.index_width_))
        numbers = torch.from_numpy(x).float()
        parts = zip(*(torch.split(t, CHUNK_ROWS) for t in (numbers, index.float())), strict=True)
        with torch.no_grad():
            columns = torch.cat([self.layer_(part.nan_to_num(0.0), e) for part, e in parts])
        moved: Array = columns.masked_fill(numbers.isnan(), float("nan")).double().numpy()
        return moved

    def fit_transform(self, X: Any, y: Any = None, domain_index: Any = None) -> Array:
        """Fit, then transform the same rows."""
        return self.fit(X, y, domain_index).transform(X, domain_index)

    _takes_missing: ClassVar = True

    @abstractmethod
    def _fit_layer(self, space: Space, x: Tensor, index: Tensor, present: Tensor) -> nn.Module: ...

    def _check_rows(self, X: Any, *, reset: bool) -> Array:
        rule = "allow-nan" if self._takes_missing else True
        x: Array = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=rule)
        return x

    def _check_index(self, domain_index: Any, n_rows: int, width: int | None = None) -> Tensor:
        if domain_index is None:
            raise ValueError(
                "domain_index is missing; give the index of each row of X (in a Pipeline turn "
                "metadata routing on: sklearn.set_config(enable_metadata_routing=True))."
            )
        return check_domain_index(domain_index, n_rows, width)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        return tags


class IndexCentering(IndexTransformer):
    """``x -> x - m(u)``: each column without its mean among the rows whose index is nearest.

    Parameters
    ----------
    space : Space, optional
        What the index is; a line for each of its columns by default.

    Examples
    --------
    >>> from cida.coordinates import IndexCentering
    >>> from cida.datasets import make_circle
    >>> data = make_circle()
    >>> IndexCentering().fit_transform(data.x, domain_index=data.u).shape
    (3000, 2)
    """

    def _fit_layer(self, space: Space, x: Tensor, index: Tensor, present: Tensor) -> nn.Module:
        return CenteringLayer(x.shape[1], index.shape[1]).fit(x, index, present)


class IndexWindows(IndexTransformer):
    """``x -> (x - m(u)) / s(u)``: each column standardized among the rows whose index is nearest.

    Parameters
    ----------
    space : Space, optional
        What the index is; a line for each of its columns by default.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from cida.coordinates import IndexWindows
    >>> from cida.datasets import make_circle
    >>> data = make_circle()
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     model = make_pipeline(IndexWindows(), LogisticRegression())
    ...     model = model.fit(data.x, data.y, domain_index=data.u)
    """

    def _fit_layer(self, space: Space, x: Tensor, index: Tensor, present: Tensor) -> nn.Module:
        return WindowsLayer(x.shape[1], index.shape[1]).fit(x, index, present)


class MovingFrame(IndexTransformer):
    """``x -> T(u) (x - m(u)) / s``: relative to the path of the mean, the path's turns undone.

    It needs an index of one number on a line, and columns without missing values.

    Parameters
    ----------
    space : Space, optional
        What the index is; a line by default.
    """

    _takes_missing: ClassVar = False
    _follows_axes: ClassVar = False

    def _fit_layer(self, space: Space, x: Tensor, index: Tensor, present: Tensor) -> nn.Module:
        if not can_use_moving_frame(space, x.shape[1]):
            raise ValueError(
                f"X has {x.shape[1]} columns and domain_index {index.shape[1]}; a moving frame "
                f"takes at most {MAX_FRAME_FEATURES} columns and an index of one number on a line."
            )
        return MovingFrameLayer(x.shape[1], "axes" if self._follows_axes else "path").fit(x, index)


class PrincipalAxes(MovingFrame):
    """The moving frame for data that turn on the spot: it undoes the turns of the principal axes.

    Parameters
    ----------
    space : Space, optional
        What the index is; a line by default.
    """

    _follows_axes: ClassVar = True
