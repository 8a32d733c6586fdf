"""An encoder for signals: the paper's table for breathing, at any width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cida.networks.affine import IndexAffine

__all__ = ["PAPER_BLOCKS", "Block", "ResidualBlock", "SignalEncoder"]


@dataclass(frozen=True)
class Block:
    """A line of the paper's table: kernel, stride, channels between and after."""

    kernel: int
    stride: int
    middle: int
    channels: int

    def scaled(self, width: float) -> Block:
        """The same with so many times the channels."""
        return Block(self.kernel, self.stride, wide(self.middle, width), wide(self.channels, width))


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


def wide(channels: int, width: float) -> int:
    """So many times the channels, at least four."""
    return max(4, round(channels * width))


class ResidualBlock(nn.Module):
    """``relu(shortcut(x) + f(x))``, f two convolutions with batch norm, the first with stride."""

    def __init__(self, channels_in: int, block: Block) -> None:
        super().__init__()
        self.first = _convolution(channels_in, block.middle, block.kernel, block.stride)
        self.second = _convolution(block.middle, block.channels, block.kernel, 1)
        same = channels_in == block.channels and block.stride == 1
        self.shortcut = (
            nn.Identity() if same else _convolution(channels_in, block.channels, 1, block.stride)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.shortcut(x) + self.second(torch.relu(self.first(x))))


class SignalEncoder(nn.Module):
    """Signals of shape (channels, samples) to z: stem, residual blocks, mean over time, then the
    index's `IndexAffine`.

    Parameters
    ----------
    index_width: width of the embedded index.
    width: how many times the channels of the paper's table; 1 is the paper's.
    blocks: other blocks than the paper's.
    channels: how many signals a row has.
    """

    def __init__(
        self,
        index_width: int,
        width: float = 1.0,
        blocks: Sequence[Block] = PAPER_BLOCKS,
        channels: int = 1,
    ) -> None:
        super().__init__()
        stem = wide(STEM_CHANNELS, width)
        self.stem = _convolution(channels, stem, STEM_KERNEL, STEM_STRIDE)
        layers: list[nn.Module] = []
        before = stem
        for block in (block.scaled(width) for block in blocks):
            layers.append(ResidualBlock(before, block))
            before = block.channels
        self.blocks = nn.Sequential(*layers)
        self.affine = IndexAffine(before, index_width)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        flat = x[:, :, None].contiguous(memory_format=torch.channels_last)
        features = self.blocks(torch.relu(self.stem(flat))).mean((2, 3))
        z: Tensor = self.affine(features, index)
        return z


def _convolution(channels_in: int, channels_out: int, kernel: int, stride: int) -> nn.Module:
    """Along time, of signals as images one pixel high: up to twice as fast as torch's `Conv1d`."""
    convolution = nn.Conv2d(
        channels_in, channels_out, (1, kernel), (1, stride), (0, kernel // 2), bias=False
    )
    convolution.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return nn.Sequential(convolution, nn.BatchNorm2d(channels_out))
