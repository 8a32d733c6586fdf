"""What the explorer's script is given: every array within half a step of the view's."""

import json
import re
from base64 import b64decode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.decomposition import PCA

from cida.experiments.display_rows import INDEX_GRID_SIZES, PLANE_GRID_SIZES
from cida.report.explorer import (
    _ArrayStore,
    build_explorer_data,
    find_source_ranges,
    render_explorer,
)
from cida.runs.snapshot import PlaneMap, RotatedImages, Snapshot
from cida.selection.expected_score import ExpectedScore
from cida.spaces import Line, Periodic, Product

EVIL = "</script><script>alert(1)</script>"


def decoded(packed):
    codes = np.frombuffer(b64decode(packed["data"]), f"<u{packed['bits'] // 8}").astype(float)
    if packed["bits"] == 16:
        codes[codes == 65535] = np.nan
    return (packed["low"] + packed["step"] * codes).reshape(packed["shape"])


def view(rows=60, classes=("no", "yes"), columns=1, seed=0, side=4, **changes):
    rng = np.random.default_rng(seed)
    u = rng.uniform(0, 10, (rows, columns))
    width = 1 if classes is None else len(classes)
    predicted = (
        rng.normal(size=(rows, 1)) if classes is None else rng.dirichlet(np.ones(width), rows)
    )
    truth = rng.normal(size=rows) if classes is None else rng.integers(0, width, rows).astype(float)
    truth[::3] = np.nan
    x = rng.normal(size=(rows, 2))
    stops = tuple(np.linspace(0, 10, 5) for _ in range(columns))
    grid = rng.uniform(size=(*(5 for _ in range(columns)), side, side))
    grid = grid if classes is None else 80 * (grid - 0.5)
    return Snapshot(**{
        "space": Line() if columns == 1 else Product([Line()] * columns),
        "index_names": tuple(f"u{k}" for k in range(columns)),
        "classes": classes,
        "u": u,
        "source": u[:, 0] < 4,
        "predicted": predicted,
        "truth": truth,
        "z": rng.normal(size=(rows, 5)) * [3, 2, 1, 1, 1],
        "plane": PlaneMap(x, (-4.0, 4.0, -4.0, 4.0), stops, grid),
        **changes,
    })  # fmt: skip


@given(
    hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e6, 1e6) | st.just(np.nan)),
    st.sampled_from([8, 16]),
)
def test_a_packed_array_is_the_array_within_half_a_step(values, bits):
    values = values if bits == 16 else np.nan_to_num(values)
    arrays = _ArrayStore()
    packed = arrays.packed[arrays.add_scaled(values, bits)]
    found = decoded(packed)
    assert (np.isnan(found) == np.isnan(values)).all()
    known = ~np.isnan(values)
    half = packed["step"] / 2 * (1 + 1e-6) + 1e-9
    assert (np.abs(found - values)[known] <= half).all()


def test_equal_arrays_are_stored_once():
    data = build_explorer_data({"a": view(), "b": view()})
    first, second = data["runs"]
    assert first["u"] == second["u"]
    assert first["plane"] == second["plane"]
    assert len(data["arrays"]) == len(build_explorer_data({"a": view()})["arrays"])


@pytest.mark.parametrize("columns", [1, 2])
def test_what_the_page_decodes_is_the_view(columns):
    shown = view(columns=columns)
    data = build_explorer_data({"a": shown})
    run = data["runs"][0]
    arrays = [decoded(packed) for packed in data["arrays"]]
    for k, number in enumerate(run["u"]):
        np.testing.assert_allclose(arrays[number], shown.u[:, k], atol=10 / 65534)
    np.testing.assert_array_equal(arrays[run["source"]], shown.source)
    np.testing.assert_array_equal(arrays[run["predicted"]], shown.predicted.argmax(1))
    np.testing.assert_array_equal(arrays[run["truth"]], shown.truth)
    np.testing.assert_allclose(arrays[run["probabilities"]], shown.predicted, atol=0.5 / 255 + 1e-9)
    np.testing.assert_allclose(arrays[run["plane"]["across"]], shown.plane.x[:, 0], atol=1e-4)
    odds = shown.plane.grid.clip(-30, 30)
    np.testing.assert_allclose(arrays[run["plane"]["grid"]], odds, atol=30 / 65534 + 1e-9)


def test_of_a_regression_numbers_are_kept_and_the_grid_is_a_share():
    shown = view(classes=None)
    data = build_explorer_data({"a": shown})
    run = data["runs"][0]
    arrays = [decoded(packed) for packed in data["arrays"]]
    np.testing.assert_allclose(arrays[run["predicted"]], shown.predicted[:, 0], atol=1e-4)
    np.testing.assert_allclose(arrays[run["truth"]], shown.truth, atol=1e-4)
    np.testing.assert_allclose(
        arrays[run["plane"]["grid"]], shown.plane.grid, atol=0.5 / 255 + 1e-9
    )


def test_turned_images_come_with_the_number_of_their_class():
    rng = np.random.default_rng(0)
    turned = RotatedImages(
        images=rng.integers(0, 256, (3, 6, 6)).astype(np.uint8),
        labels=np.array([7, 8, 9]),
        stops=np.arange(0, 360, 90.0),
        angle=rng.uniform(-180, 180, (3, 4)),
        predicted=rng.dirichlet(np.ones(2), (3, 4)),
    )
    data = build_explorer_data({"a": view(classes=("8", "7"), rotated_images=turned)})
    found = data["runs"][0]["turned"]
    arrays = [decoded(packed) for packed in data["arrays"]]
    np.testing.assert_array_equal(arrays[found["images"]], turned.images)
    np.testing.assert_array_equal(arrays[found["labels"]], [1, 0, np.nan])
    np.testing.assert_allclose(arrays[found["angle"]], turned.angle, atol=0.01)


def test_the_cloud_is_the_first_two_principal_components():
    shown = view()
    data = build_explorer_data({"a": shown})
    cloud = decoded(data["arrays"][data["runs"][0]["cloud"]])
    wanted = PCA(2).fit_transform(shown.z)
    sign = np.sign((cloud * wanted).sum(0))
    np.testing.assert_allclose(cloud, wanted * sign, atol=1e-3)


@pytest.mark.parametrize("z", [None, np.zeros((60, 1)), np.arange(60.0)[:, None]])
def test_encodings_of_any_width_will_do(z):
    data = build_explorer_data({"a": view(z=z)})
    cloud = data["runs"][0]["cloud"]
    assert cloud is None if z is None else data["arrays"][cloud]["shape"] == [60, 2]


def test_classes_are_matched_by_name():
    data = build_explorer_data({"a": view(classes=("no", "yes")), "b": view(classes=("yes", "no"))})
    first, second = (decoded(data["arrays"][run["predicted"]]) for run in data["runs"])
    assert data["classes"] == ["no", "yes"]
    np.testing.assert_array_equal(first, 1 - second)


def test_beyond_ten_classes_the_rare_ones_share_a_bar():
    names = tuple(f"class {k}" for k in range(30))
    rng = np.random.default_rng(0)
    predicted = rng.dirichlet(np.linspace(0.01, 3, 30), 60)
    run = build_explorer_data({"a": view(classes=names, predicted=predicted, plane=None)})["runs"][
        0
    ]
    assert run["bars"] == sorted(np.argsort(predicted.mean(0))[-9:].tolist())


# --- the index -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("u", "source", "period", "wanted"),
    [
        ([0, 1, 2, 3, 4], [1, 1, 0, 0, 0], 0, [[0, 1]]),  # domains far apart, none between
        ([0, 1, 2, 3, 4], [1, 0, 0, 1, 1], 0, [[0, 0], [3, 4]]),
        ([22, 23, 1, 2, 12], [1, 1, 1, 1, 0], 24, [[22, 26]]),  # over the seam
        ([0, 6, 12, 18], [1, 1, 1, 1], 24, [[0, 24]]),
        ([0, 1, 2], [0, 0, 0], 0, []),
    ],
)
def test_source_ranges_are_where_the_source_is(u, source, period, wanted):
    assert find_source_ranges(np.array(u, float), np.array(source, bool), period) == wanted


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 24.0]))
def test_every_source_row_is_in_a_source_range(seed, period):
    rng = np.random.default_rng(seed)
    u = rng.uniform(0, 24, 40)
    source = rng.random(40) < rng.random()
    ranges = find_source_ranges(u, source, period)
    for value in u[source]:
        assert any(lo <= value <= hi or lo <= value + 24 <= hi for lo, hi in ranges)


def test_it_starts_far_from_the_source():
    (line,) = build_explorer_data({"a": view()})["columns"]
    assert line["start"] > 4
    u = np.linspace(0, 24, 60, endpoint=False)[:, None]
    hours = view(u=u, source=(u[:, 0] > 9) & (u[:, 0] < 17), space=Periodic(24))
    (circle,) = build_explorer_data({"a": hours})["columns"]
    assert circle["period"] == 24
    assert abs((circle["start"] - 1 + 12) % 24 - 12) < 0.5


def test_an_index_that_never_moves_and_one_of_six_columns_will_do():
    still = view(u=np.ones((60, 1)), plane=None)
    assert build_explorer_data({"a": still})["columns"][0]["start"] == 1
    assert len(build_explorer_data({"a": view(columns=6, plane=None)})["columns"]) == 4


def test_dates_are_told():
    (column,) = build_explorer_data({"a": view(is_date=(True,))})["columns"]
    assert column["date"]


def test_expected_accuracy_has_a_list_of_bounds_whatever_the_index():
    cell = ExpectedScore(1.0, 2.0, 0.9, 0.8, 0.95, 40, is_within_calibration=False)
    run = build_explorer_data({"a": view(expected=(cell,))})["runs"][0]
    assert run["expected"] == [
        {"lo": [1.0], "hi": [2.0], "score": 0.9, "low": 0.8, "high": 0.95, "checked": False}
    ]


# --- which runs ----------------------------------------------------------------------------------


def test_the_first_three_are_shown_unless_others_are_named():
    views = {name: view() for name in ("a", "b", "c", "d")}
    runs = build_explorer_data(views)["runs"]
    assert [run["title"] for run in runs if run["shown"]] == ["a", "b", "c"]
    runs = build_explorer_data(views, shown_first=["d"])["runs"]
    assert [run["title"] for run in runs if run["shown"]] == ["d"]


# --- the section ---------------------------------------------------------------------------------


def test_without_views_there_is_no_section():
    assert render_explorer({}) == ""


def test_no_name_ends_the_script():
    page = render_explorer({EVIL: view(classes=(EVIL, "no"), index_names=(EVIL,))})
    assert "alert(1)</script>" not in page
    words = re.search(r'class="explorer-data">(.*?)</script>', page, re.S).group(1)
    assert json.loads(words)["runs"][0]["title"] == EVIL


def test_nothing_is_fetched():
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", render_explorer({"a": view()}))


def test_twelve_methods_stay_below_three_megabytes():
    views = {}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        grid = rng.uniform(-30, 30, size=(*INDEX_GRID_SIZES[1:] * 2, *PLANE_GRID_SIZES[1:] * 2))
        made = view(rows=1500, columns=2, seed=seed)
        plane = PlaneMap(made.plane.x, made.plane.box, (np.linspace(0, 10, 9),) * 2, grid)
        views[str(seed)] = view(rows=1500, columns=2, seed=seed, plane=plane)
    assert len(render_explorer(views)) < 3e6
