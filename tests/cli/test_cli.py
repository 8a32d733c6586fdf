"""The program: the demo's output, bad input in one sentence, warnings behind their run."""

import json
import subprocess
import sys
import warnings
from html.parser import HTMLParser

import pytest
from rich.console import Console

from cida import CidaWarning
from cida.cli import main
from cida.cli.console import titled_warnings
from cida.version import __version__


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One quick demo with two seeds, as a user would start it."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "cida", "demo", "--seeds", "2", "--steps", "30"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return folder, result


def test_the_demo_ends_with_the_path_of_the_report(demo):
    folder, result = demo
    assert result.returncode == 0, result.stderr
    last = result.stdout.rstrip().splitlines()[-1]
    assert last == str((folder / "runs/demo/report.html").resolve())


def test_the_demo_prints_a_line_for_each_method_with_its_gain(demo):
    _, result = demo
    for title in ("Source-Only", "CIDA (L2)", "PCIDA (Gaussian)", "Histogram head", "Default"):
        assert title in result.stdout
    assert "gain" in result.stdout


def test_warnings_of_a_run_are_said_behind_it_with_its_name_and_once(tmp_path, capsys):
    words = ["--methods", "source-only", "cida", "--steps", "200", "--first-seed", "100"]
    assert main(["demo", *words, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    collapsed = [line for line in lines if "predictions-collapsed" in line]
    assert "CIDA (L2), seed 100" in [line.split(": ")[0] for line in collapsed]
    assert len(lines) == len(set(lines))
    assert "predictions-collapsed" not in said.err


def test_other_warnings_go_on_as_they_are():
    console = Console(record=True, width=80)

    def train():
        with titled_warnings("Histogram head, seed 3", console):
            for _ in range(2):
                warnings.warn("slow: it [was] so", CidaWarning, stacklevel=1)
            warnings.warn("not ours", UserWarning, stacklevel=1)

    with pytest.warns(UserWarning, match="not ours") as told:
        train()
    assert [str(one.message) for one in told] == ["not ours"]
    assert console.export_text() == "Histogram head, seed 3: slow: it [was] so\n"


def test_results_json_has_the_contracted_fields(demo):
    folder, _ = demo
    results = json.loads((folder / "runs/demo/results.json").read_text())
    assert {key: results[key] for key in ("schema", "benchmark", "is_simulated")} == {
        "schema": 1,
        "benchmark": "circle",
        "is_simulated": False,
    }
    assert len(results["rows"]) == 10
    row = results["rows"][0]
    assert set(row) == {
        "method", "seed", "source_score", "target_score", "all_score", "by_index",
        "seconds", "fresh", "metric", "role",
    }  # fmt: skip
    assert row["fresh"] is None
    assert row["metric"] == "accuracy"
    assert len(row["by_index"]) == 30
    assert sum(cell["n"] for cell in row["by_index"]) == 3000
    # The mean over the target's 24 equal domains is the accuracy over its rows.
    target = [cell["score"] for cell in row["by_index"][6:]]
    assert sum(target) / 24 == pytest.approx(row["target_score"])
    every = [cell["score"] for cell in row["by_index"]]
    assert sum(every) / 30 == pytest.approx(row["all_score"])
    assert {line["method"]: line["seeds"] for line in results["summary"]} == dict.fromkeys(
        ("source-only", "cida", "pcida", "histogram", "default"), 2
    )


def test_each_run_has_its_folder_with_model_events_and_recipe(demo):
    folder, _ = demo
    run = folder / "runs/demo/histogram-seed1"
    words = json.loads((run / "run.json").read_text())
    assert (words["seed"], words["method"], words["settings"]["steps"]) == (1, "histogram", 30)
    assert words["versions"]["cida"] == __version__
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert events[-1]["step"] == 30
    assert events[-1]["ceilings"]["discriminator"] == pytest.approx(3.4, abs=0.05)
    assert (run / "model.safetensors").is_file()


class Outside(HTMLParser):
    """Collects whatever a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.fetched, self.figures = [], 0

    def handle_starttag(self, tag, attrs):
        self.figures += tag == "figure"
        found = [v for k, v in attrs if k in ("src", "href", "data", "poster")]
        self.fetched += [v for v in found if not (tag == "a" and v.startswith("#"))]


def test_the_report_is_one_file_that_fetches_nothing(demo):
    folder, _ = demo
    page = (folder / "runs/demo/report.html").read_text()
    parser = Outside()
    parser.feed(page)
    assert parser.fetched == []
    assert "url(" not in page
    assert "@import" not in page
    # Accuracy of all and of each, expected of the default, confusion, losses, encodings.
    assert parser.figures == 1 + 5 + 1 + 5 + 4 + 5


def test_the_same_demo_gives_the_same_figures_and_weights(demo, tmp_path):
    folder, _ = demo
    main(["demo", "--out", str(tmp_path), "--steps", "30", "--methods", "histogram"])
    again = (tmp_path / "histogram-seed0/model.safetensors").read_bytes()
    assert again == (folder / "runs/demo/histogram-seed0/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "--methods", "magic"], "methods has magic; known are source-only"),
        (["demo", "--seeds", "0"], "seeds is 0"),
        (["demo", "--steps", "0"], "steps is 0"),
        (["check", "nonsense"], "write it as module:Class"),
        (["check", "no_such_module:Head"], "names the module 'no_such_module'"),
        (["check", "cida.spaces:nothing"], "no class in 'cida.spaces'"),
        (["check", "cida.spaces:Line"], "neither a Discriminator nor a Game"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_out_folder_that_cannot_be_made_is_one_sentence(tmp_path, capsys):
    blocker = tmp_path / "file"
    blocker.write_text("")
    assert main(["demo", "--out", str(blocker / "x"), "--steps", "1"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"cida {__version__}"


HEAD = """
import cida

class Fine(cida.L2):
    pass

class Deaf(cida.L2):
    def forward(self, z):
        return super().forward(z.detach())
"""


def test_check_passes_a_good_head_and_fails_a_deaf_one(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_heads.py").write_text(HEAD)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "my_heads:Fine"]) == 0
    assert "21 passed, 0 failed" in capsys.readouterr().out
    assert main(["check", "my_heads:Deaf"]) == 1
    assert "3 failed" in capsys.readouterr().out
