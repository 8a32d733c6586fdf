"""Encoders for images: a spatial transformer, then convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from cida.networks.rotation import RotationTransformer
from cida.networks.serialization import configurable, configurable_part
from cida.networks.stochastic import MonteCarloDropout

__all__ = ["Convolution", "ImageEncoder"]


@configurable_part
class Convolution(NamedTuple):
    """One layer: ``convolution -> max-pooling -> batch normalisation -> ReLU``."""

    channels: int
    kernel: int = 3
    stride: int = 1
    pool: int = 1

    def make_modules(self, input_channels: int, dropout: float) -> list[nn.Module]:
        """Its modules, for so many channels that come in."""
        convolution = nn.Conv2d(
            input_channels, self.channels, self.kernel, self.stride, self.kernel // 2, bias=False
        )
        return [
            convolution,
            *([nn.MaxPool2d(self.pool)] if self.pool > 1 else []),
            nn.BatchNorm2d(self.channels),
            nn.ReLU(),
            *([MonteCarloDropout(dropout, channels=True)] if dropout else []),
        ]

    def output_size(self, size: int) -> int:
        """The side of the image that it gives for one of this side."""
        padded = size + 2 * (self.kernel // 2)
        return ((padded - self.kernel) // self.stride + 1) // self.pool


@configurable
class ImageEncoder(nn.Module):
    """``z = C(R(theta) x)``: an image turned by a transformer, then read by convolutions C.

    A last linear layer gives z. Memory is laid out channels last, which the convolutions are
    fastest with on a CPU; with ``in_bfloat16`` they, and they alone, compute in bfloat16.

    Arguments
    ---------
    size: height and width of the images, which have one channel.
    layers: the convolutions.
    outputs: the width of z.
    transformer: what turns the image.
    dropout: share of channels dropped after each convolution, for a probabilistic encoder.
    fold: squares of so many pixels a side become channels before the first convolution.
    """

    def __init__(
        self,
        size: int,
        layers: Sequence[Convolution],
        outputs: int,
        transformer: RotationTransformer,
        dropout: float = 0.0,
        fold: int = 1,
        in_bfloat16: bool = False,
    ) -> None:
        super().__init__()
        self.transformer = transformer
        self.in_bfloat16 = in_bfloat16
        if size % fold:
            raise ValueError(f"fold is {fold}, which does not divide the size {size}.")
        self.fold = fold
        modules: list[nn.Module] = []
        channels, size = fold * fold, size // fold
        for layer in layers:
            modules += layer.make_modules(channels, dropout)
            channels, size = layer.channels, layer.output_size(size)
        if size < 1:
            raise ValueError(f"layers leave no pixel of the image: {list(layers)}; pool less.")
        self.convolutions = nn.Sequential(*modules)
        self.convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.last = nn.Linear(channels * size * size, outputs)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        rotated = self.transformer(x, index, self.fold)
        rotated = rotated.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.in_bfloat16):
            features = self.convolutions(rotated)
        z: Tensor = self.last(features.float().flatten(1))
        return z
