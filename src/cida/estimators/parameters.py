"""Checks on an estimator's parameters and modules, and a fit that is whole or not at all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from cida.diagnostics import named_validator
from cida.networks.frame import MOST_FEATURES, can_frame
from cida.space import Space
from cida.words import one_line

__all__ = [
    "all_or_nothing",
    "check_frame",
    "check_least",
    "check_parameters",
    "check_predictor",
    "naming",
]

INSIDE = {"frame": "MovingFrame", "axes": "MovingFrame", "windows": "IndexWindows"}
STOCHASTIC = {"gaussian": "GaussianCode", "dropout": "MonteCarloDropout"}
F = TypeVar("F", bound=Callable[..., Any])

_LEAST = {
    "encoding_width": 1,
    "draws": 1,
    "lambda_d": 0,
    "discriminator_steps": 1,
    "curriculum": 0,
    "stages": 1,
    "balance_bins": 1,
    "steps": 1,
    "batch_size": 1,
    "source_batch_size": 1,
    "averaging": 0,
    "weight_decay": 0,
    "nearness": 0,
    "restarts": 1,
}
CHOSEN = ("curriculum", "hidden", "lambda_d", "steps", "batch_size", "source_batch_size")  # if None
_FRACTIONS = ("lambda_d", "curriculum", "averaging", "weight_decay", "nearness")


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
    for name in _LEAST:
        value = parameters[name]
        if value is None and name in CHOSEN:
            continue
        check_least(name, value)
    for name, most in {"averaging": 0.999999, "curriculum": 1.0, "nearness": 1.0}.items():
        if parameters[name] is not None and parameters[name] > most:
            raise ValueError(f"{name} must be at most {most}, got {parameters[name]!r}.")
    for name in ("hidden", "predictor_hidden"):
        hidden = parameters[name]
        if hidden is None and name in CHOSEN:
            continue
        widths = list(hidden) if isinstance(hidden, Sequence | np.ndarray) else []
        none = isinstance(hidden, Sequence) and not widths and name == "predictor_hidden"
        if not (widths or none) or not all(isinstance(w, Integral) and int(w) >= 1 for w in widths):
            raise ValueError(f"{name} must hold layer widths of at least 1, got {hidden!r}.")
    rate = parameters["learning_rate"]
    if not (isinstance(rate, Real) and float(rate) > 0):
        raise ValueError(f"learning_rate must be a number above 0, got {rate!r}.")
    if parameters["schedule"] not in ("cosine", "constant"):
        raise ValueError(
            f"schedule must be 'cosine' or 'constant', got {parameters['schedule']!r}."
        )
    if parameters["index_in_encoder"] not in (False, True, "auto", *INSIDE):
        raise ValueError(
            f"index_in_encoder must be 'auto', 'frame', 'axes', 'windows', True or False, got "
            f"{parameters['index_in_encoder']!r}."
        )
    if (mode := parameters["index_in_encoder"]) in INSIDE and parameters["encoder"] is not None:
        raise ValueError(
            f"index_in_encoder is {mode!r}, which belongs to the built-in encoder, and encoder is "
            f"your own; put cida.networks.{INSIDE[mode]} into it, or use True or False."
        )
    if (stochastic := parameters["stochastic"]) not in (None, *STOCHASTIC):
        raise ValueError(f"stochastic must be 'gaussian', 'dropout' or None, got {stochastic!r}.")
    if stochastic is not None and parameters["encoder"] is not None:
        raise ValueError(
            f"stochastic is {stochastic!r}, which belongs to the built-in encoder, and encoder is "
            f"your own; put cida.networks.{STOCHASTIC[stochastic]} into it, and leave it out."
        )
    _check_machine(parameters["device"], parameters["precision"])
    named_validator(parameters["validator"])  # a misspelt name is told even where none is asked
    for name in ("encoder", "predictor"):
        if not isinstance(parameters[name], nn.Module | None):
            raise TypeError(f"{name} is {parameters[name]!r}; give a torch.nn.Module, or None.")
    callbacks = parameters["callbacks"]
    if callbacks is not None and not (
        isinstance(callbacks, Sequence) and all(callable(c) for c in callbacks)
    ):
        raise TypeError(f"callbacks is {callbacks!r}; give a list of functions.")
    batch_size = parameters["batch_size"]
    if parameters["batch_norm"] and min(rows, batch_size or rows) < 4:
        raise ValueError(
            f"batch_norm needs batches of at least 4 rows, and batch_size is {batch_size} with "
            f"{rows} rows in X; raise it, or leave batch_norm out."
        )
    if parameters["batch_norm"] and parameters["source_batch_size"] == 1:
        raise ValueError("batch_norm needs more than 1 row, and source_batch_size is 1; raise it.")
    if batch_size is not None and batch_size > rows:
        raise ValueError(
            f"batch_size is {batch_size} but X has only {rows} rows; lower it, or leave it out."
        )


def _check_machine(device: Any, precision: Any) -> None:
    """Refuses a device that is not there, or a precision that is not known."""
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}.")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is 'cuda', and torch finds no graphics card here; use 'cpu'.")
    if precision not in ("float32", "bf16"):
        raise ValueError(f"precision must be 'float32' or 'bf16', got {precision!r}.")


def check_least(name: str, value: Any) -> None:
    """Refuses a number that is too small to mean anything, or none at all."""
    least = _LEAST[name]
    kind, word = (Real, "number") if name in _FRACTIONS else (Integral, "whole number")
    if not (isinstance(value, kind) and float(value) >= least):
        raise ValueError(f"{name} must be a {word} of at least {least}, got {value!r}.")


def check_frame(mode: str, space: Space, features: int) -> None:
    """Refuses a moving frame where the index is no line or a turn would be too large a matrix."""
    if can_frame(space, features):
        return
    if space.embedding_width != 1:
        raise ValueError(
            f"index_in_encoder is {mode!r}, which needs an index of one number on a Line, and the "
            f"space is {space!r}; use True or False."
        )
    raise ValueError(
        f"index_in_encoder is {mode!r} and X has {features} columns; a moving frame takes at most "
        f"{MOST_FEATURES}: choose columns, or use True or False."
    )


@contextmanager
def naming(argument: str, shape: Sequence[int]) -> Iterator[None]:
    """Turns a module's own error on its first rows into a sentence that names the argument."""
    try:
        yield
    except (RuntimeError, TypeError, IndexError) as error:
        raise ValueError(
            f"{argument} cannot take float32 rows of shape {tuple(shape)} ({one_line(error)}); "
            "give a module for such rows."
        ) from error


@torch.no_grad()
def check_predictor(predictor: nn.Module, inputs: int, outputs: int) -> None:
    """Refuses a predictor that does not give one number for each class, or one for a regression."""
    with naming("predictor", (2, inputs)):
        found = tuple(predictor(torch.zeros(2, inputs)).shape)
    if found != (2, outputs):
        raise ValueError(
            f"predictor gives an output of shape {found} for 2 rows; it must give {outputs} "
            "numbers for each row."
        )
