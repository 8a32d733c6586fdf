"""Several processes that train one model, each on its share of every batch.

``torchrun`` starts them; each is a *rank*. All ranks draw the same batches and take their own rows
of them, all have the same weights, and gradients are averaged before every step. With one process,
the usual case, the functions here do nothing.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

__all__ = [
    "all_reduce_mean",
    "any_rank",
    "common_to_ranks",
    "is_main_process",
    "mean_over_ranks",
    "process_group",
    "rank",
    "rank_device",
    "rank_seed",
    "shard",
    "sum_over_ranks",
    "world_size",
]

RANK_SEED_STRIDE = 1_000_003  # difference between the seeds of two ranks
_group_numbers = itertools.count()  # of the process groups of this process


@contextmanager
def process_group() -> Iterator[None]:
    """Context in which the processes that ``torchrun`` started train together.

    With a single process it does nothing.

    Examples
    --------
    >>> import cida
    >>> with cida.process_group():
    ...     model = cida.CIDAClassifier()  # .fit(X, y, domain_index=u)
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    has_cuda = torch.cuda.is_available()
    if has_cuda:
        torch.cuda.set_device(_local_rank())
    # A second group must not find the addresses of the first in the store.
    store, env_rank, env_world_size = next(rendezvous("env://"))
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if has_cuda else "gloo",
        store=dist.PrefixStore(f"cida-{next(_group_numbers)}", store),  # type: ignore[attr-defined]
        rank=env_rank,
        world_size=env_world_size,
    )
    try:
        yield
        # A rank that leaves while another still sends would abort the other.
        dist.barrier()
    finally:
        dist.destroy_process_group()


def world_size() -> int:
    """Return the number of ranks.

    Returns
    -------
    int
        1 outside a process group.
    """
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, from 0.

    Returns
    -------
    int
        0 outside a process group.
    """
    return dist.get_rank() if world_size() > 1 else 0


def is_main_process() -> bool:
    """Tell whether this process prints and writes files for all.

    Returns
    -------
    bool
        True on rank 0.
    """
    return rank() == 0


def shard(row_ids: Tensor) -> Tensor:
    """Return this rank's share of the row numbers of a batch.

    Parameters
    ----------
    row_ids : Tensor of int
        Row numbers of the whole batch, the same on all ranks.

    Returns
    -------
    Tensor of int
        Every ``world_size``-th of them.
    """
    return row_ids if world_size() == 1 else row_ids[rank() :: world_size()]


def mean_over_ranks(
    values: Tensor, weights: Tensor | None = None, total: float | None = None
) -> Tensor:
    """Return this rank's part of ``sum w v / sum w`` over the rows of all ranks; 0 without rows.

    The mean of the ranks' parts is the mean of all rows, and the mean of their gradients is its
    gradient, however many rows each rank has: `all_reduce_mean` computes both.

    Parameters
    ----------
    values : Tensor of shape (rows,)
        Values of this rank's rows.
    weights : Tensor of shape (rows,), optional
        Their weights; equal by default.
    total : float, optional
        ``sum w`` over all ranks; exchanged here if it is not given.

    Returns
    -------
    Tensor
        One number.
    """
    if world_size() == 1:
        if weights is None:
            return values.mean()
        return (values * weights).sum() / weights.sum().clamp(min=1)
    if total is None:
        (total,) = sum_over_ranks(len(values) if weights is None else float(weights.sum()))
    own_sum = values.sum() if weights is None else (values * weights).sum()
    return own_sum * (world_size() / max(1.0, total))


def all_reduce_mean(tensors: Iterable[Tensor]) -> None:
    """Replace each tensor by its mean over the ranks, in one exchange.

    Parameters
    ----------
    tensors : iterable of Tensor
        Changed in place.
    """
    tensor_list = list(tensors)
    if world_size() == 1 or not tensor_list:
        return
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensor_list])
    dist.all_reduce(flat)
    flat /= world_size()
    parts = torch.split(flat, [tensor.numel() for tensor in tensor_list])
    with torch.no_grad():
        for tensor, part in zip(tensor_list, parts, strict=True):
            tensor.copy_(part.view_as(tensor))


def sum_over_ranks(*numbers: float) -> list[float]:
    """Return the sum over the ranks of each number, in one exchange.

    Parameters
    ----------
    *numbers : float
        This rank's numbers.

    Returns
    -------
    list of float
        The sums.
    """
    if world_size() == 1:
        return list(numbers)
    sums = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(sums)
    return sums.tolist()


def any_rank(flag: bool) -> bool:
    """Tell whether a flag is true on any rank.

    Parameters
    ----------
    flag : bool
        This rank's flag.

    Returns
    -------
    bool
        The same on all ranks.
    """
    return sum_over_ranks(flag)[0] > 0


def common_to_ranks(numbers: Iterable[int]) -> set[int]:
    """Return the numbers that every rank gave.

    Parameters
    ----------
    numbers : iterable of int
        This rank's numbers.

    Returns
    -------
    set of int
        The intersection over the ranks.
    """
    own_numbers = set(numbers)
    if world_size() == 1:
        return own_numbers
    numbers_by_rank: list[set[int]] = [set()] * world_size()
    dist.all_gather_object(numbers_by_rank, own_numbers)
    return set.intersection(*numbers_by_rank)


def rank_seed(seed: int) -> int:
    """Return the seed of what this rank draws when it makes rows.

    Parameters
    ----------
    seed : int
        The seed of the training.

    Returns
    -------
    int
        The seed itself on rank 0, and a different one on each other rank.
    """
    return seed + RANK_SEED_STRIDE * rank()


def rank_device(device: str) -> torch.device:
    """Return the device of this rank; of several GPUs each rank has its own.

    Parameters
    ----------
    device : str
        What the user asked for, such as "cuda".

    Returns
    -------
    torch.device
        The device.
    """
    if device == "cuda" and world_size() > 1:
        return torch.device("cuda", _local_rank())
    return torch.device(device)


def _local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))
