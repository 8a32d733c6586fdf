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
    "anywhere",
    "average",
    "count",
    "leads",
    "mean",
    "mine",
    "number",
    "own_device",
    "own_seed",
    "shared",
    "together",
]

APART = 1_000_003  # between the seeds of ranks: what is drawn on the fly differs from rank to rank
_times = itertools.count()  # that ranks came together
_boards: list[Board] = []  # the one that is in use, if ranks have one


@contextmanager
def together() -> Iterator[None]:
    """Inside, the processes that torchrun started are one training; alone it does nothing."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    graphics = torch.cuda.is_available()
    if graphics:
        torch.cuda.set_device(_place())
    # The second time, each must not find the addresses that the others had the first time.
    meeting, rank, everyone = next(rendezvous("env://"))
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if graphics else "gloo",
        store=dist.PrefixStore(f"cida-{next(_times)}", meeting),  # type: ignore[attr-defined]
        rank=rank,
        world_size=everyone,
    )
    try:
        if (board := shared_board(number(), count())) is not None:
            _boards.append(board)
        yield
        # A rank that leaves while another still sends would abort it.
        dist.barrier()
    finally:
        while _boards:
            _boards.pop().leave()
        dist.destroy_process_group()


def count() -> int:
    """How many ranks there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def number() -> int:
    """Which of them this process is, from 0."""
    return dist.get_rank() if count() > 1 else 0


def leads() -> bool:
    """Whether this process speaks, and leaves files, for all."""
    return number() == 0


def mine(rows: Tensor) -> Tensor:
    """This rank's share of the row numbers of a batch."""
    return rows if count() == 1 else rows[number() :: count()]


def mean(values: Tensor, weights: Tensor | None = None) -> Tensor:
    """``sum w v / sum w`` over the rows of all ranks; without rows it is 0.

    Its value is that of all ranks, so that all of them decide alike, and its gradient is that of
    this rank's rows, so many fold as there are ranks: the mean of the ranks' gradients is that of
    the whole. Each rank may have another number of rows.
    """
    if count() == 1:
        if weights is None:
            return values.mean()
        return (values * weights).sum() / weights.sum().clamp(min=1)
    total = values.sum() if weights is None else (values * weights).sum()
    rows = len(values) if weights is None else weights.sum().item()
    every = torch.tensor([total.item(), rows], dtype=torch.float64)
    _add(every)
    value, whole = every.tolist()
    whole = max(1.0, whole)
    own: Tensor = total * (count() / whole)
    return own.add(value / whole - own.item())


def average(tensors: Iterable[Tensor]) -> None:
    """Puts the mean over ranks into each of these tensors."""
    kept = list(tensors)
    if count() == 1 or not kept:
        return
    whole = torch.cat([tensor.reshape(-1) for tensor in kept])
    _add(whole)
    whole /= count()
    parts = torch.split(whole, [tensor.numel() for tensor in kept])
    means = [part.view_as(tensor) for tensor, part in zip(kept, parts, strict=True)]
    torch._foreach_copy_(kept, means)


def anywhere(flag: bool) -> bool:
    """Whether the flag is true on any rank."""
    if count() == 1:
        return flag
    told = torch.tensor(float(flag))
    _add(told)
    return bool(told)


def shared(numbers: Iterable[int]) -> set[int]:
    """The numbers that every rank gave."""
    own = set(numbers)
    if count() == 1:
        return own
    every: list[set[int]] = [set()] * count()
    dist.all_gather_object(every, own)
    return set.intersection(*every)


def _add(numbers: Tensor) -> None:
    """Puts the sum over ranks into this tensor."""
    if _boards and not numbers.is_cuda:
        _boards[-1].add(numbers)
    else:
        dist.all_reduce(numbers)


def own_seed(seed: int) -> int:
    """The seed of what this rank draws on the fly; the first rank's is the seed itself."""
    return seed + APART * number()


def own_device(device: str) -> torch.device:
    """The device of this rank: of several graphics cards each rank has its own."""
    if device == "cuda" and count() > 1:
        return torch.device("cuda", _place())
    return torch.device(device)


def _place() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))
