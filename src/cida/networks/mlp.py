"""Multi-layer perceptrons for all three players."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cida.networks.serialization import configurable

__all__ = ["MLP", "IndexedEncoder", "PlainEncoder"]


@configurable
class MLP(nn.Sequential):
    """``Linear -> ReLU`` for each hidden width, then a last ``Linear`` if ``outputs`` is given.

    Parameters
    ----------
    inputs : int
        Number of input columns.
    hidden : sequence of int
        Widths of the hidden layers.
    outputs : int, optional
        Number of output columns; None for the last hidden layer's.
    batch_norm : bool, default False
        Whether hidden layers are ``Linear -> BatchNorm -> ReLU``, as in the paper.
    dropout : float, default 0.0
        Share of each hidden layer's numbers that is dropped.
    """

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        outputs: int | None = None,
        batch_norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        layers: list[nn.Module] = []
        width = inputs
        for next_width in hidden:
            norm_layers = [nn.BatchNorm1d(next_width)] if batch_norm else []
            dropout_layers = [nn.Dropout(dropout)] if dropout else []
            layers += [nn.Linear(width, next_width), *norm_layers, nn.ReLU(), *dropout_layers]
            width = next_width
        if outputs is not None:
            layers.append(nn.Linear(width, outputs))
            width = outputs
        super().__init__(*layers)
        self.output_width = width


@configurable
class PlainEncoder(nn.Module):
    """``z = E(x)``: the index is not an input; right where x itself carries it (section 3.1).

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
    """

    def __init__(
        self, inputs: int, hidden: Sequence[int], outputs: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.body = MLP(inputs, hidden, outputs, dropout=dropout)

    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.body(x.flatten(1))
        return z


@configurable
class IndexedEncoder(nn.Module):
    """``z = E(x, u) = body(relu(A x + branch(u)))``: u enters by a branch of its own.

    The output of the branch starts at zero, so that the encoder starts as ``E(x)`` and uses the
    index only where that helps; a narrow branch keeps z smooth along u.

    Parameters
    ----------
    inputs : int
        Number of columns of x.
    index_width : int
        Number of columns of the embedded index.
    hidden : sequence of int
        Widths of the hidden layers; at least one.
    outputs : int
        Number of columns of z.
    branch_width : int, default 16
        Width of the branch's hidden layer.
    dropout : float, default 0.0
        Share of hidden numbers that is dropped.
    """

    def __init__(
        self,
        inputs: int,
        index_width: int,
        hidden: Sequence[int],
        outputs: int,
        branch_width: int = 16,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        first, *rest = hidden
        self.from_x = nn.Linear(inputs, first)
        self.from_u = MLP(index_width, [branch_width], first)
        last = self.from_u[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()
        self.body = MLP(first, rest, outputs, dropout=dropout)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        h = torch.relu(self.from_x(x.flatten(1)) + self.from_u(index))
        z: Tensor = self.body(self.drop(h))
        return z
