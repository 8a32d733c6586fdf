"""Labels that a game predicted for target rows and keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from cida.data import Batch, IndexedDataset

__all__ = ["PseudoLabelMemory"]

_STATE_ATTRIBUTES = ("labels", "known", "reached")


class PseudoLabelMemory:
    """The labels of source rows, and of target rows from the stage after the one that added them.

    When a stage of the curriculum begins, the labels of the rows that the previous one added are
    predicted once and kept. No label of a target row is ever read.
    """

    def __init__(self) -> None:
        self.labels = torch.zeros(0)
        self.known = torch.zeros(0, dtype=torch.bool)
        self.reached = torch.zeros(0, dtype=torch.long)

    @torch.no_grad()
    def enter_stage(
        self, dataset: IndexedDataset, active: Tensor, predict: Callable[[Tensor, Tensor], Tensor]
    ) -> None:
        """Keep what ``predict(x, u)`` returns for the rows that were active before."""
        if len(self.known) != len(dataset):
            self.labels, self.known = dataset.y.clone(), dataset.labelled.clone()
        pending = self.reached[~self.known[self.reached]]
        for part in torch.split(pending, 4096) if len(pending) else ():
            batch = dataset[part]
            output = predict(batch.x, batch.u)
            label = output.argmax(1) if batch.has_classes else output
            self.labels[part] = label.to(self.labels.dtype)
            self.known[part] = True
        self.reached = active

    def has_label(self, batch: Batch) -> Tensor:
        """Which rows have a label, the source's or a remembered one."""
        return self.known[batch.row_ids].to(batch.labelled.device)

    def replay_labels(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Which target rows have a remembered label, and those labels."""
        has_pseudo_label = self.has_label(batch) & ~batch.labelled
        return has_pseudo_label, self.labels[batch.row_ids[has_pseudo_label.cpu()]].to(batch.y)

    def state(self) -> dict[str, Tensor]:
        """Everything that is remembered, for `restore`."""
        return {f"memory.{name}": getattr(self, name) for name in _STATE_ATTRIBUTES}

    def restore(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Restore what `state` returned, and return the remaining entries."""
        for name in _STATE_ATTRIBUTES:
            setattr(self, name, state[f"memory.{name}"])
        return {name: t for name, t in state.items() if not name.startswith("memory.")}
