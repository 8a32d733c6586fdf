"""What a user passes to a fitted model: arrays or tables, checked against those of the fit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from cida import array_checks
from cida.array_checks import Array
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
    is_named = isinstance(X, str | os.PathLike | Mapping)
    if not (is_named or hasattr(X, "columns") or hasattr(X, "column_names")):
        names = ", ".join(state.table.required_columns[:MAX_NAMED_COLUMNS])
        raise ValueError(
            f"X is a {type(X).__name__}, and the model was fitted on a table; give a table with "
            f"the columns {names}."
        )
    from cida.tables import open_table

    rows = iter_table_rows(state, open_table(X))
    if state.table.index:
        yield from ((x, torch.from_numpy(u)) for x, u, _ in rows)
    elif domain_index is None:
        yield from ((x, _read_index(state, None, len(x))) for x, _, _ in rows)
    else:  # it is given apart from the table, for all rows at once
        x = np.concatenate([x for x, _, _ in rows])
        yield x, _read_index(state, domain_index, len(x))


def iter_table_rows(state: FittedState, table: TableSource) -> Iterator[tuple[Array, Any, Any]]:
    """Inputs as the scaler takes them, index (or None) and the batch itself, a batch at a time."""
    assert state.table is not None
    for x, u, batch in state.table.iter_rows(table):
        yield _in_layout(state, x), u, batch


def read_rows(estimator: Any, state: FittedState, X: Any) -> Array:
    """X as an array of rows like those of the fit; refuses any others."""
    return _in_layout(state, check_rows(estimator, X, reset=False))


def _in_layout(state: FittedState, x: Array) -> Array:
    shape = state.layout.shape
    if shape not in (x.shape[1:], (1, *x.shape[1:])):  # images may lack their one channel
        raise ValueError(
            f"X has rows of shape {x.shape[1:]} but the model was fitted with {shape}; give rows "
            "of the same shape."
        )
    return x.reshape(len(x), *shape)


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
    names, fitted = array_checks.get_index_names(domain_index), state.index_names
    if names is not None and fitted is not None and names != fitted:
        raise ValueError(
            f"domain_index has the columns {', '.join(names)} but the model was fitted with "
            f"{', '.join(fitted)}; give the same index columns in the same order."
        )
    array_checks.warn_far_index(state.plan.space, u, state.index_values)
    return u
