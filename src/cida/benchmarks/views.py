"""Views of runs: what a model makes of the rows that a sample shows of its data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from cida.diagnostics.view import Plane, Turned, View
from cida.estimators import CidaWarning
from cida.images import rotate_degrees
from cida.space import Space, line_space

__all__ = ["Shown", "Shows", "view_of"]

Array = np.ndarray[Any, Any]

STOPS = (31, 9)  # along u, and along each of two index columns
SIDES = (40, 28)  # of the grid over a plane, for one and for two index columns
MARGIN = 0.06  # of the plane beyond its points
LEAST_CHANCE = 1e-13  # log-odds of 30 are as good as certain
DEGREES = 5  # between the angles at which images are turned


@dataclass(frozen=True)
class Shown:
    """Rows to look at: ``truth`` is the label, which serves to say what is right.

    ``space`` is the geometry of the data's index where it is known, ``upright`` a few images,
    ``(m, 1, height, width)`` with one byte a pixel, if the rows are images that u turns.
    """

    x: Array
    u: Array
    source: Array
    truth: Array
    index: tuple[str, ...] = ("u",)
    classes: tuple[str, ...] | None = None
    space: Space | None = None
    upright: Tensor | None = None
    upright_labels: Tensor | None = None


class Shows(Protocol):
    """A sample that can be looked at."""

    def shown(self) -> Shown:
        """Some rows, the same for every model."""


def view_of(model: Any, sample: Shows, regression: bool) -> View:
    """What the model makes of the rows that the sample shows; target labels are for scoring."""
    rows = sample.shown()
    u = rows.u.reshape(len(rows.u), -1).astype(np.float64)
    space = rows.space or getattr(model, "space_", None) or line_space(u.shape[1])
    classes = None if regression else rows.classes or _class_names(model, rows)
    with _quietly():
        z = model.transform(rows.x, domain_index=u) if hasattr(model, "transform") else None
        return View(
            space=space.fit(torch.from_numpy(u)),
            index=rows.index,
            classes=classes,
            u=u,
            source=rows.source,
            predicted=_predicted(model, rows.x, u, classes),
            truth=_codes(rows.truth, classes),
            z=z,
            plane=_plane(model, rows.x, u, classes),
            turned=_turned(model, rows, classes),
        )


def _class_names(model: Any, rows: Shown) -> tuple[str, ...]:
    known = getattr(model, "classes_", None)
    return tuple(_name(label) for label in (np.unique(rows.truth) if known is None else known))


def _name(label: Any) -> str:
    """How a class is called; labels beside which some are missing are floats."""
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if whole else str(label)


def _codes(truth: Array, classes: tuple[str, ...] | None) -> Array:
    """The number of each row's class; a number of a regression as it is."""
    if classes is None:
        return np.ravel(truth).astype(np.float64)
    code = {name: number for number, name in enumerate(classes)}
    return np.array([code.get(_name(label), np.nan) for label in truth.tolist()])


def _predicted(model: Any, x: Array, u: Array, classes: tuple[str, ...] | None) -> Array:
    """Probabilities; a model that has none is sure of what it says."""
    if classes is None:
        return np.reshape(model.predict(x, domain_index=u), (len(x), 1))
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(x, domain_index=u))
    said = _codes(np.asarray(model.predict(x, domain_index=u)), classes)
    return np.asarray(said[:, None] == np.arange(len(classes)), dtype=np.float64)


# --- points of a plane ---------------------------------------------------------------------------


def _plane(model: Any, x: Array, u: Array, classes: tuple[str, ...] | None) -> Plane | None:
    """A grid over the plane at each stop, for points in two columns and at most two classes."""
    if x.ndim != 2 or x.shape[1] != 2 or u.shape[1] > len(STOPS):
        return None
    if classes is not None and len(classes) != 2:
        return None
    count, side = STOPS[u.shape[1] - 1], SIDES[u.shape[1] - 1]
    low, high = x.min(0), x.max(0)
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    across, up = (np.linspace(a, b, side) for a, b in zip(low, high, strict=True))
    points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2).astype(x.dtype)
    stops = tuple(np.linspace(c.min(), c.max(), count) for c in u.T)
    found = np.stack(
        [
            _predicted(model, points, np.tile(place, (len(points), 1)), classes)
            for place in product(*stops)
        ]
    )
    if classes is None:
        made = (found - found.min()) / max(float(np.ptp(found)), 1e-12)
    else:  # probabilities near 1 have no digits left, those near 0 have
        made = np.diff(np.log(np.clip(found, LEAST_CHANCE, 1)), axis=-1)
    made = made.reshape(*(len(s) for s in stops), side, side)
    left, bottom, right, top = (float(end) for end in (*low, *high))
    return Plane(x, (left, right, bottom, top), stops, made)


# --- images that u turns -------------------------------------------------------------------------


def _turned(model: Any, rows: Shown, classes: tuple[str, ...] | None) -> Turned | None:
    if rows.upright is None or rows.upright_labels is None:
        return None
    stops = torch.arange(0, 360, DEGREES, dtype=torch.float64)
    few, places = len(rows.upright), len(stops)
    angle = stops.repeat(few)
    upright = rows.upright.float() / 255
    images = rotate_degrees(upright.repeat_interleave(places, 0), angle)
    u = angle[:, None].numpy()
    return Turned(
        images=rows.upright[:, 0].numpy(),
        labels=rows.upright_labels.numpy(),
        stops=stops.numpy(),
        angle=_learned_angle(model, images, angle).reshape(few, places),
        predicted=_predicted(model, images.numpy(), u, classes).reshape(few, places, -1),
    )


def _learned_angle(model: Any, images: Tensor, angle: Tensor) -> Array:
    """By how many degrees the transformer turns each image; 0 where nothing turns."""
    transformer = getattr(model.game_.encoder, "transformer", None)
    if transformer is None:
        return np.zeros(len(images))
    index = model.space_.embed(angle[:, None]).to(images.dtype)
    with torch.no_grad():
        cos, sin = transformer.cos_sin(images, index).double().T
    return np.asarray(torch.rad2deg(torch.atan2(sin, cos)))


@contextmanager
def _quietly() -> Iterator[None]:
    """A grid has corners that no row was near: nobody needs to be warned of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        yield
