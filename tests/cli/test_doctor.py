"""``cida doctor`` on every kind of run, whole and damaged."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from cida import CIDAClassifier, CidaWarning
from cida.cli import main
from cida.datasets import make_irrelevant_index
from cida.io.tensors import read_model_file, write_model_file

pytestmark = pytest.mark.filterwarnings("ignore::cida.CidaWarning")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder of cida fit with two models, in which nothing went wrong."""
    folder = tmp_path_factory.mktemp("fitted")
    rng = np.random.default_rng(100)
    age = rng.uniform(20, 80, 600)
    ill = rng.random(600) < 0.5
    frame = pd.DataFrame({"age": age, "pulse": rng.normal(80, 5, 600) + 12 * ill})
    frame["outcome"] = pd.Series(np.where(ill, "ill", "well"), dtype=object).where(age < 50, None)
    frame.to_csv(folder / "data.csv", index=False)
    words = ["fit", str(folder / "data.csv"), "--label", "outcome", "--index", "age"]
    assert main([*words, "--out", str(folder / "run"), "--steps", "220", "--seeds", "2"]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder of one run of cida demo: six domains with labels, and no adversary."""
    folder = tmp_path_factory.mktemp("demo")
    words = ["demo", "--out", str(folder), "--methods", "source-only", "--first-seed", "100"]
    assert main([*words, "--steps", "400"]) == 0
    return folder / "source-only-seed100"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The file of a model that did not learn its source."""
    world = make_irrelevant_index(400, seed=100)
    settings = {"weight_decay": 200.0, "learning_rate": 5e-3, "steps": 210, "random_state": 100}
    model = CIDAClassifier(**settings, encoder_hidden=(16,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        model.fit(world.x, world.training_labels, domain_index=world.u)
    path = tmp_path_factory.mktemp("file") / "model.safetensors"
    model.save(path)
    return path


def doctor(capsys, *words):
    capsys.readouterr()
    code = main(["doctor", *map(str, words)])
    said = capsys.readouterr()
    return code, " ".join(said.out.split()), said.err


def test_a_healthy_run_of_fit_has_no_fault_and_its_figures_are_told(fitted, capsys):
    code, said, _ = doctor(capsys, fitted)
    assert code == 0
    assert said.count("no fault found") == 1
    assert "of the index" in said
    assert "not judged" not in said


def test_a_run_of_the_demo_with_a_fault_names_it_and_what_to_change(demo, capsys):
    code, said, _ = doctor(capsys, demo)
    assert code == 1
    assert "predictions-collapsed" in said
    assert "discriminator='auto'" in said


def test_a_model_file_alone_tells_what_was_found_when_it_was_trained(file, capsys):
    code, said, _ = doctor(capsys, file)
    assert code == 1
    assert "not-converged" in said
    assert re.search(r"(Raise|Lower) \w+ from \S+ to \S+", said)


def test_several_runs_at_once(fitted, demo, file, capsys):
    code, said, _ = doctor(capsys, fitted, demo, file)
    assert code == 1
    assert said.count("no fault found") == 1
    assert "predictions-collapsed" in said
    assert "not-converged" in said


def test_json_has_findings_and_figures(fitted, file, capsys):
    code, said, _ = doctor(capsys, fitted, file, "--json")
    assert code == 1
    first, last = json.loads(said)["models"]
    assert first["diagnoses"] == []
    assert 0 <= first["metrics"]["index_share_read"] < 0.2
    assert [each["code"] for each in last["diagnoses"]] == ["not-converged"]
    assert set(last["diagnoses"][0]) == {"code", "evidence", "suggestion", "summary"}


def test_a_short_run_is_not_judged(tmp_path, capsys):
    words = ["--methods", "histogram", "--first-seed", "100", "--steps", "20"]
    assert main(["demo", "--out", str(tmp_path), *words]) == 0
    code, said, _ = doctor(capsys, tmp_path / "histogram-seed100")
    assert code == 0
    assert "no fault found in what could be judged" in said
    assert "20 steps are too few to judge; at least 200 are needed." in said


# --- bad input -----------------------------------------------------------------------------------


def copied(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def refused(capsys, *words):
    code, _, said = doctor(capsys, *words)
    assert code == 2
    assert said.count("\n") == 1
    return said


def test_a_place_with_nothing_there(tmp_path, capsys):
    assert "where there is nothing" in refused(capsys, tmp_path / "none")


def test_a_folder_that_is_no_run_names_one_inside_it(demo, tmp_path, capsys):
    assert "has no run.json" in refused(capsys, tmp_path)
    assert "such as" in refused(capsys, demo.parent)
    assert demo.name in refused(capsys, demo.parent)


def test_a_run_without_events(demo, tmp_path, capsys):
    run = copied(demo, tmp_path)
    (run / "events.jsonl").unlink()
    assert "there is no" in refused(capsys, run)


@pytest.mark.parametrize("line", ["{", "[]", '{"step": 1}', '{"step": "one", "losses": 3}'])
def test_a_damaged_line_of_events_is_named_by_its_number(demo, tmp_path, line, capsys):
    run = copied(demo, tmp_path)
    lines = (run / "events.jsonl").read_text().splitlines()
    (run / "events.jsonl").write_text("\n".join([*lines[:2], line]) + "\n")
    assert "is damaged in line 3" in refused(capsys, run)


def test_events_with_a_learning_rate_that_no_training_has(demo, tmp_path, capsys):
    run = copied(demo, tmp_path)
    first, *others = (run / "events.jsonl").read_text().splitlines()
    odd = json.dumps({**json.loads(first), "learning_rate": 1e308})
    (run / "events.jsonl").write_text("\n".join([odd, *others]) + "\n")
    assert "is damaged in line 1 (step" in refused(capsys, run)


def test_events_that_go_back_in_time(demo, tmp_path, capsys):
    run = copied(demo, tmp_path)
    lines = (run / "events.jsonl").read_text().splitlines()
    (run / "events.jsonl").write_text("\n".join([*lines[:2], lines[0]]) + "\n")
    assert "is damaged in line 3 (step" in refused(capsys, run)


@pytest.mark.parametrize("words", ["{", "[]", '{"schema": 2, "task": "table"}'])
def test_a_damaged_run_json(fitted, tmp_path, words, capsys):
    run = copied(fitted, tmp_path)
    (run / "run.json").write_text(words)
    assert "run.json" in refused(capsys, run)


def test_a_missing_and_a_damaged_model(fitted, tmp_path, capsys):
    run = copied(fitted, tmp_path)
    (run / "model.safetensors").write_bytes(b"nothing")
    assert "damaged" in refused(capsys, run)
    (run / "model.safetensors").unlink()
    assert "model.safetensors" in refused(capsys, run)


def test_a_header_that_is_not_ours(demo, tmp_path, capsys):
    tensors, header = read_model_file(demo / "model.safetensors")
    write_model_file(tmp_path / "model", tensors, {"summary": {"game": "none"}})
    assert "not as cida writes it" in refused(capsys, tmp_path / "model")
    assert header["summary"]["game"] == "adversarial"


def test_no_run_at_all(capsys):
    assert "RUN is missing" in refused(capsys)
