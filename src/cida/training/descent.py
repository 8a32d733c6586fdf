"""The step that a player's parameters take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

__all__ = ["Descent"]

BETAS, EPSILON = (0.9, 0.999), 1e-8


class Descent:
    """``p <- p - rate (m / (sqrt(v) + eps) + decay p)``: AdamW, with torch's own fused kernel.

    The same numbers, bit for bit, as `torch.optim.AdamW(fused=True)`, whose Python takes longer
    than its kernel on networks of this size: it looks for hooks, groups, devices and closures anew
    at every step. A parameter without a gradient is left alone.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], weight_decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.weight_decay = weight_decay
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]
        self.taken = [0] * len(self.parameters)  # steps of each

    def forget(self) -> None:
        """Drops the gradients of the last step."""
        for parameter in self.parameters:
            parameter.grad = None

    @property
    def gradients(self) -> list[Tensor]:
        """Those that there are."""
        return [p.grad for p in self.parameters if p.grad is not None]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        moving = [n for n, p in enumerate(self.parameters) if p.grad is not None]
        for n in moving:
            self.taken[n] += 1
        # Parameters that took as many steps move in one call, with one tensor that says how many.
        for taken in sorted({self.taken[n] for n in moving}):
            self._move([n for n in moving if self.taken[n] == taken], taken, rate)

    def _move(self, numbers: list[int], taken: int, rate: float) -> None:
        kept = self.parameters, self.means, self.squares
        parameters, means, squares = ([tensors[n] for n in numbers] for tensors in kept)
        gradients = [p.grad for p in parameters if p.grad is not None]
        steps = [torch.tensor(float(taken), device=parameters[0].device)] * len(numbers)
        torch._fused_adamw_(
            parameters, gradients, means, squares, [], steps,
            lr=rate, beta1=BETAS[0], beta2=BETAS[1], weight_decay=self.weight_decay, eps=EPSILON,
            amsgrad=False, maximize=False,
        )  # fmt: skip

    def state(self) -> dict[str, Tensor]:
        """All that it remembers."""
        kept = {"mean": self.means, "square": self.squares}
        named = {f"{name}.{n}": t for name, tensors in kept.items() for n, t in enumerate(tensors)}
        return {**named, "taken": torch.tensor(self.taken)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        for n, (mean, square) in enumerate(zip(self.means, self.squares, strict=True)):
            mean.copy_(state[f"mean.{n}"])
            square.copy_(state[f"square.{n}"])
        self.taken = state["taken"].tolist()
