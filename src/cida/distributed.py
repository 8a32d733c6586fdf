"""Several processes that train one model, each on its share of every batch.

``torchrun`` starts them; each is a *rank*. All draw the same batches and take their own rows of
them, all have the same weights, and gradients are averaged before every step. One process is the
usual case: there everything here does nothing.
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

RANK_SEED_STRIDE = (
    1_000_003  # between the seeds of ranks: what is drawn on the fly differs from rank to rank
)
_group_numbers = itertools.count()  # that ranks came together


@contextmanager
def process_group() -> Iterator[None]:
    """Inside, the processes that torchrun started are one training; alone it does nothing."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    has_cuda = torch.cuda.is_available()
    if has_cuda:
        torch.cuda.set_device(_local_rank())
    # The second time, each must not find the addresses that the others had the first time.
    store, env_rank, env_world_size = next(rendezvous("env://"))
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if has_cuda else "gloo",
        store=dist.PrefixStore(f"cida-{next(_group_numbers)}", store),  # type: ignore[attr-defined]
        rank=env_rank,
        world_size=env_world_size,
    )
    try:
        yield
        # A rank that leaves while another still sends would abort it.
        dist.barrier()
    finally:
        dist.destroy_process_group()


def world_size() -> int:
    """How many ranks there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this process is, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


def is_main_process() -> bool:
    """Whether this process speaks, and leaves files, for all."""
    return rank() == 0


def shard(row_ids: Tensor) -> Tensor:
    """This rank's share of the row numbers of a batch."""
    return row_ids if world_size() == 1 else row_ids[rank() :: world_size()]


def mean_over_ranks(
    values: Tensor, weights: Tensor | None = None, total: float | None = None
) -> Tensor:
    """This rank's part of ``sum w v / sum w`` over the rows of all ranks; without rows it is 0.

    The mean of the ranks' parts is the mean of all rows, and the mean of their gradients is its
    gradient, however many rows each rank has: `all_reduce_mean` makes both. ``total`` is
    ``sum w`` over all ranks; it is asked for here if it is not given.
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
    """Puts the mean over ranks into each of these tensors, in one exchange."""
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
    """The sum over ranks of each of these numbers, in one exchange."""
    if world_size() == 1:
        return list(numbers)
    sums = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(sums)
    return sums.tolist()


def any_rank(flag: bool) -> bool:
    """Whether the flag is true on any rank."""
    return sum_over_ranks(flag)[0] > 0


def common_to_ranks(numbers: Iterable[int]) -> set[int]:
    """The numbers that every rank gave."""
    own_numbers = set(numbers)
    if world_size() == 1:
        return own_numbers
    numbers_by_rank: list[set[int]] = [set()] * world_size()
    dist.all_gather_object(numbers_by_rank, own_numbers)
    return set.intersection(*numbers_by_rank)


def rank_seed(seed: int) -> int:
    """The seed of what this rank draws on the fly; the first rank's is the seed itself."""
    return seed + RANK_SEED_STRIDE * rank()


def rank_device(device: str) -> torch.device:
    """The device of this rank: of several graphics cards each rank has its own."""
    if device == "cuda" and world_size() > 1:
        return torch.device("cuda", _local_rank())
    return torch.device(device)


def _local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))
