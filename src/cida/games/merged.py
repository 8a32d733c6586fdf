"""What ADDA, CUA and DANN share: a discriminator between two merged groups of rows."""

from __future__ import annotations

import math

from torch import Tensor, nn

from cida.ranks import mean

__all__ = ["CEILING", "SideDiscriminator", "balanced"]

# The loss of the best belief that ignores z, where both sides count the same.
CEILING = math.log(2)


class SideDiscriminator(nn.Module):
    """``D(z)``: the log odds that a row is on the second side; no index, just two groups.

    Scored by the cross entropy with both sides counted the same, whatever their numbers.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, z: Tensor) -> Tensor:
        odds: Tensor = self.network(z)[:, 0]
        return odds

    def loss(self, z: Tensor, second: Tensor) -> Tensor:
        """``V_d``: the cross entropy of the rows, ``second`` where they are on that side."""
        return self.score(self(z), second)

    def score(self, odds: Tensor, second: Tensor) -> Tensor:
        """The loss of log odds that are at hand."""
        missed = nn.functional.binary_cross_entropy_with_logits(
            odds, second.to(odds.dtype), reduction="none"
        )
        return balanced(missed, second)


def balanced(values: Tensor, second: Tensor) -> Tensor:
    """The mean of the two sides' means; a side without rows counts as 0."""
    share = second.to(values.dtype)
    return (mean(values, 1 - share) + mean(values, share)) / 2
