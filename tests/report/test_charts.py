"""Charts: to scale, inside their picture, and the same in a file of their own."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cida.report.charts import Band, IndexAxis, Marks, Series, facet, line_chart, scatter_chart
from cida.report.theme import COLORS, index_color, render_chart_css
from cida.report.ticks import choose_ticks, format_edges, format_number

LIGHT_COLORS, DARK_COLORS = COLORS["light"], COLORS["dark"]


def test_every_point_of_a_scatter_is_drawn_inside_the_picture():
    x = np.linspace(-3, 7, 40)
    picture = scatter_chart([Marks(x, x**2, "s1")], "points", (250, 200)).body
    places = picture.split('d="')[1].split('"')[0].removeprefix("M").split("M")
    numbers = np.array([place.removesuffix("h0").split() for place in places], dtype=float)
    assert numbers.shape == (40, 2)
    assert numbers.min() >= 0
    assert numbers[:, 0].max() <= 250
    assert numbers[:, 1].max() <= 200
    assert (np.diff(numbers[:, 0]) > 0).all()


def test_lines_are_drawn_to_scale():
    chart = line_chart(
        [Series("a", [0, 1, 2], [0.0, 0.5, 1.0], "s0")], "a", IndexAxis("x"), "y", (0.0, 1.0)
    )
    points = chart.body.split('points="')[1].split('"')[0].split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights[1] == pytest.approx((heights[0] + heights[2]) / 2, abs=0.1)
    assert heights[0] > heights[2]


def test_the_ramp_ends_in_its_first_and_last_colour():
    assert index_color(0) == "#440154"
    assert index_color(1) == "#fde725"
    assert index_color(2) == "#fde725"


def test_names_at_the_ends_of_lines_do_not_meet():
    series = [Series(f"line {k}", [0, 1], [0.5, 0.9], f"s{k}") for k in range(12)]
    chart = line_chart(series, "a", IndexAxis("x"), "y", (0, 1), (820, 360), show_names=True)
    root = ET.fromstring(f"<svg>{chart.body}</svg>")
    heights = sorted(
        float(text.get("y")) for text in root.iter("text") if (text.text or "").startswith("line ")
    )
    assert len(heights) == 12
    assert np.diff(heights).min() >= 12.9
    assert heights[-1] <= 360


@given(low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), count=st.integers(1, 8))
def test_edges_are_told_apart_in_as_few_digits_as_it_takes(low, width, count):
    edges = np.linspace(low, low + width, count + 1).tolist()
    words = format_edges(edges)
    assert len({words[edge] for edge in edges}) == count + 1
    for edge in edges:
        assert abs(float(words[edge].replace(",", "")) - edge) <= width / count / 10 + 1e-9


@pytest.mark.parametrize(
    ("edges", "told"),
    [
        ([-9.9, -6.1625, 17.5531, 20], ["-9.9", "-6.16", "17.6", "20"]),
        ([1990, 1993.75, 1997.5], ["1990", "1993.8", "1997.5"]),
        ([0, 125_000, 1_250_000], ["0", "125,000", "1,250,000"]),
        ([100.01, 100.02], ["100.01", "100.02"]),
        ([7, 7], ["7", "7"]),
        ([0.00012345, 0.5], ["0.000123", "0.5"]),
    ],
)
def test_edges_have_three_digits_or_more_where_they_need_them(edges, told):
    words = format_edges(edges)
    assert [words[edge] for edge in edges] == told


def test_a_file_of_its_own_has_its_colours_written_out():
    series = [Series("<a> & b", [0, 1], [0, 1], "s3", ([0, 0], [1, 1]))]
    chart = line_chart(series, '"x" <y>', IndexAxis(bands=[Band(0, 0.5, "source")]), "y", (0, 1))
    text = chart.to_standalone_svg()
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root.get("width"), root.get("height")) == ("320", "200")
    assert "var(" not in text
    assert LIGHT_COLORS["s3"] in text
    assert next(root.iter("{http://www.w3.org/2000/svg}title")).text == '"x" <y>'


def test_every_colour_of_the_charts_is_known_to_both_pages():
    assert set(LIGHT_COLORS) == set(DARK_COLORS)
    assert "var(" not in render_chart_css(LIGHT_COLORS)


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT_COLORS, DARK_COLORS])
def test_words_and_lines_stand_out_from_the_page(colours):
    for name in ("ink", "soft", "link"):
        for ground in ("paper", "card"):
            assert contrast(colours[name], colours[ground]) >= 4.5, name
    for number in range(12):
        assert contrast(colours[f"s{number}"], colours["card"]) >= 3, number


def test_charts_put_together_keep_their_places():
    one = scatter_chart([Marks(np.array([0.0]), np.array([1.0]))], "one", (100, 80))
    whole = facet([("a", one), ("b", one), ("c", one)], 2, "all")
    assert (whole.width, whole.height) == (214, 2 * 100 + 14)
    assert whole.body.count("<g transform") == 3


@given(low=st.floats(-1e9, 1e9), room=st.floats(1e-3, 1e9), most=st.integers(3, 8))
def test_ticks_are_few_in_order_and_inside(low, room, most):
    high = low + room
    if not high > low:
        return
    found = choose_ticks(low, high, most)
    assert 1 <= len(found) <= most
    assert sorted(found) == found
    slack = 1e-6 * max(abs(low), abs(high), room)
    assert found[0] >= low - slack
    assert found[-1] <= high + slack


def test_no_two_ticks_read_the_same():
    for low, high in ((3.39, 3.41), (0, 1), (20, 80), (-1, 1), (1e5, 1.2e5), (0.001, 0.0013)):
        found = choose_ticks(low, high, 5)
        words = [format_number(value, found[1] - found[0]) for value in found]
        assert len(set(words)) == len(words) >= 2
