"""An encoder that sees each row in the moving frame of its index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from cida.coordinates import MovingFrameLayer
from cida.networks.mlp import PlainEncoder
from cida.networks.serialization import configurable

__all__ = ["FramedEncoder"]


@configurable
class FramedEncoder(nn.Module):
    """``z = E(T(u) (x - m(u)))``: an encoder in the moving frame; only the frame sees the index.

    Parameters
    ----------
    inputs : int
        Number of columns of x.
    hidden : sequence of int
        Widths of the hidden layers.
    outputs : int
        Number of columns of z.
    dropout : float, default 0.0
        Share of hidden numbers that is dropped.
    follow : {"path", "axes"}, default "path"
        Which rotation the frame undoes; see `MovingFrameLayer`.
    """

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        dropout: float = 0.0,
        follow: Literal["path", "axes"] = "path",
    ) -> None:
        super().__init__()
        self.frame = MovingFrameLayer(inputs, follow)
        self.body = PlainEncoder(inputs, hidden, outputs, dropout)

    def fit_index(self, x: Tensor, index: Tensor) -> None:
        """Fit the frame to all rows; labels are not used."""
        self.frame.fit(x, index)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        z: Tensor = self.body(self.frame(x, index))
        return z
