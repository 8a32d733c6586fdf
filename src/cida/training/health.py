"""How the game stands: figures of one round, taken where an event is due."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn

from cida.batch import Batch
from cida.games import Game, Move
from cida.games.base import resting

__all__ = ["ROUNDS_APART", "Look", "excess", "known", "same_share"]

ROUNDS_APART = 15  # between two looks at least: a look costs about a tenth of a round
FEWEST_FAR = 8  # target rows, below which a most frequent class says nothing
FAR_SHARE = 0.25  # of the target rows of a round are its far ones

# Where figures leave their healthy range; set as docs/doctor.md tells.
ABOVE = 0.05  # the ceiling is a loss, in its own units
KNOWN = 0.2  # of u is still read in z when training ends
COLLAPSED = 0.01  # of its length is what z spreads by
WEAK_PULL = 0.1  # of the gradient in z is the adversary's
ONE_CLASS = 0.95  # of the far target rows are predicted as one class
SEVERAL_CLASSES = 0.8  # of the source rows at most


class Look:
    """Watches one round from outside: what the encoder gave, and the gradient that came back to z.

    Use it around the moves of the round, then ask for the ``figures``. Nothing is drawn, no
    gradient and no buffer is changed: z keeps the gradient that the encoder's move sends it.
    """

    def __init__(self, game: Game, source: Batch, everyone: Batch) -> None:
        self.game = game
        self.source = source
        self.everyone = everyone
        self.z: Tensor | None = None
        self.rows = ""
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.hook = self.game.encoder.register_forward_hook(self._keep)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.hook.remove()

    def _keep(self, encoder: nn.Module, given: tuple[Any, ...], z: Any) -> None:
        if self.z is not None or not isinstance(z, Tensor) or not z.requires_grad:
            return
        z.retain_grad()
        self.z = z
        if given and given[0] is self.source.x:
            self.rows = "source"
        elif len(z) == len(self.source) + len(self.everyone):
            self.rows = "both"

    def add(self, move: Move) -> None:
        """A move of the round that was made."""
        if move.player != "encoder":
            for name, loss in move.losses.items():
                self.first.setdefault(name, float(loss.detach()))
        self.last |= {k: float(v.detach()) for k, v in move.figures.items() if k in self.first}

    def figures(self) -> dict[str, float]:
        """What can be said of this round; which figures there are depends on the game.

        ``spread``: ``sqrt(mean_j V[z_j])``, 0 where all rows have the same encoding. ``pull``:
        ``g_a / (g_a + g_p)``, where g_p is the mean length of the prediction's gradient in z over
        source rows, and g_a that of the adversary's over the others: 0 where the encoder does not
        feel it, 1 where it feels nothing else. ``gained``: how far the adversary's moves lowered
        its loss on the rows of the round. ``same_source`` and ``same_far``: the share of the most
        frequent predicted class among source rows, and among the far target rows.
        """
        if self.z is None:
            return {}
        found = {"spread": float(self.z.detach().var(0, correction=0).mean().sqrt())}
        if self.last:
            found["gained"] = sum(self.first[name] - last for name, last in self.last.items())
        if self.rows == "both":
            found |= self._pull() | self._same()
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def _pull(self) -> dict[str, float]:
        assert self.z is not None
        if self.z.grad is None:
            return {}
        length = self.z.grad.norm(dim=1)
        prediction, all_of_it = float(length[: len(self.source)].sum()), float(length.sum())
        return {"pull": 1 - prediction / all_of_it} if all_of_it > 0 else {}

    def _same(self) -> dict[str, float]:
        assert self.z is not None
        target = (~self.everyone.labelled).nonzero()[:, 0]
        far = int(FAR_SHARE * len(target))
        if not self.source.has_classes or far < FEWEST_FAR:
            return {}
        with torch.no_grad(), resting(self.game.predictor):  # no statistics move, nothing is drawn
            said = self.game.predictor(self.z.detach()).argmax(1)
        distance = self.game.space.distance(self.everyone.u[target], self.source.u).amin(1)
        farthest = target[distance.topk(far).indices]
        return {
            "same_source": same_share(said[: len(self.source)]),
            "same_far": same_share(said[len(self.source) :][farthest]),
        }


def same_share(said: Tensor) -> float:
    """The share of the most frequent of these classes."""
    return float(said.bincount().max()) / len(said)


def excess(losses: Mapping[str, float], ceilings: Mapping[str, float]) -> float | None:
    """``V - c*``: how far the adversary's loss is above its ceiling; None where there is none."""
    for name, ceiling in ceilings.items():
        if name in losses:
            return losses[name] - ceiling
    return None


def known(losses: Mapping[str, float], ceilings: Mapping[str, float]) -> float | None:
    """``1 - exp(-2 (c* - V))``: the share of u that the adversary reads in z, 0 at its ceiling.

    With a log loss ``c* - V`` is at most the mutual information of z and u, and this is the
    squared correlation that a Gaussian pair of that information has. The squared error of an index
    scaled to variance 1 reads much the same. A game with a measure of dependence in the adversary's
    place is read off it.
    """
    above = excess(losses, ceilings)
    if above is not None:
        return abs(math.expm1(2 * min(above, 0.0)))
    dependence = losses.get("dependence")
    return None if dependence is None else min(1.0, max(0.0, dependence))
