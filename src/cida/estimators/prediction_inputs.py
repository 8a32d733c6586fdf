"""What a user passes to a fitted model: arrays or tables, checked against those of the fit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from cida.estimators import array_checks
from cida.estimators.array_checks import Array
from cida.estimators.fitted_state import FittedState
from cida.estimators.validation import check_rows

if TYPE_CHECKING:  # tables need pyarrow
    from cida.tables import TableSource

__all__ = ["iter_inputs", "iter_table_rows", "read_rows"]

MAX_NAMED_COLUMNS = 8  # in a message


def iter_inputs(
    estimator: Any, state: FittedState, X: Any, domain_index: Any
) -> Iterator[tuple[Array, Tensor]]:
    """Rows as the scaler takes them and their index, in one part or batch by batch."""
    if state.table is None:
        x = read_rows(estimator, state, X)
        yield x, _read_index(state, domain_index, len(x))
        return
    if not _has_columns(X):
        names = ", ".join(state.table.required_columns[:MAX_NAMED_COLUMNS])
        raise ValueError(
            f"X is a {type(X).__name__}, and the model was fitted on a table; give a table with "
            f"the columns {names}."
        )
    yield from _iter_table(state, X, domain_index)


def _has_columns(X: Any) -> bool:
    if isinstance(X, str | os.PathLike | Mapping):
        return True
    return hasattr(X, "columns") or hasattr(X, "column_names")


def _iter_table(state: FittedState, X: Any, domain_index: Any) -> Iterator[tuple[Array, Tensor]]:
    from cida.tables import open_any_table

    assert state.table is not None
    given_index: Tensor | None = None
    if not state.table.index:  # the index was given apart from the table
        n_rows = 0 if domain_index is None else len(array_checks.as_array(domain_index))
        index = _read_index(state, domain_index, n_rows)
        given_index = None if domain_index is None else index
    start = 0
    for x, u, batch in iter_table_rows(state, open_any_table(X)):
        stop = start + len(batch)
        x = _in_layout(state, x)
        if u is not None:
            yield x, torch.from_numpy(u)
        elif given_index is None:
            yield x, _read_index(state, None, len(batch))
        elif stop <= len(given_index):  # else it is too short, which is told at the end
            yield x, given_index[start:stop]
        start = stop
    if given_index is not None:
        array_checks.check_length("domain_index", given_index, start)


def iter_table_rows(
    state: FittedState, table: TableSource
) -> Iterator[tuple[Array, Array | None, Any]]:
    """Inputs as the scaler takes them, index and the batch itself, a batch at a time."""
    assert state.table is not None
    shape = state.layout.shape
    for x, u, batch in state.table.iter_rows(table):
        if shape not in (x.shape[1:], (1, *x.shape[1:])):  # images may lack their one channel
            raise ValueError(_other_shape(x, shape))
        yield x.reshape(len(x), *shape), u, batch


def _other_shape(x: Array, shape: tuple[int, ...]) -> str:
    return (
        f"X has rows of shape {x.shape[1:]} but the model was fitted with {shape}; give rows of "
        "the same shape."
    )


def read_rows(estimator: Any, state: FittedState, X: Any) -> Array:
    """X as an array of rows like those of the fit; refuses any others."""
    return _in_layout(state, check_rows(estimator, X, reset=False))


def _in_layout(state: FittedState, x: Array) -> Array:
    shape = state.layout.shape
    if state.layout.kind in ("image", "signal") and x[0].size == int(np.prod(shape)):
        x = x.reshape(len(x), *shape)
    if x.shape[1:] != shape:
        raise ValueError(_other_shape(x, shape))
    return x


def _read_index(state: FittedState, domain_index: Any, n_rows: int) -> Tensor:
    if state.index_width is None:
        if domain_index is not None:
            raise ValueError(
                "domain_index was given, but the model was fitted without one; leave it out or fit "
                "again with domain_index."
            )
        return torch.zeros(n_rows, 1, dtype=torch.float64)
    if domain_index is None:
        if state.plan.has_index_input:
            raise ValueError(
                "domain_index is missing, and the encoder takes it as an input "
                f"(coordinates={state.plan.coordinates!r}); give the index of each row."
            )
        return torch.zeros(n_rows, state.index_width, dtype=torch.float64)
    u = array_checks.check_domain_index(domain_index, n_rows, state.index_width)
    array_checks.check_index_names(domain_index, state.index_names)
    array_checks.warn_far_index(state.plan.space, u, state.index_values)
    return u
