"""The encoders of the experiments on images and signals, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from cida.networks import (
    Convolution,
    ImageEncoder,
    RotationTransformer,
    SignalEncoder,
)
from cida.spaces import Space
from cida.training import seeded

__all__ = ["ImageNetworks", "SignalNetworks"]


@dataclass(frozen=True)
class ImageNetworks:
    """An `ImageEncoder`: its transformer, its convolutions and the width of z."""

    size: int
    layers: tuple[Convolution, ...]
    encoding_width: int = 64
    transformer_sees_image: bool = False
    transformer_hidden: tuple[int, ...] = (64, 64)
    dropout: float = 0.0
    fold: int = 1

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""
        pixels = self.size**2 if self.transformer_sees_image else 0
        with seeded(seed):
            transformer = RotationTransformer(
                space.embedding_width,
                pixels,
                self.transformer_hidden,
                self.dropout,
                one_angle=not pixels and not any(space.periods),
            )
            return ImageEncoder(
                self.size,
                self.layers,
                self.encoding_width,
                transformer,
                self.dropout,
                self.fold,
            )


@dataclass(frozen=True)
class SignalNetworks:
    """A `SignalEncoder` with the blocks of the paper, so many times as wide."""

    width: float = 1.0
    norm_follows_index: bool = False

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""
        with seeded(seed):
            return SignalEncoder(space.embedding_width, self.width, self.norm_follows_index)
