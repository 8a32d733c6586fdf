"""Figures of speed: their limits, the sections, and what grows."""

import os
import time
import warnings

import numpy as np
import pytest
import torch

from cida.benchmarks import speed_growth
from cida.benchmarks.speed import Effort, Figure, Times, in_a_child, in_turns, mean_ms
from cida.benchmarks.speed_growth import (
    Grown,
    dealt_times,
    grown,
    mapped_rows,
    row_figures,
    write_rows,
)
from cida.benchmarks.speed_steps import (
    circle_game,
    digits_game,
    floor_of,
    signals_game,
    step_over_floor,
    table_game,
)
from cida.cli import main
from cida.cli.speed import SECTIONS


def test_a_limit_is_the_most_or_the_least_and_holds_for_the_digits_that_are_shown():
    assert Figure("a", 1.154, "x", 1.15).met
    assert not Figure("a", 1.156, "x", 1.15).met
    assert Figure("a", 2.996, "x", 3.0, least=True).met
    assert not Figure("a", 2.9, "x", 3.0, least=True).met
    assert Figure("a", 2.9, "x").met is None


def test_ratios_are_of_the_rounds_and_not_of_the_medians():
    slow = iter([1.0, 10.0, 2.0])
    found = in_turns({"a": lambda: 2.0, "b": lambda: next(slow)}, 3)
    assert found.ms("b") == 2.0
    assert found.ratio("b", "a") == 1.0
    assert found.ratio("a", "b") == 1.0


def test_a_mean_is_that_of_the_clock_that_is_given():
    assert mean_ms(lambda: time.sleep(0.01), 2) >= 10
    assert mean_ms(lambda: time.sleep(0.01), 2, time.process_time) < 10


def test_a_crash_in_a_child_is_told_and_ends_nothing_else():
    assert in_a_child(max, 1, 2) == 2
    assert in_a_child(os._exit, 1) is None


@pytest.mark.filterwarnings("ignore::cida.CidaWarning")
@pytest.mark.parametrize("name", ["circle", "table", "digits", "signals"])
def test_a_step_is_measured_against_the_floor_of_its_own_game(name, tmp_path):
    games = {
        "circle": lambda: circle_game("l2"),
        "table": table_game,
        "digits": digits_game,
        "signals": lambda: signals_game(tmp_path / "segments.npy"),
    }
    found = step_over_floor(name, games[name], steps=1, rounds=1)
    assert (found.what, found.unit, found.limit) == (name, "x floor", 1.15)
    assert found.value > 0


def test_the_floor_moves_every_player_as_a_step_does():
    game, rows, training = circle_game("l2")
    before = {name: [p.clone() for p in ps] for name, ps in game.players().items()}
    floor_of(game, rows, training)()
    for name, parameters in game.players().items():
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
    found = grown(tmp_path, torch.get_num_threads())
    assert found.rows == 1000
    assert min(found.predict_us, found.anon_mb) > 0
    times = dealt_times({1000: tmp_path}, 1, torch.get_num_threads())
    assert times.ms("1000") > 0


def test_time_and_memory_are_compared_from_where_they_should_be_flat(monkeypatch):
    dealt = Times([{"100": 9.0, "100000": 2.0, "200000": 2.2}])
    found = iter([Grown(100, 9, 9, 99, 9), Grown(100_000, 4, 8, 10, 1),
                  Grown(200_000, 8, 4, 11, 2), dealt])  # fmt: skip
    monkeypatch.setattr(speed_growth, "in_a_child", lambda *_: next(found))
    monkeypatch.setattr(speed_growth, "write_rows", lambda *_: None)
    figures = list(row_figures(Effort(), (100, 100_000, 200_000)))
    compared = {figure.what: figure for figure in figures if figure.limit}
    words = ", from 100,000 to 200,000 rows"
    assert compared[f"time of a dealt row{words}"].value == pytest.approx(1.1)
    assert compared[f"time of a predicted row{words}"].value == 0.5
    assert compared[f"memory of its own{words}"].met
    assert not compared[f"time beside the steps, a row{words}"].met


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def two_figures(monkeypatch):
    def figures(effort):
        yield Figure("circle, l2", 1.2, "x floor", 1.15, beside=f"{effort.steps} steps")
        yield Figure("cida's loop", 12_345.0, "images/s", 3.0, least=True)

    monkeypatch.setattr("cida.benchmarks.speed_steps.step_figures", figures)


def test_every_section_has_a_function_that_yields_figures():
    for section in SECTIONS.values():
        module, _, function = section.made_by.partition(":")
        assert callable(getattr(__import__(module, fromlist=[function]), function))


def test_each_line_has_its_figure_its_limit_and_whether_it_is_met(two_figures, capsys):
    assert main(["speed", "--only", "steps", "--steps", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Training step over its floor"
    assert lines[2] == "circle, l2\t1.20\tx floor\t<= 1.15\tNO\t3 steps"
    assert lines[3] == "cida's loop\t12,345\timages/s\t>= 3\tyes\t"


def test_the_page_has_the_machine_the_command_and_the_tables(two_figures, tmp_path, capsys):
    path = tmp_path / "performance.md"
    assert main(["speed", "--only", "steps", "--out", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(path)
    page = path.read_text()
    assert f"cida speed --only steps --out {path}" in page
    assert f"torch {torch.__version__}" in page
    assert "| circle, l2 | 1.20 | x floor | <= 1.15 | NO | 200 steps |" in page


def test_a_package_that_is_not_there_is_one_sentence_unless_its_section_is_not_asked_for(
    two_figures, capsys, monkeypatch
):
    monkeypatch.setattr("cida.cli.speed.find_spec", lambda name: None)
    assert main(["speed"]) == 2
    error = capsys.readouterr().err
    assert "section images needs PIL" in error
    assert "pip install 'cida[speed]'" in error
    assert len(error.strip().splitlines()) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["speed", "--only", "steps"]) == 0
