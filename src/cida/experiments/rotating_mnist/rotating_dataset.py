"""Rotating digits: images whose angle is the index (section 5.3 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cida.data import Batch, IndexedDataset
from cida.images import rotate_degrees

INTERVAL_DEGREES = 45.0
N_INTERVALS = 8  # the first is the source
CELL_DEGREES = 5.0  # a target row's angle is drawn afresh within a cell of this width


@dataclass(frozen=True)
class Digits:
    """Upright images, one byte a pixel, ``(n, 1, height, width)``, and their labels."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, indices: Tensor) -> Digits:
        return Digits(self.images[indices], self.labels[indices])


class RotatingDataset(IndexedDataset):
    """Rows that are turned when they are dealt: row i is ``digits[which[i]]`` at a fresh angle.

    The angle is drawn uniformly between ``low[i]`` and ``high[i]`` degrees at each look-up, from
    torch's random state; where the two are equal it is fixed. ``u`` is a nominal angle between
    them, for all who must know where along u a row lies before it is dealt.
    """

    def __init__(
        self,
        digits: Digits,
        image_index: Tensor,
        u: Tensor,
        min_angle: Tensor,
        max_angle: Tensor,
        labelled: Tensor,
        nearest_pixel: bool = False,
    ) -> None:
        super().__init__(image_index, digits.labels[image_index], u, labelled)
        self.images = digits.images
        self.min_angle = min_angle
        self.angle_width = max_angle - min_angle
        self.nearest_pixel = nearest_pixel

    def __getitem__(self, indices: Tensor) -> Batch:
        batch = super().__getitem__(indices)
        fraction = torch.rand(len(indices), dtype=torch.float64)
        angle = self.min_angle[indices] + self.angle_width[indices] * fraction
        upright_images = self.images.index_select(0, batch.x).float() / 255  # faster than [...]
        x = rotate_degrees(upright_images, angle, self.nearest_pixel)
        return replace(batch, x=x, u=angle[:, None])


def make_fixed_angle_dataset(digits: Digits, seed: int, oracle: bool = False) -> RotatingDataset:
    """The paper's data: every digit in each of the eight intervals, one fixed draw of angles.

    The first interval is labelled; for an oracle all are.
    """
    which, u, labelled = _draw_interval_angles(torch.arange(len(digits)), range(N_INTERVALS), seed)
    return RotatingDataset(digits, which, u, u, u, labelled | oracle)


def make_fresh_angle_dataset(digits: Digits, seed: int, oracle: bool = False) -> RotatingDataset:
    """The clean data: one half of the digits is the source, the other the target.

    Which half is the seed's choice. A source digit comes at any angle of the source; a target digit
    has a row in each of the seven target intervals, whose angle is drawn within a cell, so that a
    curriculum can tell near rows from far ones.
    """
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(seed))
    half = len(digits) // 2
    source = _draw_interval_angles(order[:half], range(1), seed)
    target = _draw_interval_angles(order[half:], range(1, N_INTERVALS), seed + 1)
    which, u, is_source = (torch.cat(pair) for pair in zip(source, target, strict=True))
    cell = (u / CELL_DEGREES).floor() * CELL_DEGREES
    low = torch.where(is_source, 0.0, cell)
    high = torch.where(is_source, INTERVAL_DEGREES, cell + CELL_DEGREES)
    return RotatingDataset(digits, which, u, low, high, is_source | oracle)


def _draw_interval_angles(image_index: Tensor, intervals: range, seed: int) -> tuple[Tensor, ...]:
    """Digits, angles and whether each is source: every digit once in each interval."""
    generator = torch.Generator().manual_seed(seed)
    interval = torch.tensor(intervals).repeat_interleave(len(image_index))
    fraction = torch.rand(len(interval), generator=generator, dtype=torch.float64)
    u = (interval + fraction) * INTERVAL_DEGREES
    return image_index.repeat(len(intervals)), u, interval == 0
