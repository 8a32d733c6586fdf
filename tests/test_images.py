"""Images turned about their middle, against `torch.rot90` and `scipy.ndimage`."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from cida.images import rotate, rotate_degrees

angles = st.floats(-720, 720, allow_nan=False)
seeds = st.integers(0, 2**31)


def noise(count=1, channels=1, size=9, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, channels, size, size, generator=generator, dtype=torch.float64)


def degrees(*values):
    return torch.tensor(values, dtype=torch.float64)


def bump(size=28, across=0.0, up=0.0, width=3.0):
    """A smooth blob, its centre so far from the middle; rows of an image point down."""
    place = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    x, y = place[None, :], -place[:, None]
    return torch.exp(-((x - across) ** 2 + (y - up) ** 2) / (2 * width**2))[None, None]


def centre_of(image):
    """Where the mass of an image is: across and up from the middle."""
    place = torch.arange(image.shape[-1], dtype=torch.float64) - (image.shape[-1] - 1) / 2
    mass = image[0, 0]
    return (mass.sum(0) @ place / mass.sum()).item(), (mass.sum(1) @ -place / mass.sum()).item()


# --- which way it turns -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 8, 9, 28])
@pytest.mark.parametrize("nearest", [False, True])
def test_a_turn_by_nothing_gives_the_image_back(size, nearest):
    image = noise(2, 3, size)
    assert torch.allclose(rotate_degrees(image, degrees(0, 360), nearest), image, atol=1e-12)
    still = torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand(2, 2)
    assert torch.allclose(rotate(image, still, nearest), image, atol=1e-12)


@pytest.mark.parametrize("size", [2, 8, 9, 28])
@pytest.mark.parametrize("quarters", [-1, 1, 2, 3, 5])
def test_quarter_turns_are_anticlockwise_as_those_of_rot90(size, quarters):
    image = noise(1, 2, size)
    turned = torch.rot90(image, quarters, dims=(2, 3))
    angle = degrees(90 * quarters)
    assert torch.equal(rotate_degrees(image, angle, nearest=True), turned)
    assert torch.allclose(rotate_degrees(image, angle), turned, atol=1e-12)
    single = rotate_degrees(image.float(), angle)
    assert torch.allclose(single, turned.float(), atol=1e-5)


def test_a_blob_on_the_right_goes_up_by_a_quarter_turn():
    turned = rotate_degrees(bump(across=6.0, width=2.0), degrees(90))
    assert centre_of(turned) == pytest.approx((0.0, 6.0), abs=0.01)


@given(angle=angles, across=st.floats(-5, 5), up=st.floats(-5, 5))
@settings(deadline=None, max_examples=40)
def test_the_middle_of_a_blob_moves_by_the_rotation_matrix(angle, across, up):
    turned = rotate_degrees(bump(across=across, up=up, width=2.0), degrees(angle))
    cos, sin = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    expected = cos * across - sin * up, sin * across + cos * up
    assert centre_of(turned) == pytest.approx(expected, abs=0.05)


# --- against another implementation -----------------------------------------------------------


def by_scipy(image, angle, order):
    """`ndimage.rotate` of every channel; grid-constant: pixels outside are there, and 0."""
    kwargs = {"reshape": False, "order": order, "mode": "grid-constant", "cval": 0.0}
    channels = [ndimage.rotate(channel, angle, **kwargs) for channel in image.numpy()]
    return torch.from_numpy(np.stack(channels))


@pytest.mark.parametrize(("nearest", "order"), [(False, 1), (True, 0)])
@given(seed=seeds, size=st.integers(2, 20), angle=st.floats(-179, 179))
@settings(deadline=None, max_examples=40)
def test_it_is_what_scipy_does(nearest, order, seed, size, angle):
    # Near a tie the nearest pixel is a matter of rounding, so whole degrees get a crooked part.
    angle = angle + 0.0123456
    image = noise(2, 2, size, seed)
    mine = rotate_degrees(image, degrees(angle, -angle), nearest)
    for one, turn, upright in zip(mine, (angle, -angle), image, strict=True):
        agree = (one - by_scipy(upright, turn, order)).abs() < 1e-9
        assert agree.all() if order == 1 else agree.double().mean() > 0.98


def test_a_smooth_image_is_what_an_affine_transform_by_hand_makes_of_it():
    image, angle = bump(across=3.0, up=-2.0), np.deg2rad(37.0)
    # In (row, column), with rows that point down, the matrix that looks back has the sign of an
    # anticlockwise turn; it leaves the middle where it is.
    back = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    middle = np.full(2, 13.5)
    expected = ndimage.affine_transform(
        image[0, 0].numpy(), back, middle - back @ middle, order=1, mode="grid-constant"
    )
    found = rotate(image, torch.tensor([[np.cos(angle), np.sin(angle)]]))
    np.testing.assert_allclose(found[0, 0].numpy(), expected, atol=1e-12)


def test_an_image_that_is_not_square_is_turned_and_not_sheared():
    image = noise(1, 1, 14)[:, :, :10]
    mine = rotate_degrees(image, degrees(30))[0]
    assert torch.allclose(mine, by_scipy(image[0], 30.0, 1), atol=1e-9)


# --- invariants -------------------------------------------------------------------------------


@given(angle=angles)
@settings(deadline=None, max_examples=40)
def test_a_turn_and_its_opposite_leave_a_smooth_blob_as_it_was(angle):
    image = bump(across=4.0, up=2.0)
    back = rotate_degrees(rotate_degrees(image, degrees(angle)), degrees(-angle))
    # Two bilinear interpolations cost at most 2 (h^2 / 8) (|f_xx| + |f_yy|), and |f''| <= 1 / 9.
    assert (back - image).abs().max() < 2 / 36 + 1e-6


@given(first=angles, second=angles)
@settings(deadline=None, max_examples=40)
def test_two_turns_are_one_by_the_sum(first, second):
    image = bump(across=4.0, up=2.0)
    twice = rotate_degrees(rotate_degrees(image, degrees(first)), degrees(second))
    once = rotate_degrees(image, degrees(first + second))
    assert (twice - once).abs().max() < 3 / 36 + 1e-6


@given(angle=angles, width=st.floats(1.5, 3.0))
@settings(deadline=None, max_examples=40)
def test_the_mass_of_a_blob_in_the_middle_is_kept(angle, width):
    image = bump(width=width)
    turned = rotate_degrees(image, degrees(angle))
    assert turned.sum().item() == pytest.approx(image.sum().item(), rel=5e-3)


@given(seed=seeds, angle=angles, size=st.integers(1, 16))
@settings(deadline=None, max_examples=40)
def test_nothing_is_brighter_or_darker_than_what_there_was(seed, angle, size):
    image = noise(1, 1, size, seed)
    turned = rotate_degrees(image, degrees(angle))
    assert turned.min() >= 0
    assert turned.max() <= image.max() + 1e-12
    chosen = rotate_degrees(image, degrees(angle), nearest=True)
    assert set(chosen.flatten().tolist()) <= {0.0, *image.flatten().tolist()}


@given(seed=seeds, angle=angles, factor=st.floats(-3, 3))
@settings(deadline=None, max_examples=40)
def test_it_is_linear_in_the_image(seed, angle, factor):
    first, second = noise(seed=seed), noise(seed=seed + 1)
    apart = [rotate_degrees(image, degrees(angle)) for image in (first, second)]
    together = rotate_degrees(first + factor * second, degrees(angle))
    assert torch.allclose(together, apart[0] + factor * apart[1], atol=1e-12)


@given(seed=seeds, angle=angles)
@settings(deadline=None, max_examples=40)
def test_a_mirror_turns_the_other_way(seed, angle):
    image = noise(seed=seed)
    mirrored = rotate_degrees(image.flip(3), degrees(-angle))
    assert torch.allclose(rotate_degrees(image, degrees(angle)).flip(3), mirrored, atol=1e-9)


@given(seed=seeds, angle=st.floats(-360, 360), turns=st.integers(-3, 3))
@settings(deadline=None, max_examples=30)
def test_whole_turns_do_not_count(seed, angle, turns):
    image = noise(seed=seed)
    more = rotate_degrees(image, degrees(angle + 360 * turns))
    assert torch.allclose(rotate_degrees(image, degrees(angle)), more, atol=1e-9)


@given(seed=seeds, count=st.integers(1, 6))
@settings(deadline=None, max_examples=30)
def test_each_image_is_turned_as_if_it_were_alone(seed, count):
    generator = torch.Generator().manual_seed(seed)
    images = noise(count, 2, 8, seed)
    angle = 360 * torch.rand(count, generator=generator, dtype=torch.float64)
    for nearest in (False, True):
        whole = rotate_degrees(images, angle, nearest)
        alone = [
            rotate_degrees(one[None], a[None], nearest)
            for one, a in zip(images, angle, strict=True)
        ]
        # On some processors a matrix product rounds its last bit by how many rows it has.
        assert torch.allclose(whole, torch.cat(alone), rtol=0, atol=1e-13)


def test_no_images_are_turned_into_no_images():
    assert rotate_degrees(noise(0), degrees()).shape == (0, 1, 9, 9)


def test_a_column_of_angles_is_read_as_one_angle_a_row():
    images, angle = noise(4), degrees(10, 20, 30, 40)
    assert torch.equal(rotate_degrees(images, angle[:, None]), rotate_degrees(images, angle))


def test_the_result_has_the_images_dtype_whatever_the_angles_have():
    for dtype in (torch.float32, torch.float64):
        assert rotate_degrees(noise().to(dtype), degrees(30)).dtype == dtype


# --- gradients --------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [3.0, 41.7, 100.1, -77.3])
def test_the_gradient_in_cos_and_sin_is_the_numerical_derivative(angle):
    images = bump(10, across=1.0, up=0.5, width=2.0)
    direction = torch.tensor([[np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))]])
    direction = direction.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda d: rotate(images, d), (direction,), eps=1e-7, atol=1e-5)


def test_the_gradient_in_the_pixels_is_the_numerical_derivative():
    images = noise(2, 1, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: rotate_degrees(x, degrees(20, 70)), (images,))


def test_the_derivative_in_the_angle_of_a_blob_is_that_of_its_formula():
    """A Gaussian at (c, 0) with deviation w changes at (x, y) by ``f c y / w^2`` a radian."""
    across, width, size = 5.0, 3.0, 28
    angle = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    # A hair off a whole turn, so that the interpolation is differentiable.
    a = angle + 1e-4
    image = rotate(bump(size, across, 0.0, width), torch.stack([a.cos(), a.sin()], dim=1))
    pixel = image[0, 0, 8, 18]  # 4.5 to the right of the middle and 5.5 up
    (slope,) = torch.autograd.grad(pixel, angle)
    value = np.exp(-((4.5 - across) ** 2 + 5.5**2) / (2 * width**2))
    assert slope.item() == pytest.approx(value * across * 5.5 / width**2, rel=0.1)
