"""Everything that changes during training, so that it can be saved and restored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cida.games import Game
from cida.training.checkpointing import Checkpoint
from cida.training.events import EventLog
from cida.training.optimizer import FusedAdamW

__all__ = ["TrainingState", "WeightAverage"]


def _lerp_in_turn(targets: list[Tensor], sources: list[Tensor], weight: float) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.lerp_(source, weight)


# Private functions of torch update all tensors in one call; without them, one after another.
_lerp_each = getattr(torch, "_foreach_lerp_", _lerp_in_turn)


class WeightAverage:
    """Exponential moving average of weights: the centre of oscillations, not the last point.

    The decay is ``min(decay, (1 + t) / (10 + t))`` after t updates, so that short runs are not tied
    to their start.
    """

    def __init__(self, modules: Iterable[nn.Module], decay: float) -> None:
        self.decay = decay
        self.modules = list(modules)
        self.refresh_weights()
        self.mean = [t.clone() for t in self.weights]
        self.n_updates = 0

    def refresh_weights(self) -> None:
        """Find the weights again after a network has moved to another device."""
        tensors = [t for m in self.modules for t in (*m.parameters(), *m.buffers())]
        self.weights = [t.detach() for t in tensors if t.is_floating_point()]

    def update(self) -> None:
        if self.decay > 0:
            self.n_updates += 1
            decay = min(self.decay, (1 + self.n_updates) / (10 + self.n_updates))
            _lerp_each(self.mean, self.weights, 1 - decay)

    def apply(self) -> None:
        if self.decay > 0:
            for weight, mean in zip(self.weights, self.mean, strict=True):
                weight.copy_(mean)


@dataclass(frozen=True)
class TrainingState:
    """Players, optimizers, average, random state and events."""

    game: Game
    optimizers: Mapping[str, FusedAdamW]
    weight_average: WeightAverage
    generator: torch.Generator
    event_log: EventLog

    def checkpoint(self, step: int) -> Checkpoint:
        """Return the state after ``step`` rounds."""
        tensors = {f"game.{name}": tensor for name, tensor in self.game.state().items()}
        tensors |= {f"average.{n}": tensor for n, tensor in enumerate(self.weight_average.mean)}
        tensors |= {"draws": self.generator.get_state(), "random": torch.get_rng_state()}
        for player, descent in self.optimizers.items():
            tensors |= {f"descent.{player}.{name}": t for name, t in descent.state().items()}
        n_updates, log = self.weight_average.n_updates, self.event_log.to_dict()
        return Checkpoint(step, tensors, {"updates": n_updates, "log": log})

    def final_checkpoint(self, step: int) -> Checkpoint:
        """Return what remains at the end of training: the players and the events."""
        tensors = {f"game.{name}": tensor for name, tensor in self.game.state().items()}
        return Checkpoint(step, tensors, {"finished": True, "log": self.event_log.to_dict()})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore the state of a checkpoint."""
        self.game.restore(_strip_prefix("game.", checkpoint.tensors))
        self.event_log.restore(checkpoint.metadata["log"])
        if checkpoint.metadata.get("finished"):
            return
        means = _strip_prefix("average.", checkpoint.tensors)
        for n, mean in enumerate(self.weight_average.mean):
            mean.copy_(means[str(n)])
        self.weight_average.n_updates = checkpoint.metadata["updates"]
        for player, descent in self.optimizers.items():
            descent.restore(_strip_prefix(f"descent.{player}.", checkpoint.tensors))
        self.generator.set_state(checkpoint.tensors["draws"])
        torch.set_rng_state(checkpoint.tensors["random"])


def _strip_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
