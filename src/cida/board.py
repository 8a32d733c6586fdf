"""Sums over the ranks of one machine, through memory that they share.

Through sockets, as gloo does it, each exchange puts processes to sleep and wakes them again, and a
step on a small network has several.
"""

from __future__ import annotations

import mmap
import os
import platform
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["Board", "LostRankError", "shared_board"]

SHARED = Path("/dev/shm")
SLOT = 1 << 20  # bytes that a rank puts on the board at once
LINE = 64  # bytes of a cache line: each rank's turn has one of its own
SPINS = 20_000  # looks at the board, about a millisecond, before a rank sleeps between them
NAP = 1e-4
PATIENCE = 1800.0  # seconds, like gloo's own
GONE = -1


class LostRankError(ConnectionError):
    """Another rank has left, or has not come for a very long time."""


class Board:
    """``x <- sum over ranks of x``, added up in the order of the ranks: all get the same bits.

    Each rank has two slots and uses them in turns. It writes its numbers, then the number of its
    turn, and reads the others' slots once their turns have come as far. Nobody can be two turns
    ahead of a rank that still reads, so two slots are enough.
    """

    def __init__(self, memory: mmap.mmap, rank: int, count: int) -> None:
        self.rank, self.turn = rank, 0
        self.turns = memoryview(memory)[: count * LINE].cast("q")[:: LINE // 8]
        self.slots = torch.frombuffer(memory, dtype=torch.uint8)[count * LINE :]
        self.slots = self.slots.view(2, count, SLOT)
        # With fewer cores than ranks, one that looks and looks would keep the others from coming.
        self.spins = SPINS if count <= len(os.sched_getaffinity(0)) else 0

    @staticmethod
    def size(count: int) -> int:
        """The bytes of memory that so many ranks need."""
        return count * (LINE + 2 * SLOT)

    def add(self, numbers: Tensor) -> None:
        """Puts the sum over all ranks into this tensor, which is contiguous."""
        for part in torch.split(numbers.view(-1), SLOT // numbers.element_size()):
            self._add(part)

    def leave(self) -> None:
        """Tells the ranks that wait for this one not to."""
        self.turns[self.rank] = GONE

    def _add(self, part: Tensor) -> None:
        self.turn += 1
        slots = self.slots[self.turn % 2, :, : part.numel() * part.element_size()].view(part.dtype)
        slots[self.rank].copy_(part)
        self.turns[self.rank] = self.turn
        for rank, slot in enumerate(slots.unbind()):
            self._wait(rank)
            if rank:
                part.add_(slot)
            else:
                part.copy_(slot)

    def _wait(self, rank: int) -> None:
        turns, turn = self.turns, self.turn
        for _ in range(self.spins):
            if turns[rank] >= turn:
                return
        until = time.monotonic() + PATIENCE
        while turns[rank] < turn:
            if turns[rank] == GONE or time.monotonic() > until:
                raise LostRankError(f"rank {rank} is gone, so rank {self.rank} cannot go on.")
            time.sleep(NAP)


def shared_board(rank: int, count: int) -> Board | None:
    """The board of all ranks; None where they cannot have one, and must talk by sockets.

    They can if all are of this machine, whose processor shows writes to others in the order in
    which they were made, and if there is room on its board. Its file has no name any more once all
    have opened it: whatever happens to them, nothing is left.
    """
    of_one = os.environ.get("WORLD_SIZE") == os.environ.get("LOCAL_WORLD_SIZE")
    if not (of_one and SHARED.is_dir() and platform.machine() == "x86_64"):
        return None
    name = [_room_for(Board.size(count)) if rank == 0 else None]
    dist.broadcast_object_list(name)
    if name[0] is None:
        return None
    with Path(name[0]).open("r+b") as file:
        memory = mmap.mmap(file.fileno(), Board.size(count))
    dist.barrier()
    if rank == 0:
        Path(name[0]).unlink()
    return Board(memory, rank, count)


def _room_for(size: int) -> str | None:
    """The name of a new file of this size in shared memory; None where that has no room."""
    number, name = tempfile.mkstemp(dir=SHARED, prefix="cida-")
    try:
        os.posix_fallocate(number, 0, size)  # else a write without room would end the process
    except OSError:
        Path(name).unlink()
        return None
    finally:
        os.close(number)
    return name
