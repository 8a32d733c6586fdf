"""What ADDA, CUA and DANN share: a discriminator between two groups of rows."""

from __future__ import annotations

import math

from torch import Tensor, nn

from cida.distributed import mean_over_ranks

__all__ = ["BINARY_CEILING", "BinaryDomainClassifier", "balanced_mean"]

# The loss of the best constant prediction, where both groups have the same weight.
BINARY_CEILING = math.log(2)


class BinaryDomainClassifier(nn.Module):
    """``D(z)``: the log odds that a row belongs to the second group; the index is not used.

    Scored by the cross entropy, with the same weight for both groups whatever their sizes.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.network(z)[:, 0]
        return logits

    def loss(self, z: Tensor, second: Tensor) -> Tensor:
        """``V_d``: the cross entropy of the rows; ``second`` marks those of the second group."""
        return self.score(self(z), second)

    def score(self, logits: Tensor, second: Tensor) -> Tensor:
        """The loss of log odds that were computed before."""
        row_losses = nn.functional.binary_cross_entropy_with_logits(
            logits, second.to(logits.dtype), reduction="none"
        )
        return balanced_mean(row_losses, second)


def balanced_mean(values: Tensor, second: Tensor) -> Tensor:
    """The mean of the two groups' means; a group without rows counts as 0."""
    second_weight = second.to(values.dtype)
    return (mean_over_ranks(values, 1 - second_weight) + mean_over_ranks(values, second_weight)) / 2
