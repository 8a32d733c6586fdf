"""A bank of runs, and what validators make of it."""

import json

import numpy as np
import pytest
import torch

from cida.cli import main
from cida.experiments.jobs import Job, run_jobs
from cida.experiments.registry import EXPERIMENTS, TASK_SPECS
from cida.experiments.selection.model_bank import LEAVE_RANGE_OUT
from cida.experiments.selection.validator_ranking import (
    ExpectedCell,
    GroupRanking,
    ValidatorRanking,
    rank_validators,
)
from cida.selection.validators import VALIDATORS

METHODS = ("l2-0.2", "gaussian-1", "histogram-5")


def group(scores, truth, task="selection/circle", foretold=()):
    return GroupRanking(
        task, 0, tuple("abcd"[: len(truth)]), truth, {"consensus": scores}, foretold
    )


class TestJudged:
    def test_scores_in_the_order_of_the_truth_correlate_fully(self):
        assert group((1.0, 2.0, 5.0), (0.5, 0.6, 0.9)).correlation("consensus") == pytest.approx(1)

    def test_the_shortfall_is_what_the_kept_run_lacks(self):
        assert group((3.0, 2.0, 1.0), (0.5, 0.6, 0.9)).shortfall("consensus") == pytest.approx(0.4)

    def test_a_validator_that_tells_nothing_apart_has_no_correlation(self):
        assert group((1.0, 1.0, 1.0), (0.5, 0.6, 0.9)).correlation("consensus") == 0.0


class TestVerdict:
    def test_correlations_are_means_over_groups_and_then_over_worlds(self):
        up, down = ((1.0, 2.0, 3.0), (0.1, 0.2, 0.3)), ((3.0, 2.0, 1.0), (0.1, 0.2, 0.3))
        verdict = ValidatorRanking((group(*up), group(*down), group(*up, task="selection/sine")))
        found = verdict.correlations("consensus")
        assert found == pytest.approx({"selection/circle": 0.0, "selection/sine": 1.0})

    def test_words_tell_how_far_expectations_are_off(self):
        cells = (
            ExpectedCell(0.5, 0.9, 0.8, 1.0, 0.85, True),
            ExpectedCell(0.7, 0.9, 0.8, 1.0, 0.7, False),
        )
        verdict = ValidatorRanking((group((1.0, 2.0), (0.7, 0.8), foretold=cells),))
        words = verdict.summary({"selection/circle": "Circle"})[1]
        assert "off by 12.5 points" in words
        assert "20.0 points wide and hold the truth 50%" in words


class TestBank:
    def test_it_has_at_least_120_runs_over_six_worlds_with_two_seeds(self):
        tasks = EXPERIMENTS["selection"].tasks
        assert len(tasks) == 6
        assert 2 * sum(len(task.methods) for task in tasks) >= 120

    def test_rows_held_out_are_source_rows_whose_labels_are_not_trained_on(self):
        sample = TASK_SPECS["selection/moons"].draw_data(113, "clean")
        held = sample.held_out_mask
        assert held.any()
        assert (held & ~sample.dataset.labelled).sum() == 0
        assert not (sample.training_dataset().labelled & held).any()

    def test_digits_are_scored_on_target_angles_with_their_own_truth(self):
        sample = TASK_SPECS["selection/rotating-digits"].draw_data(113, "development")
        assert sample.scored_rows.u.min() > 45
        shares = np.bincount(sample.scored_rows.y, minlength=10) / len(sample.scored_rows.y)
        assert shares.min() > 0.05

    def test_runs_are_judged_by_every_validator_and_files_are_written(self, tmp_path):
        words = ["reproduce", "selection", "--tasks", "moons", "--methods", *METHODS]
        more = ["--seeds", "1", "--first-seed", "113", "--steps", "40", "--out", str(tmp_path)]
        assert main([*words, *more]) == 0
        words = json.loads((tmp_path / "selection.json").read_text())
        (found,) = words["groups"]
        assert set(found["scores"]) == set(VALIDATORS)
        assert len(found["truth"]) == 3
        assert found["expected_cells"]
        text = (tmp_path / "table.md").read_text()
        assert "consensus (default)" in text
        assert (tmp_path / "report.html").stat().st_size > 10_000
        assert (tmp_path / "scores.png").is_file()
        assert (tmp_path / "expected.png").is_file()


def test_judging_twice_gives_the_same(tmp_path):
    tasks = [
        Job("selection/hours", "best", "clean", name, 113, tmp_path / name, 30) for name in METHODS
    ]
    done = run_jobs(tasks, 1, lambda ended: None)
    torch.manual_seed(5)  # whatever the global state
    assert rank_validators(done) == rank_validators(done)
    assert all(0 <= ended.result.extra_metrics[LEAVE_RANGE_OUT] <= 1 for ended in done)
