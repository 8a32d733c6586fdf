"""Several processes, one training: the same model as one process makes, and a clean end."""

import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from cida import distributed
from cida.games import GAMES

# These take a measure of the whole batch, which is not the mean of the ranks' measures.
WHOLE = {"distance-correlation", "hsic"}
ALIKE = [name for name in GAMES if name not in WHOLE]

SCRIPT = """
import sys
import warnings

import cida
from cida.datasets import make_circle
from cida.games import GAMES
from cida.distributed import (
    all_reduce_mean, any_rank, common_to_ranks, is_main_process, mean_over_ranks, rank, shard,
    world_size,
)
from safetensors.torch import save_file
import torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)
games, cut = sys.argv[2:], 21  # a batch that two ranks cannot share evenly
world = make_circle(n_per_domain=8, seed=100)
kept = {}
with cida.process_group():
    for game in games:
        model = cida.CIDAClassifier(
            game=game, steps=25, encoder_hidden=(16,), encoding_width=4, coordinates="learned",
            curriculum=0.5, curriculum_stages=3, batch_size=cut, source_batch_size=13,
            random_state=3,
        )
        model.fit(world.x, world.training_labels, domain_index=world.u)
        kept |= {f"{game}.{k}": v.contiguous() for k, v in model.game_.state().items()}
        kept[f"{game}.prediction"] = torch.tensor(
            [event.losses["prediction"] for event in model.history_]
        )
    rows = torch.arange(7.0)
    own = shard(rows).requires_grad_()
    value = mean_over_ranks(own.square())
    value.backward()
    kept["mean"], kept["gradient"] = value.detach(), own.grad
    kept["known total"] = mean_over_ranks(own.detach().square(), total=7)
    kept["weighted"] = mean_over_ranks(own.detach(), (own.detach() > 2).float())
    kept["none"] = mean_over_ranks(own.detach(), torch.zeros(len(own)))
    all_reduce_mean([kept[name] for name in ("mean", "known total", "weighted", "none")])
    tensors = [torch.full((2, 2), float(rank())), torch.tensor([10.0 * rank()])]
    all_reduce_mean(tensors)
    kept["average"] = torch.cat([t.reshape(-1) for t in tensors])
    assert any_rank(rank() == world_size() - 1)
    assert not any_rank(False)
    assert common_to_ranks({1, 2 + rank(), 5}) == ({1, 5} if world_size() == 2 else {1, 2, 5})
    first = is_main_process()
with cida.process_group():  # again
    kept["again"] = mean_over_ranks(torch.full((2,), float(rank())))
    all_reduce_mean([kept["again"]])
if first:
    save_file(kept, sys.argv[1])
"""


def launch(folder, count, *words):
    script = folder / "script.py"
    script.write_text(SCRIPT)
    out = folder / f"ranks{count}.safetensors"
    words = [str(script), str(out), *words]
    if count > 1:
        words = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, timeout=240
    )
    assert ended.returncode == 0, ended.stderr
    return load_file(out)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What one process came to, and what two did."""
    folder = tmp_path_factory.mktemp("ranks")
    return launch(folder, 1, *GAMES), launch(folder, 2, *GAMES)


@pytest.mark.parametrize("game", ALIKE)
def test_two_ranks_train_the_model_that_one_trains(made, game):
    one, two = made
    mine = {name for name in one if name.startswith(f"{game}.")}
    assert mine == {name for name in two if name.startswith(f"{game}.")}
    for name in mine:
        torch.testing.assert_close(two[name], one[name], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("game", sorted(WHOLE))
def test_a_measure_of_a_batch_is_taken_on_each_ranks_share(made, game):
    _, two = made
    assert all(bool(two[name].isfinite().all()) for name in two if name.startswith(f"{game}."))


def test_a_mean_is_that_of_all_rows_with_the_gradient_of_ones_own(made):
    for found in made:
        assert found["mean"] == pytest.approx(sum(k * k for k in range(7)) / 7)
        assert found["known total"] == pytest.approx(float(found["mean"]))
        assert found["weighted"] == pytest.approx((3 + 4 + 5 + 6) / 4)
        assert found["none"] == 0
    one, two = (found["gradient"] for found in made)
    torch.testing.assert_close(two, 2 * one[::2])  # twice, since the ranks' are averaged


def test_averages_are_over_ranks(made):
    one, two = (found["average"] for found in made)
    assert one.tolist() == [0, 0, 0, 0, 0]
    assert two.tolist() == [0.5, 0.5, 0.5, 0.5, 5]


def test_ranks_can_come_together_again(made):
    one, two = made
    assert float(one["again"]) == 0
    assert float(two["again"]) == 0.5


def test_alone_nothing_is_shared(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    rows = torch.arange(5)
    with distributed.process_group():
        assert distributed.world_size() == 1
        assert distributed.is_main_process()
        assert distributed.shard(rows) is rows
        assert distributed.rank_seed(7) == 7
        assert distributed.rank_device("cpu") == torch.device("cpu")


FAULT = """
import cida
import torch
from cida.distributed import any_rank, rank

with cida.process_group():
    any_rank(True)
    if rank() == 1:
        raise RuntimeError("on purpose")
    any_rank(True)
"""


def test_a_rank_that_fails_ends_all(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(FAULT)
    ended = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
         str(script)],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert ended.returncode != 0
    assert "on purpose" in ended.stderr
