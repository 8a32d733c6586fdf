"""AdamW for the parameters of one player."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

__all__ = ["FusedAdamW"]

ADAM: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
UNUSED_OPTIONS = {"amsgrad": False, "maximize": False}
HAS_FUSED_KERNEL = hasattr(torch, "_fused_adamw_")  # it has no public name


class FusedAdamW:
    """``p <- p - rate (m / (sqrt(v) + eps) + decay p)``: AdamW, with torch's own fused kernel.

    The same numbers, bit for bit, as `torch.optim.AdamW(fused=True)`, whose Python code
    takes longer than its kernel on small networks: it checks hooks, groups, devices and closures at
    every step. A parameter without a gradient does not change.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], weight_decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.weight_decay = weight_decay
        self.exp_avgs = [torch.zeros_like(p) for p in self.parameters]
        self.exp_avg_sqs = [torch.zeros_like(p) for p in self.parameters]
        self.step_counts = [0] * len(self.parameters)

    def zero_grad(self) -> None:
        """Remove the gradients of the last step."""
        for parameter in self.parameters:
            parameter.grad = None

    @property
    def gradients(self) -> list[Tensor]:
        """The gradients of the parameters that have one."""
        return [p.grad for p in self.parameters if p.grad is not None]

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        with_gradient = [n for n, p in enumerate(self.parameters) if p.grad is not None]
        for n in with_gradient:
            self.step_counts[n] += 1
        # Parameters with the same number of steps are updated in one call.
        for step_count in sorted({self.step_counts[n] for n in with_gradient}):
            group = [n for n in with_gradient if self.step_counts[n] == step_count]
            self._update_group(group, step_count, learning_rate)

    def _update_group(self, indices: list[int], step_count: int, learning_rate: float) -> None:
        all_tensors = self.parameters, self.exp_avgs, self.exp_avg_sqs
        parameters, means, squares = ([tensors[n] for n in indices] for tensors in all_tensors)
        gradients = [p.grad for p in parameters if p.grad is not None]
        options = {"lr": learning_rate, "weight_decay": self.weight_decay, **ADAM, **UNUSED_OPTIONS}
        device = parameters[0].device
        if HAS_FUSED_KERNEL:
            steps = [torch.tensor(float(step_count), device=device)] * len(indices)
            torch._fused_adamw_(parameters, gradients, means, squares, [], steps, **options)
        else:  # the public function counts the steps itself
            steps = [torch.tensor(step_count - 1.0, device=device) for _ in indices]
            adamw(parameters, gradients, means, squares, [], steps, fused=True, **options)

    def state(self) -> dict[str, Tensor]:
        """Return the moments and step counts, for a checkpoint."""
        means = {f"mean.{n}": tensor for n, tensor in enumerate(self.exp_avgs)}
        squares = {f"square.{n}": tensor for n, tensor in enumerate(self.exp_avg_sqs)}
        return {**means, **squares, "taken": torch.tensor(self.step_counts)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""
        for n, (mean, square) in enumerate(zip(self.exp_avgs, self.exp_avg_sqs, strict=True)):
            mean.copy_(state[f"mean.{n}"])
            square.copy_(state[f"square.{n}"])
        self.step_counts = state["taken"].tolist()
