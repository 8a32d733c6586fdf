"""Turns of the principal axes along u: undone where there are axes, and not made up."""

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from cida.coordinates import MovingFrameLayer, principal_axes
from cida.coordinates.principal_axes import principal_axis_rotations
from cida.datasets import make_rotating_moons
from cida.networks import FramedEncoder

BINS = 40
MIDDLES = (np.arange(BINS) + 0.5) / BINS


def exact_cloud(covariance, rows=50, seed=0):
    """Rows whose covariance around zero is this one, not nearly but exactly."""
    covariance = np.asarray(covariance, dtype=float)
    drawn = np.random.default_rng(seed).normal(size=(rows, len(covariance)))
    white, _ = np.linalg.qr(drawn)
    values, vectors = np.linalg.eigh(covariance)
    return np.sqrt(rows) * white @ (vectors * np.sqrt(values)).T


def clouds(*covariances, rows=50):
    """Such a cloud in each bin, and the bin of each row."""
    x = [exact_cloud(covariance, rows, seed) for seed, covariance in enumerate(covariances)]
    return np.concatenate(x), np.repeat(np.arange(len(x)), rows)


def flat(degrees):
    """The rotation of the plane by so many degrees."""
    return Rotation.from_euler("z", degrees, degrees=True).as_matrix()[:2, :2]


def turning(path, lengths, rows=4000, seed=0):
    """A normal cloud of axes with these lengths, turned by ``path(u)``, and the bin of each row."""
    random = np.random.default_rng(seed)
    u = np.sort(random.uniform(size=rows))
    offset = random.normal(size=(rows, len(lengths))) * lengths
    x = np.einsum("nij,nj->ni", np.stack([path(one) for one in u]), offset)
    return x, np.minimum((u * BINS).astype(int), BINS - 1)


def degrees_apart(one, other):
    """The angle of the rotation from one to the other, in two or three dimensions."""
    between = one @ np.swapaxes(other, -1, -2)
    width = between.shape[-1]
    cosine = (np.trace(between, axis1=-2, axis2=-1) - (width - 2)) / 2
    return np.degrees(np.arccos(cosine.clip(-1, 1)))


def are_rotations(turns):
    width = turns.shape[-1]
    assert np.allclose(turns @ np.swapaxes(turns, 1, 2), np.eye(width), atol=1e-10)
    assert np.allclose(np.linalg.det(turns), 1, atol=1e-10)


# --- known turns are undone -------------------------------------------------------------------

PATHS_2 = {
    "a quarter": lambda u: flat(90 * u),
    "back": lambda u: flat(-90 * u),
    "there and back": lambda u: flat(60 * np.sin(np.pi * u)),
}
AXIS = np.array([1, 2, 2]) / 3
PATHS_3 = {
    "about a line": lambda u: Rotation.from_rotvec(np.pi / 2 * u * AXIS).as_matrix(),
    "about two": lambda u: Rotation.from_euler(
        "xz", [50 * u, -40 * np.sin(2 * u)], degrees=True
    ).as_matrix(),
}


@pytest.mark.parametrize(
    ("path", "lengths"),
    [*((p, [3, 1]) for p in PATHS_2.values()), *((p, [1, 3, 9]) for p in PATHS_3.values())],
    ids=[*PATHS_2, *PATHS_3],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_turns_undo_those_of_a_cloud_with_axes_within_a_few_degrees(path, lengths, seed):
    turns = principal_axis_rotations(*turning(path, lengths, seed=seed))
    are_rotations(turns)
    assert np.array_equal(turns[0], np.eye(len(lengths)))
    seen = turns @ np.stack([path(u) for u in MIDDLES])
    # The cloud as the middle has it: at the ends, neighbours are on one side alone.
    assert degrees_apart(seen, seen[BINS // 2]).max() < 7
    assert degrees_apart(seen, path(0)[None]).max() < 10
    assert degrees_apart(turns, np.eye(len(lengths))).max() > 40


def test_the_sense_of_the_turn_is_kept_beyond_half_a_turn():
    turns = principal_axis_rotations(*turning(lambda u: flat(300 * u), [4, 1], rows=8000))
    angle = np.degrees(np.unwrap(np.arctan2(turns[:, 1, 0], turns[:, 0, 0])))
    # A principal axis alone looks the same after 180 degrees; followed, it does not.
    assert angle[-1] == pytest.approx(-300 * (BINS - 1) / BINS, abs=20)
    assert np.abs(angle + 300 * MIDDLES).max() < 20


def test_covariances_stand_still_after_the_turns():
    x, owner = turning(PATHS_2["a quarter"], [3, 1], rows=20_000)
    turned = np.einsum("nij,nj->ni", principal_axis_rotations(x, owner)[owner], x)
    shapes = [np.cov(turned[owner // 8 == part].T) for part in range(5)]
    before = [np.cov(x[owner // 8 == part].T) for part in range(5)]
    assert np.ptp(shapes, axis=0).max() < 1.2
    assert np.ptp(before, axis=0).max() > 5


# --- what has no direction is left alone ------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_axes_of_equal_length_do_not_turn(width):
    turns = principal_axis_rotations(*clouds(*([np.eye(width)] * 12)))
    assert np.allclose(turns, np.eye(width), atol=1e-9)


def test_a_round_cloud_that_grows_does_not_turn():
    turns = principal_axis_rotations(*clouds(*(size * np.eye(3) for size in np.linspace(1, 9, 12))))
    assert np.allclose(turns, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("shape", [np.diag([9.0, 1.0]), flat(30) @ np.diag([9, 1]) @ flat(-30)])
def test_a_cloud_that_keeps_its_axes_does_not_turn_however_they_lie(shape):
    turns = principal_axis_rotations(*clouds(*(size * shape for size in (1, 2, 3, 2, 1))))
    assert np.allclose(turns, np.eye(2), atol=1e-9)


def test_two_equal_axes_of_three_turn_as_one_plane():
    def path(u):
        return Rotation.from_euler("x", 90 * u, degrees=True).as_matrix()

    shape = np.diag([9.0, 1.0, 1.0])
    turns = principal_axis_rotations(*clouds(*(path(u) @ shape @ path(u).T for u in MIDDLES)))
    assert np.allclose(turns, np.eye(3), atol=1e-9)


def test_a_long_axis_that_stays_is_hardly_turned_by_the_noise_of_a_draw():
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=(4000, 2)) * [3, 1]
        turns = principal_axis_rotations(x, np.repeat(np.arange(BINS), 100))
        assert degrees_apart(turns, np.eye(2)).max() < 7


def test_constant_rows_do_not_turn():
    turns = principal_axis_rotations(np.zeros((60, 3)), np.repeat(np.arange(6), 10))
    assert np.array_equal(turns, np.broadcast_to(np.eye(3), (6, 3, 3)))


def test_one_bin_does_not_turn():
    turns = principal_axis_rotations(exact_cloud(np.diag([4.0, 1.0])), np.zeros(50, dtype=int))
    assert np.array_equal(turns, np.eye(2)[None])


def test_one_column_has_nothing_to_turn():
    x = np.random.default_rng(0).normal(size=(100, 1))
    assert np.allclose(principal_axis_rotations(x, np.repeat(np.arange(10), 10)), 1)


@pytest.mark.parametrize(("long", "rows"), [(4.0, 50), (1.5, 50), (1.5, 5000), (1.01, 50)])
def test_one_step_is_the_formula_of_the_docstring(monkeypatch, long, rows):
    monkeypatch.setattr(principal_axes, "N_NEIGHBOR_BINS", 0)
    monkeypatch.setattr(principal_axes, "N_ROTATION_ITERATIONS", 1)
    between = 0.1
    turns = principal_axis_rotations(
        *clouds(np.diag([long, 1.0]), [[long, between], [between, 1.0]], rows=rows)
    )
    asked = (
        between
        * (long - 1)
        / ((long - 1) ** 2 + principal_axes.MIN_AXIS_SIGNAL_TO_NOISE**2 * long / rows)
    )
    # What leans towards the second axis is turned back from it.
    assert np.arctan2(turns[1, 1, 0], turns[1, 0, 0]) == pytest.approx(-asked, rel=1e-6)


# --- in the frame -----------------------------------------------------------------------------


def scaled_moons(seed):
    world = make_rotating_moons(seed=seed)
    x = torch.from_numpy((world.x - world.x.mean(0)) / world.x.std(0)).float()
    return x, torch.from_numpy(world.u / 180)[:, None].float(), world


@pytest.fixture(scope="module", params=[100, 101])
def framed(request):
    x, index, world = scaled_moons(request.param)
    frame = MovingFrameLayer(2, "axes").fit(x, index)
    return frame, frame(x, index).numpy(), x.numpy(), world


def test_turning_moons_stand_still_in_the_frame_of_their_axes(framed):
    _, seen, x, world = framed
    part = (world.u // 30).astype(int)
    for kind in (0, 1):
        means = [seen[(part == p) & (world.y == kind)].mean(0) for p in range(6)]
        assert np.ptp(means, axis=0).max() < 0.4
        outside = [x[(part == p) & (world.y == kind)].mean(0) for p in range(6)]
        assert np.ptp(outside, axis=0).max() > 1
    shapes = [np.cov(seen[part == p].T) for p in range(6)]
    assert np.ptp(shapes, axis=0).max() < 0.35
    assert np.ptp([np.cov(x[part == p].T) for p in range(6)], axis=0).max() > 0.7


def test_the_frames_turns_are_rotations_that_start_at_none_and_end_after_half_a_turn(framed):
    turn = framed[0].turn.double().numpy()
    assert turn.shape == (256, 2, 2)
    assert np.allclose(turn @ turn.transpose(0, 2, 1), np.eye(2), atol=1e-5)
    assert np.allclose(np.linalg.det(turn), 1, atol=1e-5)
    assert np.allclose(turn[0], np.eye(2), atol=1e-5)
    angle = np.degrees(np.unwrap(np.arctan2(turn[:, 1, 0], turn[:, 0, 0])))
    assert np.abs(angle + np.linspace(0, 180, 256)).max() < 15


def test_the_frame_of_the_path_does_not_turn_with_the_moons(framed):
    _, _, x, world = framed
    index = torch.from_numpy(world.u / 180)[:, None].float()
    turn = MovingFrameLayer(2).fit(torch.from_numpy(x), index).turn
    assert float((turn - torch.eye(2)).abs().max()) < 0.5


@pytest.mark.parametrize(
    ("x", "u"),
    [
        (np.ones((50, 2)), np.linspace(0, 1, 50)),
        (exact_cloud(np.diag([4.0, 1.0])), np.full(50, 0.4)),
        (exact_cloud(np.diag([4.0, 1.0])), np.repeat([0.0, 1.0], 25)),
        (exact_cloud(np.diag([4.0, 1.0]), rows=3), np.array([0.0, 0.5, 1.0])),
        (np.ones((1, 2)), np.zeros(1)),
    ],
    ids=["all rows equal", "one u", "two u", "three rows", "one row"],
)
def test_rows_at_the_edge_give_finite_rows_and_rotations(x, u):
    rows, index = torch.from_numpy(x).float(), torch.from_numpy(u).float()[:, None]
    frame = MovingFrameLayer(2, "axes").fit(rows, index)
    assert torch.isfinite(frame(rows, index)).all()
    turn = frame.turn.double()
    assert torch.allclose(turn @ turn.mT, torch.eye(2).double(), atol=1e-5)
    assert torch.allclose(torch.linalg.det(turn), torch.ones(256).double(), atol=1e-5)


def test_an_encoder_in_the_frame_of_axes_comes_back_bit_for_bit():
    x, index, _ = scaled_moons(100)
    encoder, again = (FramedEncoder(2, (8,), 4, follow="axes") for _ in range(2))
    encoder.fit_index(x, index)
    assert not torch.equal(encoder(x, index), again(x, index))
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(encoder(x, index), again(x, index))
    assert torch.equal(encoder.frame.turn, again.frame.turn)
    assert encoder.frame.follow == "axes"
