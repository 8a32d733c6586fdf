"""Figures of rotating digits: accuracy, learned angle, digits, encodings; needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle
from matplotlib.ticker import MultipleLocator
from sklearn.decomposition import PCA
from torch import Tensor

from cida.estimators import CIDAClassifier
from cida.experiments import figures
from cida.experiments.rotating_mnist.rotating_dataset import INTERVAL_DEGREES
from cida.experiments.rotating_mnist.rotating_tasks import RotatingTaskData
from cida.experiments.runner import CompletedRun
from cida.images import rotate_degrees
from cida.training import seeded

FIGURE_WIDTH_INCHES = 11.0  # of every figure: a page shows them at one size, and so their words
MAX_PANEL_COLUMNS = 4
CHANCE_PERCENT = 10.0
PREFERRED_METHODS = ("source-only", "cida", "pcida", "histogram")  # where there is no room for all
N_ANGLE_DIGITS = 32  # over which the angle of a transformer that sees the image is averaged
PLOTTED_CLASSES = (2, 4, 7)  # classes that look like no other when they are turned
PLOTTED_ANGLES = torch.arange(0, 360, 20, dtype=torch.float64)
MAX_ENCODED_ROWS = 1500
ANGLE_TICKS = (0, 90, 180, 270, 360)
COLORBAR_OPTIONS: dict[str, Any] = {"pad": 0.01, "aspect": 25}


def draw_figures(
    data_by_task: Mapping[str, RotatingTaskData], runs: Sequence[CompletedRun], folder: Path
) -> dict[str, str]:
    """Writes each figure as PNG and SVG; returns the files by title.

    Accuracy is over all seeds; the others show the first. Where no encoder has a transformer there
    is no angle to draw.
    """
    (task_data,) = data_by_task.values()
    first_runs = figures.first_seed_runs(runs)
    turning = [run for run in first_runs if _transformer(run.model) is not None]
    drawings = {"Accuracy against the angle": ("accuracy", partial(plot_accuracy_by_angle, runs))}
    if turning:
        drawings["The learned angle"] = ("angle", partial(plot_learned_angle, task_data, turning))
        strips = partial(plot_digits, task_data, _preferred_runs(turning))
        drawings["Digits before and after the transformer"] = ("digits", strips)
    encodings = partial(plot_encodings, task_data, _preferred_runs(first_runs))
    drawings["Encodings"] = ("encodings", encodings)
    with seeded(0), torch.no_grad():  # rows are dealt with torch's random state: the caller's
        return figures.save_figures(drawings, folder)


def _preferred_runs(runs: Sequence[CompletedRun]) -> list[CompletedRun]:
    """The few methods that a figure has room for: the preferred, then others as they come."""
    rank = {method: place for place, method in enumerate(PREFERRED_METHODS)}
    ordered = sorted(runs, key=lambda o: rank.get(o.recipe.method, len(rank)))
    return ordered[: len(PREFERRED_METHODS)]


def _transformer(model: CIDAClassifier) -> Any:
    """What turns the images of this model; None where nothing does."""
    return getattr(model.game_.encoder, "transformer", None)


def plot_accuracy_by_angle(runs: Sequence[CompletedRun]) -> Figure:
    """A panel a method: mean over seeds, band from worst to best, all other methods in grey."""
    by_method = figures.scores_by_method(runs)
    middles = [(cell["lo"] + cell["hi"]) / 2 for cell in runs[0].result.by_index]
    figure, axes = _make_panels(len(by_method))
    for (title, (scores, target)), ax in zip(by_method.items(), axes, strict=True):
        figures.shade_source(ax, 0, INTERVAL_DEGREES, label="source")
        ax.axhline(CHANCE_PERCENT, color="0.45", linewidth=0.9, linestyle=":", label="chance")
        for other, (other_scores, _) in by_method.items():
            if other != title:
                ax.plot(middles, other_scores.mean(0), "0.8", linewidth=0.8, label="other methods")
        _draw_band(ax, middles, scores.min(0), scores.max(0), "worst to best seed")
        ax.plot(middles, scores.mean(0), "C0.-", linewidth=1.6, label="mean over seeds")
        ax.set_title(f"{title}: {target:.1f} %", fontsize=9)
        ax.set(ylim=(0, 103))
    _label_figure(figure, axes, "accuracy %")
    return figure


@dataclass(frozen=True)
class LearnedAngle:
    """``theta(u)`` in degrees without jumps at a whole turn; low and high hold most digits."""

    theta: np.ndarray
    low: np.ndarray
    high: np.ndarray


def measure_learned_angle(model: CIDAClassifier, upright: Tensor, u: Tensor) -> LearnedAngle:
    """The angle by which the transformer turns images, anticlockwise, at each place u in degrees.

    It is the mean direction over the digits, each turned by u as the data are; low and high are
    the tenth and the ninetieth per cent of them. If only u is seen they are all the same.
    """
    angle = u.double().repeat_interleave(len(upright))
    images = rotate_degrees(upright.repeat(len(u), 1, 1, 1), angle)
    index = model.space_.embed(angle[:, None]).to(images.dtype)
    with torch.no_grad():
        cos_sin = _transformer(model).cos_sin(images, index).double().view(len(u), -1, 2).numpy()
    theta = np.unwrap(_angle_degrees(cos_sin.mean(1)), period=360)
    deviation = _wrap_degrees(_angle_degrees(cos_sin) - theta[:, None])
    low, high = np.quantile(deviation, [0.1, 0.9], axis=1)
    return LearnedAngle(theta, theta + low, theta + high)


def ideal_angle(u: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """``c - u``, which turns every digit back to one place c: where theta has those of the source.

    A digit comes turned by u and leaves at ``u + theta``. Which place they all come to is free.
    """
    source = u <= INTERVAL_DEGREES
    direction = np.deg2rad(theta[source] + u[source])
    mean_angle = float(np.rad2deg(direction.mean()))  # a direction is known up to whole turns alone
    mean_direction = _angle_degrees(np.stack([np.cos(direction).mean(), np.sin(direction).mean()]))
    return np.asarray(mean_angle + _wrap_degrees(mean_direction - mean_angle) - u)


def plot_learned_angle(task_data: RotatingTaskData, runs: Sequence[CompletedRun]) -> Figure:
    """A panel a method: theta against u, and the right answer."""
    u = torch.linspace(0, 360, 121, dtype=torch.float64)
    upright = task_data.scored_digits.images[:N_ANGLE_DIGITS].float() / 255
    figure, axes = _make_panels(len(runs))
    for outcome, ax in zip(runs, axes, strict=True):
        learned = measure_learned_angle(outcome.model, upright, u)
        ideal = ideal_angle(u.numpy(), learned.theta)
        figures.shade_source(ax, 0, INTERVAL_DEGREES, label="source")
        ax.plot(u, ideal, "0.35", linewidth=1.1, linestyle="--", label="right answer: c - u")
        if (learned.high - learned.low).max() > 0.1:
            _draw_band(ax, u, learned.low, learned.high, "10 to 90 % of digits")
        ax.plot(u, learned.theta, "C0", linewidth=1.6, label="learned angle, first seed")
        error = np.abs(_wrap_degrees(learned.theta - ideal))
        mean_error = error[u.numpy() > INTERVAL_DEGREES].mean()
        ax.set_title(f"{outcome.recipe.title}: off by {mean_error:.0f}°", fontsize=9)
        ax.set(ylim=(-570, 210))  # all right answers; who goes astray may leave the picture
        ax.yaxis.set_major_locator(MultipleLocator(180))
    _label_figure(figure, axes, "learned angle, degrees")
    return figure


def _angle_degrees(cos_sin: np.ndarray) -> np.ndarray:
    return np.asarray(np.rad2deg(np.arctan2(cos_sin[..., 1], cos_sin[..., 0])))


def _wrap_degrees(degrees: np.ndarray) -> np.ndarray:
    """The same directions between -180 and 180."""
    return (degrees + 180) % 360 - 180


def plot_digits(task_data: RotatingTaskData, runs: Sequence[CompletedRun]) -> Figure:
    """A few digits at angles all around, then what the transformer of each method makes of them."""
    digits = task_data.scored_digits
    first = [(digits.labels == label).nonzero()[:1, 0] for label in PLOTTED_CLASSES]
    image_numbers = torch.cat(first)
    upright = digits.images[image_numbers.repeat_interleave(len(PLOTTED_ANGLES))].float() / 255
    angle = PLOTTED_ANGLES.repeat(len(image_numbers))
    images = rotate_degrees(upright, angle)
    strips = {"as they come": images}
    for outcome in runs:
        index = outcome.model.space_.embed(angle[:, None]).to(images.dtype)
        strips[outcome.recipe.title] = _transformer(outcome.model)(images, index)
    height = FIGURE_WIDTH_INCHES * 0.89 * len(image_numbers) / len(PLOTTED_ANGLES) + 0.08
    figure = Figure(figsize=(FIGURE_WIDTH_INCHES, height * len(strips) + 0.3), layout="compressed")
    axes = figure.subplots(len(strips), 1, squeeze=False)[:, 0]
    for (title, strip), ax in zip(strips.items(), axes, strict=True):
        _draw_mosaic(strip, len(image_numbers), ax)
        ax.set_ylabel(fill(title, 12), rotation=0, ha="right", va="center")
    axes[0].tick_params(top=False, labeltop=True)
    return figure


def _draw_mosaic(images: Tensor, rows: int, ax: Axes) -> None:
    """Images in rows, one column an angle; those of the source boxed."""
    _, _, height, width = images.shape
    tiles = images.view(rows, len(PLOTTED_ANGLES), height, width).permute(0, 2, 1, 3)
    sheet = tiles.reshape(rows * height, len(PLOTTED_ANGLES) * width).numpy()
    total_width, total_height = width * len(PLOTTED_ANGLES), height * rows
    extent = (0, total_width, total_height, 0)
    ax.imshow(sheet, "gray", vmin=0, vmax=1, extent=extent, interpolation="none")
    columns, lines = np.arange(1, len(PLOTTED_ANGLES)) * width, np.arange(1, rows) * height
    ax.vlines(columns, 0, total_height, color="white", linewidth=1)
    ax.hlines(lines, 0, total_width, color="white", linewidth=1)
    source_width = width * int((PLOTTED_ANGLES <= INTERVAL_DEGREES).sum())
    frame: dict[str, Any] = {"edgecolor": figures.SOURCE_COLOR, "linewidth": 3, "zorder": 3}
    ax.add_patch(Rectangle((0, 0), source_width, total_height, fill=False, **frame))
    ax.set(xlim=(0, total_width), ylim=(total_height, 0), yticks=[])
    middles = (np.arange(len(PLOTTED_ANGLES)) + 0.5) * width
    ax.set_xticks(middles, [f"{turn:g}°" for turn in PLOTTED_ANGLES])
    ax.tick_params(bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)


def plot_encodings(task_data: RotatingTaskData, runs: Sequence[CompletedRun]) -> Figure:
    """z on its first two principal components: coloured by u above, by class below."""
    rows = task_data.scored_dataset()
    # Shuffled, so that no angle lies on top of all others.
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:MAX_ENCODED_ROWS]
    batch = rows[order]
    # The rows themselves are silent about the labels of the target.
    labels = task_data.scored_digits.labels[rows.x[order]]
    figure = Figure(figsize=(FIGURE_WIDTH_INCHES, 5.4), layout="constrained")
    axes = figure.subplots(2, len(runs), squeeze=False)
    for outcome, (above, below) in zip(runs, axes.T, strict=True):
        z = outcome.model.transform(batch.x.numpy(), domain_index=batch.u.numpy())
        projected = PCA(2, svd_solver="full").fit_transform(z)
        by_u = _scatter(above, projected, batch.u[:, 0], "twilight", (0, 360))
        by_class = _scatter(below, projected, labels, "tab10", (-0.5, 9.5))
        above.set_title(outcome.recipe.title, fontsize=9)
    figure.colorbar(by_u, ax=axes[0], label="u, degrees", ticks=ANGLE_TICKS, **COLORBAR_OPTIONS)
    figure.colorbar(by_class, ax=axes[1], label="digit", ticks=range(10), **COLORBAR_OPTIONS)
    return figure


def _scatter(ax: Axes, z: np.ndarray, value: Tensor, colors: str, limits: Any) -> Any:
    ax.set(xticks=[], yticks=[])
    marks = ax.scatter(z[:, 0], z[:, 1], c=value, cmap=colors, s=6, rasterized=True)
    # With edges, the palest angle is seen on white too.
    marks.set(clim=limits, edgecolors="0.5", linewidths=0.15)
    return marks


def _make_panels(count: int) -> tuple[Figure, list[Axes]]:
    """Panels against u, in rows of even length."""
    n_columns = math.ceil(count / math.ceil(count / MAX_PANEL_COLUMNS))
    layout = ConstrainedLayoutEngine(wspace=0.05)  # for the numbers at the ends of two axes
    size = (count, n_columns, 1.9, 0.7, FIGURE_WIDTH_INCHES)
    figure, axes = figures.make_panels(*size, layout, sharex=True, sharey=True)
    axes[0].set(xlim=(0, 360), xticks=ANGLE_TICKS)
    return figure, axes


def _draw_band(ax: Axes, at: Any, low: np.ndarray, high: np.ndarray, name: str) -> None:
    ax.fill_between(at, low, high, color="C0", alpha=0.25, linewidth=0, label=name)


def _label_figure(figure: Figure, axes: Sequence[Axes], y_label: str) -> None:
    """Names for the axes, and one legend for all panels above them."""
    figure.supylabel(y_label, fontsize=9)
    figure.supxlabel("u, degrees", fontsize=9)
    figures.add_shared_legend(figure, axes)
