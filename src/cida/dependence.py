"""How much the rows of two batches depend on each other, without an adversary.

All four measures are the same inner product of two U-centred matrices, of distances or of kernels
between rows (Sejdinovic et al., 2013). They are zero in the mean for independent rows, and negative
for some batches: nothing is clamped, since half of the noise would then pull at the encoder. Time
and memory grow with the square of the rows: right for batches, too much for whole tables.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = [
    "MIN_DEPENDENCE_ROWS",
    "centered_distances",
    "centered_kernel",
    "distance_correlation",
    "distance_covariance",
    "hsic",
    "normalized_hsic",
]

MIN_DEPENDENCE_ROWS = 4  # U-centering leaves nothing of three rows


def distance_covariance(a: Tensor, b: Tensor) -> Tensor:
    """``1 / (n (n - 3)) sum_ij A_ij B_ij``, A and B the U-centred distances between rows.

    The unbiased estimate of the squared distance covariance (Szekely and Rizzo, 2014). Its
    expectation is zero if and only if a and b are independent: it sees every moment.

    Parameters
    ----------
    a : Tensor of shape (n, p)
        Rows; at least four.
    b : Tensor of shape (n, q)
        As many rows.

    Returns
    -------
    Tensor
        One number.

    Raises
    ------
    ValueError
        If a shape does not fit or there are fewer than four rows.
    """
    return _covariance(*_pairwise_matrices(_distances, a, b))


def distance_correlation(a: Tensor, b: Tensor) -> Tensor:
    """``dCov^2(a, b) / sqrt(dCov^2(a, a) dCov^2(b, b))``: between -1 and 1, at any scale.

    The bias-corrected squared distance correlation (Szekely and Rizzo, 2014). Scaling, rotating and
    shifting a or b does not change it. Where a or b is constant it is 0, and so is its gradient.

    Parameters
    ----------
    a : Tensor of shape (n, p)
        Rows; at least four.
    b : Tensor of shape (n, q)
        As many rows.

    Returns
    -------
    Tensor
        One number.

    Raises
    ------
    ValueError
        If a shape does not fit or there are fewer than four rows.
    """
    return _correlation(*_pairwise_matrices(_distances, a, b))


def hsic(a: Tensor, b: Tensor) -> Tensor:
    """``1 / (n (n - 3)) sum_ij K_ij L_ij``, K and L the U-centred Gaussian kernels between rows.

    The unbiased Hilbert-Schmidt independence criterion (Song et al., 2012), with ``k(r) = exp(-r^2
    / 2 h^2)`` and h the median distance between rows that differ. The gradient passes through h:
    with h held fixed the value would not depend on the scale of a, but its gradient would, and an
    encoder would keep shrinking z without any gain.

    Parameters
    ----------
    a : Tensor of shape (n, p)
        Rows; at least four.
    b : Tensor of shape (n, q)
        As many rows.

    Returns
    -------
    Tensor
        One number.

    Raises
    ------
    ValueError
        If a shape does not fit or there are fewer than four rows.
    """
    return _covariance(*_pairwise_matrices(_kernel, a, b))


def normalized_hsic(a: Tensor, b: Tensor) -> Tensor:
    """``HSIC(a, b) / sqrt(HSIC(a, a) HSIC(b, b))``: between -1 and 1, at any scale.

    The unbiased centred kernel alignment (Nguyen et al., 2021) with the kernels of `hsic`. Where a
    or b is constant it is 0, and so is its gradient.

    Parameters
    ----------
    a : Tensor of shape (n, p)
        Rows; at least four.
    b : Tensor of shape (n, q)
        As many rows.

    Returns
    -------
    Tensor
        One number.

    Raises
    ------
    ValueError
        If a shape does not fit or there are fewer than four rows.
    """
    return _correlation(*_pairwise_matrices(_kernel, a, b))


def centered_distances(rows: Tensor) -> Tensor:
    """The U-centred distances at norm 1: `distance_correlation` is their inner product.

    Parameters
    ----------
    rows : Tensor of shape (n, p)
        At least four rows.

    Returns
    -------
    Tensor of shape (n, n)
        A symmetric matrix with zeros on its diagonal.
    """
    return _unit_u_center(_distances(rows))


def centered_kernel(rows: Tensor) -> Tensor:
    """The U-centred kernel at norm 1: `normalized_hsic` is their inner product.

    Parameters
    ----------
    rows : Tensor of shape (n, p)
        At least four rows.

    Returns
    -------
    Tensor of shape (n, n)
        A symmetric matrix with zeros on its diagonal.
    """
    return _unit_u_center(_kernel(rows))


def _pairwise_matrices(
    similarity: Callable[[Tensor], Tensor], a: Tensor, b: Tensor
) -> tuple[Tensor, Tensor]:
    for name, rows in {"a": a, "b": b}.items():
        if rows.dim() != 2:
            raise ValueError(
                f"{name} has the shape {tuple(rows.shape)}; give it the shape (rows, columns)."
            )
    if len(a) != len(b):
        raise ValueError(f"a has {len(a)} rows and b {len(b)}; they must have the same number.")
    if len(a) < MIN_DEPENDENCE_ROWS:
        raise ValueError(
            f"a and b have {len(a)} rows; a measure of dependence needs at least "
            f"{MIN_DEPENDENCE_ROWS}."
        )
    return similarity(a), similarity(b)


def _distances(rows: Tensor) -> Tensor:
    """Euclidean distances; rows that coincide are exactly 0 apart, with a gradient of 0."""
    # By differences: through products, as is the default, equal rows end up some way apart.
    return torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")


def _kernel(rows: Tensor) -> Tensor:
    """``exp(-r^2 / 2 h^2) - 1``; centring removes the constant, and digits are kept without it."""
    distances = _distances(rows)
    # Without the zeros: with many equal rows, as of an index with two values, h would be 0.
    positive = distances[distances > 0]
    bandwidth = positive.median() if len(positive) else distances.new_ones(())
    return torch.expm1(-0.5 * (distances / bandwidth).square())


def _u_center(similarity: Tensor) -> Tensor:
    """``s_ij - s_i. / (n - 2) - s_.j / (n - 2) + s_.. / ((n - 1)(n - 2))``, 0 on the diagonal."""
    count = len(similarity)
    sums = similarity.sum(1, keepdim=True) / (count - 2)
    grand_mean = similarity.sum() / ((count - 1) * (count - 2))
    diagonal = torch.eye(count, dtype=torch.bool, device=similarity.device)
    return (similarity - sums - sums.T + grand_mean).masked_fill(diagonal, 0.0)


def _covariance(first: Tensor, second: Tensor) -> Tensor:
    count = len(first)
    return (_u_center(first) * _u_center(second)).sum() / (count * (count - 3))


def _correlation(first: Tensor, second: Tensor) -> Tensor:
    return (_unit_u_center(first) * _unit_u_center(second)).sum()


def _unit_u_center(similarity: Tensor) -> Tensor:
    """The U-centred matrix at norm 1; 0 where centring leaves only rounding errors."""
    # Of about unit size first, so that no square is lost to underflow; directions are the same.
    largest = similarity.detach().abs().max()
    similarity = similarity / torch.where(largest > 0, largest, 1.0)
    centered = _u_center(similarity)
    square = centered.square().sum()
    rounding = 100 * torch.finfo(square.dtype).eps
    is_nonzero = square > rounding**2 * similarity.detach().square().sum()
    return centered * is_nonzero / torch.where(is_nonzero, square, 1.0).sqrt()
