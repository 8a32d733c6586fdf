"""Sums through shared memory: the same for every rank, and nobody waits for a rank that left."""

import mmap
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cida import board
from cida.board import Board, LostRankError, shared_board


def boards(count):
    """One for each rank, all on one memory."""
    memory = mmap.mmap(-1, Board.size(count))
    return [Board(memory, rank, count) for rank in range(count)]


def exchange(every, rounds):
    """What each rank has after it put each round's tensor of its own on the board."""

    def play(rank):
        own = [tensors[rank].clone() for tensors in rounds]
        for tensor in own:
            every[rank].add(tensor)
        return own

    with ThreadPoolExecutor(len(every)) as pool:
        return list(pool.map(play, range(len(every))))


@settings(max_examples=30, deadline=None)
@given(
    count=st.integers(1, 4),
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.int64]),
    seed=st.integers(0, 999),
)
def test_every_rank_gets_the_sum_over_ranks(count, sizes, dtype, seed):
    draw = torch.Generator().manual_seed(seed)
    rounds = [
        [(1000 * torch.randn(size, generator=draw)).to(dtype) for _ in range(count)]
        for size in sizes
    ]
    found = exchange(boards(count), rounds)
    for n, tensors in enumerate(rounds):
        torch.testing.assert_close(found[0][n], torch.stack(tensors).sum(0))
        assert all(torch.equal(found[0][n], other[n]) for other in found)


def test_more_numbers_than_a_slot_holds_go_in_parts(monkeypatch):
    monkeypatch.setattr(board, "SLOT", 64)
    rounds = [[torch.arange(1000.0).view(50, 20), torch.full((50, 20), 0.5)]]
    found = exchange(boards(2), rounds)
    assert torch.equal(found[0][0], rounds[0][0] + 0.5)
    assert torch.equal(found[0][0], found[1][0])


@pytest.mark.parametrize("spins", [0, 5])
def test_a_rank_that_left_is_not_waited_for(spins):
    one, other = boards(2)
    one.spins = spins
    threading.Timer(0.05, other.leave).start()
    with pytest.raises(LostRankError, match="rank 1 is gone, so rank 0 cannot go on"):
        one.add(torch.ones(3))


def test_a_rank_that_never_comes_is_given_up(monkeypatch):
    monkeypatch.setattr(board, "PATIENCE", 0.05)
    with pytest.raises(LostRankError, match="rank 1 is gone"):
        boards(2)[0].add(torch.ones(3))


def test_with_fewer_cores_than_ranks_none_spins():
    assert boards(len(os.sched_getaffinity(0)) + 1)[0].spins == 0


def test_ranks_of_several_machines_have_no_board(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert shared_board(0, 4) is None


SCRIPT = """
import sys
from pathlib import Path
import torch
from cida import board, ranks

if sys.argv[1] == "full":
    board.Board.size = staticmethod(lambda count: 1 << 62)  # more than any machine has
with ranks.together():
    assert bool(ranks._boards) is (sys.argv[1] != "full")
    value = ranks.mean(torch.full((3,), float(ranks.number())))
    used = [line for line in Path("/proc/self/maps").read_text().splitlines() if "cida-" in line]
    assert len(used) == len(ranks._boards)
    assert all(line.endswith("(deleted)") for line in used)  # no name is left
    if sys.argv[1] == "fault" and ranks.number() == 1:
        raise RuntimeError("on purpose")
    value = ranks.mean(torch.full((3,), float(ranks.number())))
    if ranks.leads():
        print(float(value))
"""


def started(tmp_path, case):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script), case]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, timeout=100
    )


@pytest.mark.parametrize("case", ["room", "full"])
def test_where_there_is_no_room_ranks_talk_by_sockets(tmp_path, case):
    ended = started(tmp_path, case)
    assert ended.returncode == 0, ended.stderr
    assert float(ended.stdout) == 0.5


def test_a_rank_that_fails_ends_all(tmp_path):
    ended = started(tmp_path, "fault")
    assert ended.returncode != 0
    assert "on purpose" in ended.stderr
