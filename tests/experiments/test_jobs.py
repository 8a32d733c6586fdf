"""Many runs: in order, side by side, the same numbers."""

import json
import multiprocessing
import os
import signal
import threading
import time
import warnings
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from cida import CidaWarning
from cida.cli import main
from cida.datasets import make_sine
from cida.experiments.circle_sine.toy_tasks import FRESH_SEED_OFFSET
from cida.experiments.jobs import Job, run_jobs, single_threaded
from cida.experiments.runner import load_completed_run, run_recipe
from cida.runs.snapshot import SNAPSHOT_FILE, load_snapshot


def tasks_in(folder):
    return [
        Job("sine", "best", "points", method, seed, folder / f"{method}-seed{seed}", steps=15)
        for method in ("source-only", "histogram")
        for seed in (0, 1)
    ]


def without_seconds(row):
    return {name: value for name, value in asdict(row).items() if name != "seconds"}


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """Two methods with two seeds, one after the other."""
    tasks, heard = tasks_in(tmp_path_factory.mktemp("grid")), []
    return tasks, run_jobs(tasks, 1, heard.append), heard


def test_every_run_is_told_as_it_ends_and_given_in_order(grid):
    tasks, done, heard = grid
    assert heard == done
    assert [ended.job for ended in done] == tasks
    for ended in done:
        assert ended.failure == ""
        assert (ended.result.method, ended.result.seed) == (ended.job.method, ended.job.seed)


def test_two_at_a_time_find_the_same_numbers_and_weights(grid, tmp_path):
    _, done, _ = grid
    heard = []
    beside = run_jobs(tasks_in(tmp_path), 2, heard.append)
    assert sorted(e.job.folder for e in heard) == sorted(e.job.folder for e in beside)
    for one, two in zip(done, beside, strict=True):
        assert without_seconds(one.result) == without_seconds(two.result)
        model = "model.safetensors"
        weights = [e.job.folder.joinpath(model).read_bytes() for e in (one, two)]
        assert weights[0] == weights[1]
    assert multiprocessing.active_children() == []


def test_what_the_doctor_finds_is_left_to_the_report_which_names_the_run(tmp_path):
    task = Job("circle", "paper", "points", "cida", 100, tmp_path / "cida-seed100", steps=200)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        (ended,) = run_jobs([task], 1, lambda _: None)
    assert ended.failure == ""
    assert [one for one in told if issubclass(one.category, CidaWarning)] == []
    assert load_completed_run(task.folder, task.recipe).model.diagnoses_


def test_fresh_points_are_another_draw_scaled_as_the_first(grid):
    (task, *_), (ended, *_), _ = grid
    world = task.task_data.data
    fresh = make_sine(seed=FRESH_SEED_OFFSET, scaling_from=world)
    model = load_completed_run(task.folder, task.recipe).model
    right = model.predict(fresh.x, domain_index=fresh.u) == fresh.y
    assert ended.result.fresh["all_score"] == right.mean()
    assert np.array_equal(fresh.x, task.task_data.fresh_data.x)
    assert not np.array_equal(fresh.x, world.x)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_is_one_inside_and_put_back(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with single_threaded():
            assert torch.get_num_threads() == 1
            assert {pool["num_threads"] for pool in threadpool_info()} == {1}  # numpy's, scipy's
        assert torch.get_num_threads() == threads
        with pytest.raises(RuntimeError, match="stop"), single_threaded():
            raise RuntimeError("stop")
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_a_grid_runs_with_one_thread_and_puts_the_number_back(grid, monkeypatch):
    tasks, done, _ = grid
    seen = []

    def play(task):
        seen.append(torch.get_num_threads())
        return done[0].result

    monkeypatch.setattr(Job, "run", play)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run_jobs(tasks, 1, lambda ended: None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == [1, 1, 1, 1]


def test_a_run_that_fails_is_told_and_the_others_go_on(grid, monkeypatch):
    tasks, done, _ = grid

    def play(task):
        if task == tasks[1]:
            raise FloatingPointError("the loss is NaN at step 3.")
        return done[0].result

    monkeypatch.setattr(Job, "run", play)
    heard = []
    found = run_jobs(tasks, 1, heard.append)
    assert [e.result is None for e in found] == [False, True, False, False]
    assert found[1].failure == "the loss is NaN at step 3."
    assert heard == found


def test_a_process_that_is_killed_is_told_and_the_others_end(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def kill_one():
        while not (workers := multiprocessing.active_children()):
            time.sleep(0.02)
        os.kill(workers[0].pid, signal.SIGKILL)

    killing = threading.Thread(target=kill_one)
    killing.start()
    few = ["--methods", "source-only", "--seeds", "3", "--no-figures", "--out", "run"]
    assert main(["reproduce", "sine", *few, "--jobs", "2"]) == 1
    killing.join()
    assert capsys.readouterr().err == (
        "cida: a run's process was killed, perhaps because memory ran out; finished runs are kept: "
        "go on with --resume and fewer --jobs.\n"
    )
    assert multiprocessing.active_children() == []


def test_an_error_that_is_no_runaway_game_is_not_swallowed(grid, monkeypatch):
    def play(task):
        raise OSError("the disk is full")

    monkeypatch.setattr(Job, "run", play)
    with pytest.raises(OSError, match="disk is full"):
        run_jobs(grid[0], 1, lambda ended: None)


def test_a_finished_run_is_known_again_and_no_other(grid):
    tasks, done, _ = grid
    for task, ended in zip(tasks, done, strict=True):
        assert task.find_finished_result() == ended.result
    task = tasks[0]
    for change in (
        {"steps": 16}, {"steps": None}, {"seed": 1}, {"preset": "paper"}, {"method": "histogram"},
        {"task_name": "circle"}, {"folder": task.folder / "elsewhere"},
    ):  # fmt: skip
        assert replace(task, **change).find_finished_result() is None, change


@pytest.mark.parametrize("name", ["result.json", "run.json"])
@pytest.mark.parametrize("words", ["", "{", "[]", '{"method": "histogram"}', None])
def test_a_damaged_or_missing_file_means_not_finished(tmp_path, grid, name, words):
    task = replace(grid[0][0], folder=tmp_path)
    for whole in ("result.json", "run.json"):
        (tmp_path / whole).write_bytes((grid[0][0].folder / whole).read_bytes())
    assert task.find_finished_result() is not None
    (tmp_path / name).unlink() if words is None else (tmp_path / name).write_text(words)
    assert task.find_finished_result() is None


def test_a_run_read_from_its_folder_is_as_it_was_given(tmp_path, grid):
    task = replace(grid[0][3], folder=tmp_path)
    recipe = task.recipe
    made = run_recipe(recipe, task.task_data, task.seed, tmp_path)
    read = load_completed_run(tmp_path, recipe)
    assert read.result == made.result
    assert read.recipe is made.recipe
    assert read.history == made.history
    world = task.task_data.data
    said = [o.model.predict_proba(world.x, domain_index=world.u) for o in (made, read)]
    assert np.array_equal(*said)


def test_what_to_expect_is_told_where_it_is_asked_for(tmp_path):
    task = Job("circle", "best", "points", "histogram", 100, tmp_path / "run", steps=30)
    with single_threaded():
        task.run()
        assert load_snapshot(task.folder / SNAPSHOT_FILE).expected == ()
        assert task.find_finished_result() is not None
        asking = replace(task, with_expected_score=True)
        assert asking.find_finished_result() is None  # it has yet to be told
        row = asking.run()
        cells = load_snapshot(task.folder / SNAPSHOT_FILE).expected
        assert cells
        assert all(0 <= cell.low <= cell.score <= cell.high <= 1 for cell in cells)
        assert asking.find_finished_result() == row
    words = json.loads((task.folder / "run.json").read_text())
    command = "cida reproduce circle --preset best --protocol points --methods histogram --seeds 1"
    assert words["origin"]["command"] == f"{command} --first-seed 100 --steps 30 --expected"
