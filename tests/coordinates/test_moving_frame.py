"""The moving frame: what only moves and turns along u stands still in it."""

import inspect

import numpy as np
import pytest
import torch
from torch import nn

from cida import CIDAClassifier, Line, Periodic, Product, load
from cida.coordinates import MovingFrameLayer, can_use_moving_frame
from cida.networks import FramedEncoder

SMALL = {"steps": 3, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0}


def tensor(values):
    return torch.as_tensor(np.asarray(values), dtype=torch.float32)


def fitted(x, u):
    """A frame fitted to rows and their index, and the rows seen in it."""
    x, u = tensor(x), tensor(u)[:, None]
    frame = MovingFrameLayer(x.shape[1]).fit(x, u)
    return frame, frame(x, u).numpy()


def rotated(angle, rows):
    """R(angle) applied to each row of the plane."""
    across = np.cos(angle) * rows[:, 0] - np.sin(angle) * rows[:, 1]
    return np.stack([across, np.sin(angle) * rows[:, 0] + np.cos(angle) * rows[:, 1]], axis=1)


def rigid(rows=4000, whole_angle=np.pi, seed=0):
    """A longish cloud carried round a circle of radius 5: ``x = R(a u) (v + (5, 0))``."""
    random = np.random.default_rng(seed)
    u = random.uniform(size=rows)
    offset = random.normal(size=(rows, 2)) * [0.3, 1.0]
    return rotated(whole_angle * u, offset + np.array([5.0, 0.0])), u, offset


def drifting(path, rows=3000, seed=0):
    """A standard normal cloud whose mean is ``path(u)``."""
    random = np.random.default_rng(seed)
    u = random.uniform(size=rows)
    centre = np.stack(path(u), axis=1)
    return random.normal(size=centre.shape) + centre, u


def turned(frame):
    """How far the turns are from none."""
    return float((frame.turn - torch.eye(frame.turn.shape[1])).abs().max())


# --- what moves and turns stands still --------------------------------------------------------


@pytest.mark.parametrize("whole_angle", [np.pi, -np.pi, 2 * np.pi])
def test_a_cloud_carried_round_a_circle_stands_still_in_the_frame(whole_angle):
    x, u, _ = rigid(12_000, whole_angle)
    _, seen = fitted(x, u)
    cells = [seen[(u >= k / 6) & (u < (k + 1) / 6)] for k in range(6)]
    for cell in cells:
        assert np.abs(cell.mean(0)).max() < 0.12
        assert np.allclose(np.cov(cell.T), np.cov(seen.T), atol=0.2)
    # Outside it neither the means nor the covariances agree.
    before = [x[(u >= k / 6) & (u < (k + 1) / 6)] for k in range(6)]
    assert np.ptp([cell.mean(0) for cell in before], axis=0).max() > 4
    assert np.ptp([np.cov(cell.T) for cell in before], axis=0).max() > 0.5


def test_the_frame_gives_the_offsets_back_up_to_a_fixed_rotation_and_their_unit():
    x, u, offset = rigid()
    frame, seen = fitted(x, u)
    scaled = offset / float(frame.deviation.mean())  # half a turn: the columns deviate alike
    map_, *_ = np.linalg.lstsq(scaled, seen, rcond=None)
    assert np.allclose(map_ @ map_.T, np.eye(2), atol=0.03)
    assert np.linalg.det(map_) > 0
    unexplained = (seen - scaled @ map_).var(0) / seen.var(0)
    assert unexplained.max() < 0.02


def test_a_cloud_carried_round_a_tilted_circle_in_space_stands_still_too():
    random = np.random.default_rng(0)
    u, offset = random.uniform(size=6000), random.normal(size=(6000, 3))
    flat = np.column_stack([rotated(np.pi * u, offset[:, :2] + np.array([8.0, 0.0])), offset[:, 2]])
    tilt, _ = np.linalg.qr(random.normal(size=(3, 3)))
    _, seen = fitted(flat @ tilt.T, u)
    map_, *_ = np.linalg.lstsq(offset, seen, rcond=None)
    assert np.allclose(map_ @ map_.T, np.eye(3), atol=0.06)
    assert ((seen - offset @ map_).var(0) / seen.var(0)).max() < 0.02


@pytest.mark.parametrize("columns", [2, 3, 7])
def test_turns_are_rotations_everywhere(columns):
    random = np.random.default_rng(columns)
    wave = random.uniform(1, 4, size=columns)
    x, u = drifting(lambda u: [6 * np.sin(w * u + w) for w in wave])
    turn = fitted(x, u)[0].turn.double()
    assert torch.allclose(turn @ turn.mT, torch.eye(columns).double(), atol=1e-5)
    assert torch.allclose(torch.linalg.det(turn), torch.ones(256).double(), atol=1e-5)


def test_a_straight_path_gives_no_turn_and_is_subtracted():
    x, u = drifting(lambda u: [30 * u, -20 * u, 10 * u])
    frame, seen = fitted(x, u)
    assert turned(frame) < 0.03
    assert np.allclose(seen, x - np.outer(u, [30, -20, 10]), atol=0.3)


def test_a_path_traced_exactly_there_and_back_gives_no_turn():
    u = np.repeat(np.linspace(0, 1, 41), 10)
    x = np.stack([np.abs(u - 0.5) * 8, np.zeros(410)], axis=1)
    x += np.tile(np.array([[1, 1], [-1, -1], [1, -1], [-1, 1], [0, 0]]), (82, 1))
    frame, seen = fitted(x, u)
    assert np.isfinite(seen).all()
    assert turned(frame) == 0.0


def test_rows_that_do_not_drift_are_only_scaled():
    x, u = drifting(lambda u: [0 * u, 0 * u, 0 * u], seed=1)
    units = np.array([1.0, 20.0, 0.3])
    frame, seen = fitted(x * units, u)
    assert turned(frame) < 0.05
    assert np.ptp(frame.centre.numpy(), axis=0).max() < 0.1
    assert np.allclose(frame.deviation, units, rtol=0.05)
    assert np.corrcoef(seen.T, x.T)[:3, 3:].diagonal().min() > 0.999


def test_rows_that_do_not_drift_are_not_turned_whatever_the_draw():
    turns = [
        turned(fitted(*drifting(lambda u: [0 * u, 0 * u], 300, seed))[0]) for seed in range(20)
    ]
    assert max(turns) < 0.5


def test_a_noisy_path_there_and_back_is_not_turned():
    frame, _ = fitted(*drifting(lambda u: [8 * np.abs(u - 0.5), 0 * u]))
    assert turned(frame) < 0.5


# --- paths and tables at the edge -------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "u"),
    [
        (np.ones((50, 2)), np.linspace(0, 1, 50)),
        (rigid(400)[0], np.full(400, 0.4)),
        (rigid(400)[0], np.repeat([0.0, 1.0], 200)),
        (rigid(3)[0], np.array([0.0, 0.5, 1.0])),
        (rigid(1)[0], np.zeros(1)),
        (drifting(lambda u: [np.minimum(u, 0.5) * 20, 0 * u])[0], np.linspace(0, 1, 3000)),
    ],
    ids=["all rows equal", "one u", "two u", "three rows", "one row", "stands still half-way"],
)
def test_paths_at_the_edge_give_finite_rows(x, u):
    frame, seen = fitted(x, u)
    assert seen.shape == x.shape
    assert np.isfinite(seen).all()
    assert all(torch.isfinite(buffer).all() for buffer in frame.buffers())


def test_one_index_value_centres_and_scales_alone():
    x, _, _ = rigid(400)
    frame, seen = fitted(x, np.full(400, 0.4))
    assert turned(frame) == 0.0
    assert np.allclose(seen, (x - x.mean(0)) / x.std(0, ddof=1), atol=0.02)


def test_a_column_that_never_changes_becomes_zero_and_leaves_the_others_alone():
    x, u, _ = rigid()
    _, seen = fitted(x, u)
    _, wider = fitted(np.column_stack([x, np.full(len(x), 3.0)]), u)
    assert np.allclose(wider[:, 2], 0, atol=1e-5)
    assert np.allclose(wider[:, :2], seen, atol=0.05)


def test_one_column_is_centred_along_u_and_never_turned():
    x, u = drifting(lambda u: [10 * np.sin(3 * u)])
    frame, seen = fitted(x, u)
    assert torch.equal(frame.turn, torch.ones(256, 1, 1))
    assert np.corrcoef(seen[:, 0], x[:, 0] - 10 * np.sin(3 * u))[0, 1] > 0.995


def test_beyond_the_range_seen_the_frame_is_that_of_the_end():
    x, u, _ = rigid(500)
    frame, _ = fitted(x, u)
    at = [frame(tensor(x), torch.full((500, 1), float(v))) for v in (u.min(), -4, u.max(), 9)]
    assert torch.equal(at[0], at[1])
    assert torch.allclose(at[2], at[3], atol=1e-5)
    assert not torch.allclose(at[0], at[2], atol=0.1)


@pytest.mark.parametrize(
    ("factor", "shift"), [((1, 1), (7, -3)), ((100, 0.5), (0, 0)), ((-2, 1), (0, 4))]
)
def test_the_units_of_x_do_not_count(factor, shift):
    x, u, _ = rigid(1000)
    sign = np.sign(factor)
    _, seen = fitted(x, u)
    _, other = fitted(x * factor + shift, u)
    # Mirrored columns are mirrored in the frame where it starts, and then along all of it.
    assert np.allclose(other * sign, seen, atol=1e-4)


# --- without labels, and the same each time ---------------------------------------------------


def test_fitting_takes_rows_and_index_alone_and_repeats_bit_for_bit():
    assert list(inspect.signature(MovingFrameLayer.fit).parameters) == ["self", "x", "index"]
    x, u, _ = rigid(500)
    np.random.seed(1)  # noqa: NPY002
    first = fitted(x, u)[0].state_dict()
    np.random.seed(2)  # noqa: NPY002
    again = fitted(x, u)[0].state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert list(MovingFrameLayer(2).parameters()) == []  # nothing for the game to train


def model_of(world_x, u, y, **settings):
    return CIDAClassifier(**SMALL, **settings).fit(world_x, y, domain_index=u)


def labelled(rows=120, columns=2):
    random = np.random.default_rng(0)
    u, x = random.uniform(size=rows), random.normal(size=(rows, columns))
    return x, u, np.where(u < 0.5, x[:, 0] > 0, np.nan)


@pytest.mark.parametrize("mode", ["moving-frame", "principal-axes"])
def test_a_saved_frame_comes_back_bit_for_bit(tmp_path, mode):
    x, u, y = labelled()
    model = model_of(x, u, y, coordinates=mode)
    model.save(tmp_path / "model.cida")
    again = load(tmp_path / "model.cida")
    assert type(again.game_.encoder) is FramedEncoder
    before, after = model.game_.encoder.frame.state_dict(), again.game_.encoder.frame.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    for method in ("predict", "transform"):
        expected = getattr(model, method)(x, domain_index=u)
        assert np.array_equal(getattr(again, method)(x, domain_index=u), expected)


def test_training_leaves_the_frame_as_it_was_fitted():
    x, u, y = labelled()
    settings = {**SMALL, "coordinates": "moving-frame"}
    short, long = (
        CIDAClassifier(**{**settings, "steps": steps}).fit(x, y, domain_index=u).game_.encoder
        for steps in (1, 30)
    )
    frames = short.frame.state_dict(), long.frame.state_dict()
    assert all(torch.equal(frames[0][name], frames[1][name]) for name in frames[0])
    assert not torch.equal(short.body.body[0].weight, long.body.body[0].weight)


# --- when there is a frame --------------------------------------------------------------------


def test_a_frame_is_for_one_number_on_a_line_and_at_most_128_columns():
    assert can_use_moving_frame(Line(), 128)
    assert not can_use_moving_frame(Line(), 129)
    assert not can_use_moving_frame(Periodic(24), 2)
    assert not can_use_moving_frame(Product([Line(), Line()]), 2)


CASES = {
    "periodic": (
        2,
        {"space": Periodic(24)},
        ("one number on a Line", "Periodic", "'raw' or 'learned'"),
    ),
    "product": (2, {"space": Product([Line(), Line()])}, ("one number on a Line", "Product")),
    "wide": (129, {}, ("129 columns", "at most 128", "'windows' or 'raw'")),
    "own": (
        2,
        {"encoder": nn.Linear(2, 3)},
        ("your own", "MovingFrameLayer", "'raw' or 'learned'"),
    ),
}


@pytest.fixture(params=CASES)
def no_frame(request):
    """Rows and settings for which there is no frame, and what the refusal says."""
    columns, settings, words = CASES[request.param]
    x, u, y = labelled(columns=columns)
    u = np.stack([u, u**2], axis=1) if request.param == "product" else u
    return (x, u, y), settings, words


def test_frame_is_refused_in_one_sentence_where_there_is_none(no_frame):
    rows, settings, words = no_frame
    with pytest.raises(ValueError, match=r"^coordinates is 'moving-frame'") as caught:
        model_of(*rows, **settings, coordinates="moving-frame")
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_auto_takes_no_frame_where_there_is_none(no_frame):
    (x, u, y), settings, _ = no_frame
    model = model_of(x, u, y, **settings)
    assert model.plan_.coordinates in ("raw", "windows", "learned")
    assert type(model.game_.encoder) is not FramedEncoder
