import numpy as np
import pytest

from cida.benchmarks.recipes import Recipe
from cida.benchmarks.runner import Outcome, Row
from cida.datasets import World, circle
from cida.report import toy_report
from cida.report.svg import Marks, Series, index_colour, line_chart, scatter


def some_outcome(world, title="Histogram head", seed=0, accuracy=0.9):
    cells = [{"lo": k / 30, "hi": (k + 1) / 30, "accuracy": accuracy, "n": 100} for k in range(30)]
    row = Row("histogram", seed, 1.0, accuracy, cells, 1.0)
    return Outcome(Recipe("histogram", title), row, world.y, [])


def test_user_text_is_escaped_everywhere():
    world = circle(points=5)
    title = "<script>alert('x')</script>"
    named = World(title, world.x, world.y, world.u, world.source)
    page = toy_report(named, [some_outcome(named, title)], {"command": title})
    assert "<script" not in page.lower()
    assert "&lt;script&gt;" in page


def test_a_report_works_without_source_only_and_without_a_single_error():
    world = circle(points=5)
    page = toy_report(world, [some_outcome(world)], {})
    assert "Histogram head" in page
    assert "$" not in page


def test_several_seeds_are_averaged_and_banded():
    world = circle(points=5)
    outcomes = [some_outcome(world, seed=s, accuracy=a) for s, a in enumerate((0.8, 0.9))]
    page = toy_report(world, outcomes, {})
    assert "85.0" in page
    assert "80.0" in page
    assert "<polygon" in page


def test_every_point_of_a_scatter_is_drawn_inside_the_picture():
    x = np.linspace(-3, 7, 40)
    picture = scatter([Marks(x, x**2, "dot", "positive")], "points")
    places = picture.split('d="')[1].split('"')[0].removeprefix("M").split("M")
    numbers = np.array([place.removesuffix("h0").split() for place in places], dtype=float)
    assert numbers.shape == (40, 2)
    assert numbers.min() >= 0
    assert numbers[:, 0].max() <= 250
    assert numbers[:, 1].max() <= 200
    assert (np.diff(numbers[:, 0]) > 0).all()


def test_lines_are_drawn_to_scale():
    chart = line_chart([Series("a", [0, 1, 2], [0.0, 0.5, 1.0], "s0")], "a", "x", "y", (0.0, 1.0))
    points = chart.split('points="')[1].split('"')[0].split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights[1] == pytest.approx((heights[0] + heights[2]) / 2, abs=0.1)
    assert heights[0] > heights[2]


def test_the_ramp_ends_in_its_first_and_last_colour():
    assert index_colour(0) == "#440154"
    assert index_colour(1) == "#fde725"
    assert index_colour(2) == "#fde725"
