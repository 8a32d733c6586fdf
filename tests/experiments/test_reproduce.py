"""``cida reproduce``, through the command line."""

import json
import re
from base64 import b64decode

import pytest

from cida.cli import main

TITLES = ("Source-Only", "Histogram head")
FOLDERS = ["histogram-seed0", "histogram-seed1", "source-only-seed0", "source-only-seed1"]


def reproduce(folder, *more):
    command = ["reproduce", "sine", "--steps", "15", "--seeds", "2", "--out", str(folder)]
    return main([*command, "--methods", "source-only", "histogram", *more])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two methods with two seeds and figures."""
    folder = tmp_path_factory.mktemp("whole")
    assert reproduce(folder) == 0
    return folder


@pytest.fixture
def quick(tmp_path):
    """The same without figures, to change."""
    assert reproduce(tmp_path, "--no-figures") == 0
    return tmp_path


def stamps(folder):
    """When each model was written."""
    return {path: path.stat().st_mtime_ns for path in sorted(folder.glob("*/model.safetensors"))}


def results(folder):
    return json.loads((folder / "results.json").read_text())


def test_all_files_are_written(whole):
    files = {path.name for path in whole.iterdir()}
    pictures = {f"{name}.{kind}" for name in ("figure", "accuracy") for kind in ("png", "svg")}
    assert (
        files == {"results.json", "manifest.json", "table.md", "report.html", *FOLDERS} | pictures
    )


def test_results_json_has_the_contracted_fields(whole):
    words = results(whole)
    assert {name: words[name] for name in ("schema", "benchmark", "preset")} == {
        "schema": 1, "benchmark": "sine", "preset": "best",
    }  # fmt: skip
    assert words["is_simulated"] is False
    assert "fresh" in words["protocol"]
    made = [(row["method"], row["seed"]) for row in words["rows"]]
    assert made == [(m, s) for m in ("source-only", "histogram") for s in (0, 1)]
    for row in words["rows"]:
        assert set(row) == {
            "method", "seed", "source_score", "target_score", "all_score", "by_index",
            "seconds", "fresh", "metric", "role",
        }  # fmt: skip
        assert row["metric"] == "accuracy"
        for scores in (row, row["fresh"]):
            cells = [cell["score"] for cell in scores["by_index"]]
            assert sum(cells[:5]) / 5 == pytest.approx(scores["source_score"])
            assert sum(cells[5:]) / 7 == pytest.approx(scores["target_score"])
            assert sum(cells) / 12 == pytest.approx(scores["all_score"])
    assert [(line["method"], line["seeds"]) for line in words["summary"]] == [
        ("source-only", 2), ("histogram", 2),
    ]  # fmt: skip


def test_the_table_has_a_row_a_method_with_its_accuracy(whole):
    lines = (whole / "table.md").read_text().splitlines()
    assert len(lines) == 4
    for line, title, summary in zip(lines[2:], TITLES, results(whole)["summary"], strict=True):
        assert line.startswith(f"| {title} |")
        assert f" {100 * summary['target_score_mean']:.1f} " in line
        assert f" {100 * summary['fresh_target_score_mean']:.1f} " in line


def test_the_report_holds_the_figures_and_fetches_nothing(whole):
    page = (whole / "report.html").read_text()
    images = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page)
    assert [b64decode(image) for image in images] == [
        (whole / f"{name}.svg").read_bytes() for name in ("figure", "accuracy")
    ]
    assert all(title in page for title in TITLES)
    assert "cida reproduce sine --preset best --seeds 2 --steps 15" in page
    places = re.findall(r"\bhref=[\"']([^\"']*)", page)
    assert places
    assert all(place.startswith("#") for place in places)
    assert len(re.findall(r"<[^>]*\bsrc\s*=", page)) == 2


def test_the_last_line_is_the_path_of_the_report(tmp_path, capsys):
    command = ["reproduce", "sine", "--steps", "2", "--seeds", "1", "--no-figures", "--methods"]
    assert main([*command, "source-only", "--first-seed", "7", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out.rstrip().splitlines()
    assert out[-1] == str((tmp_path / "report.html").resolve())
    assert (tmp_path / "source-only-seed7" / "result.json").is_file()


def test_resume_makes_no_run_again_and_keeps_the_results(whole, capsys):
    before, files = stamps(whole), {n: (whole / n).read_bytes() for n in ("results.json",)}
    assert reproduce(whole, "--resume") == 0
    assert len(before) == 4
    assert stamps(whole) == before
    assert {n: (whole / n).read_bytes() for n in files} == files


def test_resume_makes_a_missing_run_alone(quick):
    before, words = stamps(quick), results(quick)
    (quick / "histogram-seed1" / "result.json").unlink()
    assert reproduce(quick, "--no-figures", "--resume") == 0
    after = stamps(quick)
    assert [path.parent.name for path in after if after[path] != before[path]] == [
        "histogram-seed1"
    ]
    for old, new in zip(words["rows"], results(quick)["rows"], strict=True):
        assert {**old, "seconds": 0} == {**new, "seconds": 0}


def test_without_resume_every_run_is_made_again(quick):
    before = stamps(quick)
    assert reproduce(quick, "--no-figures") == 0
    after = stamps(quick)
    assert all(after[path] != before[path] for path in before)


def test_a_run_that_fails_is_named_the_others_are_kept_and_the_exit_code_is_1(
    tmp_path, monkeypatch, capsys
):
    from cida.experiments.jobs import Job

    run = Job.run

    def fails(task):
        if (task.method, task.seed) == ("histogram", 1):
            raise FloatingPointError("the loss is NaN.")
        return run(task)

    monkeypatch.setattr(Job, "run", fails)
    assert reproduce(tmp_path, "--no-figures") == 1
    assert "histogram, seed 1 failed: the loss is NaN." in capsys.readouterr().out
    assert len(results(tmp_path)["rows"]) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["square"], "NAME is 'square'; known: circle, sine, moments, nhanes, king-county, "),
        (["sine", "--methods", "magic"], "methods has magic; known are source-only, adda"),
        (["sine", "--preset", "magic"], "preset is 'magic'; known: best, paper."),
        (["sine", "--protocol", "clean"], "protocol is 'clean'; known: points."),
        (["rotating-digits", "--preset", "magic"], "preset is 'magic'; known: best"),
        (
            ["rotating-digits", "--protocol", "magic"],
            "protocol is 'magic'; known: clean, paper, development.",
        ),
        (["rotating-digits", "--methods", "mixture"], "methods has mixture; known are source-only"),
        (["sine", "--seeds", "0"], "seeds is 0; it must be at least 1."),
        (["sine", "--jobs", "0"], "jobs is 0; it must be at least 1."),
        (["sine", "--steps", "0"], "steps is 0; it must be at least 1."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_it_stops_before_any_run_and_says_what_to_do(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("cida.experiments.reproduce.find_spec", lambda name: None)
    assert reproduce(tmp_path) == 2
    error = capsys.readouterr().err
    assert "figures need matplotlib" in error
    assert "--no-figures" in error
    assert len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
    assert reproduce(tmp_path, "--no-figures") == 0
    assert not list(tmp_path.glob("*.png"))
    page = (tmp_path / "report.html").read_text()
    assert 'class="panels' in page
    assert "Figures of the experiment" not in page
