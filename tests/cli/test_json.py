"""``--json``: one object on stdout and nothing else, whatever the verb."""

import csv
import json
import random
from pathlib import Path

import pytest

from cida.cli import main
from cida.version import __version__


@pytest.fixture
def answer(capsys):
    """Runs a command and reads the object that it prints."""

    def asked(*words, code=0):
        assert main([*map(str, words), "--json"]) == code
        printed = capsys.readouterr()
        found = json.loads(printed.out, parse_constant=pytest.fail)  # NaN is no JSON
        assert isinstance(found, dict)
        assert found["cida"] == __version__
        return found, printed.err

    return asked


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A quick demo, and a table with a run of its own."""
    folder = tmp_path_factory.mktemp("json")
    draw = random.Random(100)
    with (folder / "table.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["x", "age", "ill"])
        for _ in range(300):
            x, age = draw.random(), draw.randrange(20, 80)
            lines.writerow([x, age, int(x > 0.5) if age < 50 else ""])
    return folder


def test_demo_doctor_and_report(answer, runs):
    few = ["--methods", "histogram", "--steps", "5", "--first-seed", "100"]
    found, said = answer("demo", "--out", runs / "demo", *few)
    assert (found["verb"], found["results"]["benchmark"]) == ("demo", "circle")
    assert found["results"] == json.loads((runs / "demo/results.json").read_text())
    assert str((runs / "demo/report.html").resolve()) in found["files"]
    assert all(Path(path).is_file() for path in found["files"])
    assert said.splitlines()[-1] == str((runs / "demo/report.html").resolve())

    run = runs / "demo/histogram-seed100"
    found, said = answer("doctor", run)
    (model,) = found["models"]
    assert model["run"] == str(run)
    assert model["skipped_checks"]
    assert said == ""

    found, said = answer("report", run, "--out", runs / "one.html", "--no-files")
    assert found["files"] == [str((runs / "one.html").resolve())]
    assert found["verdicts"]
    assert said.splitlines()[-1] == found["files"][0]


def test_fit_and_predict(answer, runs):
    ask = ["--label", "ill", "--index", "age", "--steps", "5", "--no-expected"]
    found, said = answer("fit", runs / "table.csv", *ask, "--out", runs / "run")
    assert found["verb"] == "fit"
    assert found["folder"] == str((runs / "run").resolve())
    assert found["figures"]["metric"] == "accuracy"
    assert 0 <= found["figures"]["train_score"] <= 1
    assert {Path(path).name for path in found["files"]} >= {"run.json", "report.html"}
    assert said.splitlines()[-1] == found["folder"]

    found, said = answer("predict", runs / "run", runs / "table.csv", "--out", runs / "p.csv")
    assert (found["verb"], found["rows"], found["beyond"]) == ("predict", 300, 0)
    assert found["files"] == [str((runs / "p.csv").resolve())]
    assert said.splitlines()[-1] == found["files"][0]


def test_reproduce(answer, tmp_path):
    few = ["--methods", "source-only", "--seeds", "1", "--first-seed", "100", "--steps", "5"]
    found, said = answer("reproduce", "sine", *few, "--no-figures", "--out", tmp_path / "sine")
    assert (found["verb"], found["failed"]) == ("reproduce", {})
    (line,) = found["results"]["summary"]
    assert line["method"] == "source-only"
    assert {Path(path).name for path in found["files"]} >= {"results.json", "report.html"}
    assert said.splitlines()[-1] == str((tmp_path / "sine/report.html").resolve())


def test_check(answer):
    found, _ = answer("check", "cida:L2")
    assert (found["target"], found["failed"]) == ("cida:L2", 0)
    assert all(finding["passed"] for finding in found["findings"])


def test_data_list(answer, monkeypatch, tmp_path):
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path))
    found, said = answer("data", "list")
    assert "mnist" in [one["name"] for one in found["datasets"]]
    assert {one["cached"] for one in found["datasets"]} == {False}
    assert all(one["missing"] and not one["damaged"] for one in found["datasets"])
    assert said == ""


def test_a_mistake_leaves_stdout_empty(capsys):
    assert main(["demo", "--seeds", "0", "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "seeds is 0" in printed.err
