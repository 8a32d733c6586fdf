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

from cida.board import Board, shared_board

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
    "world_size",
]

RANK_SEED_STRIDE = (
    1_000_003  # between the seeds of ranks: what is drawn on the fly differs from rank to rank
)
_group_numbers = itertools.count()  # that ranks came together
_boards: list[Board] = []  # the one that is in use, if ranks have one


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
        if (board := shared_board(rank(), world_size())) is not None:
            _boards.append(board)
        yield
        # A rank that leaves while another still sends would abort it.
        dist.barrier()
    finally:
        while _boards:
            _boards.pop().leave()
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


def mean_over_ranks(values: Tensor, weights: Tensor | None = None) -> Tensor:
    """``sum w v / sum w`` over the rows of all ranks; without rows it is 0.

    Its value is that of all ranks, so that all of them decide alike, and its gradient is that of
    this rank's rows, so many fold as there are ranks: the mean of the ranks' gradients is that of
    the whole. Each rank may have another number of rows.
    """
    if world_size() == 1:
        if weights is None:
            return values.mean()
        return (values * weights).sum() / weights.sum().clamp(min=1)
    total = values.sum() if weights is None else (values * weights).sum()
    weight_sum = len(values) if weights is None else weights.sum().item()
    sums = torch.tensor([total.item(), weight_sum], dtype=torch.float64)
    _all_reduce_sum(sums)
    value, total_weight = sums.tolist()
    total_weight = max(1.0, total_weight)
    own_share: Tensor = total * (world_size() / total_weight)
    return own_share.add(value / total_weight - own_share.item())


def all_reduce_mean(tensors: Iterable[Tensor]) -> None:
    """Puts the mean over ranks into each of these tensors."""
    tensor_list = list(tensors)
    if world_size() == 1 or not tensor_list:
        return
    flat = torch.cat([tensor.reshape(-1) for tensor in tensor_list])
    _all_reduce_sum(flat)
    flat /= world_size()
    parts = torch.split(flat, [tensor.numel() for tensor in tensor_list])
    means = [part.view_as(tensor) for tensor, part in zip(tensor_list, parts, strict=True)]
    torch._foreach_copy_(tensor_list, means)


def any_rank(flag: bool) -> bool:
    """Whether the flag is true on any rank."""
    if world_size() == 1:
        return flag
    total = torch.tensor(float(flag))
    _all_reduce_sum(total)
    return bool(total)


def common_to_ranks(numbers: Iterable[int]) -> set[int]:
    """The numbers that every rank gave."""
    own_numbers = set(numbers)
    if world_size() == 1:
        return own_numbers
    numbers_by_rank: list[set[int]] = [set()] * world_size()
    dist.all_gather_object(numbers_by_rank, own_numbers)
    return set.intersection(*numbers_by_rank)


def _all_reduce_sum(numbers: Tensor) -> None:
    """Puts the sum over ranks into this tensor."""
    if _boards and not numbers.is_cuda:
        _boards[-1].add(numbers)
    else:
        dist.all_reduce(numbers)


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
