"""Views: what a report shows of a run, whole in one file."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cida import Line, ModelFileError, Periodic, Product
from cida.io.tensors import read_model_file, write_model_file
from cida.runs.snapshot import PlaneMap, RotatedImages, Snapshot, load_snapshot
from cida.selection.expected_score import ExpectedScore


def a_view(rows=20, classes=("no", "yes"), seed=100, **more):
    random = np.random.default_rng(seed)
    u = random.uniform(0, 24, (rows, 1))
    return Snapshot(
        space=Periodic(24).fit(torch.from_numpy(u)),
        index_names=("hour",),
        classes=classes,
        u=u,
        source=u[:, 0] < 8,
        predicted=random.dirichlet([1, 1], rows),
        truth=np.where(random.random(rows) < 0.5, np.nan, 1.0),
        **more,
    )


def same(a, b):
    return np.array_equal(np.asarray(a, np.float32), np.asarray(b, np.float32), equal_nan=True)


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 60), seed=st.integers(100, 10_000), width=st.integers(1, 5))
def test_a_file_gives_back_what_was_written(tmp_path_factory, rows, seed, width):
    z = np.random.default_rng(seed).normal(size=(rows, width))
    view = a_view(rows, seed=seed, z=z, is_date=(False,))
    path = tmp_path_factory.mktemp("view") / "snapshot.safetensors"
    view.save(path)
    found = load_snapshot(path)
    assert found.space == view.space
    assert (found.index_names, found.classes, found.is_date) == (
        view.index_names,
        view.classes,
        view.is_date,
    )
    np.testing.assert_array_equal(found.u, view.u)  # to the last bit: dates are large numbers
    for name in ("source", "predicted", "truth", "z"):
        assert same(getattr(found, name), getattr(view, name))


def test_planes_images_and_expected_cells_come_back(tmp_path):
    plane = PlaneMap(
        np.zeros((20, 2)),
        (-1.0, 1.0, -2.0, 2.0),
        (np.linspace(0, 1, 3),),
        np.linspace(0, 1, 3 * 4 * 4).reshape(3, 4, 4),
    )
    images = np.arange(2 * 8 * 8).reshape(2, 8, 8) % 256
    stops = np.arange(0, 360, 90)
    turned = RotatedImages(
        images, np.array([3, 7]), stops, np.ones((2, 4)), np.full((2, 4, 2), 0.5)
    )
    cells = (
        ExpectedScore(0.0, 1.0, 0.8, 0.7, 0.9, 12, True),
        ExpectedScore([0, 1], [2, 3], 0, 0, 1, 9, False),
    )
    a_view(plane=plane, rotated_images=turned, expected=cells).save(tmp_path / "v")
    found = load_snapshot(tmp_path / "v")
    assert found.expected == cells
    assert found.plane.box == plane.box
    assert all(map(same, found.plane.stops, plane.stops))
    np.testing.assert_allclose(found.plane.grid, plane.grid, atol=1e-3)
    for name in ("images", "labels", "stops", "angle", "predicted"):
        assert same(getattr(found.rotated_images, name), getattr(turned, name))


def test_a_regression_along_two_columns_has_no_classes(tmp_path):
    u = np.random.default_rng(100).normal(size=(9, 2))
    space = Product([Line(), Periodic(360)]).fit(torch.from_numpy(u))
    view = Snapshot(space, ("a", "b"), None, u, u[:, 0] > 0, u[:, :1], u[:, 0])
    view.save(tmp_path / "v")
    found = load_snapshot(tmp_path / "v")
    assert found.classes is None
    assert (found.z, found.plane, found.rotated_images, found.expected) == (None, None, None, ())


@pytest.mark.parametrize("broken", ["space", "expected", "view"])
def test_a_file_of_another_kind_is_refused_in_one_sentence(tmp_path, broken):
    a_view().save(tmp_path / "v")
    tensors, header = read_model_file(tmp_path / "v")
    header.pop(broken)
    write_model_file(tmp_path / "v", tensors, header)
    with pytest.raises(ModelFileError, match="not a view as this cida writes it"):
        load_snapshot(tmp_path / "v")
