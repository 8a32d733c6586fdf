"""The step that a player's parameters take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

__all__ = ["Descent"]

BETAS, EPSILON = (0.9, 0.999), 1e-8
MEAN, SQUARE, STEPS = "exp_avg", "exp_avg_sq", "step"  # as torch calls them


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
        self.steps = [torch.zeros((), device=p.device) for p in self.parameters]

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
        gradients = self.gradients
        if not gradients:
            return
        kept: list[list[Tensor]] = [[*self.parameters], self.means, self.squares, self.steps]
        if len(gradients) < len(self.parameters):
            moving = [n for n, p in enumerate(self.parameters) if p.grad is not None]
            kept = [[tensors[n] for n in moving] for tensors in kept]
        parameters, means, squares, steps = kept
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            parameters, gradients, means, squares, [], steps,
            lr=rate, beta1=BETAS[0], beta2=BETAS[1], weight_decay=self.weight_decay, eps=EPSILON,
            amsgrad=False, maximize=False,
        )  # fmt: skip

    def state(self) -> dict[str, Tensor]:
        """All that it remembers, by the parameter's number."""
        kept = {MEAN: self.means, SQUARE: self.squares, STEPS: self.steps}
        return {f"{n}.{name}": t for name, tensors in kept.items() for n, t in enumerate(tensors)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
