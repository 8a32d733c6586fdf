"""Figures of rotating digits: accuracy, learned angle, digits, encodings; needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle
from matplotlib.ticker import MultipleLocator
from sklearn.decomposition import PCA
from torch import Tensor

from cida.benchmarks.figures import COLUMNS, SOURCE, STYLE, write_figures
from cida.benchmarks.rotating import Turning
from cida.benchmarks.runner import Outcome
from cida.datasets.rotating import INTERVAL_DEGREES
from cida.estimators import CIDAClassifier
from cida.images import rotate_degrees
from cida.training import isolated

__all__ = [
    "LearnedAngle",
    "accuracy_figure",
    "angle_figure",
    "digits_figure",
    "draw_figures",
    "encodings_figure",
    "learned_angle",
    "right_answer",
]

Array = np.ndarray[Any, Any]

WIDTH = 11.0  # inches, of every figure: a page shows them at one size, and so their words
CHANCE = 10.0
PREFERRED = ("source-only", "cida", "pcida", "histogram")  # where there is no room for all
DIGITS = 32  # over which the angle of a transformer that sees the image is averaged
SHOWN = (2, 4, 7)  # classes that look like no other when they are turned
TURNS = torch.arange(0, 360, 20, dtype=torch.float64)
ENCODED = 1500
QUARTERS = (0, 90, 180, 270, 360)
BAR: dict[str, Any] = {"pad": 0.01, "aspect": 25}


def draw_figures(sample: Turning, outcomes: Sequence[Outcome], folder: Path) -> dict[str, str]:
    """Writes each figure as PNG and SVG; gives the SVG texts by title.

    Accuracy is over all seeds; the others show the first. Where no encoder has a transformer there
    is no angle to draw.
    """
    first = [o for o in outcomes if o.row.seed == outcomes[0].row.seed]
    turning = [o for o in first if _transformer(o.model) is not None]
    # Rows are dealt with torch's random state, which is the caller's.
    with mpl.rc_context(STYLE), isolated(0), torch.no_grad():
        figures = {"Accuracy against the angle": ("accuracy", accuracy_figure(outcomes))}
        if turning:
            strip = digits_figure(sample, _preferred(turning))
            figures["The learned angle"] = ("angle", angle_figure(sample, turning))
            figures["Digits before and after the transformer"] = ("digits", strip)
        figures["Encodings"] = ("encodings", encodings_figure(sample, _preferred(first)))
        return write_figures(figures, folder)


def _preferred(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The few methods that a figure has room for: the preferred, then others as they come."""
    rank = {method: place for place, method in enumerate(PREFERRED)}
    ordered = sorted(outcomes, key=lambda o: rank.get(o.recipe.method, len(rank)))
    return ordered[: len(PREFERRED)]


def _transformer(model: CIDAClassifier) -> Any:
    """What turns the images of this model; None where nothing does."""
    return getattr(model.game_.encoder, "transformer", None)


# --- accuracy ------------------------------------------------------------------------------------


def accuracy_figure(outcomes: Sequence[Outcome]) -> Figure:
    """A panel a method: mean over seeds, band from worst to best, all other methods in grey."""
    by_method: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_method.setdefault(outcome.recipe.title, []).append(outcome)
    scores = {
        title: 100 * np.array([[cell["accuracy"] for cell in o.row.by_index] for o in mine])
        for title, mine in by_method.items()
    }
    cells = outcomes[0].row.by_index
    middles = [(cell["lo"] + cell["hi"]) / 2 for cell in cells]
    figure, axes = _panels(len(scores))
    for (title, mine), ax in zip(scores.items(), axes, strict=True):
        _source(ax)
        ax.axhline(CHANCE, color="0.45", linewidth=0.9, linestyle=":", label="chance")
        for other, theirs in scores.items():
            if other != title:
                ax.plot(middles, theirs.mean(0), "0.8", linewidth=0.8, label="other methods")
        _band(ax, middles, mine.min(0), mine.max(0), "worst to best seed")
        ax.plot(middles, mine.mean(0), "C0.-", linewidth=1.6, label="mean over seeds")
        target = 100 * np.mean([o.row.target_accuracy for o in by_method[title]])
        ax.set_title(f"{title}: {target:.1f} %", fontsize=9)
        ax.set(ylim=(0, 103))
    _finish(figure, axes, "accuracy %")
    return figure


# --- the learned angle ---------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedAngle:
    """``theta(u)`` in degrees without jumps at a whole turn; low and high hold most digits."""

    theta: Array
    low: Array
    high: Array


def learned_angle(model: CIDAClassifier, upright: Tensor, u: Tensor) -> LearnedAngle:
    """The angle by which the transformer turns images, anticlockwise, at each place u in degrees.

    It is the mean direction over the digits, each turned by u as the data are; low and high are
    the tenth and the ninetieth per cent of them. If only u is seen they are all the same.
    """
    angle = u.double().repeat_interleave(len(upright))
    images = rotate_degrees(upright.repeat(len(u), 1, 1, 1), angle)
    index = model.space_.embed(angle[:, None]).to(images.dtype)
    with torch.no_grad():
        found = _transformer(model).cos_sin(images, index).double().view(len(u), -1, 2).numpy()
    theta = np.unwrap(_degrees(found.mean(1)), period=360)
    low, high = np.quantile(_wrapped(_degrees(found) - theta[:, None]), [0.1, 0.9], axis=1)
    return LearnedAngle(theta, theta + low, theta + high)


def right_answer(u: Array, theta: Array) -> Array:
    """``c - u``, which turns every digit back to one place c: where theta has those of the source.

    A digit comes turned by u and leaves at ``u + theta``. Which place they all come to is free.
    """
    source = u <= INTERVAL_DEGREES
    place = np.deg2rad(theta[source] + u[source])
    near = float(np.rad2deg(place.mean()))  # the mean direction is known up to whole turns alone
    turned = _degrees(np.stack([np.cos(place).mean(), np.sin(place).mean()]))
    answer: Array = near + _wrapped(turned - near) - u
    return answer


def angle_figure(sample: Turning, outcomes: Sequence[Outcome]) -> Figure:
    """A panel a method: theta against u, and the right answer."""
    u = torch.linspace(0, 360, 121, dtype=torch.float64)
    upright = sample.scored_digits.images[:DIGITS].float() / 255
    figure, axes = _panels(len(outcomes))
    for outcome, ax in zip(outcomes, axes, strict=True):
        found = learned_angle(outcome.model, upright, u)
        answer = right_answer(u.numpy(), found.theta)
        _source(ax)
        ax.plot(u, answer, "0.35", linewidth=1.1, linestyle="--", label="right answer: c - u")
        if (found.high - found.low).max() > 0.1:
            _band(ax, u, found.low, found.high, "10 to 90 % of digits")
        ax.plot(u, found.theta, "C0", linewidth=1.6, label="learned angle, first seed")
        wrong = np.abs(_wrapped(found.theta - answer))[u.numpy() > INTERVAL_DEGREES].mean()
        ax.set_title(f"{outcome.recipe.title}: off by {wrong:.0f}°", fontsize=9)
        ax.set(ylim=(-570, 210))  # all right answers; who goes astray may leave the picture
        ax.yaxis.set_major_locator(MultipleLocator(180))
    _finish(figure, axes, "learned angle, degrees")
    return figure


def _degrees(cos_sin: Array) -> Array:
    found: Array = np.rad2deg(np.arctan2(cos_sin[..., 1], cos_sin[..., 0]))
    return found


def _wrapped(degrees: Array) -> Array:
    """The same directions between -180 and 180."""
    found: Array = (degrees + 180) % 360 - 180
    return found


# --- digits --------------------------------------------------------------------------------------


def digits_figure(sample: Turning, outcomes: Sequence[Outcome]) -> Figure:
    """A few digits at angles all around, then what the transformer of each method makes of them."""
    digits = sample.scored_digits
    chosen = torch.cat([(digits.labels == label).nonzero()[:1, 0] for label in SHOWN])
    upright = digits.images[chosen.repeat_interleave(len(TURNS))].float() / 255
    angle = TURNS.repeat(len(chosen))
    images = rotate_degrees(upright, angle)
    strips = {"as they come": images}
    for outcome in outcomes:
        index = outcome.model.space_.embed(angle[:, None]).to(images.dtype)
        strips[outcome.recipe.title] = _transformer(outcome.model)(images, index)
    height = WIDTH * 0.89 * len(chosen) / len(TURNS) + 0.08
    figure = Figure(figsize=(WIDTH, height * len(strips) + 0.3), layout="compressed")
    axes = figure.subplots(len(strips), 1, squeeze=False)[:, 0]
    for (title, strip), ax in zip(strips.items(), axes, strict=True):
        _mosaic(strip, len(chosen), ax)
        ax.set_ylabel(fill(title, 12), rotation=0, ha="right", va="center")
    axes[0].tick_params(top=False, labeltop=True)
    return figure


def _mosaic(images: Tensor, rows: int, ax: Axes) -> None:
    """Images in rows, one column an angle; those of the source boxed."""
    _, _, height, width = images.shape
    tiles = images.view(rows, len(TURNS), height, width).permute(0, 2, 1, 3)
    sheet = tiles.reshape(rows * height, len(TURNS) * width).numpy()
    across, down = width * len(TURNS), height * rows
    ax.imshow(sheet, "gray", vmin=0, vmax=1, extent=(0, across, down, 0), interpolation="none")
    ax.vlines(np.arange(1, len(TURNS)) * width, 0, down, color="white", linewidth=1)
    ax.hlines(np.arange(1, rows) * height, 0, across, color="white", linewidth=1)
    labelled = width * int((TURNS <= INTERVAL_DEGREES).sum())
    box = Rectangle((0, 0), labelled, down, fill=False, edgecolor=SOURCE, linewidth=3, zorder=3)
    ax.add_patch(box)
    ax.set(xlim=(0, across), ylim=(down, 0), yticks=[])
    ax.set_xticks((np.arange(len(TURNS)) + 0.5) * width, [f"{turn:g}°" for turn in TURNS])
    ax.tick_params(bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)


# --- encodings -----------------------------------------------------------------------------------


def encodings_figure(sample: Turning, outcomes: Sequence[Outcome]) -> Figure:
    """z on its first two principal components: coloured by u above, by class below."""
    rows = sample.scored()
    # Shuffled, so that no angle lies on top of all others.
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:ENCODED]
    batch = rows[order]
    # The rows themselves are silent about the labels of the target.
    labels = sample.scored_digits.labels[rows.x[order]]
    figure = Figure(figsize=(WIDTH, 5.4), layout="constrained")
    axes = figure.subplots(2, len(outcomes), squeeze=False)
    for outcome, (above, below) in zip(outcomes, axes.T, strict=True):
        z = outcome.model.transform(batch.x.numpy(), domain_index=batch.u.numpy())
        flat = PCA(2, svd_solver="full").fit_transform(z)
        by_u = _scatter(above, flat, batch.u[:, 0], "twilight", (0, 360))
        by_class = _scatter(below, flat, labels, "tab10", (-0.5, 9.5))
        above.set_title(outcome.recipe.title, fontsize=9)
    figure.colorbar(by_u, ax=axes[0], label="u, degrees", ticks=QUARTERS, **BAR)
    figure.colorbar(by_class, ax=axes[1], label="digit", ticks=range(10), **BAR)
    return figure


def _scatter(ax: Axes, flat: Array, value: Tensor, colours: str, ends: tuple[float, float]) -> Any:
    ax.set(xticks=[], yticks=[])
    across, up = flat.T
    marks = ax.scatter(across, up, c=value, cmap=colours, s=6, rasterized=True)
    marks.set(clim=ends, edgecolors="0.5", linewidths=0.15)  # the palest angle is seen on white too
    return marks


# --- what figures share --------------------------------------------------------------------------


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    """Panels against u, in rows of even length."""
    rows = math.ceil(count / COLUMNS)
    columns = math.ceil(count / rows)
    room = ConstrainedLayoutEngine(wspace=0.05)  # for the numbers at the ends of two axes
    figure = Figure(figsize=(WIDTH, 1.9 * rows + 0.7), layout=room)
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
    for spare in axes[count:]:
        spare.set_visible(False)
    axes[0].set(xlim=(0, 360), xticks=QUARTERS)
    return figure, axes[:count]


def _source(ax: Axes) -> None:
    ax.axvspan(0, INTERVAL_DEGREES, color=SOURCE, alpha=0.12, linewidth=0, label="source")


def _band(ax: Axes, at: Any, low: Array, high: Array, name: str) -> None:
    ax.fill_between(at, low, high, color="C0", alpha=0.25, linewidth=0, label=name)


def _finish(figure: Figure, axes: Sequence[Axes], what: str) -> None:
    """Names for the axes, and one legend for all panels above them."""
    named: dict[str, Any] = {}
    for ax in axes:
        marks, names = ax.get_legend_handles_labels()
        named |= dict(zip(names, marks, strict=True))
    figure.supylabel(what, fontsize=9)
    figure.supxlabel("u, degrees", fontsize=9)
    marks, names = list(named.values()), list(named)
    figure.legend(marks, names, loc="outside upper center", ncols=len(names), frameon=False)
