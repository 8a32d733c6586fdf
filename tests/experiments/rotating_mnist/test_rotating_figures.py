"""The figures of Rotating MNIST: files, and what is drawn of a transformer."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from cida.experiments.jobs import Job
from cida.experiments.rotating_mnist.rotating_figures import (
    draw_figures,
    ideal_angle,
    measure_learned_angle,
    plot_accuracy_by_angle,
    plot_digits,
    plot_encodings,
    plot_learned_angle,
)
from cida.experiments.runner import CompletedRun, run_recipe
from cida.experiments.spec import Recipe
from cida.images import rotate_degrees
from cida.networks import RotationTransformer
from cida.runs.records import RunResult
from cida.spaces import Line, Periodic

TITLES = {
    "Accuracy against the angle": "accuracy",
    "The learned angle": "angle",
    "Digits before and after the transformer": "digits",
    "Encodings": "encodings",
}
EVERY = torch.linspace(0, 360, 121, dtype=torch.float64)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A sample, and runs of two methods: u is on the line for one, on the circle for the other."""
    outcomes = []
    for method in ("histogram-line", "source-only"):
        folder = tmp_path_factory.mktemp(method)
        task = Job("rotating-digits", "best", "development", method, 100, folder, steps=5)
        outcomes.append(run_recipe(task.recipe, task.task_data, task.seed, folder))
    assert [type(o.model.space_) for o in outcomes] == [Line, Periodic]
    return task.task_data, outcomes


def visible(figure):
    return [ax for ax in figure.axes if ax.get_visible()]


def titles(figure):
    return [ax.get_title() for ax in visible(figure) if ax.get_title()]


def test_each_figure_is_drawn_as_png_and_svg_the_same_on_a_second_run(runs, tmp_path):
    state = torch.get_rng_state()
    sample, outcomes = runs
    data = {"rotating-digits": sample}
    pictures = draw_figures(data, outcomes, tmp_path / "a")
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(1)  # whatever state the caller is in
    assert draw_figures(data, outcomes, tmp_path / "b") == pictures
    assert list(pictures) == list(TITLES)
    names = [f"{name}.{kind}" for name in TITLES.values() for kind in ("png", "svg")]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(names)
    for title, name in TITLES.items():
        assert pictures[title] == f"{name}.svg"
        content = (tmp_path / "a" / pictures[title]).read_bytes()
        assert b"<svg" in content
        assert (tmp_path / "b" / pictures[title]).read_bytes() == content
    for name in names:
        content = (tmp_path / "a" / name).read_bytes()
        assert (tmp_path / "b" / name).read_bytes() == content
        assert name.endswith("svg") or content.startswith(b"\x89PNG\r\n\x1a\n")


def test_an_encoder_without_a_transformer_has_no_angle_to_draw(runs, tmp_path):
    sample, (outcome, _) = runs

    def transform(x, domain_index):
        return x.reshape(len(x), -1)

    plain = SimpleNamespace(game_=SimpleNamespace(encoder=nn.Identity()), transform=transform)
    bare_runs = [CompletedRun(outcome.recipe, outcome.result, plain, [])]
    drawn = draw_figures({"rotating-digits": sample}, bare_runs, tmp_path)
    assert list(drawn) == ["Accuracy against the angle", "Encodings"]


# --- accuracy ------------------------------------------------------------------------------------


def scored(method, seed, accuracies):
    cells = [{"lo": 45.0 * i, "hi": 45.0 * (i + 1), "score": a} for i, a in enumerate(accuracies)]
    target = float(np.mean(accuracies[1:]))
    row = RunResult(method, seed, accuracies[0], target, float(np.mean(accuracies)), cells, 1.0)
    return CompletedRun(Recipe(method, method.upper()), row, None, [])


def lines(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


def test_accuracy_shows_the_mean_over_seeds_and_the_band_from_worst_to_best():
    scores = np.random.default_rng(0).uniform(size=(2, 3, 8))
    methods = ("one", "two")
    outcomes = [scored(methods[m], s, scores[m, s].tolist()) for m in (0, 1) for s in range(3)]
    figure = plot_accuracy_by_angle(outcomes)
    middles = 22.5 + 45 * np.arange(8)
    for m, ax in enumerate(visible(figure)):
        (mean,) = lines(ax, "mean over seeds")
        assert mean.get_xdata() == pytest.approx(middles)
        assert mean.get_ydata() == pytest.approx(100 * scores[m].mean(0))
        (other,) = lines(ax, "other methods")
        assert other.get_ydata() == pytest.approx(100 * scores[1 - m].mean(0))
        (chance,) = lines(ax, "chance")
        assert list(chance.get_ydata()) == [10, 10]
        (band,) = ax.collections
        corners = band.get_paths()[0].vertices
        for place, middle in enumerate(middles):
            up = corners[np.isclose(corners[:, 0], middle), 1]
            mine = 100 * scores[m, :, place]
            assert (up.min(), up.max()) == pytest.approx((mine.min(), mine.max()))
    target = 100 * scores[0, :, 1:].mean()
    assert titles(figure)[0] == f"ONE: {target:.1f} %"


@pytest.mark.parametrize(("methods", "shape"), [(1, (1, 1)), (5, (2, 3)), (12, (3, 4))])
def test_panels_fill_rows_of_even_length(methods, shape):
    figure = plot_accuracy_by_angle([scored(f"method {m}", 0, [0.5] * 8) for m in range(methods)])
    grid = figure.axes[0].get_gridspec()
    assert (grid.nrows, grid.ncols) == shape
    assert len(titles(figure)) == methods


# --- the learned angle ---------------------------------------------------------------------------


class Turner(nn.Module):
    """Turns by a given function of u in degrees, which it reads from the space's embedding."""

    def __init__(self, space, turn):
        super().__init__()
        self.space, self.turn = space, turn

    def cos_sin(self, images, index):
        theta = torch.deg2rad(self.turn(images, self.space.unembed(index)))
        return torch.cat([theta.cos(), theta.sin()], dim=1)


def with_transformer(space, transformer):
    encoder = SimpleNamespace(transformer=transformer)
    return SimpleNamespace(space_=space, game_=SimpleNamespace(encoder=encoder))


@pytest.mark.parametrize("space", [Line().fit(EVERY[:, None]), Periodic(360)], ids=["line", "turn"])
def test_the_angle_of_a_transformer_that_turns_back_is_minus_u(space):
    model = with_transformer(space, Turner(space, lambda images, u: -u))
    found = measure_learned_angle(model, torch.zeros(3, 1, 4, 4), EVERY)
    for angle in (found.theta, found.low, found.high):
        assert angle == pytest.approx(-EVERY.numpy(), abs=1e-3)
    assert ideal_angle(EVERY.numpy(), found.theta) == pytest.approx(-EVERY.numpy(), abs=1e-3)


def test_the_angle_is_that_which_the_transformer_turns_by(runs):
    """A digit that comes at u leaves at u + theta."""
    sample, _ = runs
    space = Periodic(360)
    transformer = RotationTransformer(2)
    nn.init.normal_(transformer.head.weight, generator=torch.Generator().manual_seed(0))
    upright = sample.scored_digits.images[:1].float() / 255
    u = torch.tensor([0.0, 90.0, 180.0, 270.0]).double()  # turns that lose no pixel
    theta = measure_learned_angle(with_transformer(space, transformer), upright, u).theta
    came = rotate_degrees(upright.repeat(4, 1, 1, 1), u)
    with torch.no_grad():
        left = transformer(came, space.embed(u[:, None]).float())
    stands = rotate_degrees(upright.repeat(4, 1, 1, 1), u + torch.from_numpy(theta))
    assert left.numpy() == pytest.approx(stands.numpy(), abs=1e-4)


def test_where_digits_differ_the_mean_direction_and_most_of_them_are_told():
    """Angles of 170, 180 and 190 degrees lie around 180, across the seam."""
    space = Periodic(360)
    model = with_transformer(
        space, Turner(space, lambda images, u: 180 + 10 * images[:, 0, 2, 2, None])
    )
    shades = torch.tensor([-1.0, 0.0, 1.0])[:, None, None, None].expand(3, 1, 5, 5)
    found = measure_learned_angle(model, shades, EVERY)
    assert np.abs(found.theta) == pytest.approx(180, abs=1e-3)
    assert found.theta - found.low == pytest.approx(8, abs=1e-3)
    assert found.high - found.theta == pytest.approx(8, abs=1e-3)


def test_a_band_is_drawn_where_digits_differ_and_nowhere_else(runs):
    sample, (outcome, _) = runs
    space = Periodic(360)
    models = [
        with_transformer(space, Turner(space, lambda images, u: 90 * images.mean((2, 3)) - u)),
        with_transformer(space, Turner(space, lambda images, u: -u)),
    ]
    figure = plot_learned_angle(
        sample, [CompletedRun(outcome.recipe, outcome.result, m, []) for m in models]
    )
    assert [len(ax.collections) for ax in visible(figure)] == [1, 0]


@pytest.mark.parametrize("place", [-170.0, 0.0, 20.0, 179.9, 540.0])
def test_the_right_answer_keeps_the_place_of_the_source(place):
    u = EVERY.numpy()
    theta = np.where(u <= 45, place - u, place)  # right on the source, and stuck beyond it
    assert ideal_angle(u, theta) == pytest.approx(place - u)


def test_each_method_has_its_learned_angle_beside_the_right_answer(runs):
    sample, outcomes = runs
    figure = plot_learned_angle(sample, outcomes)
    assert [title.split(":")[0] for title in titles(figure)] == [
        "Histogram head, u on a line",
        "Source-Only",
    ]
    for ax, outcome in zip(visible(figure), outcomes, strict=True):
        (line,) = lines(ax, "learned angle, first seed")
        upright = sample.scored_digits.images[:1].float() / 255
        found = measure_learned_angle(outcome.model, upright, EVERY)
        assert line.get_ydata() == pytest.approx(found.theta, abs=1e-3)
        (dashed,) = lines(ax, "right answer: c - u")
        assert np.diff(dashed.get_ydata()) == pytest.approx(np.full(120, -3.0))


# --- digits and encodings ------------------------------------------------------------------------


def test_digits_are_shown_as_they_come_and_as_each_transformer_turns_them(runs):
    with torch.no_grad():
        figure = plot_digits(*runs)
    rows = [ax.get_ylabel().replace("\n", " ") for ax in figure.axes]
    assert rows == ["as they come", "Histogram head, u on a line", "Source-Only"]
    sheets = [ax.images[0].get_array() for ax in figure.axes]
    assert {sheet.shape for sheet in sheets} == {(3 * 12, 18 * 12)}
    assert figure.axes[0].get_xticklabels()[9].get_text() == "180°"
    upright, halfway = sheets[0][:12, :12], sheets[0][:12, 9 * 12 : 10 * 12]
    assert np.asarray(halfway) == pytest.approx(np.asarray(upright)[::-1, ::-1], abs=1e-4)


def test_encodings_are_coloured_by_angle_and_by_the_true_class(runs):
    sample, outcomes = runs
    figure = plot_encodings(sample, outcomes)
    above, below = figure.axes[0].collections[0], figure.axes[2].collections[0]
    assert len(above.get_array()) == 1500
    assert above.get_array().max() > 350
    counts = np.bincount(below.get_array().astype(int), minlength=10)
    assert counts.min() > 75  # target rows hide their labels; the figure does not
