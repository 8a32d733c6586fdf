"""``cida speed``: the speed benchmark."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table

from cida.benchmarks.speed import step_over_floor
from cida.discriminators import DISCRIMINATORS

__all__ = ["Speed"]


@dataclass(frozen=True)
class Speed:
    """Measures a full training step against the floor: the same networks on a fixed batch.

    Run it on an idle machine. Example:  cida speed --steps 500
    """

    steps: int = 200
    """Steps in each of the rounds that the medians are taken over."""

    def run(self, console: Console) -> int:
        """Prints one table; the ratios come from interleaved rounds of one run."""
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; it must be at least 1.")
        table = Table(title=f"Training step over its floor, {torch.get_num_threads()} threads")
        for name in ("what", "step ms", "floor ms", "ratio"):
            table.add_column(name, justify="left" if name == "what" else "right")
        for head in DISCRIMINATORS:
            found = step_over_floor(head, self.steps)
            table.add_row(
                found.name, f"{found.step_ms:.2f}", f"{found.floor_ms:.2f}", f"{found.ratio:.2f}"
            )
        console.print(table)
        return 0
