"""An encoder that sees each row in the moving frame of its index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from cida.coordinates import MovingFrame
from cida.networks.mlp import PlainEncoder
from cida.networks.serialization import configurable

__all__ = ["FramedEncoder"]


@configurable
class FramedEncoder(nn.Module):
    """``z = E(T(u) (x - m(u)))``: an encoder in the moving frame, which alone sees the index."""

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        dropout: float = 0.0,
        follow: Literal["path", "axes"] = "path",
    ) -> None:
        super().__init__()
        self.frame = MovingFrame(inputs, follow)
        self.body = PlainEncoder(inputs, hidden, outputs, dropout)

    def fit_index(self, x: Tensor, index: Tensor) -> None:
        """Fits the frame to all rows; labels are not seen."""
        self.frame.fit(x, index)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        z: Tensor = self.body(self.frame(x, index))
        return z
