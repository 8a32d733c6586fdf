"""The figures of Circle and Sine: files, panels, the same bytes on a second run."""

import numpy as np
import pytest

from cida.datasets import make_sine
from cida.experiments.circle_sine.toy_figures import (
    draw_figures,
    plot_toy_accuracy,
    plot_toy_predictions,
)
from cida.experiments.circle_sine.toy_tasks import make_toy_data
from cida.experiments.runner import CompletedRun
from cida.experiments.spec import Recipe
from cida.runs.records import RunResult

FILES = ["accuracy.png", "accuracy.svg", "figure.png", "figure.svg"]


@pytest.fixture(scope="module")
def world():
    return make_sine(n_per_domain=20)


class Said:
    """A model that has spoken already."""

    def __init__(self, predicted):
        self.predicted = predicted

    def predict(self, x, domain_index):
        return self.predicted


def outcome(world, method, seed, predicted):
    right = predicted == world.y
    cells = [{"score": float(right[world.u == v].mean())} for v in np.unique(world.u)]
    target = float(right[~world.source].mean())
    row = RunResult(method, seed, 1.0, target, float(right.mean()), cells, 1.0)
    return CompletedRun(Recipe(method, method.upper()), row, Said(predicted), [])


@pytest.fixture(scope="module")
def outcomes(world):
    """Three methods with two seeds; one says the same class everywhere."""
    plane = (world.x[:, 1] > 0).astype(int)
    said = {"truth": world.y, "plane": plane, "one": np.zeros_like(plane)}
    return [outcome(world, name, seed, p) for name, p in said.items() for seed in (0, 1)]


def test_each_figure_is_drawn_as_png_and_svg_the_same_on_a_second_run(world, outcomes, tmp_path):
    pictures = draw_figures({"sine": make_toy_data(world)}, outcomes, tmp_path / "a")
    again = draw_figures({"sine": make_toy_data(world)}, outcomes, tmp_path / "b")
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == FILES
    assert list(pictures) == ["The world and each method's predictions", "Accuracy against u"]
    assert pictures == again
    for name, picture in zip(("figure.svg", "accuracy.svg"), pictures.values(), strict=True):
        assert picture == name
        content = (tmp_path / "a" / name).read_bytes()
        assert b"<svg" in content
        assert (tmp_path / "b" / name).read_bytes() == content
    for name in ("figure.png", "accuracy.png"):
        content = (tmp_path / "a" / name).read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert (tmp_path / "b" / name).read_bytes() == content


def titles(figure):
    return [ax.get_title() for ax in figure.axes if ax.get_visible() and ax.get_title()]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_world_has_a_panel_for_domains_truth_and_each_method(world, outcomes, count):
    first = [o for o in outcomes if o.result.seed == 0][:count]
    shown = titles(plot_toy_predictions(world, first))
    assert shown[:2] == ["Domains, coloured by u", "Ground truth"]
    assert shown[2] == "TRUTH: 100.0 %"
    assert len(shown) == 2 + count


def test_accuracy_has_a_panel_a_method_with_the_mean_over_seeds(world, outcomes):
    plain = [o for o in outcomes if o.result.method != "one"]
    worse = outcome(world, "truth", 2, 1 - world.y)
    figure = plot_toy_accuracy(world, [*plain, worse])
    shown = titles(figure)
    assert shown[0] == "TRUTH: 66.7 %"
    assert len(shown) == 2
    line = figure.axes[0].lines[-1]
    assert line.get_xdata() == pytest.approx(np.unique(world.u))
    assert line.get_ydata() == pytest.approx(np.full(12, 200 / 3))
