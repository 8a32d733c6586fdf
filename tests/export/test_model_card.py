"""The model card and the folder it lies in."""

import hashlib
import json
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from torch import nn

import cida
from cida.export.export_folder import export_folder
from cida.export.model_card import ExportedModel, model_card, render_citation
from cida.runs.fit_record import DataSummary, FitFigures, FitRecord, RowSummary
from cida.runs.records import RunRecord, RunResult
from cida.runs.snapshot import Snapshot
from cida.selection import ExpectedScore
from cida.spaces import Periodic
from cida.support import TargetSupport

ROOT = Path(__file__).parent.parent.parent


def fitted(kind=cida.CIDAClassifier, **settings):
    rng = np.random.default_rng(100)
    x, u = rng.normal(size=(80, 2)), rng.uniform(0, 24, 80)
    if kind is cida.CIDAClassifier:
        y = np.where(u > 12, None, np.where(x[:, 0] > 0, "a_b", "c|d"))
    else:
        y = np.where(u > 12, np.nan, x[:, 0])
    model = kind(**settings, steps=3, random_state=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cida.CidaWarning)
        return model.fit(x, y, domain_index=u), x, u


@pytest.fixture(scope="module")
def model():
    return fitted(space=Periodic(24))[0]


RECORD = RunRecord(
    task="sensors",
    method="cida",
    seed=100,
    data="00c0ffee00c0ffee",
    versions={"cida": "0.1.0", "torch": "2.13.0"},
    fit=FitRecord(
        data=DataSummary(
            label="fault",
            n_classes=2,
            label_range=None,
            index_names=("hour",),
            index_kinds=("number",),
            source=RowSummary(40, (6.0,), (18.0,)),
            target=RowSummary(40, (0.0,), (24.0,)),
            columns={"number": 3},
        ),
        figures=FitFigures("accuracy", 0.9, 0.5, 0.1, TargetSupport(0.5, 6.0)),
        expected=(ExpectedScore(18.0, 24.0, 0.85, 0.72, 0.97, 40, is_within_calibration=True),),
        warnings=("the balance of fault moves along hour",),
    ),
)


def test_the_card_says_what_the_run_says(model):
    card = model_card(ExportedModel(model, RECORD), "sensors-model")
    for words in (
        "# sensors, cida\n",
        "fingerprint: `00c0ffee00c0ffee`",
        "source 6-18: 40 rows",
        "expected on the target, without its labels: accuracy 85% (72% to 97%)",
        "No certificate of alignment was made for this run.",
        "the doctor found nothing amiss in training.",
        "the balance of fault moves along hour",
        "No label of the target was read in training.",
        "| torch | 2.13.0 |",
        'cida.load("sensors-model")',
        "`CITATION.cff`",
        f"trained on: {model.summary_.n_source_rows} rows with labels",
    ):
        assert words in card, words
    titles = re.findall(r"^## (.*)$", card, re.M)
    assert titles == [
        "What it is", "Data", "Range of the index", "Figures", "Can it be trusted?", "Limits",
        "Inputs of the ONNX file", "How to load it", "Versions", "How to cite",
    ]  # fmt: skip


def test_names_that_mean_something_in_markdown_are_shown_as_they_are(model):
    card = model_card(ExportedModel(model))
    assert "classes: a\\_b, c\\|d" in card


def test_ranges_with_labels_and_without_come_from_the_view(model):
    u = np.array([[1.0], [2.0], [20.0], [23.0]])
    source = np.array([True, True, False, False])
    nothing = np.zeros((4, 2))
    view = Snapshot(Periodic(24), ("hour",), ("a", "b"), u, source, nothing, np.full(4, np.nan))
    card = model_card(ExportedModel(model, snapshot=view))
    seen = model.state_.index_values.numpy()
    span = f"{seen.min():.6g} to {seen.max():.6g}"
    assert f"| hour | {span} | 1 to 2 | 20 to 23 |" in card
    assert f"| u | {span} |\n" in model_card(ExportedModel(model))


def test_figures_of_a_benchmark_are_told_with_how_they_were_measured(model):
    cells = [{"lo": 0.0, "hi": 12.0, "score": 0.91, "n": 40}]
    result = RunResult("cida", 0, 0.95, 0.9, 0.92, cells, seconds=1.0)
    card = model_card(ExportedModel(model, RunRecord("hours", "cida"), result))
    assert "- target: 90.0%" in card
    assert "| 0 | 12 | 91.0% | 40 |" in card
    assert "used for scoring alone" in card
    regression = replace(result, metric="r2")
    card = model_card(ExportedModel(model, RunRecord("hours", "cida"), regression))
    assert "- target: r2 0.9" in card


def test_an_oracle_is_not_said_to_have_seen_no_target_label(model):
    card = model_card(ExportedModel(model, RunRecord("hours", "oracle", is_oracle=True)))
    assert "No label of the target" not in card
    assert "an oracle" in card


def test_how_to_cite_is_what_the_project_says():
    ours = (ROOT / "CITATION.cff").read_text().splitlines()
    undated = [line for line in ours if not line.startswith("date-released")]
    assert undated == render_citation().splitlines()


@pytest.mark.parametrize("kind", [cida.CIDAClassifier, cida.CIDARegressor])
def test_a_folder_is_whole_and_loads_without_the_run(kind, tmp_path):
    model, x, u = fitted(kind, coordinates="learned")
    export_folder(ExportedModel(model), tmp_path / "model")
    folder = tmp_path / "model"
    assert {path.name for path in folder.iterdir()} == {
        "model.safetensors", "model.json", "README.md", "CITATION.cff",
    }  # fmt: skip
    words = json.loads((folder / "model.json").read_text())
    weights = (folder / "model.safetensors").read_bytes()
    assert words["files"] == {"model.safetensors": hashlib.sha256(weights).hexdigest()}
    assert words["index"]["u"] == [u.min(), u.max()]
    again = cida.load(folder).predict(x, domain_index=u)
    assert np.array_equal(again, model.predict(x, domain_index=u))


def test_the_code_on_the_card_loads_the_model(model, tmp_path, monkeypatch):
    export_folder(ExportedModel(model), tmp_path / "mine")
    code = re.search(r"```python\n(.*?)```", (tmp_path / "mine/README.md").read_text(), re.S)[1]
    monkeypatch.chdir(tmp_path)
    names = {"X": np.zeros((2, 2)), "u": np.full(2, model.state_.index_values.numpy().mean())}
    exec(code, names)
    assert names["model"].n_steps_ == 3


def test_a_module_of_ones_own_is_said_to_be_passed_again(tmp_path):
    model, x, _ = fitted(encoder=nn.Linear(2, 3), coordinates="raw")
    export_folder(ExportedModel(model), tmp_path / "model")
    card = (tmp_path / "model/README.md").read_text()
    assert 'cida.load("model", encoder=...)' in card
    assert json.loads((tmp_path / "model/model.json").read_text())["custom_modules"] == ["encoder"]
    again = cida.load(tmp_path / "model", encoder=nn.Linear(2, 3))
    assert np.array_equal(again.predict(x), model.predict(x))


def test_a_failure_leaves_no_folder(model, tmp_path, monkeypatch):
    def fails(*_):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("cida.export.export_folder.model_card", fails)
    with pytest.raises(RuntimeError):
        export_folder(ExportedModel(model), tmp_path / "a/model")
    assert not list(tmp_path.iterdir())
