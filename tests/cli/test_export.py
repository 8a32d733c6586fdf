"""``cida export``: what a run becomes outside its folder, as a user would ask for it."""

import json
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from torch import nn

import cida
from cida.cli import main
from cida.experiments.rotating_mnist.rotating_tasks import ROTATING_DIGITS
from cida.experiments.runner import run_recipe
from cida.experiments.spec import build_recipes

EQUAL = 1e-5


def sensors(rows, seed):
    rng = np.random.default_rng(seed)
    hour, heat = rng.uniform(0, 24, rows).round(1) % 24, rng.normal(size=rows).round(2)
    fault = np.where(heat > 0, "yes", "no").astype(object)
    return pd.DataFrame(
        {
            "hour": hour,
            "heat": np.where(rng.random(rows) < 0.1, np.nan, heat),
            "make": rng.choice(["a", "b"], rows),
            "fault": np.where((hour > 6) & (hour < 18), fault, None),
        }
    )


@pytest.fixture(scope="module")
def table_run(tmp_path_factory):
    """A run of ``cida fit``, whose data are gone."""
    folder = tmp_path_factory.mktemp("fit")
    sensors(300, seed=100).to_csv(folder / "sensors.csv", index=False)
    words = ["fit", str(folder / "sensors.csv"), "--label", "fault", "--index", "hour"]
    more = ["--periodic", "hour:24", "--steps", "20", "--seed", "100"]
    assert main([*words, *more, "--out", str(folder / "run")]) == 0
    (folder / "sensors.csv").unlink()
    return folder / "run"


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    """One run of ``cida reproduce rotating-digits``, of two steps."""
    folder = tmp_path_factory.mktemp("digits")
    recipe = build_recipes(ROTATING_DIGITS, "best")["histogram"].with_settings(steps=2)
    run_recipe(recipe, ROTATING_DIGITS.draw_data(100, "development"), 100, folder)
    return folder


def refused(capsys, *words, code=2):
    """The one sentence that is said, and nothing is written."""
    assert main(["export", *map(str, words)]) == code
    error = capsys.readouterr().err
    assert len(error.strip().splitlines()) == 1, error
    return error


def test_a_table_goes_elsewhere_as_a_file_and_as_a_folder(table_run, tmp_path, capsys):
    file, folder = tmp_path / "new/sensors.onnx", tmp_path / "sensors"
    assert main(["export", str(table_run), "--onnx", str(file), "--folder", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("largest difference between ONNX and torch: ")
    assert float(lines[0].split()[-1]) < EQUAL
    assert lines[1:] == [str(file), str(folder)]
    assert {path.name for path in folder.iterdir()} == {
        "CITATION.cff", "README.md", "model.safetensors", "model.json", "run.json",
    }  # fmt: skip
    frame = sensors(50, seed=101)
    feed = {name: frame[name].to_numpy(np.float64) for name in ("heat", "hour")}
    feed["make"] = frame["make"].to_numpy(object)
    session = onnxruntime.InferenceSession(file)
    probability, label = session.run(["probabilities", "label"], feed)
    shutil.copytree(folder, tmp_path / "moved")
    model = cida.load(tmp_path / "moved")
    assert np.abs(model.predict_proba(frame) - probability).max() < EQUAL
    assert (model.predict(frame) == label).all()


def test_a_folder_is_enough_for_cida_predict(table_run, tmp_path):
    assert main(["export", str(table_run), "--folder", str(tmp_path / "model")]) == 0
    sensors(20, seed=102).to_csv(tmp_path / "new.csv", index=False)
    for run in (table_run, tmp_path / "model"):
        out = tmp_path / f"{run.name}.csv"
        assert main(["predict", str(run), str(tmp_path / "new.csv"), "--out", str(out)]) == 0
    assert (tmp_path / "model.csv").read_text() == (tmp_path / "run.csv").read_text()


@pytest.mark.filterwarnings("ignore::cida.CidaWarning")
def test_digits_go_elsewhere_without_their_networks(digits_run, tmp_path):
    folder, file = tmp_path / "digits", tmp_path / "digits.onnx"
    assert main(["export", str(digits_run), "--folder", str(folder), "--onnx", str(file)]) == 0
    rng = np.random.default_rng(100)
    x, u = rng.uniform(size=(30, 1, 12, 12)).astype(np.float32), rng.uniform(0, 360, (30, 1))
    want = cida.load(folder).predict_proba(x, domain_index=u)
    found, label = onnxruntime.InferenceSession(file).run(None, {"X": x, "u": u})
    assert np.abs(found - want).max() < EQUAL
    assert label.dtype == np.int64
    card = (folder / "README.md").read_text()
    assert "# rotating-digits, " in card
    assert "for scoring alone" in card


def test_one_object_for_programs(table_run, tmp_path, capsys):
    folder = tmp_path / "model"
    assert main(["export", str(table_run), "--folder", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verb"], found["folder"]) == ("export", str(folder))


# --- what is refused -----------------------------------------------------------------------------


def test_nothing_to_write_is_told(table_run, capsys):
    assert "name what to write" in refused(capsys, table_run)


def test_a_run_that_is_not_there_is_told(tmp_path, capsys):
    told = refused(capsys, tmp_path / "gone", "--folder", tmp_path / "model")
    assert "which is not there" in told
    assert "there is no model file" in refused(capsys, tmp_path, "--folder", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_folder_with_something_in_it_is_left_alone(table_run, tmp_path, capsys):
    (tmp_path / "precious").write_text("mine")
    assert "no empty folder" in refused(capsys, table_run, "--folder", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    assert "which is a folder" in refused(capsys, table_run, "--onnx", tmp_path)


def test_a_place_below_a_file_is_told(table_run, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    told = refused(capsys, table_run, "--folder", tmp_path / "file/model")
    assert "cannot be written" in told


def test_a_module_of_ones_own_is_told(tmp_path, capsys):
    rng = np.random.default_rng(100)
    model = cida.CIDAClassifier(encoder=nn.Linear(2, 3), steps=2, random_state=100)
    model.fit(rng.normal(size=(20, 2)), np.arange(20) % 2).save(tmp_path / "own.cida")
    told = refused(capsys, tmp_path / "own.cida", "--folder", tmp_path / "model")
    assert "module of your own" in told


def test_a_file_that_differs_from_torch_is_not_left_and_the_job_has_failed(
    table_run, tmp_path, capsys, monkeypatch
):
    below_rounding = -1.0
    monkeypatch.setattr("cida.export.onnx_export.MAX_PREDICTION_DIFFERENCE", below_rounding)
    told = refused(capsys, table_run, "--onnx", tmp_path / "model.onnx", code=1)
    assert "differ from the model's by up to" in told
    assert not list(tmp_path.iterdir())


def test_onnx_is_not_imported_by_those_who_do_not_ask():
    look = "import cida, cida.cli, sys; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0
