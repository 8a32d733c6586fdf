"""A learned scale and shift that depend on the index."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["IndexAffine"]


class IndexAffine(nn.Module):
    """``h -> (1 + A e(u)) * h + B e(u)``, for features h and the embedded index e(u).

    The counterpart of the spatial transformer for features: the one effect of u that the encoder
    may undo. It is linear in u, so that what is learned near the source continues beyond it, and it
    starts as the identity.

    Parameters
    ----------
    features : int
        Number of columns of h.
    index_width : int
        Number of columns of the embedded index.
    """

    def __init__(self, features: int, index_width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(index_width, 2 * features, bias=False)
        nn.init.zeros_(self.linear.weight)

    def forward(self, features: Tensor, index: Tensor) -> Tensor:
        scale, shift = self.linear(index).chunk(2, dim=1)
        return torch.addcmul(features + shift, scale, features)
