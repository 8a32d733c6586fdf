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

from cida.benchmarks.recipes import Recipe, recipes
from cida.benchmarks.rotating import ROTATING_MNIST
from cida.benchmarks.speed import (
    ROUNDS,
    Effort,
    Figure,
    in_a_child,
    in_turns,
    mean_ms,
    step_ms,
)
from cida.datasets.rotating import INTERVAL_DEGREES, Digits, RotatingRows, fresh_angles
from cida.games import Adversarial
from cida.images import rotate_degrees
from cida.networks import ImageEncoder
from cida.training import Training, isolated

__all__ = [
    "PlainLoop",
    "bfloat16_time",
    "digits_to_time",
    "image_figures",
    "image_game",
    "image_times",
]

OURS, PLAIN = "cida's loop against a plain PyTorch loop", "plain loop"
PLAIN_LIMIT = 3.0
STEPS_ONE_IN = 10  # a step on images takes about so many times as long as one on Circle
BILINEAR, NEAREST, PIL = "rotation, bilinear", "rotation, nearest", "rotation, PIL one by one"
BFLOAT16 = "encoder in bfloat16"
HALF = "the same with --precision bf16"


def image_figures(effort: Effort) -> Iterator[Figure]:
    """Both loops, the rotations, and the encoder in bfloat16."""
    steps = effort.share(STEPS_ONE_IN)
    half = bfloat16_time(steps)
    yield from image_times(steps, workers=effort.workers, half=half is not None)
    if half is not None:
        yield half


def image_times(
    steps: int = 10,
    images: int = 4000,
    batch_size: int | None = None,
    workers: int = 2,
    rounds: int = ROUNDS,
    half: bool = False,
) -> list[Figure]:
    """Both loops and the rotations, on the networks and the batch of Rotating MNIST.

    An image is a row that is dealt. ``workers`` are the processes of each of the plain loop's two
    data loaders; where it has none, it turns its images itself. With ``half`` our loop is also
    measured in bfloat16.
    """
    with isolated(0):
        digits = digits_to_time(images)
        rows = fresh_angles(digits, 0)
        game, training = image_game(rows, steps, batch_size)
        plain = PlainLoop(game, digits, training, workers)
        batch = training.source_batch_size + training.batch_size
        measures: dict[str, Callable[[], float]] = {
            OURS: lambda: step_ms(game, rows, training),
            PLAIN: lambda: plain.step_ms(steps),
        }
        if half:
            in_half = replace(training, precision="bf16")
            measures[HALF] = lambda: step_ms(game, rows, in_half)
        for name, turn in _rotations(digits, batch).items():
            measures[name] = partial(mean_ms, turn, steps)
        found = in_turns(measures, rounds)

    def speed(name: str) -> str:
        return f"{1000 * batch / found.ms(name):,.0f} images/s, {found.ms(name):.2f} ms a batch"

    both = f"{speed(OURS)}; plain {speed(PLAIN)}"
    pil = found.ratio(PIL, BILINEAR)
    return [
        Figure(OURS, found.ratio(PLAIN, OURS), "x plain", PLAIN_LIMIT, least=True, beside=both),
        *(
            Figure(
                name,
                found.ratio(PLAIN, name),
                "x plain",
                PLAIN_LIMIT,
                least=True,
                beside=speed(name),
            )
            for name in ((HALF,) if half else ())
        ),
        *(
            Figure(name, 100 * found.ratio(name, OURS), "% of a step", beside=speed(name))
            for name in (BILINEAR, NEAREST)
        ),
        Figure(PIL, pil, "x bilinear", beside=speed(PIL)),
    ]


# --- the data ------------------------------------------------------------------------------------


def digits_to_time(count: int) -> Digits:
    """So many digits like MNIST's, with no download: scikit-learn's, enlarged, over and over."""
    grey, labels = load_digits(return_X_y=True)
    which = np.arange(count) % len(grey)
    small = torch.from_numpy(grey[which].reshape(-1, 1, 8, 8) * (255 / 16)).float()
    large = nn.functional.interpolate(small, size=20, mode="bilinear")
    framed = nn.functional.pad(large, (4, 4, 4, 4)).round().to(torch.uint8)
    return Digits(framed, torch.from_numpy(labels[which]).long())


# --- our loop ------------------------------------------------------------------------------------


def _recipe() -> Recipe:
    return recipes(ROTATING_MNIST, "best")["histogram"]


def image_game(
    rows: RotatingRows, steps: int, batch_size: int | None
) -> tuple[Adversarial, Training]:
    """The game, and a training of twice the steps: `step_ms` times the second half."""
    source = None if batch_size is None else batch_size // 2
    recipe = _recipe().with_settings(steps=1, batch_size=batch_size, source_batch_size=source)
    game = recipe.model(0).fit_rows(rows).game_
    assert isinstance(game, Adversarial)
    chosen = recipe.settings
    return game, Training(
        steps=2 * steps,
        batch_size=chosen["batch_size"],
        source_batch_size=chosen["source_batch_size"],
        learning_rate=chosen["learning_rate"],
        averaging=chosen["averaging"],
        balance_bins=chosen["balance_bins"],
        curriculum=0.0,  # its stages would all fall into these few steps; the plain loop has none
        events=2,
    )


# --- a plain loop --------------------------------------------------------------------------------


class TurnedDigits(Dataset[tuple[Tensor, int, float]]):
    """Digits one by one, each turned to a random angle by PIL, as data sets are mostly written."""

    def __init__(self, digits: Digits, low: float, high: float) -> None:
        self.images = digits.images[:, 0].numpy()
        self.labels: list[int] = digits.labels.tolist()
        self.low, self.high = low, high

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[Tensor, int, float]:
        angle = random.uniform(self.low, self.high)
        return turned_by_pil(self.images[i], angle), self.labels[i], angle


def turned_by_pil(image: np.ndarray[Any, Any], angle: float) -> Tensor:
    """One image, bytes in and floats out, turned anticlockwise by so many degrees."""
    turned = Image.fromarray(image).rotate(angle, resample=Image.Resampling.BILINEAR)
    return torch.from_numpy(np.asarray(turned, dtype=np.float32) / 255)[None]


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

    def __init__(self, game: Adversarial, digits: Digits, training: Training, workers: int) -> None:
        assert isinstance(game.encoder, ImageEncoder)
        self.encoder = PlainImageEncoder(game.encoder).train()
        self.predictor = copy.deepcopy(game.predictor).train()
        self.discriminator = copy.deepcopy(game.discriminator).train()
        self.space = game.space
        self.lambda_d, self.discriminator_steps = game.lambda_d, game.discriminator_steps
        self.sizes = training.source_batch_size, training.batch_size
        self.workers = workers
        half = digits[torch.arange(len(digits) // 2)]
        self.source = TurnedDigits(half, 0, INTERVAL_DEGREES)
        self.everyone = TurnedDigits(digits, 0, 360)
        rate = training.learning_rate
        players = [*self.encoder.parameters(), *self.predictor.parameters()]
        self.encode_optimiser = torch.optim.Adam(players, rate)
        self.discriminate_optimiser = torch.optim.Adam(self.discriminator.parameters(), rate)

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
        kinds = zip((self.source, self.everyone), self.sizes, strict=True)
        return zip(*(self._loader(data, size, count) for data, size in kinds), strict=True)

    def _loader(self, data: TurnedDigits, size: int, count: int) -> DataLoader[Any]:
        # Shuffles anew at each epoch's end; these few digits would end one all the time.
        order = RandomSampler(data, num_samples=size * count)
        return DataLoader(data, size, sampler=order, num_workers=self.workers)

    def step(self, source: Sequence[Tensor], everyone: Sequence[Tensor]) -> dict[str, float]:
        """One round of updates; gives the losses, to be logged."""
        x_source, y, u_source = source
        x, _, u = everyone
        head = self.discriminator
        target = head.target(u[:, None]).float()
        losses = {}

        z = self._encode(x, u).detach()
        for _ in range(self.discriminator_steps):
            loss = head.score(head(z), target).mean()
            self.discriminate_optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.discriminate_optimiser.step()
            losses["discriminator"] = loss.item()

        output = self.predictor(self._encode(x_source, u_source))
        prediction = nn.functional.cross_entropy(output, y)
        adversarial = head.score(head(self._encode(x, u)), target).mean()
        loss = prediction - self.lambda_d * adversarial
        self.encode_optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.encode_optimiser.step()
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
        BILINEAR: lambda: rotate_degrees(images.float() / 255, angles),
        NEAREST: lambda: rotate_degrees(images.float() / 255, angles, nearest=True),
        PIL: lambda: torch.stack([turned_by_pil(image, angle) for image, angle in one_by_one]),
    }


# --- bfloat16 ------------------------------------------------------------------------------------


def bfloat16_time(steps: int = 10, batch: int = 256) -> Figure | None:
    """The encoder, forward and backward, with its convolutions in bfloat16, against float32.

    None says that it crashed: some processors announce bfloat16 and then stop at an illegal
    instruction.
    """
    pairs = in_a_child(_encoder_pairs, steps, batch, torch.get_num_threads())
    if pairs is None:
        return None
    half, full = (median(times) for times in zip(*pairs, strict=True))
    ratio = median(half / full for half, full in pairs)
    return Figure(BFLOAT16, ratio, "x float32", beside=f"{half:.2f} ms over {full:.2f} ms")


def _encoder_pairs(steps: int, batch: int, threads: int) -> list[tuple[float, float]]:
    """Milliseconds in bfloat16 and in float32, of each round."""
    torch.set_num_threads(threads)
    recipe = _recipe()
    space = recipe.settings["space"]
    with isolated(0):
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
        rounds = [[mean_ms(each, steps) for each in passes] for _ in range(ROUNDS)]
    return [(in_half, in_full) for in_half, in_full in rounds]
