"""``cida reproduce`` on tables, through the command line, with small made-up files."""

import json
import re

import pytest

from cida.cli import main

pytestmark = pytest.mark.usefixtures("small_tables")

METHODS = ["source-only", "logistic", "histogram"]
TITLES = ["Source-Only", "Logistic regression", "Histogram head"]


def reproduce(name, folder, *more):
    quick = ["--steps", "3", "--seeds", "1", "--out", str(folder)]
    return main(["reproduce", name, *quick, *more])


def words_of(folder):
    return json.loads((folder / "results.json").read_text())


@pytest.fixture(scope="module")
def whole(small_tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nhanes")
    assert reproduce("nhanes", folder, "--methods", *METHODS, "--no-figures") == 0
    return folder


def test_all_files_are_written(whole):
    runs = {f"{method}-seed0" for method in METHODS}
    assert {path.name for path in whole.iterdir()} == {
        "results.json", "manifest.json", "table.md", "report.html", *runs,
    }  # fmt: skip
    for run in runs:
        model = set() if run == "logistic-seed0" else {"model.safetensors"}
        assert {path.name for path in (whole / run).iterdir()} == {
            "run.json", "events.jsonl", "result.json", "snapshot.safetensors", *model,
        }  # fmt: skip


def test_results_json_has_the_contracted_fields(whole):
    words = words_of(whole)
    assert (words["schema"], words["benchmark"], words["preset"]) == (1, "nhanes", "best")
    assert words["is_simulated"] is False
    assert words["protocol"].startswith("clean: one half of the target rows is scored")
    assert [row["method"] for row in words["rows"]] == METHODS
    for row in words["rows"]:
        assert row["task"] == "nhanes"
        assert 0 <= row["target_score"] <= 1
        assert all(cell["lo"] < cell["hi"] for cell in row["by_index"])
    assert [line["method"] for line in words["summary"]] == METHODS


def test_the_table_has_every_method_and_what_is_known_of_the_labels(whole):
    text = (whole / "table.md").read_text()
    assert all(title in text for title in TITLES)
    for line in words_of(whole)["summary"]:
        assert f"{100 * line['target_score_mean']:.1f}" in text
    assert "the balance of source labels holds along u" in text
    assert "Sex, age ≤ 20 → > 20" in text


def test_the_report_has_the_command_and_fetches_nothing(whole):
    page = (whole / "report.html").read_text()
    assert "cida reproduce nhanes --preset best --seeds 1 --steps 3 --methods source-only" in page
    assert all(title in page for title in TITLES)
    assert not re.search(r"(src|href)=['\"]https?:", page)


def test_finished_runs_are_kept(whole, capsys):
    def stamps():
        return {path: path.stat().st_mtime_ns for path in sorted(whole.glob("*-seed0/*"))}

    before = stamps()
    more = ["--methods", *METHODS, "--no-figures", "--resume"]
    assert reproduce("nhanes", whole, *more) == 0
    assert stamps() == before
    assert str(whole / "report.html") in capsys.readouterr().out


def test_the_other_half_is_scored_for_development(whole, tmp_path):
    more = ["--methods", "logistic", "--protocol", "development", "--no-figures"]
    assert reproduce("nhanes", tmp_path, *more) == 0
    (row,) = words_of(tmp_path)["rows"]
    clean = words_of(whole)["rows"][1]
    assert words_of(tmp_path)["protocol"].startswith("development: the other half")
    assert row["source_score"] == clean["source_score"]
    assert row["by_index"] != clean["by_index"]


def test_a_figure_along_age_is_drawn(tmp_path):
    methods = ["--methods", "source-only", "boosting", "histogram"]
    assert reproduce("nhanes", tmp_path, *methods) == 0
    pictures = {path.name for path in tmp_path.iterdir() if path.suffix in (".png", ".svg")}
    assert pictures == {"scores.png", "scores.svg"}
    drawn = (tmp_path / "scores.svg").read_text()
    assert drawn.count("<svg") == 1
    assert "data:image/svg+xml;base64," in (tmp_path / "report.html").read_text()


def test_every_task_of_the_county_has_a_map_and_a_line_of_its_own(tmp_path, capsys):
    methods = ["--methods", "source-only", "logistic", "histogram"]
    assert reproduce("king-county", tmp_path, *methods) == 0
    tasks = ("dear", "price", "above-median")
    names = {path.name for path in tmp_path.iterdir()}
    assert {f"{task}.{kind}" for task in tasks for kind in ("png", "svg")} < names
    rows = words_of(tmp_path)["rows"]
    assert [row["task"] for row in rows[::3]] == [f"king-county/{task}" for task in tasks]
    assert all(len(cell["lo"]) == len(cell["hi"]) == 2 for cell in rows[0]["by_index"])
    text = (tmp_path / "table.md").read_text()
    told = [line for line in text.splitlines() if "invariance may hurt" in line]
    assert any("Above the median of all" in line for line in told)
    assert "(3) Above the median of all" in capsys.readouterr().out


def test_one_task_of_the_county_with_the_models_of_scikit_learn_alone(tmp_path):
    more = ["--tasks", "price", "--methods", "logistic-windows", "boosting", "--no-figures"]
    assert reproduce("king-county", tmp_path, *more) == 0
    assert {row["task"] for row in words_of(tmp_path)["rows"]} == {"king-county/price"}
    assert "Ridge regression, windows along u" in (tmp_path / "table.md").read_text()


def test_a_table_that_cannot_be_fetched_fails_before_any_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path / "empty"))
    out = tmp_path / "out"
    assert reproduce("support2", out, "--methods", "logistic", "--no-figures") == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not out.exists()
