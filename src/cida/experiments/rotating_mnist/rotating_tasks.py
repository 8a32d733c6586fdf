"""Rotating MNIST (section 5.3 of the paper), and its embedded twin of 8 x 8 digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from cida.estimators import CIDAClassifier
from cida.experiments.display_rows import DisplayRows
from cida.experiments.fetch import RemoteDataset
from cida.experiments.folder_files import load_published_scores, load_recipes
from cida.experiments.rotating_mnist.mnist import MNIST_DATASET, fetch_mnist
from cida.experiments.rotating_mnist.rotating_dataset import (
    INTERVAL_DEGREES,
    N_INTERVALS,
    Digits,
    RotatingDataset,
    make_fixed_angle_dataset,
    make_fresh_angle_dataset,
)
from cida.experiments.spec import Preset, TaskSpec
from cida.experiments.task_data import DatasetTaskData, ScoredRows, hash_arrays, predict_rows
from cida.indexing import evenly_spaced
from cida.metrics import accuracy
from cida.networks import Convolution, ImageEncoder, RotationTransformer
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS
from cida.spaces import Periodic, Space
from cida.training import seeded

SCORING_ANGLE_SEED = 1_000_003  # the angles that all clean runs are scored at, whatever their seed
N_REPORT_IMAGES = 12  # images that a report turns


@dataclass(frozen=True)
class RotatingTaskData(DatasetTaskData):
    """Digits to train on, turned as the protocol says, and digits to score on.

    The clean protocol scores other digits than it trains on, at angles that are the same for
    every seed; the paper's scores the very images that it trained on.
    """

    name: str
    training_digits: Digits
    scored_digits: Digits
    seed: int
    uses_fresh_angles: bool

    space = Periodic(360)

    def training_dataset(self, oracle: bool = False) -> RotatingDataset:
        """What is trained on."""
        draw = make_fresh_angle_dataset if self.uses_fresh_angles else make_fixed_angle_dataset
        return draw(self.training_digits, self.seed, oracle)

    def scored_dataset(self) -> RotatingDataset:
        """What is scored: every digit in each of the eight intervals."""
        seed = SCORING_ANGLE_SEED if self.uses_fresh_angles else self.seed
        return make_fixed_angle_dataset(self.scored_digits, seed)

    def evaluate(self, model: CIDAClassifier) -> dict[str, Any]:
        dataset = self.scored_dataset()
        truth = self.scored_digits.labels.numpy()
        intervals = torch.arange(len(dataset)).view(N_INTERVALS, -1)
        with seeded(0):  # a look-up draws, even where the angle is fixed
            accuracies = [accuracy(truth, predict_rows(model, dataset, n)) for n in intervals]
        edges = (INTERVAL_DEGREES * np.arange(N_INTERVALS + 1)).tolist()
        cells = zip(edges[:-1], edges[1:], accuracies, strict=True)
        return {
            "source_score": accuracies[0],
            "target_score": float(np.mean(accuracies[1:])),
            "all_score": float(np.mean(accuracies)),
            "by_index": [{"lo": a, "hi": b, "score": s, "n": len(truth)} for a, b, s in cells],
        }

    def display_rows(self) -> DisplayRows:
        dataset = self.scored_dataset()
        row_numbers = evenly_spaced(len(dataset), MAX_SNAPSHOT_ROWS)
        image_numbers = self._report_image_numbers()
        with seeded(0):
            batch = dataset[row_numbers]
        return DisplayRows(
            x=batch.x.numpy(),
            u=batch.u.numpy(),
            source=(batch.u[:, 0] <= INTERVAL_DEGREES).numpy(),
            truth=self.scored_digits.labels[dataset.x[row_numbers]].numpy(),
            index_names=("angle",),
            space=self.space,
            upright_images=self.scored_digits.images[image_numbers],
            upright_labels=self.scored_digits.labels[image_numbers],
        )

    def scored_target(self) -> ScoredRows:
        """The scored rows beyond the source's interval."""
        dataset = self.scored_dataset()
        target = (dataset.u[:, 0] > INTERVAL_DEGREES).nonzero()[:, 0]
        with seeded(0):
            batch = dataset[target]
        labels = self.scored_digits.labels[dataset.x[target]]
        return ScoredRows(batch.x.numpy(), labels.numpy(), batch.u.numpy())

    def _report_image_numbers(self) -> Tensor:
        """A digit of each kind, and two more."""
        labels = self.scored_digits.labels.numpy()
        first_of_class = np.unique(labels, return_index=True)[1]
        remaining = np.setdiff1d(np.arange(len(labels)), first_of_class)
        return torch.from_numpy(np.concatenate([first_of_class, remaining])[:N_REPORT_IMAGES])

    def fingerprint(self) -> str:
        rows, scored = self.training_dataset(), self.scored_dataset()
        parts = (rows.images, rows.x, rows.y, rows.u, rows.labelled, scored.images, scored.u)
        return hash_arrays(*(part.numpy() for part in parts))


@cache
def _load_mnist() -> tuple[Digits, Digits, Digits]:
    """What the paper trains and scores on, and what the clean protocol trains on and scores."""
    train, test = (
        Digits(torch.from_numpy(images)[:, None], torch.from_numpy(labels))
        for images, labels in (fetch_mnist("train"), fetch_mnist("test"))
    )
    return train, train, test


@cache
def _load_padded_digits() -> tuple[Digits, Digits, Digits]:
    """scikit-learn's digits in a frame of two pixels, so that no turn cuts a corner off."""
    images, labels = load_digits(return_X_y=True)
    grey = torch.from_numpy(images.reshape(-1, 1, 8, 8) * (255 / 16)).round().to(torch.uint8)
    padded = torch.nn.functional.pad(grey, (2, 2, 2, 2))
    digits = Digits(padded, torch.from_numpy(labels).long())
    return digits, *_split_digits(digits, 500)


def _split_digits(digits: Digits, n_held_out: int) -> tuple[Digits, Digits]:
    """The same split for every seed: most digits to train on, the last of a shuffle to score."""
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(7))
    return digits[order[:-n_held_out]], digits[order[-n_held_out:]]


def _draw_digits(
    name: str,
    load: Callable[[], tuple[Digits, Digits, Digits]],
    n_development: int,
    seed: int,
    protocol: str,
) -> RotatingTaskData:
    whole, train, test = load()
    if protocol == "paper":
        return RotatingTaskData(name, whole, whole, seed, uses_fresh_angles=False)
    if protocol == "development":
        train, test = _split_digits(train, n_development)
    return RotatingTaskData(name, train, test, seed, uses_fresh_angles=True)


@dataclass(frozen=True)
class ImageNetworks:
    """An `ImageEncoder`: its transformer, its convolutions and the width of z."""

    size: int
    layers: tuple[Convolution, ...]
    encoding_width: int = 64
    transformer_sees_image: bool = False
    transformer_hidden: tuple[int, ...] = (64, 64)
    dropout: float = 0.0
    fold: int = 1

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""
        pixels = self.size**2 if self.transformer_sees_image else 0
        with seeded(seed):
            transformer = RotationTransformer(
                space.embedding_width,
                pixels,
                self.transformer_hidden,
                self.dropout,
                one_angle=not pixels and not any(space.periods),
            )
            layers = (self.size, self.layers, self.encoding_width)
            return ImageEncoder(*layers, transformer, self.dropout, self.fold)


FAST_LAYERS = (Convolution(16, pool=2), Convolution(64, pool=2), Convolution(64))
ACCURATE_LAYERS = (Convolution(24, pool=2), Convolution(96, pool=2), Convolution(128))
DIGITS_LAYERS = (Convolution(16), Convolution(32, pool=2), Convolution(64, pool=2))

# Four convolutions, three layers to predict and four to discriminate, and a transformer that sees
# image and index, as the supplement says; the widths are not in the paper.
PAPER_LAYERS = (*FAST_LAYERS, Convolution(64))
PAPER_NETWORKS = ImageNetworks(28, PAPER_LAYERS, 64, True, transformer_hidden=(128, 128), fold=2)
NETWORKS = {
    "best": ImageNetworks(28, FAST_LAYERS, fold=2),
    "accurate": ImageNetworks(28, ACCURATE_LAYERS, 96, fold=2),
    "steady": PAPER_NETWORKS,
    "paper": PAPER_NETWORKS,
    "digits": ImageNetworks(12, DIGITS_LAYERS),
}
RECIPES = load_recipes(__package__, NETWORKS)


def _rotating_task(
    name: str,
    load: Callable[[], tuple[Digits, Digits, Digits]],
    n_development: int,
    presets: Mapping[str, Preset],
    download: RemoteDataset | None = None,
) -> TaskSpec:
    return TaskSpec(
        name,
        partial(_draw_digits, name, load, n_development),
        *RECIPES._replace(presets=presets),
        n_histogram_bins=36,
        domain_classes=tuple(INTERVAL_DEGREES * (k + 0.5) for k in range(N_INTERVALS)),
        n_cua_stages=N_INTERVALS - 1,  # each adds 45 degrees, on a line or on the circle
        download=download,
        published_scores=load_published_scores(__package__).get(name, {}),
    )


MNIST_PRESETS = {name: preset for name, preset in RECIPES.presets.items() if name != "digits"}
ROTATING_MNIST = _rotating_task("rotating-mnist", _load_mnist, 10_000, MNIST_PRESETS, MNIST_DATASET)
DIGITS_PRESETS = {"best": RECIPES.presets["digits"]}
ROTATING_DIGITS = _rotating_task("rotating-digits", _load_padded_digits, 300, DIGITS_PRESETS)
