"""Distance correlation and HSIC with shuffles: all pairs of rows, so at most a thousand rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cida.dependence import FEWEST_ROWS, centred_distances, centred_kernel

__all__ = ["MEASURES", "PairMeasure", "among", "pair_measure", "smallest_share_of_pairs"]

Array = np.ndarray[Any, Any]

MEASURES = {"distance correlation": centred_distances, "hsic": centred_kernel}
TERMS = 4  # of the matrix of u, a column: on a line the k-th is as 1 / k^2
MOST_TERMS = 12
PLANTS = 6
PLANTED_SHARE = 0.04


@dataclass(frozen=True)
class PairMeasure:
    """The measure itself, and that of its largest terms: first the rows as they are, then shuffled.

    Where there are several parts it is their mean, each weighted by its rows.
    """

    value: float
    shuffled: Array


def pair_measure(name: str, z: Array, e: Array, parts: list[Array], orders: Array) -> PairMeasure:
    """A measure of `cida.dependence` within each part, under each order of the rows of e.

    Only u is shuffled, so both matrices are centred once; that of u is put as ``sum_k s_k v_k
    v_k'`` with its largest terms, and to shuffle u is to shuffle v.
    """
    centred = MEASURES[name]
    value, counted = 0.0, 0
    shuffled = np.zeros(len(orders))
    for part in parts:
        if len(part) < FEWEST_ROWS:
            continue
        first, second = centred(torch.from_numpy(z[part])), centred(torch.from_numpy(e[part]))
        value += len(part) * float((first * second).sum())
        counted += len(part)
        strengths, vectors = _largest_terms(second.numpy(), min(MOST_TERMS, TERMS * e.shape[1]))
        mine = first.numpy().astype(np.float32)
        inside = among(part, orders).T
        for strength, vector in zip(strengths, vectors.T.astype(np.float32), strict=True):
            turned = vector[inside]  # rows, shuffles
            form = np.einsum("ij,ij->j", turned, mine @ turned)
            shuffled += len(part) * float(strength) * form
    return PairMeasure(value / max(counted, 1), shuffled / max(counted, 1))


def among(rows: Array, orders: Array) -> Array:
    """The orders of these rows, which keep to themselves, as numbers among them."""
    number = np.zeros(orders.shape[1], dtype=np.int64)
    number[rows] = np.arange(len(rows))
    return np.asarray(number[orders[:, rows]])


def _largest_terms(matrix: Array, most: int) -> tuple[Array, Array]:
    """The largest few eigenvalues and their eigenvectors.

    By a few rounds of subspace iteration: of an index with few values many small ones are equal,
    and a solver that tells them apart never ends.
    """
    basis = np.random.default_rng(0).normal(size=(len(matrix), 2 * most))
    for _ in range(4):
        basis, _ = np.linalg.qr(matrix @ basis)
    sizes, turned = np.linalg.eigh(basis.T @ matrix @ basis)
    kept = np.argsort(-np.abs(sizes))[:most]
    return sizes[kept], basis @ turned[:, kept]


def smallest_share_of_pairs(
    name: str, z: Array, axis: Array, e: Array, shuffled: Array, generator: np.random.Generator
) -> float:
    """About the least share of V[u] along one axis of z that this measure alone would see.

    A share is planted on these rows of z and a shuffled u a few times. The measure grows in
    proportion to the share, so that its mean and spread there tell for which share 95 % lie above
    the critical value of the shuffles.
    """
    critical = float(np.quantile(shuffled, 0.95))
    centred: Callable[[Tensor], Tensor] = MEASURES[name]
    first = centred(torch.from_numpy(z).float())
    keep, plant = math.sqrt(1 - PLANTED_SHARE), math.sqrt(PLANTED_SHARE)
    seen = []
    for _ in range(PLANTS):
        planted = keep * generator.permutation(e) + plant * axis[:, None]
        seen.append(float((first * centred(torch.from_numpy(planted).float())).sum()))
    middle, spread = float(np.mean(seen)), float(np.std(seen, ddof=1))
    if middle <= 0:
        return 1.0
    return min(1.0, PLANTED_SHARE * (critical + 1.645 * spread) / middle)
