"""Images as tensors: whole batches turned at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["rotate", "rotate_degrees"]


def rotate(images: Tensor, cos_sin: Tensor, nearest: bool = False) -> Tensor:
    """Turns each image ``(n, channels, height, width)`` about its middle, anticlockwise.

    ``cos_sin`` has a row ``(cos a, sin a)`` for each image, through which gradients pass. Pixels
    are interpolated bilinearly, or taken from the nearest; what comes from outside is 0.
    """
    if not len(images):
        return images
    cos, sin = cos_sin.to(images.dtype).unbind(1)
    none = torch.zeros_like(cos)
    # The grid says where each pixel of the result comes from: turned back. Rows point down, and
    # both sides count as 2, whatever their number of pixels.
    height, width = images.shape[2:]
    across, down = sin * (height / width), sin * (width / height)
    back = torch.stack([cos, -across, none, down, cos, none], dim=1).view(-1, 2, 3)
    grid = nn.functional.affine_grid(back, list(images.shape), align_corners=False)
    mode = "nearest" if nearest else "bilinear"
    return nn.functional.grid_sample(images, grid, mode=mode, align_corners=False)


def rotate_degrees(images: Tensor, angle_degrees: Tensor, nearest: bool = False) -> Tensor:
    """The same for angles in degrees, one a row."""
    angle = torch.deg2rad(angle_degrees.flatten())
    return rotate(images, torch.stack([angle.cos(), angle.sin()], dim=1), nearest)
