"""The spatial transformer of Rotating MNIST: an image is turned before it is read."""

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

    The paper's supplement: a spatial transformer that may only rotate, the bias that makes the
    experiment learnable. A direction has no seam, as a circular index has none. On a line one angle
    is the better bias (``one_angle``: theta = h): a network goes on straight where it has not
    been yet, and so does the true angle.

    It starts as the identity: the last layer's weights are zero and its bias is (1, 0), or 0 for
    one angle, but the layers below are alive, so gradients arrive at once. The last layer of h(u)
    also sees u itself: with one number coming in, some seeds leave no ReLU awake beyond the source,
    and there nothing would ever turn. h(x, u) gets u scaled up, as loud as all pixels together.

    Arguments
    ---------
    index_width: how many numbers the embedding of u has.
    pixels: how many pixels an image has if h sees it too, as in the paper; 0 for h(u).
    hidden: widths of h.
    dropout: share of h's hidden numbers dropped, for a probabilistic encoder.
    one_angle: whether h is one number, the angle in radians.
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
        """The images turned; ``fold`` as in `rotate`."""
        return rotate(images, self.cos_sin(images, index), fold=fold)
