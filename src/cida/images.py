"""Images as tensors: whole batches turned at once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["rotate", "rotate_degrees"]


def rotate(images: Tensor, cos_sin: Tensor, nearest: bool = False, fold: int = 1) -> Tensor:
    """Turns each image ``(n, channels, height, width)`` about its middle, anticlockwise.

    ``cos_sin`` has a row ``(cos a, sin a)`` for each image, through which gradients pass. Pixels
    are interpolated bilinearly, or taken from the nearest; what comes from outside is 0. With
    ``fold`` the result is what `torch.nn.PixelUnshuffle` makes of it: squares of so many pixels a
    side become channels. The squares are sampled in that order, so that nothing is copied.
    """
    n, channels, height, width = images.shape
    if not n:
        return images.new_empty(0, channels * fold**2, height // fold, width // fold)
    grid_basis = torch.from_numpy(_sampling_grid(height, width, fold)).to(images.dtype)
    grid = (cos_sin.to(images.dtype) @ grid_basis).view(n, -1, fold**2, 2)
    mode = "nearest" if nearest else "bilinear"
    rotated = nn.functional.grid_sample(images, grid, mode=mode, align_corners=False)
    blocks = rotated.view(n, channels, height // fold, width // fold, fold**2)
    return blocks.permute(0, 1, 4, 2, 3).flatten(1, 2)


@cache
def _sampling_grid(height: int, width: int, fold: int) -> np.ndarray[Any, Any]:
    """Where the pixels of the result come from: turned back, as a linear map of (cos a, sin a).

    Pixel after pixel, its place across and its place down. Rows point down, and both sides count
    as 2, whatever their number of pixels. An array, since a tensor that is made while torch traces
    the code is no number, and must not be kept.
    """
    across = (2 * np.arange(width, dtype=np.float64) + 1) / width - 1
    down = (2 * np.arange(height, dtype=np.float64) + 1) / height - 1
    pixel_grid = np.stack(np.broadcast_arrays(across, down[:, None]))
    blocks = pixel_grid.reshape(2, height // fold, fold, width // fold, fold)
    across, down = blocks.transpose(0, 1, 3, 2, 4)
    cos_part = np.stack([across, down], axis=-1)
    sin_part = np.stack([-down * (height / width), across * (width / height)], axis=-1)
    return np.stack([cos_part.ravel(), sin_part.ravel()])


def rotate_degrees(images: Tensor, angle_degrees: Tensor, nearest: bool = False) -> Tensor:
    """The same for angles in degrees, one a row."""
    angle = torch.deg2rad(angle_degrees.flatten())
    return rotate(images, torch.stack([angle.cos(), angle.sin()], dim=1), nearest)
