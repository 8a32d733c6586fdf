"""``cida reproduce rotating-digits``, through the command line."""

import json
import re

import pytest

from cida.cli import main

TITLES = ("Source-Only", "Histogram head")
RUNS = ("source-only-seed0", "histogram-seed0")
INTERVALS = [str(45 * k) for k in range(1, 8)]


def reproduce(folder, *more):
    command = ["reproduce", "rotating-digits", "--steps", "3", "--seeds", "1", "--no-figures"]
    return main([*command, "--methods", "source-only", "histogram", "--out", str(folder), *more])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    assert reproduce(folder) == 0
    return folder


def words_of(folder):
    return json.loads((folder / "results.json").read_text())


def stamps(folder):
    """When each file of each run was written."""
    return {path: path.stat().st_mtime_ns for path in sorted(folder.glob("*-seed0/*"))}


def test_all_files_are_written(whole):
    assert {path.name for path in whole.iterdir()} == {
        "results.json", "manifest.json", "table.md", "report.html", *RUNS,
    }  # fmt: skip
    for run in RUNS:
        assert {path.name for path in (whole / run).iterdir()} == {
            "model.safetensors", "run.json", "events.jsonl", "result.json", "snapshot.safetensors",
        }  # fmt: skip


def test_results_json_names_the_protocol_and_has_eight_intervals(whole):
    words = words_of(whole)
    assert (words["schema"], words["benchmark"], words["preset"]) == (1, "rotating-digits", "best")
    assert words["protocol"].startswith("clean: ")
    assert "test digits" in words["protocol"]
    assert words["is_simulated"] is False
    assert [(row["method"], row["seed"]) for row in words["rows"]] == [
        ("source-only", 0), ("histogram", 0),
    ]  # fmt: skip
    for row in words["rows"]:
        accuracy = [cell["score"] for cell in row["by_index"]]
        assert [cell["lo"] for cell in row["by_index"]] == [45.0 * k for k in range(8)]
        assert {cell["n"] for cell in row["by_index"]} == {500}
        assert row["source_score"] == accuracy[0]
        assert row["target_score"] == pytest.approx(sum(accuracy[1:]) / 7)
        assert row["fresh"] is None


def test_the_table_has_a_column_for_each_interval(whole):
    lines = (whole / "table.md").read_text().splitlines()
    head = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert head == ["method", "source", *INTERVALS, "target", "gain", "seconds"]
    for line, title, row in zip(lines[2:], TITLES, words_of(whole)["rows"], strict=True):
        found = [cell.strip() for cell in line.strip("|").split("|")]
        assert found[0] == title
        assert found[1:9] == [f"{100 * cell['score']:.1f}" for cell in row["by_index"]]
        assert found[9] == f"{100 * row['target_score']:.1f}"


def test_the_report_tells_protocol_command_and_methods_and_fetches_nothing(whole):
    page = (whole / "report.html").read_text()
    assert "<dt>protocol</dt><dd>clean: " in page
    assert "cida reproduce rotating-digits --preset best --seeds 1 --steps 3" in page
    assert all(title in page for title in TITLES)
    assert not re.findall(r"<[^>]*\bsrc\s*=", page)
    assert all(place.startswith("#") for place in re.findall(r"\bhref=[\"']([^\"']*)", page))


def test_a_run_tells_the_networks_it_was_made_with(whole):
    words = json.loads((whole / "histogram-seed0" / "run.json").read_text())
    settings = words["settings"]
    assert words["task"] == "rotating-digits"
    assert settings["steps"] == 3
    assert settings["networks"]["size"] == 12


def test_a_killed_run_is_made_again_and_the_finished_one_is_not_touched(tmp_path, capsys):
    assert reproduce(tmp_path) == 0
    before, words = stamps(tmp_path), words_of(tmp_path)
    (tmp_path / "histogram-seed0" / "result.json").unlink()
    assert reproduce(tmp_path, "--resume") == 0
    after = stamps(tmp_path)
    assert after.keys() == before.keys()
    for path, stamp in after.items():
        assert (stamp != before[path]) == (path.parent.name == "histogram-seed0"), path
    for old, new in zip(words["rows"], words_of(tmp_path)["rows"], strict=True):
        assert {**old, "seconds": 0} == {**new, "seconds": 0}


def test_resume_does_not_take_the_runs_of_another_protocol(whole, tmp_path):
    assert reproduce(tmp_path, "--protocol", "development") == 0
    words, before = words_of(tmp_path), stamps(tmp_path)
    assert words["protocol"].startswith("development: ")
    assert {cell["n"] for row in words["rows"] for cell in row["by_index"]} == {300}
    assert "--protocol development" in (tmp_path / "report.html").read_text()
    assert reproduce(tmp_path, "--resume") == 0
    after = stamps(tmp_path)
    assert all(after[path] != before[path] for path in before)
    rows = [{**row, "seconds": 0} for row in words_of(tmp_path)["rows"]]
    assert rows == [{**row, "seconds": 0} for row in words_of(whole)["rows"]]


def test_the_last_line_is_the_path_of_the_report(whole, capsys):
    assert reproduce(whole, "--resume") == 0
    out = capsys.readouterr().out.rstrip().splitlines()
    assert out[-1] == str((whole / "report.html").resolve())
    assert any("protocol clean" in line for line in out)
