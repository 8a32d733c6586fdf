"""Distance correlation and HSIC under permutations: all pairs of at most a thousand rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from cida.array_types import Array
from cida.dependence import MIN_DEPENDENCE_ROWS, centered_distances, centered_kernel

__all__ = [
    "PAIR_MEASURES",
    "PairMeasure",
    "compute_pair_measure",
    "min_detectable_share_pairs",
    "restrict_orders",
]

PAIR_MEASURES = {"distance-correlation": centered_distances, "hsic": centered_kernel}
TERMS_PER_COLUMN = 4  # of the matrix of u: on a line the k-th term falls as 1 / k^2
MAX_TERMS = 12
N_PLANTED_TRIALS = 6
PLANTED_SHARE = 0.04


@dataclass(frozen=True)
class PairMeasure:
    """The measure, and its value by the largest terms for the actual rows and each permutation.

    With several strata it is their mean, weighted by rows.
    """

    value: float
    permuted_values: Array


def compute_pair_measure(
    name: str, z: Array, e: Array, strata: list[Array], orders: Array
) -> PairMeasure:
    """A measure of `cida.dependence` within each stratum, under each order of the rows of e.

    Only u is permuted, so both matrices are centered once; that of u is approximated by the largest
    terms of ``sum_k s_k v_k v_k'``, and permuting u permutes v.
    """
    center = PAIR_MEASURES[name]
    n_terms = min(MAX_TERMS, TERMS_PER_COLUMN * e.shape[1])
    value, permuted_values = 0.0, np.zeros(len(orders))
    strata = [stratum for stratum in strata if len(stratum) >= MIN_DEPENDENCE_ROWS]
    for stratum in strata:
        first, second = center(torch.from_numpy(z[stratum])), center(torch.from_numpy(e[stratum]))
        value += len(stratum) * float((first * second).sum())
        strengths, vectors = _largest_eigenpairs(second.numpy(), n_terms)
        z_matrix = first.numpy().astype(np.float32)
        stratum_orders = restrict_orders(stratum, orders).T
        for strength, vector in zip(strengths, vectors.T.astype(np.float32), strict=True):
            permuted_vectors = vector[stratum_orders]  # rows, permutations
            quadratic_form = np.einsum("ij,ij->j", permuted_vectors, z_matrix @ permuted_vectors)
            permuted_values += len(stratum) * float(strength) * quadratic_form
    n_counted = max(sum(map(len, strata)), 1)
    return PairMeasure(value / n_counted, permuted_values / n_counted)


def restrict_orders(rows: Array, orders: Array) -> Array:
    """The orders of these rows, which keep to themselves, as numbers among them."""
    position = np.zeros(orders.shape[1], dtype=np.int64)
    position[rows] = np.arange(len(rows))
    return np.asarray(position[orders[:, rows]])


def _largest_eigenpairs(matrix: Array, n_terms: int) -> tuple[Array, Array]:
    """The largest few eigenvalues and their eigenvectors.

    By a few rounds of subspace iteration: of an index with few values many small ones are equal,
    and a solver that tells them apart never ends.
    """
    basis = np.random.default_rng(0).normal(size=(len(matrix), 2 * n_terms))
    for _ in range(4):
        basis, _ = np.linalg.qr(matrix @ basis)
    eigenvalues, rotation = np.linalg.eigh(basis.T @ matrix @ basis)
    largest = np.argsort(-np.abs(eigenvalues))[:n_terms]
    return eigenvalues[largest], basis @ rotation[:, largest]


def min_detectable_share_pairs(
    name: str, z: Array, axis: Array, e: Array, permuted: Array, generator: np.random.Generator
) -> float:
    """The smallest share of V[u] along one axis of z that this measure alone would detect, about.

    A share is planted a few times in these rows of z and a permuted u. The measure grows in
    proportion to the share, so its mean and standard deviation there give the share for which 95 %
    lie above the critical value of the permutations.
    """
    critical = float(np.quantile(permuted, 0.95))
    center = PAIR_MEASURES[name]
    first = center(torch.from_numpy(z).float())
    noise_weight, signal = math.sqrt(1 - PLANTED_SHARE), math.sqrt(PLANTED_SHARE) * axis[:, None]
    values = []
    for _ in range(N_PLANTED_TRIALS):
        planted = torch.from_numpy(noise_weight * generator.permutation(e) + signal).float()
        values.append(float((first * center(planted)).sum()))
    mean, std = float(np.mean(values)), float(np.std(values, ddof=1))
    return min(1.0, PLANTED_SHARE * (critical + 1.645 * std) / mean) if mean > 0 else 1.0
