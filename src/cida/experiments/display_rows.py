"""Views of runs: what a model makes of the rows that a sample shows of its data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cida.estimators import CidaWarning
from cida.images import rotate_degrees
from cida.runs.snapshot import PlaneMap, RotatedImages, Snapshot
from cida.spaces import Space, make_line_space

Classes = tuple[str, ...] | None
INDEX_GRID_SIZES = (31, 9)  # along u, and along each of two index columns
PLANE_GRID_SIZES = (40, 28)  # of the grid over a plane, for one and for two index columns
PLANE_MARGIN_SHARE = 0.06  # of the plane beyond its points
MIN_PROBABILITY = 1e-13  # log-odds of 30 are as good as certain
ROTATION_STEP_DEGREES = 5  # between the angles at which images are turned


@dataclass(frozen=True)
class DisplayRows:
    """Rows to look at: ``truth`` is the label, which serves to say what is right.

    ``space`` is the geometry of the data's index where it is known, ``upright`` a few images,
    ``(m, 1, height, width)`` with one byte a pixel, if the rows are images that u turns.
    """

    x: np.ndarray
    u: np.ndarray
    source: np.ndarray
    truth: np.ndarray
    index_names: tuple[str, ...] = ("u",)
    space: Space | None = None
    upright_images: Tensor | None = None
    upright_labels: Tensor | None = None


def take_snapshot(model: Any, rows: DisplayRows, regression: bool) -> Snapshot:
    """What the model makes of these rows; target labels are for scoring."""
    u = rows.u.reshape(len(rows.u), -1).astype(np.float64)
    space = rows.space or getattr(model, "space_", None) or make_line_space(u.shape[1])
    labels = getattr(model, "classes_", None)
    labels = np.unique(rows.truth) if labels is None else labels
    classes = None if regression else tuple(map(_class_name, labels))
    with warnings.catch_warnings():  # a grid has corners that no row was near
        warnings.simplefilter("ignore", CidaWarning)
        z = model.transform(rows.x, domain_index=u) if hasattr(model, "transform") else None
        return Snapshot(
            space=space.fit(torch.from_numpy(u)),
            index_names=rows.index_names,
            classes=classes,
            u=u,
            source=rows.source,
            predicted=_predict_outputs(model, rows.x, u, classes),
            truth=_encode_labels(rows.truth, classes),
            z=z,
            plane=_predict_plane(model, rows.x, u, classes),
            rotated_images=_predict_rotated(model, rows, classes),
        )


def _class_name(label: Any) -> str:
    """How a class is called; labels beside which some are missing are floats."""
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if whole else str(label)


def _encode_labels(truth: np.ndarray, classes: Classes) -> np.ndarray:
    """The number of each row's class; a number of a regression as it is."""
    if classes is None:
        return np.ravel(truth).astype(np.float64)
    code = {name: number for number, name in enumerate(classes)}
    return np.array([code.get(_class_name(label), np.nan) for label in truth.tolist()])


def _predict_outputs(model: Any, x: np.ndarray, u: np.ndarray, classes: Classes) -> np.ndarray:
    """Probabilities; a model that has none is sure of what it says."""
    if classes is None:
        return np.reshape(model.predict(x, domain_index=u), (len(x), 1))
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(x, domain_index=u))
    codes = _encode_labels(np.asarray(model.predict(x, domain_index=u)), classes)
    return np.asarray(codes[:, None] == np.arange(len(classes)), dtype=np.float64)


def _predict_plane(model: Any, x: np.ndarray, u: np.ndarray, classes: Classes) -> PlaneMap | None:
    """A grid over the plane at each stop, for points in two columns and at most two classes."""
    if x.ndim != 2 or x.shape[1] != 2 or u.shape[1] > len(INDEX_GRID_SIZES):
        return None
    if classes is not None and len(classes) != 2:
        return None
    count, side = INDEX_GRID_SIZES[u.shape[1] - 1], PLANE_GRID_SIZES[u.shape[1] - 1]
    low, high, margin = x.min(0), x.max(0), PLANE_MARGIN_SHARE * np.ptp(x, 0)
    low, high = low - margin, high + margin
    grid_x, grid_y = (np.linspace(a, b, side) for a, b in zip(low, high, strict=True))
    points = np.stack(np.meshgrid(grid_x, grid_y), axis=-1).reshape(-1, 2).astype(x.dtype)
    index_values = tuple(np.linspace(c.min(), c.max(), count) for c in u.T)
    places = (np.tile(place, (len(points), 1)) for place in product(*index_values))
    outputs = np.stack([_predict_outputs(model, points, place, classes) for place in places])
    if classes is None:
        surface = (outputs - outputs.min()) / max(float(np.ptp(outputs)), 1e-12)
    else:  # probabilities near 1 have no digits left, those near 0 have
        surface = np.diff(np.log(np.clip(outputs, MIN_PROBABILITY, 1)), axis=-1)
    surface = surface.reshape(*(len(s) for s in index_values), side, side)
    left, bottom, right, top = (float(end) for end in (*low, *high))
    return PlaneMap(x, (left, right, bottom, top), index_values, surface)


def _predict_rotated(model: Any, rows: DisplayRows, classes: Classes) -> RotatedImages | None:
    if rows.upright_images is None or rows.upright_labels is None:
        return None
    angles = torch.arange(0, 360, ROTATION_STEP_DEGREES, dtype=torch.float64)
    n_images, n_angles = len(rows.upright_images), len(angles)
    angle = angles.repeat(n_images)
    upright = rows.upright_images.float() / 255
    images = rotate_degrees(upright.repeat_interleave(n_angles, 0), angle)
    outputs = _predict_outputs(model, images.numpy(), angle[:, None].numpy(), classes)
    return RotatedImages(
        images=rows.upright_images[:, 0].numpy(),
        labels=rows.upright_labels.numpy(),
        stops=angles.numpy(),
        angle=_learned_angle(model, images, angle).reshape(n_images, n_angles),
        predicted=outputs.reshape(n_images, n_angles, -1),
    )


def _learned_angle(model: Any, images: Tensor, angle: Tensor) -> np.ndarray:
    """By how many degrees the transformer turns each image; 0 where nothing turns."""
    transformer = getattr(model.game_.encoder, "transformer", None)
    if transformer is None:
        return np.zeros(len(images))
    index = model.space_.embed(angle[:, None]).to(images.dtype)
    with torch.no_grad():
        cos, sin = transformer.cos_sin(images, index).double().T
    return np.asarray(torch.rad2deg(torch.atan2(sin, cos)))
