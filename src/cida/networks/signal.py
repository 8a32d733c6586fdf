"""An encoder for signals: the residual network of the paper's table, at any width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cida.networks.affine import IndexAffine
from cida.networks.norm import IndexMoments, IndexNorm, IndexTrend
from cida.networks.serialization import configurable, configurable_part

__all__ = ["PAPER_BLOCKS", "Block", "ResidualBlock", "SignalEncoder"]


@configurable_part
@dataclass(frozen=True)
class Block:
    """A residual block, one row of the paper's table.

    Parameters
    ----------
    kernel : int
        Length of the kernels.
    stride : int
        Stride of the first convolution.
    middle : int
        Channels between the two convolutions.
    channels : int
        Channels after the block.
    """

    kernel: int
    stride: int
    middle: int
    channels: int

    def with_width_factor(self, factor: float) -> Block:
        """Return the same block with ``factor`` times the channels."""
        middle, channels = (scale_channels(n, factor) for n in (self.middle, self.channels))
        return Block(self.kernel, self.stride, middle, channels)


STEM_KERNEL, STEM_STRIDE, STEM_CHANNELS = 13, 2, 64

# The supplement's table "Network structure for the encoder", below its first line (the stem).
PAPER_BLOCKS: tuple[Block, ...] = (
    Block(9, 1, 64, 64),
    Block(9, 2, 64, 128),
    Block(9, 1, 128, 128),
    Block(7, 1, 128, 256),
    Block(9, 5, 256, 256),
    Block(5, 1, 256, 512),
    Block(5, 1, 512, 512),
    Block(5, 1, 384, 384),
    Block(9, 5, 384, 384),
    Block(3, 1, 384, 384),
    Block(5, 1, 384, 384),
)


def scale_channels(channels: int, factor: float) -> int:
    """Return ``factor`` times the channels, at least four."""
    return max(4, round(channels * factor))


class NormedConvolution(nn.Module):
    """A convolution along time without bias, then batch normalisation or `IndexNorm`.

    Signals are images one pixel high here: up to twice as fast as torch's `Conv1d`.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, index: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(
            inputs, outputs, (1, kernel), (1, stride), (0, kernel // 2), bias=False
        )
        self.convolution.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.norm = IndexNorm(outputs, index) if index else nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor, trend: IndexMoments | None) -> Tensor:
        features: Tensor = self.convolution(x)
        normed: Tensor = self.norm(features) if trend is None else self.norm(features, trend)
        return normed


class ResidualBlock(nn.Module):
    """``relu(shortcut(x) + f(x))``, f two normalised convolutions, the first with the stride."""

    def __init__(self, inputs: int, block: Block, index: int = 0) -> None:
        super().__init__()
        self.first = NormedConvolution(inputs, block.middle, block.kernel, block.stride, index)
        self.second = NormedConvolution(block.middle, block.channels, block.kernel, 1, index)
        self.shortcut = None
        if inputs != block.channels or block.stride != 1:
            self.shortcut = NormedConvolution(inputs, block.channels, 1, block.stride, index)

    def forward(self, x: Tensor, trend: IndexMoments | None = None) -> Tensor:
        shortcut = x if self.shortcut is None else self.shortcut(x, trend)
        return torch.relu(shortcut + self.second(torch.relu(self.first(x, trend)), trend))


@configurable
class SignalEncoder(nn.Module):
    """Signals of shape (channels, samples) to z: a residual network, then `IndexAffine`.

    A first convolution, residual blocks, the mean over time, then a scale and shift that depend on
    the index.

    Parameters
    ----------
    index_width : int
        Number of columns of the embedded index.
    width : float, default 1.0
        Multiple of the channels of the paper's table.
    follow : bool, default False
        Whether `IndexNorm` takes the place of batch normalisation, so that every layer depends on
        the index.
    blocks : sequence of Block, default PAPER_BLOCKS
        The residual blocks.
    channels : int, default 1
        Number of signals of a row.
    """

    def __init__(
        self,
        index_width: int,
        width: float = 1.0,
        follow: bool = False,
        blocks: Sequence[Block] = PAPER_BLOCKS,
        channels: int = 1,
    ) -> None:
        super().__init__()
        self.trend = IndexTrend(index_width) if follow else None
        index = index_width if follow else 0
        stem = scale_channels(STEM_CHANNELS, width)
        self.stem = NormedConvolution(channels, stem, STEM_KERNEL, STEM_STRIDE, index)
        self.blocks = nn.ModuleList()
        input_channels = stem
        for block in (block.with_width_factor(width) for block in blocks):
            self.blocks.append(ResidualBlock(input_channels, block, index))
            input_channels = block.channels
        self.affine = IndexAffine(input_channels, index_width)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        trend = None if self.trend is None else self.trend(index)
        flat = x[:, :, None].contiguous(memory_format=torch.channels_last)
        h = torch.relu(self.stem(flat, trend))
        for block in self.blocks:
            h = block(h, trend)
        z: Tensor = self.affine(h.mean((2, 3)), index)
        return z
