"""Worlds as benchmarks: who sees which label, what is scored, and the figures."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import r2_score

from cida.datasets import make_circle, make_drifting_regression, make_plane, make_rotating_moons
from cida.experiments.figures import draw_figures, plot_accuracy_by_index, plot_score_matrix
from cida.experiments.registry import TASK_SPECS
from cida.experiments.spec import build_recipes
from cida.experiments.task_data import DependenceTaskData
from cida.experiments.worlds.synthetic_tasks import SYNTHETIC_TASKS
from cida.methods import METHODS
from cida.runs.records import RunResult

TASKS = [benchmark.name for benchmark in SYNTHETIC_TASKS]


class Told:
    """A model that keeps what it was fitted with, says what it was told, and encodes x or u."""

    def __init__(self, said=None, encode=lambda x, u: x):
        self.said, self.encode = said, encode

    def fit(self, x, y, domain_index):
        self.fitted = x, y, domain_index

    def predict(self, x, domain_index):
        return self.said

    def transform(self, x, domain_index):
        return np.asarray(self.encode(x, domain_index), dtype=np.float32).reshape(len(x), -1)


@pytest.fixture(scope="module")
def points():
    return DependenceTaskData(make_circle(seed=100), "worlds/circle")


# --- who sees which label ---------------------------------------------------------------------


def test_target_labels_are_there_for_an_oracle_alone(points):
    model, oracle = Told(), Told()
    points.train(model, oracle=False)
    points.train(oracle, oracle=True)
    source = points.data.source
    assert np.isnan(model.fitted[1][~source]).all()
    assert np.array_equal(model.fitted[1][source], points.data.y[source])
    assert np.array_equal(oracle.fitted[1], points.data.y)


def test_the_fingerprint_is_of_what_is_trained_on(points):
    world = points.data

    def mark(**changes):
        return replace(points, data=replace(world, **changes)).fingerprint()

    assert mark(y=np.where(world.source, world.y, 1 - world.y)) == points.fingerprint()
    assert mark(y=np.where(world.source, 1 - world.y, world.y)) != points.fingerprint()
    assert mark(x=world.x + 1) != points.fingerprint()
    assert mark(u=world.u + 1) != points.fingerprint()


# --- scores -----------------------------------------------------------------------------------


def test_scores_are_shares_of_right_rows_of_source_target_and_all(points):
    world = points.data
    said = np.where(world.u <= 0.5, world.y, 1 - world.y)  # right in the first half
    found = points.evaluate(Told(said))
    assert found["source_score"] == 1
    right = (world.u <= 0.5)[~world.source].mean()
    assert found["target_score"] == pytest.approx(right)
    assert found["all_score"] == pytest.approx(np.mean(world.u <= 0.5))
    assert found["task"] == "worlds/circle"
    assert sum(cell["n"] for cell in found["by_index"]) == len(world.u)
    for cell in found["by_index"]:
        assert cell["lo"] < cell["hi"]
        assert cell["score"] == (1 if cell["hi"] <= 0.5 else 0 if cell["lo"] >= 0.5 else 0.5)


def test_a_regression_is_scored_by_r2():
    world = make_drifting_regression(seed=100)
    said = world.y + np.where(world.source, 0.0, 0.5)
    found = DependenceTaskData(world, "worlds/drifting-regression", True).evaluate(Told(said))
    assert found["source_score"] == 1
    target = ~world.source
    assert found["target_score"] == pytest.approx(r2_score(world.y[target], said[target]))
    assert len(found["by_index"]) == 20


def test_cells_of_an_index_of_two_numbers_have_two_bounds():
    world = make_plane(seed=100)
    found = DependenceTaskData(world, "worlds/plane").evaluate(Told(world.y))
    assert all(len(cell["lo"]) == len(cell["hi"]) == 2 for cell in found["by_index"])
    assert sum(cell["n"] for cell in found["by_index"]) == len(world.u)


def test_what_is_left_of_u_is_all_of_it_in_u_itself_and_nothing_in_noise(points):
    def left(encode):
        return points.evaluate(Told(points.data.y, encode))["extra_metrics"]["left of u"]

    random = np.random.default_rng(0)
    assert left(lambda x, u: 3 * u + 2) == pytest.approx(1, abs=1e-3)
    assert left(lambda x, u: random.normal(size=(len(u), 3))) == pytest.approx(0, abs=0.02)
    # The discs go round half a circle, so that x tells where along it a row is.
    assert left(lambda x, u: x) > 0.5


def test_rows_and_the_balance_of_labels_are_told(points):
    for name in TASKS:
        words = TASK_SPECS[name].draw_data(100, "points").summary("It")
        moves = "the balance of source labels moves along u, which fit warns of" in words
        assert moves == (name == "worlds/shifting-labels"), words
    words = points.summary("Discs")
    assert words.startswith("Discs: 600 source rows, 2,400 target rows without labels;")
    assert "the balance of source labels holds along u" in words


def test_what_is_told_of_labels_is_told_of_the_source_alone(points):
    world = points.data
    flipped = np.where(world.source, world.y, 1 - world.y)
    assert replace(points, data=replace(world, y=flipped)).summary("It") == points.summary("It")


# --- the benchmarks ---------------------------------------------------------------------------


def test_every_world_is_drawn_anew_by_each_seed_and_the_same_by_one():
    for name in TASKS:
        draw = TASK_SPECS[name].draw_data
        assert draw(1, "points").fingerprint() == draw(1, "points").fingerprint()
        assert draw(1, "points").fingerprint() != draw(2, "points").fingerprint()
        assert draw(1, "points").task == name


def test_the_default_is_the_estimator_with_no_setting_at_all():
    for benchmark in SYNTHETIC_TASKS:
        found = build_recipes(benchmark, "best")
        assert dict(found["default"].settings) == {}
        assert found["source-only"].settings["discriminator"] is None
        assert found["oracle"].oracle
        assert not any(one.oracle for name, one in found.items() if name != "oracle")
        kind = "CIDARegressor" if "regression" in benchmark.name else "CIDAClassifier"
        assert type(found["default"].build_model(0)).__name__ == kind


# --- figures ----------------------------------------------------------------------------------


def row(task, method, target, seed=0):
    cells = [{"lo": k / 4, "hi": (k + 1) / 4, "score": target, "n": 5} for k in range(4)]
    return RunResult(method, seed, 0.9, target, target, cells, 1.0, task=task)


@pytest.fixture(scope="module")
def samples():
    return {
        "worlds/moons": DependenceTaskData(make_rotating_moons(n_samples=60), "worlds/moons"),
        "worlds/plane": DependenceTaskData(make_plane(n_samples=60), "worlds/plane"),
        "worlds/drifting-regression": DependenceTaskData(
            make_drifting_regression(n_samples=60), "worlds/drifting-regression", True
        ),
    }


@pytest.fixture(scope="module")
def rows():
    return [
        row("worlds/moons", "source-only", 0.5),
        row("worlds/moons", "source-only", 0.75, seed=1),
        row("worlds/moons", "default", 0.9),
        row("worlds/plane", "default", 0.8),
        row("worlds/drifting-regression", "source-only", -0.3),
    ]


def test_scores_are_written_into_a_line_a_method_and_a_column_a_world(rows):
    (axes,) = plot_score_matrix(rows).axes
    assert [t.get_text() for t in axes.get_yticklabels()] == ["Source-Only", "Default"]
    titles = [TASK_SPECS[task].title for task in dict.fromkeys(one.task for one in rows)]
    assert [t.get_text() for t in axes.get_xticklabels()] == titles
    written = {t.get_position(): t.get_text() for t in axes.texts}
    assert written == {(0, 0): "62.5", (2, 0): "-30.0", (0, 1): "90.0", (1, 1): "80.0"}


def test_a_panel_a_world_has_a_line_for_each_method_that_ran_there(samples, rows):
    along = {name: one for name, one in samples.items() if name != "worlds/plane"}
    panels = [axes for axes in plot_accuracy_by_index(along, rows).axes if axes.get_visible()]
    assert [axes.get_title() for axes in panels] == [TASK_SPECS[name].title for name in along]
    drawn = [{line.get_label() for line in axes.lines} for axes in panels]
    titles = {method: METHODS[method].title for method in ("source-only", "default")}
    assert drawn[0] == set(titles.values())
    assert drawn[1] == {titles["source-only"]}
    line = next(one for one in panels[0].lines if one.get_label() == titles["source-only"])
    assert set(line.get_ydata()) == {62.5}


def test_figures_are_written_as_png_and_svg_the_same_on_a_second_run(samples, rows, tmp_path):
    pictures = draw_figures(samples, rows, tmp_path / "a")
    assert draw_figures(samples, rows, tmp_path / "b") == pictures
    assert list(pictures) == ["Every method in every world", "Along the index"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "along.png", "along.svg", "scores.png", "scores.svg",
    ]  # fmt: skip
    assert list(pictures.values()) == ["scores.svg", "along.svg"]
    for name in pictures.values():
        content = (tmp_path / "a" / name).read_bytes()
        assert b"<svg" in content
        assert (tmp_path / "b" / name).read_bytes() == content


def test_an_index_of_two_numbers_has_no_figure_along_it(samples, rows, tmp_path):
    only = {"worlds/plane": samples["worlds/plane"]}
    pictures = draw_figures(only, [one for one in rows if one.task in only], tmp_path)
    assert list(pictures) == ["Every method in every world"]
