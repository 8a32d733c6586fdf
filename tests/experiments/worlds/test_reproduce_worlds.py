"""``cida reproduce worlds`` and ``moments``, through the command line, with few steps."""

import json
import re
from functools import partial

import pytest

from cida.cli import main
from cida.datasets import make_ladder
from cida.experiments.moments import ladder_tasks

METHODS = ["source-only", "default"]


def reproduce(name, folder, *more):
    quick = ["--steps", "2", "--seeds", "1", "--out", str(folder)]
    return main(["reproduce", name, *quick, *more])


def words_of(folder):
    return json.loads((folder / "results.json").read_text())


def tables_of(folder):
    """The cells of each table of table.md."""
    blocks = re.findall(r"(?:^\|.*\n)+", (folder / "table.md").read_text(), re.MULTILINE)
    return [[line.strip("| ").split("|") for line in block.splitlines()] for block in blocks]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds")
    tasks = ["--tasks", "moons", "plane", "drifting-regression"]
    assert reproduce("worlds", folder, *tasks, "--methods", *METHODS) == 0
    return folder


@pytest.fixture(scope="module")
def rungs(tmp_path_factory):
    """The preset that begins at the shortcut, with small ladders and a hasty discriminator."""
    folder = tmp_path_factory.mktemp("moments")
    methods = ["--methods", "source-only", "cida", "distance-correlation"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ladder_tasks, "DISCRIMINATOR_TRAINING_STEPS", 300)
        patch.setattr(ladder_tasks.ladder, "make_ladder", partial(make_ladder, n_samples=600))
        preset = ["--preset", "start", "--tasks", "mean", "variance", "--no-figures"]
        assert reproduce("moments", folder, *preset, *methods) == 0
    return folder


# --- worlds -----------------------------------------------------------------------------------


def test_all_files_are_written_and_the_figures_drawn(worlds):
    tasks = ["moons", "plane", "drifting-regression"]
    assert {path.name for path in worlds.iterdir()} == {
        "results.json", "manifest.json", "table.md", "report.html", *tasks,
        "scores.png", "scores.svg", "along.png", "along.svg",
    }  # fmt: skip
    for task in tasks:
        assert {path.name for path in (worlds / task).iterdir()} == {f"{m}-seed0" for m in METHODS}
        for run in (worlds / task).iterdir():
            assert {path.name for path in run.iterdir()} == {
                "run.json",
                "events.jsonl",
                "result.json",
                "model.safetensors",
                "snapshot.safetensors",
            }


def test_results_have_what_is_left_of_u_and_name_the_metric_of_the_regression(worlds):
    words = words_of(worlds)
    assert (words["benchmark"], words["preset"]) == ("worlds", "best")
    assert [row["metric"] for row in words["rows"]] == ["accuracy"] * 4 + ["r2"] * 2
    assert words["protocol"].startswith("points: all rows are trained on")
    assert [row["method"] for row in words["rows"]] == METHODS * 3
    for row in words["rows"]:
        assert list(row["extra_metrics"]) == ["left of u"]
        assert row["extra_metrics"]["left of u"] <= 1
    # Windows take the drift of the regression out before any step.
    left = {
        (row["task"], row["method"]): row["extra_metrics"]["left of u"] for row in words["rows"]
    }
    task = "worlds/drifting-regression"
    assert left[task, "default"] < 0.1 < left[task, "source-only"]


def test_the_tables_have_a_line_a_world_and_the_words_on_each(worlds):
    tasks, details = tables_of(worlds)
    assert [cell.strip() for cell in tasks[0]] == ["task", "Source-Only", "Default"]
    assert [line[0].strip() for line in tasks[2:]] == [
        "Turning moons", "Plane", "Drifting regression (R²)",
    ]  # fmt: skip
    assert len(details) == 2 + 6
    assert "left of u" in [cell.strip() for cell in details[0]]
    text = (worlds / "table.md").read_text()
    assert text.count("the balance of source labels holds along u") == 3


def test_the_report_has_the_command_and_the_figures_and_fetches_nothing(worlds):
    page = (worlds / "report.html").read_text()
    assert "cida reproduce worlds --preset best --seeds 1 --steps 2 --tasks moons plane" in page
    assert page.count("data:image/svg+xml;base64,") == 2
    assert not re.search(r"(src|href)=['\"]https?:", page)


def test_finished_runs_are_kept(worlds, capsys):
    def stamps():
        return {path: path.stat().st_mtime_ns for path in sorted(worlds.glob("*/*-seed0/*"))}

    before = stamps()
    more = ["--tasks", "moons", "plane", "drifting-regression", "--methods", *METHODS]
    assert reproduce("worlds", worlds, *more, "--no-figures", "--resume") == 0
    assert len(before) == 30
    assert stamps() == before
    assert str(worlds / "report.html") in capsys.readouterr().out


# --- moments ----------------------------------------------------------------------------------


def test_methods_that_adapt_tell_what_they_see_at_the_start(rungs):
    words = words_of(rungs)
    assert words["protocol"].startswith("start: as points, and the encoder begins as the shortcut")
    more = {(row["task"], row["method"]): row["extra_metrics"] for row in words["rows"]}
    for task in ("moments/mean", "moments/variance"):
        assert list(more[task, "source-only"]) == ["left of u"]
    seen, told = "seen at the start", "gradient at the start"
    assert more["moments/mean", "cida"][seen] > 0.3
    assert abs(more["moments/variance", "cida"][seen]) < 1e-2
    assert more["moments/variance", "cida"][told] < more["moments/mean", "cida"][told] / 10
    assert more["moments/variance", "distance-correlation"][seen] > 0.01


def test_every_line_of_a_table_has_every_column(rungs):
    for table in tables_of(rungs):
        assert {len(line) for line in table} == {len(table[0])}
    header, _, first, *_ = ([c.strip() for c in line] for line in tables_of(rungs)[1])
    assert header[-4:] == ["left of u", "seen at the start", "gradient at the start", "seconds"]
    named = dict(zip(header, first, strict=True))
    assert (named["method"], named["seen at the start"]) == ("Source-Only", "")
    assert re.fullmatch(r"\d+", named["seconds"])


def test_after_two_steps_from_the_shortcut_the_source_is_right_and_the_target_a_guess(rungs):
    for row in words_of(rungs)["rows"]:
        assert row["source_score"] > 0.9
        assert row["target_score"] == pytest.approx(0.5, abs=0.1)


def test_a_rung_is_reproduced_with_the_best_preset_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(ladder_tasks.ladder, "make_ladder", partial(make_ladder, n_samples=600))
    assert reproduce("moments", tmp_path, "--tasks", "whole", "--methods", "histogram") == 0
    (row,) = words_of(tmp_path)["rows"]
    assert row["task"] == "moments/whole"
    assert {path.name for path in tmp_path.iterdir() if path.suffix == ".svg"} == {
        "scores.svg", "along.svg",
    }  # fmt: skip
    assert "Whole distribution" in (tmp_path / "table.md").read_text()


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("worlds", ["--tasks", "mars"], "tasks is 'mars'; known: circle, sine, moons"),
        ("worlds", ["--preset", "paper"], "preset is 'paper'; known: best."),
        ("moments", ["--methods", "dann"], "methods has dann; known are source-only, cida-l1"),
    ],
)
def test_what_is_not_known_is_refused_in_one_line(tmp_path, capsys, name, more, words):
    assert reproduce(name, tmp_path / "out", *more) in (1, 2)
    said = " ".join(capsys.readouterr().err.split())
    assert words in said
    assert not (tmp_path / "out").exists()
