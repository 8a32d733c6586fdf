"""An encoder for tables: numbers, missing values and categories along an index."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cida.coordinates.windows import WindowsLayer
from cida.networks.affine import IndexAffine
from cida.networks.mlp import MLP
from cida.networks.serialization import configurable

__all__ = ["TabularEncoder"]

MAX_EMBEDDING_WIDTH = 16


@configurable
class TabularEncoder(nn.Module):
    """``z = E(A(u) (x - m(u)) / s(u), missing, categories)``: the transformer's counterpart.

    The columns of x are the numbers, then an indicator (1 where missing) for each number in
    ``indicators``, then the codes of the categories. Numbers are scaled in windows along u
    (`WindowsLayer`), then shifted and scaled by learned lines in u that start as the identity
    (`IndexAffine`); a missing number is 0, the mean of its window. Categories have learned
    embeddings. ``z = W h + MLP(h)``: few rows are enough for the linear half.

    Parameters
    ----------
    numbers : int
        Number of numeric columns.
    indicators : sequence of int, default ()
        Which numeric columns have an indicator of missing values.
    sizes : sequence of int, default ()
        Number of values of each category column.
    index_width : int, default 1
        Number of columns of the embedded index.
    hidden : sequence of int, default (64,)
        Widths of the nonlinear half.
    encoding_width : int, default 32
        Number of columns of z.
    dropout : float, default 0.1
        Share of inputs and hidden numbers that is dropped.
    window : bool, default True
        Whether numbers are scaled along u. Without it they stay as they are, and u is not used.
    """

    def __init__(
        self,
        numbers: int,
        indicators: Sequence[int] = (),
        sizes: Sequence[int] = (),
        index_width: int = 1,
        hidden: Sequence[int] = (64,),
        encoding_width: int = 32,
        dropout: float = 0.1,
        window: bool = True,
    ) -> None:
        super().__init__()
        window = window and numbers > 0  # categories have no level and no scale
        self.split_sizes = [numbers, len(indicators), len(sizes)]
        self.indicators = list(indicators)
        self.windows = WindowsLayer(numbers, index_width) if window else None
        self.affine = IndexAffine(numbers, index_width) if window else None
        self.embeddings = nn.ModuleList(
            nn.Embedding(size, min(MAX_EMBEDDING_WIDTH, (size + 1) // 2)) for size in sizes
        )
        width = numbers + len(indicators) + sum(e.embedding_dim for e in self.embedding_tables())
        self.drop = nn.Dropout(dropout)
        self.line = nn.Linear(width, encoding_width)
        self.body = MLP(width, hidden, encoding_width, dropout=dropout)

    def fit_index(self, x: Tensor, index: Tensor) -> None:
        """Fit the windows to all rows; labels are not used."""
        if self.windows is not None:
            numbers, is_missing, _ = self._split(x)
            self.windows.fit(numbers, index, ~is_missing)

    def forward(self, x: Tensor, index: Tensor | None = None) -> Tensor:
        numbers, is_missing, codes = self._split(x)
        if self.windows is not None and self.affine is not None and index is not None:
            numbers = self.affine(self.windows(numbers, index), index)
        numbers = numbers.masked_fill(is_missing, 0.0)
        embedded = [table(code) for table, code in zip(self.embedding_tables(), codes, strict=True)]
        indicators = is_missing[:, self.indicators].to(numbers)
        h = self.drop(torch.cat([numbers, indicators, *embedded], dim=1))
        z: Tensor = self.line(h) + self.body(h)
        return z

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The numbers, which of them are missing, and the codes of each category."""
        numbers, indicators, codes = torch.split(x.flatten(1), self.split_sizes, dim=1)
        is_missing = torch.zeros_like(numbers, dtype=torch.bool)
        is_missing[:, self.indicators] = indicators > 0.5
        return numbers, is_missing, list(codes.long().unbind(1))

    def embedding_tables(self) -> list[nn.Embedding]:
        """The embedding of each category."""
        return [table for table in self.embeddings if isinstance(table, nn.Embedding)]
