"""A learned scale and shift that follow the index."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["IndexAffine"]


class IndexAffine(nn.Module):
    """``h -> (1 + A e(u)) * h + B e(u)``, for features h and the embedded index e(u).

    What the spatial transformer is for images: the one thing about u that the encoder may undo.
    It is linear in u, so that what is learned near the source goes on beyond it, and it begins as
    the identity.
    """

    def __init__(self, features: int, index_width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(index_width, 2 * features, bias=False)
        nn.init.zeros_(self.linear.weight)

    def forward(self, features: Tensor, index: Tensor) -> Tensor:
        scale, shift = self.linear(index).chunk(2, dim=1)
        return torch.addcmul(features + shift, scale, features)
