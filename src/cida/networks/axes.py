"""How the principal axes of the rows turn along the index."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import expm

__all__ = ["axes_turns"]

Array = np.ndarray[Any, Any]

NEIGHBOURS = 3  # bins on either side that share their rows, the nearer the more
MEMORY = 0.8  # of the shape that axes are compared with, from bin to bin
ROUNDS = 5
SURE = 15.0  # how many times the noise of a covariance two axes must differ to be told apart


def axes_turns(residuals: Array, owner: Array) -> Array:
    """``T_b`` such that ``T_b C_b T_b'`` stands still: C_b is the covariance in bin b along u.

    In the eigenbasis of the shape so far, with eigenvalues l, an entry C_ij between two axes asks
    for a turn of ``C_ij (l_i - l_j) / ((l_i - l_j)^2 + 15^2 l_i l_j / n)`` in their plane: the
    second term is 15 times the noise of C_ij, squared, so that axes of nearly equal length, which
    have no direction to speak of, hardly turn. Each step takes the least turn that does it.
    """
    counts, covariances = _covariances(residuals, owner)
    turn = np.eye(residuals.shape[1])
    shape = covariances[0]
    turns = [turn]
    for count, covariance in zip(counts[1:], covariances[1:], strict=True):
        lengths, axes = np.linalg.eigh(shape)
        for _ in range(ROUNDS):
            turn = _step(lengths, axes, turn @ covariance @ turn.T, count) @ turn
        shape = MEMORY * shape + (1 - MEMORY) * turn @ covariance @ turn.T
        turns.append(turn)
    return np.stack(turns)


def _step(lengths: Array, axes: Array, seen: Array, count: float) -> Array:
    """The rotation that brings the axes of what is seen towards these, which are so long."""
    between = axes.T @ seen @ axes
    apart = lengths[:, None] - lengths[None, :]
    noise = np.outer(lengths, lengths).clip(min=0) / count
    ask = between * apart / (apart**2 + SURE**2 * noise + 1e-12)
    np.fill_diagonal(ask, 0.0)
    turned: Array = axes @ expm(ask) @ axes.T
    return turned


def _covariances(residuals: Array, owner: Array) -> tuple[Array, Array]:
    """How many rows each bin and its neighbours have, and their covariance."""
    bins = int(owner.max()) + 1
    products = np.stack([residuals[owner == b].T @ residuals[owner == b] for b in range(bins)])
    apart = np.abs(np.arange(bins)[:, None] - np.arange(bins)[None, :])
    share = (1 - apart / (NEIGHBOURS + 1)).clip(min=0)
    counts = share @ np.bincount(owner, minlength=bins)
    sums = np.einsum("ab,bij->aij", share, products)
    return counts, sums / counts[:, None, None]
