import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from cida.benchmarks.paper import Record
from cida.benchmarks.recipes import Recipe
from cida.benchmarks.runner import Outcome, Row
from cida.datasets import World, circle
from cida.report import toy_report
from cida.report.svg import Marks, Series, index_colour, line_chart, scatter


class Said:
    """A model that has spoken already."""

    def __init__(self, predicted):
        self.predicted = predicted

    def predict(self, x, domain_index):
        return self.predicted


def some_outcome(world, title="Histogram head", seed=0, accuracy=0.9, fresh=None):
    cells = [{"lo": k / 30, "hi": (k + 1) / 30, "accuracy": accuracy, "n": 100} for k in range(30)]
    row = Row("histogram", seed, 1.0, accuracy, accuracy, cells, 1.0, fresh)
    return Outcome(Recipe("histogram", title), row, Said(world.y), [])


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


def test_pictures_take_the_place_of_panels_as_images_of_their_own():
    world = circle(points=5)
    page = toy_report(world, [some_outcome(world)], {}, {"A <title>": "<svg>picture</svg>"})
    assert "<h2>A &lt;title&gt;</h2>" in page
    (data,) = re.findall(r"src='data:image/svg\+xml;base64,([^']*)'", page)
    assert b64decode(data).decode() == "<svg>picture</svg>"
    assert "class='panels'" not in page


def test_a_published_number_stands_beside_ours_with_its_story():
    world = circle(points=5)
    fresh = {"target_accuracy": 0.8, "all_accuracy": 0.85}
    records = {"histogram": Record(0.777, "all", "one <seed>")}
    page = toy_report(world, [some_outcome(world, fresh=fresh)], {}, records=records)
    assert "77.7 (all)" in page
    assert "Histogram head: one &lt;seed&gt;" in page
    assert "<td>80.0</td>" in page
    assert "<td>85.0</td>" in page


def test_an_oracle_is_never_called_the_best():
    world = circle(points=5)
    best = some_outcome(world, accuracy=0.6)
    row = replace(best.row, method="oracle", target_accuracy=0.99)
    oracle = Outcome(Recipe("oracle", "Oracle", oracle=True), row, Said(world.y), [])
    page = toy_report(world, [oracle, best], {})
    assert "Best on the target: <b>Histogram head</b>, 60.0 %" in page
    assert page.count("class='best'") == 1


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
