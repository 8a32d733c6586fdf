"""Checks on an estimator's parameters and modules, and a fit that is whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import nn

from cida.errors import error_summary
from cida.selection.validators import get_validator

__all__ = [
    "check_minimum",
    "check_parameters",
    "check_predictor",
    "check_static",
    "name_argument_in_errors",
]

MODULE_BY_COORDINATES = {
    "moving-frame": "MovingFrame",
    "principal-axes": "MovingFrame",
    "windows": "IndexWindows",
}
MODULE_BY_STOCHASTIC = {"gaussian": "GaussianCode", "dropout": "MonteCarloDropout"}

_MINIMUM_BY_PARAMETER = {
    "encoding_width": 1,
    "n_draws": 1,
    "lambda_d": 0,
    "discriminator_steps": 1,
    "curriculum": 0,
    "curriculum_stages": 1,
    "n_balance_bins": 1,
    "steps": 1,
    "batch_size": 1,
    "source_batch_size": 1,
    "ema_decay": 0,
    "weight_decay": 0,
    "proximity": 0,
    "n_restarts": 1,
    "n_members": 1,
}
OPTIONAL_PARAMETERS = (  # decided by the policy where None
    "curriculum",
    "encoder_hidden",
    "lambda_d",
    "steps",
    "batch_size",
    "source_batch_size",
    "predictor_hidden",
    "discriminator_steps",
    "weight_decay",
    "ema_decay",
    "proximity",
)
_REAL_PARAMETERS = ("lambda_d", "curriculum", "ema_decay", "weight_decay", "proximity")


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
    for name in _MINIMUM_BY_PARAMETER:
        value = parameters[name]
        if value is None and name in OPTIONAL_PARAMETERS:
            continue
        check_minimum(name, value)
    for name, maximum in {"ema_decay": 0.999999, "curriculum": 1.0, "proximity": 1.0}.items():
        if parameters[name] is not None and parameters[name] > maximum:
            raise ValueError(f"{name} must be at most {maximum}, got {parameters[name]!r}.")
    for name in ("encoder_hidden", "predictor_hidden"):
        hidden = parameters[name]
        if hidden is None and name in OPTIONAL_PARAMETERS:
            continue
        widths = list(hidden) if isinstance(hidden, Sequence | np.ndarray) else []
        is_linear = isinstance(hidden, Sequence) and not widths and name == "predictor_hidden"
        if not (widths or is_linear) or not all(
            isinstance(w, Integral) and int(w) >= 1 for w in widths
        ):
            raise ValueError(f"{name} must hold layer widths of at least 1, got {hidden!r}.")
    rate = parameters["learning_rate"]
    if rate is not None and not (isinstance(rate, Real) and float(rate) > 0):
        raise ValueError(f"learning_rate must be a number above 0, got {rate!r}.")
    if parameters["schedule"] not in ("cosine", "constant"):
        raise ValueError(
            f"schedule must be 'cosine' or 'constant', got {parameters['schedule']!r}."
        )
    if parameters["coordinates"] not in ("auto", "raw", "learned", *MODULE_BY_COORDINATES):
        raise ValueError(
            "coordinates must be 'auto', 'raw', 'windows', 'moving-frame', 'principal-axes' or "
            "'learned', got "
            f"{parameters['coordinates']!r}."
        )
    if parameters["capacity"] not in ("auto", "linear", "mlp"):
        raise ValueError(
            f"capacity must be 'auto', 'linear' or 'mlp', got {parameters['capacity']!r}."
        )
    if (mode := parameters["coordinates"]) in MODULE_BY_COORDINATES and parameters[
        "encoder"
    ] is not None:
        raise ValueError(
            f"coordinates is {mode!r}, which belongs to the built-in encoder, and encoder is "
            f"your own; put cida.coordinates.{MODULE_BY_COORDINATES[mode]} into it, or use 'raw' "
            "or 'learned'."
        )
    if (stochastic := parameters["stochastic"]) not in (None, *MODULE_BY_STOCHASTIC):
        raise ValueError(f"stochastic must be 'gaussian', 'dropout' or None, got {stochastic!r}.")
    if stochastic is not None and parameters["encoder"] is not None:
        raise ValueError(
            f"stochastic is {stochastic!r}, which belongs to the built-in encoder, and encoder is "
            f"your own; put cida.networks.{MODULE_BY_STOCHASTIC[stochastic]} into it, and leave "
            "it out."
        )
    _check_machine(parameters["device"], parameters["precision"])
    get_validator(parameters["validator"])  # a misspelt name is told even where none is asked
    for name in ("encoder", "predictor"):
        if not isinstance(parameters[name], nn.Module | None):
            raise TypeError(f"{name} is {parameters[name]!r}; give a torch.nn.Module, or None.")
    callbacks = parameters["callbacks"]
    if callbacks is not None and not (
        isinstance(callbacks, Sequence) and all(callable(c) for c in callbacks)
    ):
        raise TypeError(f"callbacks is {callbacks!r}; give a list of functions.")
    if parameters["batch_norm"] and parameters["source_batch_size"] == 1:
        raise ValueError("batch_norm needs more than 1 row, and source_batch_size is 1; raise it.")


def _check_machine(device: Any, precision: Any) -> None:
    """Refuses a device that is not there, or a precision that is not known."""
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}.")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is 'cuda', and torch finds no graphics card here; use 'cpu'.")
    if precision not in ("float32", "bf16"):
        raise ValueError(f"precision must be 'float32' or 'bf16', got {precision!r}.")


def check_minimum(name: str, value: Any) -> None:
    """Refuses a number that is too small to mean anything, or none at all."""
    minimum = _MINIMUM_BY_PARAMETER[name]
    kind, word = (Real, "number") if name in _REAL_PARAMETERS else (Integral, "whole number")
    if not (isinstance(value, kind) and float(value) >= minimum):
        raise ValueError(f"{name} must be a {word} of at least {minimum}, got {value!r}.")


@contextmanager
def name_argument_in_errors(argument: str, shape: Sequence[int]) -> Iterator[None]:
    """Turns a module's own error on its first rows into a sentence that names the argument."""
    try:
        yield
    except (RuntimeError, TypeError, IndexError) as error:
        raise ValueError(
            f"{argument} cannot take float32 rows of shape {tuple(shape)} "
            f"({error_summary(error)}); "
            "give a module for such rows."
        ) from error


@torch.no_grad()
def check_predictor(predictor: nn.Module, input_width: int, output_width: int) -> None:
    """Refuses a predictor that does not give one number for each class, or one for a regression."""
    with name_argument_in_errors("predictor", (2, input_width)):
        output_shape = tuple(predictor(torch.zeros(2, input_width)).shape)
    if output_shape != (2, output_width):
        raise ValueError(
            f"predictor gives an output of shape {output_shape} for 2 rows; it must give "
            f"{output_width} "
            "numbers for each row."
        )
