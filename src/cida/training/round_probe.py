"""The health of a game: metrics of one round, measured where an event is due."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn

from cida.data import Batch
from cida.games import Game, Move
from cida.games.base import eval_mode

__all__ = ["RoundProbe", "index_share_read", "loss_above_ceiling", "majority_share"]

MIN_ROUNDS_BETWEEN_PROBES = 15  # a probe costs about a tenth of a round
MIN_FAR_ROWS = 8  # fewer do not show which class is the most frequent
FAR_ROWS_SHARE = 0.25  # share of a round's target rows that count as far

# Limits of the healthy range; docs/doctor.md says how they were chosen.
MAX_LOSS_ABOVE_CEILING = 0.05  # in the units of the discriminator's loss
MAX_INDEX_SHARE_READ = 0.2  # share of u that is read in z at the end of training
MIN_RELATIVE_ENCODING_STD = 0.01  # share of the largest standard deviation of z so far
MIN_ADVERSARIAL_GRADIENT_SHARE = 0.1  # share of the gradient in z
MAX_MAJORITY_SHARE_FAR = 0.95  # share of far target rows with one predicted class
MAX_MAJORITY_SHARE_SOURCE = 0.8  # the same of the source rows


class RoundProbe:
    """Observes one round: the encodings, and the gradient that reaches them.

    Use it as a context around the moves of the round, then read `metrics`. It draws no random
    number and changes no gradient and no buffer; z keeps the gradient of the encoder's move.
    """

    def __init__(self, game: Game, source: Batch, pooled: Batch) -> None:
        self.game, self.source, self.pooled = game, source, pooled
        self.z: Tensor | None = None
        self.encoded_rows = ""
        self.first_losses: dict[str, float] = {}
        self.last_losses: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.hook = self.game.encoder.register_forward_hook(self._on_encode)
        return self

    def __exit__(self, *error: object) -> None:
        self.hook.remove()

    def _on_encode(self, encoder: nn.Module, inputs: tuple[Any, ...], z: Any) -> None:
        if self.z is not None or not isinstance(z, Tensor) or not z.requires_grad:
            return
        z.retain_grad()
        self.z = z
        if inputs and inputs[0] is self.source.x:
            self.encoded_rows = "source"
        elif len(z) == len(self.source) + len(self.pooled):
            self.encoded_rows = "both"

    def add(self, move: Move) -> None:
        """Record a move of the round."""
        if move.player != "encoder":
            for name, loss in move.losses.items():
                self.first_losses.setdefault(name, float(loss.detach()))
        metrics = {k: v for k, v in move.metrics.items() if k in self.first_losses}
        self.last_losses |= {k: float(v.detach()) for k, v in metrics.items()}

    def metrics(self) -> dict[str, float]:
        """Return what can be measured in this round; it depends on the game.

        ``encoding_std``: ``sqrt(mean_j V[z_j])``, 0 where all rows have the same encoding.
        ``adversarial_gradient_share``: ``g_a / (g_a + g_p)``, where g_p is the mean length of the
        prediction's gradient in z over source rows, and g_a that of the adversary's over the
        others: 0 if no adversarial gradient reaches z, 1 if no other does.
        ``discriminator_gain``: how far the adversary's moves lowered its loss on the rows of the
        round. ``majority_share_source`` and ``majority_share_far``: the share of the most frequent
        predicted class among source rows, and among the far target rows.
        """
        if self.z is None:
            return {}
        metrics = {"encoding_std": float(self.z.detach().var(0, correction=0).mean().sqrt())}
        gains = [self.first_losses[name] - last for name, last in self.last_losses.items()]
        if gains:
            metrics["discriminator_gain"] = sum(gains)
        if self.encoded_rows == "both":
            metrics |= self._adversarial_gradient_share() | self._majority_shares()
        return {name: value for name, value in metrics.items() if math.isfinite(value)}

    def _adversarial_gradient_share(self) -> dict[str, float]:
        assert self.z is not None
        if self.z.grad is None:
            return {}
        length = self.z.grad.norm(dim=1)
        prediction, total = float(length[: len(self.source)].sum()), float(length.sum())
        return {"adversarial_gradient_share": 1 - prediction / total} if total > 0 else {}

    def _majority_shares(self) -> dict[str, float]:
        assert self.z is not None
        target = (~self.pooled.labelled).nonzero()[:, 0]
        n_far = int(FAR_ROWS_SHARE * len(target))
        if not self.source.has_classes or n_far < MIN_FAR_ROWS:
            return {}
        with torch.no_grad(), eval_mode(self.game.predictor):  # changes no statistics
            predicted_classes = self.game.predictor(self.z.detach()).argmax(1)
        distance = self.game.space.distance(self.pooled.u[target], self.source.u).amin(1)
        farthest = target[distance.topk(n_far).indices]
        return {
            "majority_share_source": majority_share(predicted_classes[: len(self.source)]),
            "majority_share_far": majority_share(predicted_classes[len(self.source) :][farthest]),
        }


def majority_share(predicted_classes: Tensor) -> float:
    """The share of the most frequent of these classes."""
    return float(predicted_classes.bincount().max()) / len(predicted_classes)


def loss_above_ceiling(losses: Mapping[str, float], ceilings: Mapping[str, float]) -> float | None:
    """``V - c*``: how far the adversary's loss is above its ceiling; None if it has none."""
    return next((losses[name] - c for name, c in ceilings.items() if name in losses), None)


def index_share_read(losses: Mapping[str, float], ceilings: Mapping[str, float]) -> float | None:
    """``1 - exp(-2 (c* - V))``: the share of u that the adversary reads in z, 0 at its ceiling.

    With a log loss ``c* - V`` is at most the mutual information of z and u, and this is the
    squared correlation that a Gaussian pair of that information has. The squared error of an index
    scaled to variance 1 gives similar values. In a game with a measure of dependence instead of an
    adversary, it is that measure.
    """
    above_ceiling = loss_above_ceiling(losses, ceilings)
    if above_ceiling is not None:
        return abs(math.expm1(2 * min(above_ceiling, 0.0)))
    dependence = losses.get("dependence")
    return None if dependence is None else min(1.0, max(0.0, dependence))
