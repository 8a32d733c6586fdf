"""Training that is cut off and goes on: the same weights and the same story, bit for bit."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest
import torch

from cida import CIDAClassifier, CidaWarning, resumable
from cida.datasets import make_circle
from cida.games import GAMES
from cida.training import CheckpointWarning

pytestmark = pytest.mark.filterwarnings("ignore::cida.CidaWarning")

STEPS = 60
SMALL = {
    "steps": STEPS,
    "encoder_hidden": (16,),
    "encoding_width": 4,
    "coordinates": "learned",
    "curriculum": 0.5,
    "curriculum_stages": 4,
    "batch_size": 32,
    "random_state": 3,
}


@pytest.fixture(autouse=True)
def listening():
    """A shell that starts pytest in the background has Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def world():
    return make_circle(n_per_domain=12, seed=100)


def fit(world, *callbacks, **settings):
    model = CIDAClassifier(**{**SMALL, **settings}, callbacks=list(callbacks))
    return model.fit(world.x, world.training_labels, domain_index=world.u)


def stop_at(step, number=signal.SIGINT):
    """Ctrl-C while the event of this step is told."""
    return lambda event: os.kill(os.getpid(), number) if event.step == step else None


def cut_off(world, folder, step, **settings):
    with resumable(folder), pytest.raises(KeyboardInterrupt):
        fit(world, stop_at(step), **settings)


def told(model):
    """What happened, but for the time that it took."""
    return [(e.step, e.learning_rate, e.active_share, e.losses, e.ceilings, e.health)
            for e in model.history_]  # fmt: skip


def assert_same(one, other):
    first, second = one.game_.state(), other.game_.state()
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    assert told(one) == told(other)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("step", [7, 44])
def test_every_game_goes_on_bit_for_bit(world, tmp_path, game, step):
    settings = {"game": game, "n_restarts": 1}
    whole = fit(world, **settings)
    cut_off(world, tmp_path, step, **settings)
    with resumable(tmp_path):
        assert_same(fit(world, **settings), whole)


@pytest.mark.parametrize(
    "settings",
    [
        {"stochastic": "gaussian"},
        {"stochastic": "dropout"},
        {"batch_norm": True},
        {"discriminator": "mixture"},
        {"discriminator": None},
        {"ema_decay": 0.0, "weight_decay": 0.1, "schedule": "constant"},
        {"precision": "bf16"},
    ],
    ids=str,
)
def test_what_is_drawn_and_remembered_goes_on(world, tmp_path, settings):
    whole = fit(world, **settings)
    for step in (5, 23, 41):
        cut_off(world, tmp_path, step, **settings)
    with resumable(tmp_path):
        assert_same(fit(world, **settings), whole)


def test_checkpoints_change_nothing_and_two_are_kept(world, tmp_path):
    whole = fit(world)
    with resumable(tmp_path, interval_seconds=0):
        assert_same(fit(world), whole)
    files = sorted(path.name for path in (tmp_path / "training-0").iterdir())
    assert [name.split("-")[1] for name in files] == ["000000059", "000000060"]


def test_a_finished_training_is_not_done_again(world, tmp_path, monkeypatch):
    with resumable(tmp_path):
        whole = fit(world, n_restarts=2)
    monkeypatch.setattr("cida.games.Adversarial.moves", None)  # nobody can play any more
    with resumable(tmp_path):
        assert_same(fit(world, n_restarts=2), whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["training-0", "training-1"]


def test_of_several_games_the_finished_ones_are_kept(world, tmp_path):
    whole = fit(world, n_restarts=3)
    seen = []

    def in_the_second_game(event):
        seen.append(event.step)
        if seen.count(10) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with resumable(tmp_path), pytest.raises(KeyboardInterrupt):
        fit(world, in_the_second_game, n_restarts=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["training-0", "training-1"]
    with resumable(tmp_path):
        again = fit(world, n_restarts=3)
    assert_same(again, whole)
    assert again.selection_ == whole.selection_


def damage(path, place=0.6):
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1
    path.write_bytes(content)


def two_checkpoints(world, folder):
    """Of steps 20 and 40."""
    for step in (20, 40):
        cut_off(world, folder, step)
    first, second = sorted((folder / "training-0").iterdir())
    return first, second


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(world, tmp_path):
    whole = fit(world)
    first, second = two_checkpoints(world, tmp_path)
    damage(second)
    started = []
    with resumable(tmp_path), pytest.warns(CheckpointWarning) as said:
        again = fit(world, lambda event: started.append(event.step))
    (warning,) = [w for w in said if w.category is CheckpointWarning]
    assert f"checkpoint {second} is damaged: its checksum does not match" in str(warning.message)
    assert first.name not in str(warning.message)
    assert_same(again, whole)


@pytest.mark.parametrize("change", [damage, lambda p: p.write_bytes(p.read_bytes()[:100])])
def test_with_both_damaged_it_begins_anew(world, tmp_path, change):
    whole = fit(world)
    for path in two_checkpoints(world, tmp_path):
        change(path)
    with resumable(tmp_path), pytest.warns(CheckpointWarning) as said:
        assert_same(fit(world), whole)
    assert sum(w.category is CheckpointWarning for w in said) == 2


@pytest.mark.parametrize("change", ["settings", "rows", "seed"])
def test_a_checkpoint_of_another_training_is_not_gone_on_with(world, tmp_path, change):
    cut_off(world, tmp_path, 20)
    settings = {"settings": {"lambda_d": 3.0, "learning_rate": 1e-3}, "seed": {"random_state": 4}}
    more = settings.get(change, {})
    other = make_circle(n_per_domain=12, seed=101) if change == "rows" else world
    whole = fit(other, **more)
    with resumable(tmp_path), pytest.warns(CheckpointWarning, match="is of another training"):
        assert_same(fit(other, **more), whole)


def test_ctrl_c_in_the_last_round_is_heard_and_the_training_is_kept(world, tmp_path, monkeypatch):
    whole = fit(world)
    cut_off(world, tmp_path, STEPS)
    monkeypatch.setattr("cida.games.Adversarial.moves", None)  # there is nothing left to play
    with resumable(tmp_path):
        assert_same(fit(world), whole)


def test_a_second_ctrl_c_does_not_wait(world, tmp_path):
    def twice(event):
        if event.step == 10:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with resumable(tmp_path), pytest.raises(KeyboardInterrupt):
        fit(world, twice)
    assert not (tmp_path / "training-0").exists()


def test_signals_are_as_before_when_training_is_over(world, tmp_path):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with resumable(tmp_path):
        fit(world)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_in_a_thread_there_are_checkpoints_too(world, tmp_path):
    def work():
        with warnings.catch_warnings(), resumable(tmp_path):
            warnings.simplefilter("ignore", CidaWarning)
            fit(world)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(list((tmp_path / "training-0").iterdir())) == 1


def test_without_being_asked_nothing_is_written(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit(world)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_no_model_and_says_so(world, tmp_path):
    with resumable(tmp_path):
        fit(world)
    (path,) = (tmp_path / "training-0").iterdir()
    with pytest.raises(ValueError, match="does not hold a whole model"):
        CIDAClassifier.load(path)
    assert np.isfinite(path.stat().st_size)
