"""The step that a player's parameters take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

__all__ = ["FusedAdamW"]

ADAM_BETAS, ADAM_EPSILON = (0.9, 0.999), 1e-8
HAS_FUSED_KERNEL = hasattr(torch, "_fused_adamw_")


class FusedAdamW:
    """``p <- p - rate (m / (sqrt(v) + eps) + decay p)``: AdamW, with torch's own fused kernel.

    The same numbers, bit for bit, as `torch.optim.AdamW(fused=True)`, whose Python takes longer
    than its kernel on networks of this size: it looks for hooks, groups, devices and closures anew
    at every step. A parameter without a gradient is left alone.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], weight_decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.weight_decay = weight_decay
        self.exp_avgs = [torch.zeros_like(p) for p in self.parameters]
        self.exp_avg_sqs = [torch.zeros_like(p) for p in self.parameters]
        self.step_counts = [0] * len(self.parameters)  # steps of each

    def zero_grad(self) -> None:
        """Drops the gradients of the last step."""
        for parameter in self.parameters:
            parameter.grad = None

    @property
    def gradients(self) -> list[Tensor]:
        """Those that there are."""
        return [p.grad for p in self.parameters if p.grad is not None]

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        with_gradient = [n for n, p in enumerate(self.parameters) if p.grad is not None]
        for n in with_gradient:
            self.step_counts[n] += 1
        # Parameters that took as many steps move in one call, with one tensor that says how many.
        for step_count in sorted({self.step_counts[n] for n in with_gradient}):
            self._update_group(
                [n for n in with_gradient if self.step_counts[n] == step_count],
                step_count,
                learning_rate,
            )

    def _update_group(self, indices: list[int], step_count: int, learning_rate: float) -> None:
        all_tensors = self.parameters, self.exp_avgs, self.exp_avg_sqs
        parameters, means, squares = ([tensors[n] for n in indices] for tensors in all_tensors)
        gradients = [p.grad for p in parameters if p.grad is not None]
        update = _update_fused if HAS_FUSED_KERNEL else _update_public
        update(parameters, gradients, means, squares, step_count, learning_rate, self.weight_decay)

    def state(self) -> dict[str, Tensor]:
        """All that it remembers."""
        moments = {"mean": self.exp_avgs, "square": self.exp_avg_sqs}
        named = {
            f"{name}.{n}": t for name, tensors in moments.items() for n, t in enumerate(tensors)
        }
        return {**named, "taken": torch.tensor(self.step_counts)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        for n, (mean, square) in enumerate(zip(self.exp_avgs, self.exp_avg_sqs, strict=True)):
            mean.copy_(state[f"mean.{n}"])
            square.copy_(state[f"square.{n}"])
        self.step_counts = state["taken"].tolist()


def _update_fused(
    parameters: Sequence[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    step_count: int,
    learning_rate: float,
    weight_decay: float,
) -> None:
    """Call torch's fused kernel itself, which has no public name."""
    steps = [torch.tensor(float(step_count), device=parameters[0].device)] * len(parameters)
    torch._fused_adamw_(
        list(parameters),
        gradients,
        means,
        squares,
        [],
        steps,
        lr=learning_rate,
        beta1=ADAM_BETAS[0],
        beta2=ADAM_BETAS[1],
        weight_decay=weight_decay,
        eps=ADAM_EPSILON,
        amsgrad=False,
        maximize=False,
    )


def _update_public(
    parameters: Sequence[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    step_count: int,
    learning_rate: float,
    weight_decay: float,
) -> None:
    """The same step by torch's public function, which counts the steps itself."""
    device = parameters[0].device
    adamw(
        list(parameters),
        gradients,
        means,
        squares,
        [],
        [torch.tensor(step_count - 1.0, device=device) for _ in parameters],
        fused=True,
        amsgrad=False,
        beta1=ADAM_BETAS[0],
        beta2=ADAM_BETAS[1],
        lr=learning_rate,
        weight_decay=weight_decay,
        eps=ADAM_EPSILON,
        maximize=False,
    )
