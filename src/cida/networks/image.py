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
    """One layer: ``convolution -> max-pooling -> batch normalisation -> ReLU``.

    Parameters
    ----------
    channels : int
        Channels after the layer.
    kernel : int, default 3
        Side of the kernel.
    stride : int, default 1
        Stride of the convolution.
    pool : int, default 1
        Side of the max-pooling window; 1 for none.
    """

    channels: int
    kernel: int = 3
    stride: int = 1
    pool: int = 1

    def make_modules(self, input_channels: int, dropout: float) -> list[nn.Module]:
        """Return the layer's modules for a number of input channels."""
        sizes = (self.channels, self.kernel, self.stride, self.kernel // 2)
        return [
            nn.Conv2d(input_channels, *sizes, bias=False),
            *([nn.MaxPool2d(self.pool)] if self.pool > 1 else []),
            nn.BatchNorm2d(self.channels),
            nn.ReLU(),
            *([MonteCarloDropout(dropout, channels=True)] if dropout else []),
        ]

    def output_size(self, size: int) -> int:
        """Return the side of the output for an image of this side."""
        padded = size + 2 * (self.kernel // 2)
        return ((padded - self.kernel) // self.stride + 1) // self.pool


@configurable
class ImageEncoder(nn.Module):
    """``z = C(R(theta) x)``: an image rotated by a transformer, then read by convolutions C.

    A last linear layer gives z. Memory is laid out channels last, the fastest layout for
    convolutions on a CPU.

    Parameters
    ----------
    size : int
        Height and width of the images, which have one channel.
    layers : sequence of Convolution
        The convolutions.
    outputs : int
        Number of columns of z.
    transformer : RotationTransformer
        What rotates the image.
    dropout : float, default 0.0
        Share of channels dropped after each convolution, for a probabilistic encoder.
    fold : int, default 1
        Squares of this many pixels a side become channels before the first convolution.
    in_bfloat16 : bool, default False
        Whether the convolutions, and only they, compute in bfloat16.
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
