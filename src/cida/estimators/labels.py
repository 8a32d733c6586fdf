"""What y means: classes or numbers, to what networks are trained on and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from cida import array_checks
from cida.array_checks import Array, Labels, check_magnitude
from cida.games import cross_entropy, squared_error
from cida.io.json_decode import decode
from cida.metrics import accuracy, root_mean_squared_error

__all__ = ["ClassLabels", "LabelCodec", "NumberLabels", "codec_from_dict"]

MAX_CLASS_NAME_CHARS = 1_000


@dataclass(frozen=True)
class ClassLabels:
    """Classes, trained on as their numbers."""

    classes: Array

    loss = staticmethod(cross_entropy)
    metric = staticmethod(accuracy)
    metric_name: ClassVar = "accuracy"

    @classmethod
    def fit(cls, labels: Labels) -> Self:
        """Find the classes of the labelled rows; refuses fewer than two."""
        values = labels.source_labels
        array_checks.check_finite_labels(values)
        with np.errstate(invalid="ignore"):  # it casts numbers beyond the whole ones
            check_classification_targets(values)
        classes = np.unique(values)
        if len(classes) < 2:
            hidden = labels.values[~labels.labelled]
            has_minus_one = hidden.dtype.kind == "i" and (hidden == -1).any()
            hint = " (-1 was read as unlabelled: if it is a class, give source)"
            raise ValueError(
                f"y has one class ({classes[0]}) among its labelled rows; a classifier needs at "
                f"least two: label rows of another class too{hint if has_minus_one else ''}."
            )
        return cls(classes)

    @classmethod
    def from_codes(cls, y: Tensor) -> Self:
        """The codec of labels that are class numbers already."""
        if y.is_floating_point() or int(y.min()) < 0 or int(y.max()) < 1:
            raise ValueError(
                f"dataset has labels from {y.min().item():g} to {y.max().item():g} of type "
                f"{y.dtype}; a classifier needs whole numbers 0 .. K - 1 of at least two classes."
            )
        return cls(np.arange(int(y.max()) + 1))

    @property
    def output_width(self) -> int:
        """How many numbers the predictor gives."""
        return len(self.classes)

    def encode(self, labels: Labels) -> Array:
        """The labels as numbers to train on; of unlabelled rows 0."""
        targets = np.zeros(len(labels.values), dtype=np.int64)
        targets[labels.labelled] = np.searchsorted(self.classes, labels.source_labels)
        return targets

    def decode(self, outputs: Array) -> Array:
        """The label that each row's outputs stand for."""
        return np.asarray(self.classes[outputs.argmax(axis=1)])

    def probabilities(self, outputs: Array) -> Array:
        """The probability of each class."""
        return torch.from_numpy(outputs).double().softmax(1).numpy()

    def merge_draws(self, outputs: Tensor) -> Tensor:
        """One output a row from those of each draw, of shape ``(draws, rows, outputs)``.

        It is the log of the mean probability: the softmax of it is that mean.
        """
        return outputs.double().log_softmax(2).logsumexp(0) - math.log(len(outputs))

    def merge_members(self, outputs: Sequence[Array]) -> Array:
        """One output a row from those of each member."""
        return self.merge_draws(torch.from_numpy(np.stack(outputs))).numpy()

    def to_dict(self) -> dict[str, Any]:
        """JSON values; `codec_from_dict` reads them back."""
        return {"classes": self.classes.tolist(), "dtype": self.classes.dtype.str}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave; a file may hold anything."""
        names = decode(list[str | float | bool], values["classes"], "classes")
        dtype_name = decode(str, values["dtype"], "dtype")
        dtype = np.dtype(dtype_name)
        if dtype.kind not in "biufUSO" or dtype.itemsize > 4 * MAX_CLASS_NAME_CHARS:
            raise ValueError(f"dtype is {dtype_name!r}, which is no type of classes")
        if len(names) < 2:
            raise ValueError(f"classes are {names!r}, and there must be two at least")
        try:
            classes = np.array(values["classes"], dtype=object if dtype.hasobject else dtype)
        except (OverflowError, TypeError, ValueError):
            raise ValueError(f"classes are not all of the dtype {dtype_name!r}") from None
        if len(set(classes.tolist())) < len(classes):
            raise ValueError("classes has one of them twice")
        return cls(classes)


@dataclass(frozen=True)
class NumberLabels:
    """Numbers, trained on as ``(y - mean) / scale``.

    ``residual_variance`` is the mean squared error on the source, in these units; it is known for
    probabilistic networks, whose draws do not show it.
    """

    mean: float
    scale: float
    residual_variance: float | None = None

    loss = staticmethod(squared_error)
    metric = staticmethod(root_mean_squared_error)
    metric_name: ClassVar = "rmse"
    output_width: ClassVar = 1

    @classmethod
    def fit(cls, labels: Labels, weight: Array) -> Self:
        """Mean and deviation of the labelled rows under the weights."""
        values = array_checks.parse_number_labels(labels.source_labels)
        array_checks.check_finite_labels(values)
        check_magnitude("y", values)
        share = weight[labels.labelled] / weight[labels.labelled].sum()
        mean = float(share @ values)
        return cls(mean, float(np.sqrt(share @ (values - mean) ** 2)) or 1.0)

    @classmethod
    def from_targets(cls, y: Tensor) -> Self:
        """The codec of labels that are scaled numbers already."""
        if y.dim() != 2 or y.shape[1] != 1 or not y.is_floating_point():
            raise ValueError(
                f"dataset has labels of shape {tuple(y.shape)} and type {y.dtype}; a regressor "
                "needs one column of floating-point numbers."
            )
        return cls(0.0, 1.0)

    def encode(self, labels: Labels) -> Array:
        """The labels as numbers to train on; of unlabelled rows 0."""
        values = array_checks.parse_number_labels(labels.source_labels)
        targets = np.zeros((len(labels.values), 1), dtype=np.float32)
        targets[labels.labelled, 0] = (values - self.mean) / self.scale
        return targets

    def decode(self, outputs: Array) -> Array:
        """The label that each row's outputs stand for."""
        return np.asarray(outputs[:, 0].astype(np.float64) * self.scale + self.mean)

    def deviation(self, outputs: Array) -> Array:
        """The deviation of each row: over draws, plus that of the source."""
        variance = outputs[:, 1].astype(np.float64) + (self.residual_variance or 0.0)
        return np.asarray(np.sqrt(variance) * self.scale)

    def merge_draws(self, outputs: Tensor) -> Tensor:
        """Mean and variance as two columns, from outputs of shape ``(draws, rows, 1)``.

        Divided by the number of draws: so they are those of the mixture of all draws, which is
        what is predicted.
        """
        variance, mean = torch.var_mean(outputs.double(), 0, correction=0)
        return torch.cat([mean, variance], dim=1)

    def merge_members(self, outputs: Sequence[Array]) -> Array:
        """One output a row from those of each member."""
        stacked = np.stack(outputs).astype(np.float64)
        mean = stacked[..., :1].mean(axis=0)
        if stacked.shape[2] == 1:
            return np.asarray(mean)
        variance = (stacked[..., 1:] + stacked[..., :1] ** 2).mean(axis=0) - mean**2
        return np.concatenate([mean, variance], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; `codec_from_dict` reads them back."""
        return {"mean": self.mean, "scale": self.scale, "residual": self.residual_variance}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave; a file may hold anything."""
        mean, scale = (decode(float, values[name], name) for name in ("mean", "scale"))
        if not (math.isfinite(mean) and 0 < scale < math.inf):
            raise ValueError(f"labels have the mean {mean:g} and the scale {scale:g}")
        return cls(mean, scale, decode(float | None, values.get("residual"), "residual"))


LabelCodec = ClassLabels | NumberLabels


def codec_from_dict(values: Mapping[str, Any]) -> LabelCodec:
    """The codec of a file: classes where it has them, else numbers."""
    return ClassLabels.from_dict(values) if "classes" in values else NumberLabels.from_dict(values)
