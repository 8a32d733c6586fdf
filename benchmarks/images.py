"""Images a second: our training loop beside a plain one, and where a step's time goes.

Needs pillow, which turns the plain loop's images.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

from benchmarks.measure import (
    N_ROUNDS,
    Effort,
    Measurement,
    mean_ms,
    measure_interleaved,
    run_in_subprocess,
    step_ms,
)
from cida.experiments.rotating_mnist.rotating_dataset import (
    INTERVAL_DEGREES,
    Digits,
    RotatingDataset,
    make_fresh_angle_dataset,
)
from cida.experiments.rotating_mnist.rotating_tasks import ROTATING_MNIST
from cida.experiments.spec import Recipe, build_recipes
from cida.games import Adversarial
from cida.images import rotate_degrees
from cida.networks import ImageEncoder
from cida.training import TrainingConfig, seeded

__all__ = [
    "PlainLoop",
    "bfloat16_time",
    "image_figures",
    "image_game",
    "image_times",
    "make_timing_digits",
]

CIDA_LOOP, PLAIN_LOOP = "cida's loop against a plain PyTorch loop", "plain loop"
MIN_SPEEDUP_OVER_PLAIN = 3.0
IMAGE_STEPS_DIVISOR = 10  # a step on images takes about so many times as long as one on Circle
BILINEAR_ROTATION, NEAREST_ROTATION, PIL_ROTATION = (
    "rotation, bilinear",
    "rotation, nearest",
    "rotation, PIL one by one",
)
BFLOAT16_ENCODER = "encoder in bfloat16"
BFLOAT16_LOOP = "the same with --precision bf16"


def image_figures(effort: Effort) -> Iterator[Measurement]:
    """Both loops, the rotations, and the encoder in bfloat16."""
    steps = effort.scaled_steps(IMAGE_STEPS_DIVISOR)
    half = bfloat16_time(steps)
    yield from image_times(steps, workers=effort.workers, with_bfloat16=half is not None)
    if half is not None:
        yield half


def image_times(
    steps: int = 10,
    images: int = 4000,
    batch_size: int | None = None,
    workers: int = 2,
    rounds: int = N_ROUNDS,
    with_bfloat16: bool = False,
) -> list[Measurement]:
    """Both loops and the rotations, on the networks and the batch of Rotating MNIST.

    An image is a row that is dealt. ``workers`` are the processes of each of the plain loop's two
    data loaders; where it has none, it turns its images itself. With ``half`` our loop is also
    measured in bfloat16.
    """
    with seeded(0):
        digits = make_timing_digits(images)
        rows = make_fresh_angle_dataset(digits, 0)
        game, training = image_game(rows, steps, batch_size)
        plain = PlainLoop(game, digits, training, workers)
        batch = training.source_batch_size + training.batch_size
        measures: dict[str, Callable[[], float]] = {
            CIDA_LOOP: lambda: step_ms(game, rows, training),
            PLAIN_LOOP: lambda: plain.step_ms(steps),
        }
        if with_bfloat16:
            in_half = replace(training, precision="bf16")
            measures[BFLOAT16_LOOP] = lambda: step_ms(game, rows, in_half)
        for name, turn in _rotations(digits, batch).items():
            measures[name] = partial(mean_ms, turn, steps)
        timings = measure_interleaved(measures, rounds)

    def speed(name: str) -> str:
        return (
            f"{1000 * batch / timings.median_ms(name):,.0f} images/s, "
            f"{timings.median_ms(name):.2f} ms a batch"
        )

    both = f"{speed(CIDA_LOOP)}; plain {speed(PLAIN_LOOP)}"
    pil = timings.median_ratio(PIL_ROTATION, BILINEAR_ROTATION)
    return [
        Measurement(
            CIDA_LOOP,
            timings.median_ratio(PLAIN_LOOP, CIDA_LOOP),
            "x plain",
            MIN_SPEEDUP_OVER_PLAIN,
            is_minimum=True,
            note=both,
        ),
        *(
            Measurement(
                name,
                timings.median_ratio(PLAIN_LOOP, name),
                "x plain",
                MIN_SPEEDUP_OVER_PLAIN,
                is_minimum=True,
                note=speed(name),
            )
            for name in ((BFLOAT16_LOOP,) if with_bfloat16 else ())
        ),
        *(
            Measurement(
                name, 100 * timings.median_ratio(name, CIDA_LOOP), "% of a step", note=speed(name)
            )
            for name in (BILINEAR_ROTATION, NEAREST_ROTATION)
        ),
        Measurement(PIL_ROTATION, pil, "x bilinear", note=speed(PIL_ROTATION)),
    ]


# --- the data ------------------------------------------------------------------------------------


def make_timing_digits(count: int) -> Digits:
    """So many digits like MNIST's, with no download: scikit-learn's, enlarged, over and over."""
    grey, labels = load_digits(return_X_y=True)
    which = np.arange(count) % len(grey)
    small = torch.from_numpy(grey[which].reshape(-1, 1, 8, 8) * (255 / 16)).float()
    large = nn.functional.interpolate(small, size=20, mode="bilinear")
    framed = nn.functional.pad(large, (4, 4, 4, 4)).round().to(torch.uint8)
    return Digits(framed, torch.from_numpy(labels[which]).long())


# --- our loop ------------------------------------------------------------------------------------


def _recipe() -> Recipe:
    return build_recipes(ROTATING_MNIST, "best")["histogram"]


def image_game(
    rows: RotatingDataset, steps: int, batch_size: int | None
) -> tuple[Adversarial, TrainingConfig]:
    """The game, and a training of twice the steps: `step_ms` times the second half."""
    source = None if batch_size is None else batch_size // 2
    recipe = _recipe().with_settings(steps=1, batch_size=batch_size, source_batch_size=source)
    game = recipe.build_model(0).fit_dataset(rows).game_
    assert isinstance(game, Adversarial)
    chosen = recipe.settings
    return game, TrainingConfig(
        steps=2 * steps,
        batch_size=chosen["batch_size"],
        source_batch_size=chosen["source_batch_size"],
        learning_rate=chosen["learning_rate"],
        ema_decay=chosen["ema_decay"],
        n_balance_bins=chosen["n_balance_bins"],
        curriculum=0.0,  # its stages would all fall into these few steps; the plain loop has none
        events=2,
    )


# --- a plain loop --------------------------------------------------------------------------------


class RotatedDigits(Dataset[tuple[Tensor, int, float]]):
    """Digits one by one, each turned to a random angle by PIL, as data sets are mostly written."""

    def __init__(self, digits: Digits, low: float, high: float) -> None:
        self.images = digits.images[:, 0].numpy()
        self.labels: list[int] = digits.labels.tolist()
        self.low, self.high = low, high

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[Tensor, int, float]:
        angle = random.uniform(self.low, self.high)
        return rotate_with_pil(self.images[i], angle), self.labels[i], angle


def rotate_with_pil(image: np.ndarray[Any, Any], angle: float) -> Tensor:
    """One image, bytes in and floats out, turned anticlockwise by so many degrees."""
    rotated = Image.fromarray(image).rotate(angle, resample=Image.Resampling.BILINEAR)
    return torch.from_numpy(np.asarray(rotated, dtype=np.float32) / 255)[None]


class PlainImageEncoder(nn.Module):
    """The layers of an `ImageEncoder`, copied, as they are mostly written.

    The grid that turns an image is torch's own, and memory is laid out as torch does by default.
    """

    def __init__(self, encoder: ImageEncoder) -> None:
        super().__init__()
        self.transformer = copy.deepcopy(encoder.transformer)
        self.fold = nn.PixelUnshuffle(encoder.fold)
        self.convolutions = copy.deepcopy(encoder.convolutions)
        self.convolutions.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        self.last = copy.deepcopy(encoder.last)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        cos, sin = self.transformer.cos_sin(x, index).unbind(1)
        none = torch.zeros_like(cos)
        back = torch.stack([cos, -sin, none, sin, cos, none], dim=1).view(-1, 2, 3)
        grid = nn.functional.affine_grid(back, list(x.shape), align_corners=False)
        upright = nn.functional.grid_sample(x, grid, align_corners=False)
        z: Tensor = self.last(self.convolutions(self.fold(upright)).flatten(1))
        return z


class PlainLoop:
    """The same game as it is mostly written: data loaders, PIL, three passes of the encoder.

    The encoder reads everyone for the discriminator's updates; then source and everyone again, each
    on its own, for its own update. Networks (copied), batches, losses and threads are ours.
    """

    def __init__(
        self, game: Adversarial, digits: Digits, training: TrainingConfig, workers: int
    ) -> None:
        assert isinstance(game.encoder, ImageEncoder)
        self.encoder = PlainImageEncoder(game.encoder).train()
        self.predictor = copy.deepcopy(game.predictor).train()
        self.discriminator = copy.deepcopy(game.discriminator).train()
        self.space = game.space
        self.lambda_d, self.discriminator_steps = game.lambda_d, game.discriminator_steps
        self.sizes = training.source_batch_size, training.batch_size
        self.workers = workers
        half = digits[torch.arange(len(digits) // 2)]
        self.source = RotatedDigits(half, 0, INTERVAL_DEGREES)
        self.pooled = RotatedDigits(digits, 0, 360)
        rate = training.learning_rate
        players = [*self.encoder.parameters(), *self.predictor.parameters()]
        self.encoder_optimizer = torch.optim.Adam(players, rate)
        self.discriminator_optimizer = torch.optim.Adam(self.discriminator.parameters(), rate)

    def step_ms(self, steps: int) -> float:
        """Milliseconds a step once the loaders run steadily.

        The workers live for this call, so that none is at work while something else is timed.
        """
        filled = 4 * self.workers  # a loader works two batches a worker ahead: use them up first
        batches = self.batches(2 * steps + filled)
        for _ in range(steps + filled):
            self.step(*next(batches))
        return mean_ms(lambda: self.step(*next(batches)), steps)

    def batches(self, count: int) -> Iterator[tuple[Any, Any]]:
        """Pairs of batches, one loader for each kind, with no pause between epochs."""
        kinds = zip((self.source, self.pooled), self.sizes, strict=True)
        return zip(*(self._loader(data, size, count) for data, size in kinds), strict=True)

    def _loader(self, data: RotatedDigits, size: int, count: int) -> DataLoader[Any]:
        # Shuffles anew at each epoch's end; these few digits would end one all the time.
        order = RandomSampler(data, num_samples=size * count)
        return DataLoader(data, size, sampler=order, num_workers=self.workers)

    def step(self, source: Sequence[Tensor], pooled: Sequence[Tensor]) -> dict[str, float]:
        """One round of updates; gives the losses, to be logged."""
        x_source, y, u_source = source
        x, _, u = pooled
        head = self.discriminator
        target = head.target(u[:, None]).float()
        losses = {}

        z = self._encode(x, u).detach()
        for _ in range(self.discriminator_steps):
            loss = head.score(head(z), target).mean()
            self.discriminator_optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.discriminator_optimizer.step()
            losses["discriminator"] = loss.item()

        output = self.predictor(self._encode(x_source, u_source))
        prediction = nn.functional.cross_entropy(output, y)
        adversarial = head.score(head(self._encode(x, u)), target).mean()
        loss = prediction - self.lambda_d * adversarial
        self.encoder_optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.encoder_optimizer.step()
        return {**losses, "prediction": prediction.item(), "adversarial": adversarial.item()}

    def _encode(self, x: Tensor, u: Tensor) -> Tensor:
        z: Tensor = self.encoder(x, self.space.embed(u[:, None]).float())
        return z


# --- rotation ------------------------------------------------------------------------------------


def _rotations(digits: Digits, batch: int) -> dict[str, Callable[[], object]]:
    """Ways to turn one batch, each from bytes to floats."""
    images = digits.images[torch.arange(batch) % len(digits)]
    angles = 360 * torch.rand(batch, dtype=torch.float64)
    one_by_one = list(zip(images[:, 0].numpy(), angles.tolist(), strict=True))
    return {
        BILINEAR_ROTATION: lambda: rotate_degrees(images.float() / 255, angles),
        NEAREST_ROTATION: lambda: rotate_degrees(images.float() / 255, angles, nearest=True),
        PIL_ROTATION: lambda: torch.stack(
            [rotate_with_pil(image, angle) for image, angle in one_by_one]
        ),
    }


# --- bfloat16 ------------------------------------------------------------------------------------


def bfloat16_time(steps: int = 10, batch: int = 256) -> Measurement | None:
    """The encoder, forward and backward, with its convolutions in bfloat16, against float32.

    None says that it crashed: some processors announce bfloat16 and then stop at an illegal
    instruction.
    """
    pairs = run_in_subprocess(_encoder_pairs, steps, batch, torch.get_num_threads())
    if pairs is None:
        return None
    half, full = (median(times) for times in zip(*pairs, strict=True))
    ratio = median(half / full for half, full in pairs)
    return Measurement(
        BFLOAT16_ENCODER, ratio, "x float32", note=f"{half:.2f} ms over {full:.2f} ms"
    )


def _encoder_pairs(steps: int, batch: int, threads: int) -> list[tuple[float, float]]:
    """Milliseconds in bfloat16 and in float32, of each round."""
    torch.set_num_threads(threads)
    recipe = _recipe()
    space = recipe.settings["space"]
    with seeded(0):
        x = torch.rand(batch, 1, recipe.networks.size, recipe.networks.size)
        index = space.embed(360 * torch.rand(batch, 1, dtype=torch.float64)).float()
        full, half = (recipe.networks.encoder(space, 0).train() for _ in range(2))
        half.in_bfloat16 = True

        def pass_through(encoder: nn.Module) -> None:
            encoder.zero_grad()
            encoder(x, index).square().mean().backward()

        passes = [partial(pass_through, encoder) for encoder in (half, full)]
        for once in passes:
            once()
        rounds = [[mean_ms(each, steps) for each in passes] for _ in range(N_ROUNDS)]
    return [(in_half, in_full) for in_half, in_full in rounds]
