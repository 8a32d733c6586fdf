"""The speed suite's images: its data, and both loops on the same batches."""

import numpy as np
import pytest
import torch

from benchmarks import images
from benchmarks.images import (
    PlainImageEncoder,
    PlainLoop,
    RotatedDigits,
    bfloat16_time,
    image_times,
    make_timing_digits,
    rotate_with_pil,
)
from benchmarks.measure import step_ms
from cida.experiments.rotating_mnist.rotating_dataset import make_fresh_angle_dataset
from cida.images import rotate_degrees


@pytest.fixture
def digits():
    return make_timing_digits(80)


@pytest.fixture
def rows(digits):
    return make_fresh_angle_dataset(digits, 0)


@pytest.fixture
def ours(rows):
    return images.image_game(rows, 1, 8)


def moved(parts, act):
    """The names of the parts whose every parameter the act changes."""
    before = {name: [p.detach().clone() for p in part.parameters()] for name, part in parts.items()}
    act()
    return {
        name
        for name, part in parts.items()
        if all(not torch.equal(o, p) for o, p in zip(before[name], part.parameters(), strict=True))
    }


def test_the_digits_are_as_many_as_asked_for_and_like_mnists():
    digits = make_timing_digits(1800)
    assert digits.images.shape == (1800, 1, 28, 28)
    assert digits.images.dtype == torch.uint8
    assert digits.images.max() > 200
    assert torch.equal(digits.images[0], digits.images[1797])
    assert digits.labels[:10].tolist() == list(range(10))


def test_both_loops_have_the_batches_of_the_preset(rows):
    _, training = images.image_game(rows, 3, None)
    assert (training.source_batch_size, training.batch_size, training.steps) == (128, 256, 6)


def test_our_loop_moves_every_player(rows, ours):
    game, training = ours
    parts = {name: getattr(game, name) for name in ("encoder", "predictor", "discriminator")}
    parts["transformer"] = game.encoder.transformer.head
    assert moved(parts, lambda: step_ms(game, rows, training)) == set(parts)


def test_the_plain_loop_moves_every_player_and_leaves_ours_alone(digits, ours):
    game, training = ours
    plain = PlainLoop(game, digits, training, workers=0)
    parts = {name: getattr(plain, name) for name in ("encoder", "predictor", "discriminator")}

    def act():
        # Two steps: the transformer's last layer starts at zero and moves before those below it.
        for batches in plain.batches(2):
            losses = plain.step(*batches)
        assert np.isfinite(list(losses.values())).all()

    assert moved({**parts, "ours": game}, act) == set(parts)


def test_the_plain_loops_batches_are_as_large_as_ours_and_never_run_out(digits, ours):
    game, training = ours
    plain = PlainLoop(game, digits, training, workers=0)
    found = list(plain.batches(12))  # more than an epoch of 80 digits
    assert len(found) == 12
    for source, everyone in found:
        assert source[0].shape == (4, 1, 28, 28)
        assert everyone[0].shape == (8, 1, 28, 28)
        assert (source[2] <= 45).all()
        assert source[0].dtype == torch.float32


def test_the_plain_encoder_computes_what_ours_does_in_the_default_layout(ours):
    encoder = ours[0].encoder.eval()
    plain = PlainImageEncoder(encoder).eval()
    x, index = torch.rand(5, 1, 28, 28), torch.randn(5, 2)
    torch.testing.assert_close(plain(x, index), encoder(x, index), rtol=1e-4, atol=1e-5)
    for one, other in zip(plain.convolutions, encoder.convolutions, strict=True):
        if isinstance(one, torch.nn.Conv2d):
            assert one.weight.is_contiguous()
            assert not other.weight.is_contiguous()


@pytest.mark.parametrize("angle", [20.0, 135.0, 290.0])
def test_pil_turns_as_we_do(angle):
    line = torch.arange(28.0) - 13.5
    away = (line[None] - 4).square() + (line[:, None] + 2).square() * 3  # off the middle, smooth
    image = (255 * torch.exp(-away / 40)).round().to(torch.uint8)
    by_pil = rotate_with_pil(image.numpy(), angle)
    by_us = rotate_degrees(image[None, None].float() / 255, torch.tensor([angle]))[0]
    assert (by_pil - by_us).abs().mean() < 0.003
    other_way = rotate_degrees(image[None, None].float() / 255, torch.tensor([-angle]))[0]
    assert (by_pil - other_way).abs().mean() > 0.02


def test_the_plain_data_set_turns_within_its_range_and_tells_the_angle(digits):
    data = RotatedDigits(digits, 30, 60)
    x, label, angle = data[3]
    assert (len(data), label) == (80, 3)
    assert 30 <= angle <= 60
    torch.testing.assert_close(x, rotate_with_pil(digits.images[3, 0].numpy(), angle))


def test_every_line_has_its_figure_and_the_ratio_is_ours_over_plain():
    found = image_times(steps=1, images=40, batch_size=8, workers=0, rounds=1)
    ours, bilinear, nearest, pil = found
    assert all(line.value > 0 and "images/s" in line.note for line in found)
    ms = {name: float(line.note.split(" ms")[0].split()[-1]) for name, line in
          (("ours", ours), ("bilinear", bilinear), ("pil", pil))}  # fmt: skip
    plain = float(ours.note.split("plain")[1].split(" ms")[0].split()[-1])
    assert ours.value == pytest.approx(plain / ms["ours"], rel=0.05)
    assert bilinear.value == pytest.approx(100 * ms["bilinear"] / ms["ours"], rel=0.05)
    assert pil.value == pytest.approx(ms["pil"] / ms["bilinear"], rel=0.05)
    assert (ours.limit, ours.is_minimum) == (3, True)
    assert nearest.unit == "% of a step"


def test_bfloat16_is_compared_with_float32(monkeypatch):
    pairs = [(3.0, 2.0), (2.0, 2.0), (9.0, 3.0)]
    monkeypatch.setattr(images, "run_in_subprocess", lambda *_: pairs)
    found = bfloat16_time(1, 6)
    assert (found.value, found.note) == (1.5, "3.00 ms over 2.00 ms")
    monkeypatch.setattr(images, "run_in_subprocess", lambda *_: None)
    assert bfloat16_time(1, 6) is None
