"""The explorer's arithmetic in the browser, against numpy, scipy and contourpy."""

from importlib.resources import files

import contourpy
import numpy as np
import pytest
import torch
from scipy.interpolate import RegularGridInterpolator

from cida.report.explorer import _ArrayStore
from cida.spaces import Line, Periodic, Product

SCRIPTS = ("numbers.js", "marching.js")


@pytest.fixture
def page(open_file, tmp_path):
    """A blank page with the functions in it."""
    blank = tmp_path / "blank.html"
    blank.write_text("<!doctype html><title>blank</title>")
    opened = open_file(blank)
    for name in SCRIPTS:
        opened.add_script_tag(content=files("cida.report").joinpath("static", name).read_text())
    return opened


@pytest.mark.parametrize("bits", [8, 16])
def test_arrays_are_decoded_as_they_were_packed(page, bits):
    values = np.random.default_rng(0).normal(size=(7, 3))
    if bits == 16:
        values[2, 1] = np.nan
    arrays = _ArrayStore()
    packed = arrays.packed[arrays.add_scaled(values, bits)]
    found = page.evaluate("p => [...decode(p).values].map(v => isNaN(v) ? null : v)", packed)
    got = np.array([np.nan if v is None else v for v in found]).reshape(7, 3)
    np.testing.assert_allclose(got, values, atol=packed["step"] / 2 + 1e-6)


def test_near_is_gaussian_in_the_distance_of_the_space(page):
    rng = np.random.default_rng(1)
    u = np.stack([rng.uniform(0, 24, 50), rng.uniform(-3, 5, 50)], 1)
    columns = [{"low": 0, "high": 24, "period": 24}, {"low": -3, "high": 5, "period": 0}]
    here = [23.5, 1.0]
    call = "([index, columns, u]) => [...nearness(index.map(values => ({values})), columns, u)]"
    found = page.evaluate(call, [u.T.tolist(), columns, here])
    # The space's unit is a radian on the circle, and a raw unit on an unfitted line.
    space = Product([Periodic(24), Line(scale=8 / (2 * np.pi))])
    away = space.distance(torch.tensor(u), torch.tensor([here]).double())[:, 0].numpy()
    np.testing.assert_allclose(found, np.exp(-((away / (2 * np.pi) / 0.08) ** 2) / 2), atol=1e-5)


def test_between_stops_is_linear_along_every_column(page):
    rng = np.random.default_rng(2)
    grid = rng.normal(size=(5, 4, 3, 3))
    stops = [np.linspace(0, 1, 5), np.linspace(10, 20, 4)]
    columns = [{"low": 0, "high": 1, "period": 0}, {"low": 10, "high": 20, "period": 0}]
    second = RegularGridInterpolator(stops, grid)
    call = """([values, shape, stops, columns, u]) =>
        [...layerAt({values, shape}, stops, columns, u, new Float32Array(9))]"""
    inside = rng.uniform([0, 10], [1, 20], (6, 2)).tolist()
    for place in [*inside, [0, 10], [1, 20], [0.5, 20]]:
        given = [grid.ravel().tolist(), grid.shape, [s.tolist() for s in stops], columns, place]
        found = np.reshape(page.evaluate(call, given), (3, 3))
        np.testing.assert_allclose(found, second(place)[0], atol=1e-5)


def test_round_the_circle_the_last_stop_meets_the_first(page):
    call = "([stops, u, period]) => between(stops, u, period)"
    stops = [0, 6, 12, 18]
    assert page.evaluate(call, [stops, 21, 24]) == {"below": 3, "above": 0, "share": 0.5}
    assert page.evaluate(call, [stops, 3, 24]) == {"below": 0, "above": 1, "share": 0.5}
    late = [0.5, 12, 23.5]
    assert page.evaluate(call, [late, 0.25, 24]) == {"below": 2, "above": 0, "share": 0.75}
    assert page.evaluate(call, [late, 23.75, 24]) == {"below": 2, "above": 0, "share": 0.25}
    assert page.evaluate(call, [stops, 21, 0])["share"] == 1  # a line ends


def length(lines):
    return sum(float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum()) for line in lines)


@pytest.mark.parametrize("seed", range(4))
def test_the_boundary_is_contourpys(page, seed):
    rng = np.random.default_rng(seed)
    grid = rng.normal(size=(12, 15))
    if seed:  # smoother ones have fewer saddles
        for _ in range(seed):
            grid = (grid + np.roll(grid, 1, 0) + np.roll(grid, 1, 1)) / 3
    call = "([grid, rows, across, level]) => contour(grid, rows, across, level)"
    found = np.reshape(page.evaluate(call, [grid.ravel().tolist(), 12, 15, 0.1]), (-1, 2, 2))
    wanted = contourpy.contour_generator(z=grid, name="serial").lines(0.1)
    assert length(found) == pytest.approx(length(wanted), rel=1e-6)
    ours = {tuple(np.round(point, 6)) for point in found.reshape(-1, 2).tolist()}
    theirs = {tuple(np.round(point, 6)) for line in wanted for point in line.tolist()}
    assert ours == theirs


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ({"low": 0, "high": 1, "period": 0}, 0.5, "0.50"),
        ({"low": 0, "high": 0.9995, "period": 0}, 0.5, "0.50"),
        ({"low": 0, "high": 24, "period": 24}, 23.99, "0.0"),
        ({"low": 0, "high": 360, "period": 360}, 90.2, "90"),
        ({"low": 18000, "high": 19000, "period": 0, "date": True}, 18628, "2021-01-01"),
        ({"low": 0, "high": 1e-9, "period": 0}, 5e-10, "5.000e-10"),
    ],
)
def test_a_place_is_written_as_its_range_asks(page, column, value, words):
    assert page.evaluate("([c, v]) => place(c, v)", [column, value]) == words


def test_a_share_that_is_not_all_is_not_100_percent(page):
    shares = [1, 0.999, 0.5, 0]
    written = page.evaluate("all => all.map(percent)", shares)
    assert written == ["100 %", "99.9 %", "50 %", "0 %"]
