"""What is known of a fit beside its events: settings, rows, index and final figures."""

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

from cida.plain import checked, from_words
from cida.space import Space, thinned

__all__ = [
    "Facts",
    "IndexColumn",
    "blind_loss",
    "index_columns",
    "neighbours_loss",
    "share_in_sight",
]

Array = np.ndarray[Any, Any]
MOST_ROWS = 20_000
NEIGHBOURS = 10
CROWD_WIDTH = 0.01  # of the range of a column
IN_SIGHT = 0.03  # of the variance of z: narrower directions hardly count


@dataclass(frozen=True)
class IndexColumn:
    """One column of u, as the game sees it.

    ``spread`` is the deviation of its coordinate, 1 on a line that was fitted, and None on a
    circle. ``same`` is the share of its most frequent value. ``crowded`` is the largest share of
    rows that lie within a hundredth of its range: 0.01 where they are even, near 1 where a few
    stray values make the range.
    """

    spread: float | None
    same: float
    crowded: float


@dataclass(frozen=True)
class Facts:
    """What `examine` reads beside the events; no label of the target has gone into it.

    The settings are always known. Below them, None is what an older file does not say or what
    this model does not have. Losses are those of the prediction: ``blind_loss`` of the best answer
    that ignores x, ``neighbours_loss`` of the mean label of ten neighbours in x. ``same_source``
    and ``same_far`` are the shares of the most frequent predicted class among source rows, and in
    the farthest quarter of the target. ``index_explained`` is the share of V[u] that a straight
    line reads in z, ``index_in_sight`` that in the directions in which z spreads.
    """

    game: str
    indexed: bool
    adapts: bool
    conditional: bool
    uses_head: bool
    usual_lambda: float
    lambda_d: float
    discriminator_steps: int
    ceiling: bool
    curriculum: float
    steps: int
    learning_rate: float
    weight_decay: float
    own_encoder: bool
    index_mode: str

    source_rows: int | None = None
    target_rows: int | None = None
    classes: int | None = None
    index: tuple[IndexColumn, ...] = ()
    label_shift: str | None = None  # what moves, in words; empty where nothing does
    blind_loss: float | None = None
    neighbours_loss: float | None = None
    encoding_spread: float | None = None
    encoding_size: float | None = None
    same_source: float | None = None
    same_far: float | None = None
    index_explained: float | None = None
    index_in_sight: float | None = None

    @property
    def complete(self) -> bool:
        """Whether the rows and the end of training are known, not the settings alone."""
        return self.source_rows is not None

    def words(self) -> dict[str, Any]:
        """Plain values for JSON; a number that is not finite is not known."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_words(cls, words: Mapping[str, Any]) -> Self:
        """Reads what `words` wrote; what a newer version may add is passed over."""
        words = checked(dict[str, Any], words, "facts")
        known = {field.name for field in fields(cls)}
        values = {name: value for name, value in words.items() if name in known}
        return from_words(cls, {**values, "index": values.get("index") or []})


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return [dict(each) for each in value] if isinstance(value, tuple) else value


def index_columns(space: Space, u: Tensor) -> tuple[IndexColumn, ...]:
    """What can be said of each column of u; of very many rows, evenly spaced ones count."""
    u = u[thinned(len(u), MOST_ROWS)].double()
    coordinates = space.coordinates(u)
    found = []
    for number, turn in enumerate(space.turns):
        values = np.sort(coordinates[:, number].numpy())
        _, counts = torch.unique(u[:, number], return_counts=True)
        spread = None if turn else float(values.std())
        same = float(counts.max()) / len(u)
        found.append(IndexColumn(spread, same, _crowded(values, turn)))
    return tuple(found)


def _crowded(values: Array, turn: float) -> float:
    """The largest share of the sorted values within a hundredth of their range."""
    width = CROWD_WIDTH * (turn or float(values[-1] - values[0]))
    line = np.concatenate([values, values + turn]) if turn else values
    last = np.searchsorted(line, values + width, side="right")
    return float(min(len(values), (last - np.arange(len(values))).max())) / len(values)


def blind_loss(y: Tensor, weight: Tensor) -> float:
    """``min_c sum_i w_i L_p(c, y_i) / n``: the entropy of classes, or the variance of numbers."""
    share = weight.double() / weight.double().sum()
    size = float(weight.double().mean())
    if y.is_floating_point():
        values = y.double().reshape(len(y), -1)
        return size * float((share[:, None] * (values - share @ values).square()).sum())
    of_class = torch.zeros(int(y.max()) + 1, dtype=torch.float64).index_add_(0, y.long(), share)
    return size * float(-torch.special.xlogy(of_class, of_class).sum())


def neighbours_loss(x: Tensor, y: Tensor) -> float:
    """The mean loss where each row is predicted by the ten rows nearest in x, itself left out.

    Their class shares, with one more row of the overall shares so that none is 0; for numbers
    their mean. Far from the best model, but labels that it tells can be told.
    """
    points = x.flatten(1).double().nan_to_num().numpy()
    count = min(NEIGHBOURS, len(points) - 1)
    _, near = cKDTree(points).query(points, range(1, count + 2))
    others = _without_self(near)
    if y.is_floating_point():
        values = y.double().reshape(len(y), -1).numpy()
        return float(((values[others].mean(1) - values) ** 2).sum(1).mean())
    codes = torch.nn.functional.one_hot(y.long()).double().numpy()
    share = (codes[others].sum(1) + codes.mean(0)) / (count + 1)
    return float(-np.log(share[np.arange(len(y)), y.numpy()]).mean())


def share_in_sight(z: Array, index: Array) -> float:
    """The share of the index's variance in the directions in which z spreads, on the other half.

    As `explained_share`, but z is taken as it is, and the ridge is 0.03 of its whole variance. What
    an encoder hides it leaves in directions much narrower than that: a discriminator that plays
    its part sees what is left in the wide ones.
    """
    z = z - z.mean(axis=0)
    size = float(np.sqrt((z**2).sum(axis=1).mean()))
    if not size > 0:
        return 0.0
    model = Ridge(alpha=IN_SIGHT * len(z[::2])).fit(z[::2] / size, index[::2])
    predicted = model.predict(z[1::2] / size).reshape(-1, index.shape[1])
    share = float(r2_score(index[1::2], predicted, multioutput="variance_weighted"))
    return max(0.0, share) if math.isfinite(share) else 0.0


def _without_self(near: Array) -> Array:
    """Each row's neighbours but itself; among rows that are equal it may not come first."""
    mine = near == np.arange(len(near))[:, None]
    mine[~mine.any(1), -1] = True
    others: Array = near[~mine].reshape(len(near), -1)
    return others
