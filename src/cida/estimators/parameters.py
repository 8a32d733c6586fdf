"""Checks on an estimator's parameters and modules, and a fit that is whole or not at all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

import torch
from torch import nn

__all__ = ["all_or_nothing", "check_parameters", "check_predictor"]

F = TypeVar("F", bound=Callable[..., Any])

_LEAST = {
    "encoding_width": 1,
    "lambda_d": 0,
    "discriminator_steps": 1,
    "curriculum": 0,
    "balance_bins": 1,
    "steps": 1,
    "batch_size": 1,
    "averaging": 0,
}
_FRACTIONS = ("lambda_d", "curriculum", "averaging")


def all_or_nothing(fit: F) -> F:
    """A fit that fails leaves the model as it was."""

    @functools.wraps(fit)
    def whole(self: Any, *arguments: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *arguments, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return whole  # type: ignore[return-value]


def check_parameters(parameters: dict[str, Any], rows: int) -> None:
    """Refuses settings that cannot work, by name."""
    for name, least in _LEAST.items():
        value = parameters[name]
        if value is None and name in ("steps", "batch_size"):
            continue
        kind, word = (Real, "number") if name in _FRACTIONS else (Integral, "whole number")
        if not (isinstance(value, kind) and float(value) >= least):
            raise ValueError(f"{name} must be a {word} of at least {least}, got {value!r}.")
    for name, most in {"averaging": 0.999999, "curriculum": 1.0}.items():
        if parameters[name] > most:
            raise ValueError(f"{name} must be at most {most}, got {parameters[name]!r}.")
    hidden = parameters["hidden"]
    if not len(hidden) or not all(isinstance(w, Integral) and int(w) >= 1 for w in hidden):
        raise ValueError(f"hidden must hold layer widths of at least 1, got {hidden!r}.")
    rate = parameters["learning_rate"]
    if not (isinstance(rate, Real) and float(rate) > 0):
        raise ValueError(f"learning_rate must be a number above 0, got {rate!r}.")
    if parameters["schedule"] not in ("cosine", "constant"):
        raise ValueError(
            f"schedule must be 'cosine' or 'constant', got {parameters['schedule']!r}."
        )
    batch_size = parameters["batch_size"]
    if batch_size is not None and batch_size > rows:
        raise ValueError(
            f"batch_size is {batch_size} but X has only {rows} rows; lower it, or leave it out."
        )


@torch.no_grad()
def check_predictor(predictor: nn.Module, inputs: int, outputs: int) -> None:
    """Refuses a predictor that does not give one number for each class, or one for a regression."""
    found = tuple(predictor(torch.zeros(2, inputs)).shape)
    if found != (2, outputs):
        raise ValueError(
            f"predictor gives an output of shape {found} for 2 rows; it must give {outputs} "
            "numbers for each row."
        )
