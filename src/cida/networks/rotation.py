"""The spatial transformer of Rotating MNIST: an image is rotated before it is read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cida.images import rotate
from cida.networks.mlp import MLP
from cida.networks.serialization import configurable
from cida.networks.stochastic import convert_dropout

__all__ = ["RotationTransformer"]


@configurable
class RotationTransformer(nn.Module):
    """``x -> R(theta) x`` with ``(cos theta, sin theta) = h / |h|``, ``h = h(u)`` or ``h(x, u)``.

    From the paper's supplement: a spatial transformer that can only rotate, the inductive bias that
    makes the experiment learnable. A direction has no jump, as a circular index has none. On a line
    a single angle is the better bias (``one_angle``: theta = h): a network extrapolates linearly,
    and so does the true angle.

    It starts as the identity: the last layer's weights are zero and its bias is (1, 0), or 0 for
    one angle, while the layers below have gradients at once. The last layer of h(u) also sees u
    itself: with a single input, some seeds leave no ReLU active beyond the source, and nothing
    would rotate there. h(x, u) gets u scaled up to the norm of all pixels together.

    Parameters
    ----------
    index_width : int
        Number of columns of the embedded index.
    pixels : int, default 0
        Number of pixels of an image if h sees it too, as in the paper; 0 for h(u).
    hidden : sequence of int, default (64, 64)
        Widths of h.
    dropout : float, default 0.0
        Share of h's hidden numbers dropped, for a probabilistic encoder.
    one_angle : bool, default False
        Whether h is one number, the angle in radians.
    """

    def __init__(
        self,
        index_width: int,
        pixels: int = 0,
        hidden: Sequence[int] = (64, 64),
        dropout: float = 0.0,
        one_angle: bool = False,
    ) -> None:
        super().__init__()
        self.uses_image = pixels > 0
        # Two numbers among 784 pixels would hardly be heard: layers start as if all were alike.
        self.index_scale = math.sqrt(pixels / index_width) if self.uses_image else 1.0
        self.one_angle = one_angle
        self.body = convert_dropout(
            MLP(index_width + pixels, hidden, batch_norm=self.uses_image, dropout=dropout)
        )
        self.direct_width = 0 if self.uses_image else index_width
        self.head = nn.Linear(self.body.output_width + self.direct_width, 1 if one_angle else 2)
        nn.init.zeros_(self.head.weight)
        with torch.no_grad():
            self.head.bias.copy_(torch.tensor([0.0] if one_angle else [1.0, 0.0]))

    def cos_sin(self, images: Tensor, index: Tensor) -> Tensor:
        """``(cos theta, sin theta)`` for each image."""
        inputs = self.index_scale * index
        if self.uses_image:
            inputs = torch.cat([inputs, images.flatten(1)], dim=1)
        output = self.head(torch.cat([self.body(inputs), index[:, : self.direct_width]], dim=1))
        if self.one_angle:
            return torch.cat([output.cos(), output.sin()], dim=1)
        return nn.functional.normalize(output, dim=1)

    def forward(self, images: Tensor, index: Tensor, fold: int = 1) -> Tensor:
        """Return the rotated images; ``fold`` as in `rotate`."""
        return rotate(images, self.cos_sin(images, index), fold=fold)
