"""Rotating digits: images whose angle is the index (section 5.3 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cida.batch import Batch, Rows
from cida.images import rotate_degrees

__all__ = ["INTERVALS", "Digits", "RotatingRows", "every_interval", "fresh_angles"]

INTERVAL_DEGREES = 45.0
INTERVALS = 8  # the first is the source
CELL_DEGREES = 5.0  # a target row's angle is drawn afresh within a cell of this width


@dataclass(frozen=True)
class Digits:
    """Upright images, one byte a pixel, ``(n, 1, height, width)``, and their labels."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, which: Tensor) -> Digits:
        return Digits(self.images[which], self.labels[which])


class RotatingRows(Rows):
    """Rows that are turned when they are dealt: row i is ``digits[which[i]]`` at a fresh angle.

    The angle is drawn uniformly between ``low[i]`` and ``high[i]`` degrees at each look-up, from
    torch's random state; where the two are equal it is fixed. ``u`` is a nominal angle between
    them, for all who must know where along u a row lies before it is dealt.
    """

    def __init__(
        self,
        digits: Digits,
        which: Tensor,
        u: Tensor,
        low: Tensor,
        high: Tensor,
        labelled: Tensor,
        nearest: bool = False,
    ) -> None:
        super().__init__(which, digits.labels[which], u, labelled)
        self.images = digits.images
        self.low = low
        self.width = high - low
        self.nearest = nearest

    def __getitem__(self, indices: Tensor) -> Batch:
        nominal = super().__getitem__(indices)
        fresh = torch.rand(len(indices), dtype=torch.float64)
        angle = self.low[indices] + self.width[indices] * fresh
        upright = self.images.index_select(0, nominal.x).float() / 255  # faster than [...]
        return replace(nominal, x=rotate_degrees(upright, angle, self.nearest), u=angle[:, None])


def every_interval(digits: Digits, seed: int, oracle: bool = False) -> RotatingRows:
    """The paper's data: every digit in each of the eight intervals, one fixed draw of angles.

    The first interval is labelled; for an oracle all are.
    """
    which, u, labelled = _in_intervals(torch.arange(len(digits)), range(INTERVALS), seed)
    return RotatingRows(digits, which, u, u, u, torch.ones_like(labelled) if oracle else labelled)


def fresh_angles(digits: Digits, seed: int, oracle: bool = False) -> RotatingRows:
    """The clean data: one half of the digits is the source, the other the target.

    Which half is the seed's choice. A source digit comes at any angle of the source; a target digit
    has a row in each of the seven target intervals, whose angle is drawn within a cell, so that a
    curriculum can tell near rows from far ones.
    """
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(seed))
    half = len(digits) // 2
    which_s, u_s, labelled_s = _in_intervals(order[:half], range(1), seed)
    which_t, u_t, labelled_t = _in_intervals(order[half:], range(1, INTERVALS), seed + 1)
    cell = (u_t / CELL_DEGREES).floor() * CELL_DEGREES
    labelled = torch.cat([labelled_s, labelled_t])
    return RotatingRows(
        digits,
        torch.cat([which_s, which_t]),
        torch.cat([u_s, u_t]),
        torch.cat([torch.zeros_like(u_s), cell]),
        torch.cat([torch.full_like(u_s, INTERVAL_DEGREES), cell + CELL_DEGREES]),
        torch.ones_like(labelled) if oracle else labelled,
    )


def _in_intervals(which: Tensor, intervals: range, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Digits, angles and whether each is source: every digit once in each interval."""
    generator = torch.Generator().manual_seed(seed)
    interval = torch.tensor(intervals).repeat_interleave(len(which))
    place = torch.rand(len(interval), generator=generator, dtype=torch.float64)
    u = (interval + place) * INTERVAL_DEGREES
    return which.repeat(len(intervals)), u, interval == 0
