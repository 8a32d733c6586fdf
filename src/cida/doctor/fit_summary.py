"""What is known of a fit besides its events: settings, rows, index and final figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
import torch
from scipy.spatial import cKDTree
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from torch import Tensor

from cida.array_types import Array
from cida.indexing import evenly_spaced
from cida.io.json_decode import decode, from_dict
from cida.kernel_ridge import make_label_matrix
from cida.label_shift import LabelShift
from cida.spaces import Space

__all__ = [
    "FitSummary",
    "IndexColumnSummary",
    "dominant_index_r2",
    "knn_loss",
    "marginal_label_loss",
    "summarize_index",
]

MAX_INDEX_SUMMARY_ROWS = 20_000
N_NEIGHBORS = 10
DENSE_WINDOW_SHARE = 0.01  # of the range of a column
RIDGE_VARIANCE_SHARE = 0.03  # of the variance of z: directions below it hardly count


@dataclass(frozen=True)
class IndexColumnSummary:
    """One column of u, as the game sees it.

    ``std`` is the standard deviation of its coordinate, 1 on a line that was fitted, and None on
    a circle. ``mode_share`` is the share of its most frequent value. ``densest_share`` is the
    largest share of rows within a hundredth of its range: 0.01 where they are evenly spaced, near
    1 where a few outliers make up the range.
    """

    std: float | None
    mode_share: float
    densest_share: float


@dataclass(frozen=True)
class FitSummary:
    """What `diagnose` reads beside the events; it is computed without any target label.

    The settings are always known. Of the rest, None is what is unknown or does not apply to the
    model.

    Parameters
    ----------
    game : str
        Name of the game.
    has_index : bool
        Whether there is a domain index.
    is_adaptive : bool
        Whether the model adapts to a target.
    is_conditional : bool
        Whether z may depend on u as far as predictions do.
    uses_head : bool
        Whether the game uses the discriminator's distribution of u.
    default_lambda : float
        ``lambda_d`` of the game if none is given.
    lambda_d : float
        Weight of the adversarial term.
    discriminator_steps : int
        Moves of the discriminator in each round.
    ceiling : bool
        Whether the adversarial gradient stops at the ceiling.
    curriculum : float
        Share of the steps over which the index range widens.
    steps : int
        Number of rounds.
    learning_rate : float
        Initial step size.
    weight_decay : float
        Weight decay.
    has_custom_encoder : bool
        Whether the encoder is the user's own.
    coordinates : str
        How x is expressed given u.
    n_source_rows : int or None, optional
        Rows with a label.
    n_target_rows : int or None, optional
        Rows without a label.
    n_classes : int or None, optional
        Number of classes; None for a regression.
    index_columns : tuple of IndexColumnSummary, optional
        The distribution of each column of the index.
    label_shift : LabelShift or None, optional
        How much the balance of source labels changes along the index.
    marginal_label_loss : float or None, optional
        Prediction loss of the best constant prediction.
    knn_loss : float or None, optional
        Prediction loss of the mean label of ten neighbors in x.
    encoding_std : float or None, optional
        Standard deviation of z.
    encoding_rms : float or None, optional
        Root mean square of z.
    majority_share_source : float or None, optional
        Share of the most frequent predicted class among source rows.
    majority_share_far : float or None, optional
        The same in the farthest quarter of the target.
    index_r2 : float or None, optional
        Share of V[u] that a linear probe explains by z.
    dominant_index_r2 : float or None, optional
        The same in the directions where z varies most.
    """

    game: str
    has_index: bool
    is_adaptive: bool
    is_conditional: bool
    uses_head: bool
    default_lambda: float
    lambda_d: float
    discriminator_steps: int
    ceiling: bool
    curriculum: float
    steps: int
    learning_rate: float
    weight_decay: float
    has_custom_encoder: bool
    coordinates: str

    n_source_rows: int | None = None
    n_target_rows: int | None = None
    n_classes: int | None = None
    index_columns: tuple[IndexColumnSummary, ...] = ()
    label_shift: LabelShift | None = None
    marginal_label_loss: float | None = None
    knn_loss: float | None = None
    encoding_std: float | None = None
    encoding_rms: float | None = None
    majority_share_source: float | None = None
    majority_share_far: float | None = None
    index_r2: float | None = None
    dominant_index_r2: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the rows and the end of training are known, not the settings alone."""
        return self.n_source_rows is not None

    def to_dict(self) -> dict[str, Any]:
        """JSON values; a number that is not finite becomes None."""
        return {name: _to_json_value(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned; fields that a newer version added are ignored."""
        data = decode(dict[str, Any], data, "summary")
        field_names = {field.name for field in fields(cls)}
        values = {name: value for name, value in data.items() if name in field_names}
        return from_dict(cls, {**values, "index_columns": values.get("index_columns") or []})


def _to_json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_json_value(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_to_json_value(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def summarize_index(space: Space, u: Tensor) -> tuple[IndexColumnSummary, ...]:
    """Summarize each column of u; of very many rows, evenly spaced ones are used."""
    u = u[evenly_spaced(len(u), MAX_INDEX_SUMMARY_ROWS)].double()
    coordinates = space.metric_coordinates(u)
    columns = []
    for number, turn in enumerate(space.periods):
        values = np.sort(coordinates[:, number].numpy())
        _, counts = torch.unique(u[:, number], return_counts=True)
        std, mode_share = None if turn else float(values.std()), float(counts.max()) / len(u)
        columns.append(IndexColumnSummary(std, mode_share, _densest_share(values, turn)))
    return tuple(columns)


def _densest_share(values: Array, period: float) -> float:
    """The largest share of the sorted values within a hundredth of their range."""
    width = DENSE_WINDOW_SHARE * (period or float(values[-1] - values[0]))
    unrolled = np.concatenate([values, values + period]) if period else values
    last = np.searchsorted(unrolled, values + width, side="right")
    return float(min(len(values), (last - np.arange(len(values))).max())) / len(values)


def marginal_label_loss(y: Tensor, weight: Tensor) -> float:
    """``min_c sum_i w_i L_p(c, y_i) / n``: the entropy of classes, or the variance of numbers."""
    weight = weight.double()
    share, mean_weight = weight / weight.sum(), float(weight.mean())
    if y.is_floating_point():
        values = y.double().reshape(len(y), -1)
        return mean_weight * float((share[:, None] * (values - share @ values).square()).sum())
    class_shares = torch.zeros(int(y.max()) + 1, dtype=torch.float64).index_add_(0, y.long(), share)
    return mean_weight * float(-torch.special.xlogy(class_shares, class_shares).sum())


def knn_loss(x: Tensor, y: Tensor) -> float:
    """The mean loss where each row is predicted by the ten rows nearest in x, itself left out.

    Classes are predicted by the neighbors' shares, with one more row of the overall shares so that
    none is 0, and numbers by the neighbors' mean. A trained model should not do much worse.
    """
    points = x.flatten(1).double().nan_to_num().numpy()
    n_neighbors = min(N_NEIGHBORS, len(points) - 1)
    _, neighbors = cKDTree(points).query(points, range(1, n_neighbors + 2))
    is_self = neighbors == np.arange(len(points))[:, None]  # not always first among equal rows
    is_self[~is_self.any(1), -1] = True
    others = neighbors[~is_self].reshape(len(points), -1)
    values = make_label_matrix(y)
    if y.is_floating_point():
        return float(((values[others].mean(1) - values) ** 2).sum(1).mean())
    share = (values[others].sum(1) + values.mean(0)) / (n_neighbors + 1)
    return float(-np.log(share[np.arange(len(y)), y.numpy()]).mean())


def dominant_index_r2(z: Array, index: Array) -> float:
    """The share of V[u] that a ridge regression explains in the directions where z varies most.

    As `cida.metrics.index_r2`, but z is not standardized and the ridge is 0.03 of its whole
    variance. What an encoder hides remains in directions much narrower than that; what remains in
    the wide ones a capable discriminator would see.
    """
    z = z - z.mean(axis=0)
    rms = float(np.sqrt((z**2).sum(axis=1).mean()))
    if not rms > 0:
        return 0.0
    model = Ridge(alpha=RIDGE_VARIANCE_SHARE * len(z[::2])).fit(z[::2] / rms, index[::2])
    predicted = model.predict(z[1::2] / rms).reshape(-1, index.shape[1])
    share = float(r2_score(index[1::2], predicted, multioutput="variance_weighted"))
    return max(0.0, share) if math.isfinite(share) else 0.0
