"""What is shown of a run: the same rows for every model, and the model's own answers."""

import numpy as np
import pytest
import torch

from cida.experiments.display_rows import take_snapshot
from cida.experiments.registry import TASK_SPECS
from cida.experiments.spec import build_recipes
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS

pytestmark = pytest.mark.filterwarnings("ignore::cida.CidaWarning")


def trained(name, method, steps=20):
    benchmark = TASK_SPECS[name]
    preset = next(iter(benchmark.presets))
    recipe = build_recipes(benchmark, preset)[method].with_settings(steps=steps)
    sample = benchmark.draw_data(100, benchmark.presets[preset].protocol)
    model = recipe.build_model(100)
    sample.train(model, recipe.oracle)
    return model, sample, take_snapshot(model, sample.display_rows(), recipe.regression)


def test_points_of_a_plane_have_a_grid_at_every_stop():
    model, sample, view = trained("circle", "cida")
    rows = sample.display_rows()
    assert len(view.u) == MAX_SNAPSHOT_ROWS
    assert view.classes == ("0", "1")
    said = model.predict_proba(rows.x, domain_index=rows.u)
    np.testing.assert_allclose(view.predicted, said)
    plane = view.plane
    left, right, bottom, top = plane.box
    assert left < rows.x[:, 0].min()
    assert top > rows.x[:, 1].max()
    # The corner of the grid at the last stop is what the model says of that corner there.
    corner = np.array([[right, bottom]])
    last = np.array([plane.stops[0][-1]])
    no, yes = model.predict_proba(corner, domain_index=last)[0]
    assert plane.grid[-1, 0, -1] == pytest.approx(np.log(yes / no), abs=1e-5)


def test_a_regression_has_numbers_and_a_grid_between_0_and_1():
    _, sample, view = trained("worlds/drifting-regression", "source-only")
    assert view.classes is None
    assert view.predicted.shape == (MAX_SNAPSHOT_ROWS, 1)
    np.testing.assert_allclose(view.truth, sample.display_rows().truth)
    assert (view.plane.grid.min(), view.plane.grid.max()) == pytest.approx((0, 1))


def test_an_index_that_wraps_is_shown_in_its_own_space():
    _, _, view = trained("rotating-digits", "histogram-line")
    assert view.space.periods[0] > 0  # though this head takes the angle for a number
    assert view.index_names == ("angle",)


def test_digits_are_turned_as_the_transformer_turns_them():
    model, _, view = trained("rotating-digits", "histogram", steps=60)
    turned = view.rotated_images
    assert set(turned.labels.tolist()) == set(range(10))
    assert turned.angle.shape == (12, 72)
    # The transformer of this recipe sees the index alone: all images are turned alike.
    assert np.ptp(turned.angle, axis=0).max() < 1e-4
    index = model.space_.embed(torch.tensor([[90.0]], dtype=torch.float64)).float()
    cos, sin = model.game_.encoder.transformer.cos_sin(torch.zeros(1, 1, 12, 12), index)[0]
    place = np.flatnonzero(turned.stops == 90)[0]
    assert turned.angle[0, place] == pytest.approx(np.degrees(np.arctan2(sin.item(), cos.item())))
    np.testing.assert_allclose(turned.predicted.sum(-1), 1, atol=1e-5)


def test_truth_is_the_label_that_scores_count(tmp_path):
    model, sample, view = trained("selection/hours", "l2-0.2")
    right = view.predicted.argmax(1) == view.truth
    target = ~view.source
    assert right[target].mean() == pytest.approx(sample.predict_correctness(model).mean(), abs=0.03)
