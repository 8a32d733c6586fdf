"""What ADDA, CUA and DANN share: an adversary that tells two groups of rows apart."""

from __future__ import annotations

import math

from torch import Tensor, nn

from cida.distributed import mean_over_ranks, sum_over_ranks, world_size
from cida.games.base import GameParts
from cida.games.minimax import MinimaxGame

__all__ = ["BINARY_CEILING", "BinaryDomainClassifier", "BinaryDomainGame", "balanced_mean"]

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


class BinaryDomainGame(MinimaxGame[BinaryDomainClassifier]):
    """A minimax game whose adversary is a `BinaryDomainClassifier`."""

    @classmethod
    def make_adversary(cls, parts: GameParts) -> BinaryDomainClassifier:
        return BinaryDomainClassifier(parts.build_adversary(1))


def balanced_mean(values: Tensor, second: Tensor) -> Tensor:
    """The mean of the two groups' means; a group without rows counts as 0."""
    second_weight = second.to(values.dtype)
    group_weights = (1 - second_weight, second_weight)
    if world_size() == 1:
        first_mean, second_mean = (mean_over_ranks(values, own) for own in group_weights)
    else:
        totals = sum_over_ranks(*(float(own.sum()) for own in group_weights))
        first_mean, second_mean = map(mean_over_ranks, (values, values), group_weights, totals)
    return (first_mean + second_mean) / 2
