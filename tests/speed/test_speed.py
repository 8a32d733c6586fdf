"""Figures of speed: their limits, the sections, and what grows."""

import json
import os
import time

import numpy as np
import pytest
import torch

from benchmarks import growth
from benchmarks.command import SECTIONS, Section, main
from benchmarks.growth import (
    GrowthMeasurement,
    mapped_rows,
    measure_growth,
    measure_steps,
    row_figures,
    write_rows,
)
from benchmarks.measure import (
    Effort,
    Measurement,
    RoundTimings,
    mean_ms,
    measure_interleaved,
    run_in_subprocess,
)
from benchmarks.steps import (
    circle_game,
    digits_game,
    make_floor_step,
    measure_step_over_floor,
    signals_game,
    table_game,
)


def test_a_limit_is_the_most_or_the_least_and_holds_for_the_digits_that_are_shown():
    assert Measurement("a", 1.154, "x", 1.15).is_met
    assert not Measurement("a", 1.156, "x", 1.15).is_met
    assert Measurement("a", 2.996, "x", 3.0, is_minimum=True).is_met
    assert not Measurement("a", 2.9, "x", 3.0, is_minimum=True).is_met
    assert Measurement("a", 2.9, "x").is_met is None


def test_ratios_are_of_the_rounds_and_not_of_the_medians():
    slow = iter([1.0, 10.0, 2.0])
    found = measure_interleaved({"a": lambda: 2.0, "b": lambda: next(slow)}, 3)
    assert found.median_ms("b") == 2.0
    assert found.median_ratio("b", "a") == 1.0
    assert found.median_ratio("a", "b") == 1.0


def test_a_mean_is_that_of_the_clock_that_is_given():
    assert mean_ms(lambda: time.sleep(0.01), 2) >= 10
    assert mean_ms(lambda: time.sleep(0.01), 2, time.process_time) < 10


def test_a_crash_in_a_child_is_told_and_ends_nothing_else():
    assert run_in_subprocess(max, 1, 2) == 2
    assert run_in_subprocess(os._exit, 1) is None


@pytest.mark.filterwarnings("ignore::cida.CidaWarning")
@pytest.mark.parametrize("name", ["circle", "table", "digits", "signals"])
def test_a_step_is_measured_against_the_floor_of_its_own_game(name, tmp_path):
    games = {
        "circle": lambda: circle_game("l2"),
        "table": table_game,
        "digits": digits_game,
        "signals": lambda: signals_game(tmp_path / "segments.npy"),
    }
    found = measure_step_over_floor(name, games[name], steps=1, rounds=1)
    assert (found.name, found.unit, found.limit) == (name, "x floor", 1.15)
    assert found.value > 0


def test_the_floor_moves_every_player_as_a_step_does():
    game, rows, training = circle_game("l2")
    before = {name: [p.clone() for p in ps] for name, ps in game.player_parameters().items()}
    make_floor_step(game, rows, training)()
    for name, parameters in game.player_parameters().items():
        for old, new in zip(before[name], parameters, strict=True):
            assert not torch.equal(old, new)


def test_mapped_rows_are_what_was_written_and_half_of_them_have_labels(tmp_path):
    write_rows(tmp_path, 500)
    rows = mapped_rows(tmp_path)
    x, y, u = (np.load(tmp_path / f"{name}.npy") for name in ("X", "y", "u"))
    batch = rows[torch.tensor([3, 499])]
    assert np.array_equal(batch.x.numpy(), x[[3, 499]])
    assert np.array_equal(rows.labelled.numpy(), u <= 0.5)
    assert np.array_equal(rows.y.numpy(), np.where(y >= 0, y, 0))


def test_what_so_many_rows_take_is_measured(tmp_path):
    write_rows(tmp_path, 1000)
    found = measure_growth(tmp_path, torch.get_num_threads())
    assert found.rows == 1000
    assert min(found.predict_us, found.peak_anon_mb) > 0
    times = measure_steps({1000: tmp_path}, 1, torch.get_num_threads())
    assert times.median_ms("1000") > 0


def test_time_and_memory_are_compared_from_where_they_should_be_flat(monkeypatch):
    dealt = RoundTimings([{"100": 9.0, "100000": 2.0, "200000": 2.2}])
    found = iter([GrowthMeasurement(100, 9, 9, 99, 9), GrowthMeasurement(100_000, 4, 8, 10, 1),
                  GrowthMeasurement(200_000, 8, 4, 11, 2), dealt])  # fmt: skip
    monkeypatch.setattr(growth, "run_in_subprocess", lambda *_: next(found))
    monkeypatch.setattr(growth, "write_rows", lambda *_: None)
    figures = list(row_figures(Effort(), (100, 100_000, 200_000)))
    compared = {figure.name: figure for figure in figures if figure.limit}
    words = ", from 100,000 to 200,000 rows"
    assert compared[f"time of a dealt row{words}"].value == pytest.approx(1.1)
    assert compared[f"time of a predicted row{words}"].value == 0.5
    assert compared[f"memory of its own{words}"].is_met
    assert not compared[f"time beside the steps, a row{words}"].is_met


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def two_measurements(monkeypatch):
    def measure(effort):
        yield Measurement("circle, l2", 1.2, "x floor", 1.15, note=f"{effort.steps} steps")
        yield Measurement("cida's loop", 12_345.0, "images/s", 3.0, is_minimum=True)

    monkeypatch.setitem(SECTIONS, "steps", Section("Training step over its floor", measure))


def test_each_line_has_its_figure_its_limit_and_whether_it_is_met(two_measurements, capsys):
    assert main(["--only", "steps", "--steps", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Training step over its floor"
    assert lines[4] == "| circle, l2 | 1.20 | x floor | <= 1.15 | NO | 3 steps |"
    assert lines[5] == "| cida's loop | 12,345 | images/s | >= 3 | yes |  |"


def test_the_page_has_the_machine_the_command_and_the_tables(two_measurements, tmp_path, capsys):
    path = tmp_path / "performance.md"
    assert main(["--only", "steps", "--out", str(path)]) == 0
    assert capsys.readouterr().out.split()[-1] == str(path)
    page = path.read_text()
    assert f"python -m benchmarks --only steps --out {path}" in page
    assert f"torch {torch.__version__}" in page
    assert "| circle, l2 | 1.20 | x floor | <= 1.15 | NO | 200 steps |" in page


def test_programs_get_one_json_object(two_measurements, capsys):
    assert main(["--only", "steps", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    step = answer["sections"]["steps"][0]
    assert (step["name"], step["value"], step["limit"]) == ("circle, l2", 1.2, 1.15)
    assert step["met"] is False
    assert answer["threads"] > 0
    assert answer["command"] == "python -m benchmarks --only steps"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "steps is 0"),
        (["--workers", "-1"], "workers is -1"),
        (["--only", "step"], "only is 'step'; did you mean steps? known: steps, images"),
    ],
)
def test_a_wrong_argument_is_one_sentence(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
