"""Checks on an estimator's parameters and modules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import nn

from cida.errors import error_summary
from cida.selection.validators import get_validator

__all__ = ["check_minimum", "check_parameters", "check_static"]

MODULE_BY_COORDINATES = {
    "moving-frame": "MovingFrameLayer",
    "principal-axes": "MovingFrameLayer",
    "windows": "WindowsLayer",
}
MODULE_BY_STOCHASTIC = {"gaussian": "GaussianCode", "dropout": "MonteCarloDropout"}

_COUNTS = (
    "encoding_width",
    "curriculum_stages",
    "n_balance_bins",
    "n_draws",
    "n_members",
    "n_restarts",
)
_OPTIONAL_COUNTS = ("steps", "batch_size", "source_batch_size", "discriminator_steps")
_MAXIMUM_BY_OPTIONAL_NUMBER = {
    "lambda_d": math.inf,
    "curriculum": 1.0,
    "ema_decay": 0.999999,
    "weight_decay": math.inf,
    "proximity": 1.0,
}
_CHOICES = {
    "schedule": ("cosine", "constant"),
    "coordinates": ("auto", "raw", "windows", "moving-frame", "principal-axes", "learned"),
    "capacity": ("auto", "linear", "mlp"),
    "stochastic": ("gaussian", "dropout", None),
    "device": ("cpu", "cuda"),
    "precision": ("float32", "bf16"),
}


def check_parameters(parameters: dict[str, Any], n_rows: int) -> None:
    """Refuses settings that cannot work, by name."""
    check_static(parameters)
    batch_size = parameters["batch_size"]
    if parameters["batch_norm"] and min(n_rows, batch_size or n_rows) < 4:
        raise ValueError(
            f"batch_norm needs batches of at least 4 rows, and batch_size is {batch_size} with "
            f"{n_rows} rows in X; raise it, or leave batch_norm out."
        )
    if batch_size is not None and batch_size > n_rows:
        raise ValueError(
            f"batch_size is {batch_size} but X has only {n_rows} rows; lower it, or leave it out."
        )


def check_static(parameters: dict[str, Any]) -> None:
    """Refuses settings that cannot work whatever the rows are."""
    for name in (*_COUNTS, *_OPTIONAL_COUNTS, *_MAXIMUM_BY_OPTIONAL_NUMBER):
        value = parameters[name]
        if value is None and name not in _COUNTS:  # the policy decides
            continue
        check_minimum(name, value)
        if value > (maximum := _MAXIMUM_BY_OPTIONAL_NUMBER.get(name, math.inf)):
            raise ValueError(f"{name} must be at most {maximum}, got {value!r}.")
    for name in ("encoder_hidden", "predictor_hidden"):
        if (hidden := parameters[name]) is None:
            continue
        widths = list(hidden) if isinstance(hidden, Sequence | np.ndarray) else []
        is_linear = isinstance(hidden, Sequence) and not widths and name == "predictor_hidden"
        is_valid = all(isinstance(width, Integral) and int(width) >= 1 for width in widths)
        if not (widths or is_linear) or not is_valid:
            raise ValueError(f"{name} must hold layer widths of at least 1, got {hidden!r}.")
    rate = parameters["learning_rate"]
    if rate is not None and not (isinstance(rate, Real) and float(rate) > 0):
        raise ValueError(f"learning_rate must be a number above 0, got {rate!r}.")
    for name, choices in _CHOICES.items():
        if parameters[name] not in choices:
            *others, last = map(repr, choices)
            options = f"{', '.join(others)} or {last}"
            raise ValueError(f"{name} must be {options}, got {parameters[name]!r}.")
    _check_modules(parameters)
    if parameters["device"] == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is 'cuda', and torch finds no graphics card here; use 'cpu'.")
    get_validator(parameters["validator"])  # a misspelt name is told even where none is asked
    callbacks = parameters["callbacks"]
    is_list = callbacks is None or isinstance(callbacks, Sequence)
    if not is_list or not all(map(callable, callbacks or ())):
        raise TypeError(f"callbacks is {callbacks!r}; give a list of functions.")
    if parameters["batch_norm"] and parameters["source_batch_size"] == 1:
        raise ValueError("batch_norm needs more than 1 row, and source_batch_size is 1; raise it.")


def _check_modules(parameters: dict[str, Any]) -> None:
    """Refuses what is no module, and settings of the built-in encoder beside one's own."""
    for name in ("encoder", "predictor"):
        if not isinstance(parameters[name], nn.Module | None):
            raise TypeError(f"{name} is {parameters[name]!r}; give a torch.nn.Module, or None.")
    if parameters["encoder"] is None:
        return
    for name, package, modules, advice in (
        ("coordinates", "coordinates", MODULE_BY_COORDINATES, "or use 'raw' or 'learned'"),
        ("stochastic", "networks", MODULE_BY_STOCHASTIC, "and leave it out"),
    ):
        if parameters[name] in modules:
            raise ValueError(
                f"{name} is {parameters[name]!r}, which belongs to the built-in encoder, and "
                f"encoder is your own; put cida.{package}.{modules[parameters[name]]} into it, "
                f"{advice}."
            )


def check_minimum(name: str, value: Any) -> None:
    """Refuses a number that is too small to mean anything, or none at all."""
    is_whole = name not in _MAXIMUM_BY_OPTIONAL_NUMBER
    kind, word = (Integral, "whole number") if is_whole else (Real, "number")
    if not (isinstance(value, kind) and float(value) >= is_whole):
        raise ValueError(f"{name} must be a {word} of at least {int(is_whole)}, got {value!r}.")


@contextmanager
def name_argument_in_errors(argument: str, shape: Sequence[int]) -> Iterator[None]:
    """Turns a module's own error on its first rows into a sentence that names the argument."""
    try:
        yield
    except (RuntimeError, TypeError, IndexError) as error:
        raise ValueError(
            f"{argument} cannot take float32 rows of shape {tuple(shape)} "
            f"({error_summary(error)}); give a module for such rows."
        ) from error


@torch.no_grad()
def check_predictor(predictor: nn.Module, input_width: int, output_width: int) -> None:
    """Refuses a predictor that does not give one number for each class, or one for a regression."""
    with name_argument_in_errors("predictor", (2, input_width)):
        output_shape = tuple(predictor(torch.zeros(2, input_width)).shape)
    if output_shape != (2, output_width):
        raise ValueError(
            f"predictor gives an output of shape {output_shape} for 2 rows; it must give "
            f"{output_width} numbers for each row."
        )
