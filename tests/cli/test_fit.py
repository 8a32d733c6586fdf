"""``cida fit`` and ``cida predict`` on a user's own file, as a user would call them."""

import html
import io
import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import cida
from cida.cli import main
from cida.cli.fit import Fit

ROWS = 600
STEPS = ["--steps", "20"]


def ward(rows=ROWS, seed=0):
    """Patients at all hours; those from 18 to 6 o'clock have no outcome yet."""
    rng = np.random.default_rng(seed)
    hour = np.round(rng.uniform(0, 24, rows), 1) % 24
    drift = 8 * np.sin(hour / 24 * 2 * np.pi)
    pulse, pressure = rng.normal(80, 10, rows).round(1), rng.normal(120, 15, rows).round(1)
    ill = (pulse - 80) / 10 + (pressure - 120) / 15 > 0.3
    pulse = (pulse + drift).round(1)
    day = (hour >= 6) & (hour < 18)
    frame = pd.DataFrame(
        {
            "patient": [f"p{k:05d}" for k in range(rows)],
            "hour": hour,
            "age": rng.integers(20, 90, rows),
            "pulse": np.where(rng.random(rows) < 0.1, np.nan, pulse),
            "pressure": pressure,
            "sex": rng.choice(["f", "m"], rows),
            "smoker": rng.choice([True, False], rows),
            "came": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), "D"),
            "hospital": "north",
            "outcome": np.where(ill, "ill", "well"),
            "stay": (pulse / 10 + pressure / 30).round(2),
        }
    )
    frame["outcome"] = frame["outcome"].astype(object).where(day, None)
    frame["stay"] = frame["stay"].where(day)
    return frame


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same table as CSV and as Parquet; to be read, not changed."""
    folder = tmp_path_factory.mktemp("files")
    frame = ward()
    frame.to_csv(folder / "ward.csv", index=False)
    frame.to_parquet(folder / "ward.parquet", index=False)
    return folder


def fit(data, out, *more, label="outcome", index=("hour",), drop=("stay",)):
    words = ["fit", str(data), "--label", label, "--index", *index, "--drop", *drop]
    return main([*words, "--out", str(out), *STEPS, *more])


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    """The run of a model with two seeds."""
    out = tmp_path_factory.mktemp("runs") / "ward"
    assert fit(files / "ward.csv", out, "--periodic", "hour:24", "--seeds", "2") == 0
    return out


def said_once(capsys):
    error = capsys.readouterr().err
    assert len(error.strip().splitlines()) == 1, error
    return error


# --- what is printed and written -----------------------------------------------------------------


def test_fit_prints_what_it_understood_and_what_it_came_to(files, tmp_path, capsys):
    out = tmp_path / "deep/run"
    assert fit(files / "ward.csv", out, "--periodic", "hour:24") == 0
    lines = capsys.readouterr().out.splitlines()
    frame = ward()
    source = int(frame["outcome"].notna().sum())
    low, high = frame["hour"][frame["outcome"].notna()].agg(["min", "max"])
    assert lines[:8] == [
        "label: outcome, 2 classes",
        "index: hour, 0-23.9",
        f"source {low:g}-{high:g}: {source} rows",
        f"target 0-23.9: {ROWS - source} rows",
        "inputs: 3 numbers, 1 boolean, 1 date, 1 category",
        "with missing values: pulse",
        "left out: 'stay', since drop names it",
        "left out: 'patient', since its texts differ in nearly every row, as those of an id do",
    ]
    assert lines[8] == "left out: 'hospital', since it is the same in every row"
    results = [line for line in lines[9:] if not line.startswith("warning: ")]
    assert results[0].startswith("source rows trained on: accuracy ")
    assert results[0].endswith(f"({source} rows)")
    assert results[1].startswith("alignment: of the index's variance the inputs explain ")
    assert results[2].startswith(
        "support: 100.0% of the target lies outside the source's range, and"
    )
    report = out / "report.html"
    assert results[3].startswith("expected on the target, without its labels: accuracy ")
    assert re.match("The encoding (still tells|shows no trace of) hour: ", results[4])
    assert results[5:] == ["The report, to open in a browser:", str(report), str(out)]
    page = report.read_text()
    assert "What is predicted" in page
    assert all(line in html.unescape(page) for line in lines[:-3])
    assert "source" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert sorted(path.name for path in out.iterdir()) == [
        "events.jsonl", "model.safetensors", "report.html", "run.json", "snapshot.safetensors",
    ]  # fmt: skip
    words = json.loads((out / "run.json").read_text())
    assert words["fit"]["plan"]["space"] == {"kind": "periodic", "period": 24.0}
    assert words["settings"]["steps"] == 20
    n_rows = {part: words["fit"]["data"][part]["n_rows"] for part in ("source", "target")}
    assert n_rows == {"source": source, "target": ROWS - source}
    assert [path.name for path in out.parent.iterdir()] == ["run"]


def test_predict_writes_a_line_for_each_row(files, run, tmp_path, capsys):
    out = tmp_path / "predicted.csv"
    assert main(["predict", str(run), str(files / "ward.csv"), "--out", str(out)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{ROWS} rows predicted", str(out)]
    found = pd.read_csv(out)
    assert list(found) == ["row", "prediction", "probability_ill", "probability_well", "beyond"]
    assert found["row"].tolist() == list(range(1, ROWS + 1))
    chances = found[["probability_ill", "probability_well"]].to_numpy()
    np.testing.assert_allclose(chances.sum(1), 1, atol=2e-6)
    assert (found["prediction"] == np.array(["ill", "well"])[chances.argmax(1)]).all()
    assert not found["beyond"].any()


def test_csv_and_parquet_give_the_same_model_and_the_same_predictions(files, run, tmp_path):
    other = tmp_path / "run"
    assert fit(files / "ward.parquet", other, "--periodic", "hour:24", "--seeds", "2") == 0
    name = "model.safetensors"
    assert (other / name).read_bytes() == (run / name).read_bytes()
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    assert main(["predict", str(run), str(files / "ward.parquet"), "--out", str(csv)]) == 0
    assert main(["predict", str(other), str(files / "ward.csv"), "--out", str(parquet)]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(csv), pd.read_parquet(parquet))


def test_predictions_do_not_depend_on_the_batches(files, run, tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    assert main(["predict", str(run), str(files / "ward.parquet"), "--out", str(whole)]) == 0
    monkeypatch.setattr("cida.tables.sources.MAX_BATCH_ROWS", 7)
    assert main(["predict", str(run), str(files / "ward.parquet"), "--out", str(parts)]) == 0
    assert whole.read_bytes() == parts.read_bytes()


def test_the_label_may_be_absent_and_other_columns_are_told(run, tmp_path, capsys):
    frame = ward(50, seed=1).drop(columns=["outcome", "stay"]).assign(colour="red", size=3)
    frame.loc[:4, "sex"] = "x"
    frame = frame[frame.columns[::-1]]  # any order
    frame.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    assert main(["predict", str(run), str(tmp_path / "new.csv"), "--out", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == [
        "ignored, since the model was not fitted on them: size, colour",
        "categories that the model does not know, read as missing: sex (5 rows)",
        "50 rows predicted",
    ]
    assert len(pd.read_csv(out)) == 50


def test_a_regression_along_dates_flags_rows_far_beyond(files, tmp_path, capsys):
    run, out = tmp_path / "run", tmp_path / "out.parquet"
    more = {"label": "stay", "index": ("came",), "drop": ("outcome", "patient")}
    assert fit(files / "ward.csv", run, "--regression", **more) == 0
    said = capsys.readouterr().out
    stays = ward()["stay"]
    assert f"label: stay, numbers {stays.min():g}-{stays.max():g}\n" in said
    assert "index: came, 2024-01-01 to 2024-10-26\n" in said
    assert "source rows trained on: root mean squared error " in said
    frame = ward(40, seed=2).assign(came=[*["2024-02-03"] * 20, *["2031-02-03"] * 20])
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(run), str(tmp_path / "new.csv"), "--out", str(out)]) == 0
    assert (
        "20 of 40 rows have an index far beyond those seen in training" in capsys.readouterr().out
    )
    found = pd.read_parquet(out)
    assert list(found) == ["row", "prediction", "beyond"]
    assert found["beyond"].tolist() == [False] * 20 + [True] * 20
    assert np.isfinite(found["prediction"]).all()


def test_several_index_columns_have_a_range_each(files, tmp_path, capsys):
    more = ("--periodic", "hour:24", "--method", "pcida")
    assert fit(files / "ward.csv", tmp_path / "run", *more, index=("hour", "age")) == 0
    said = capsys.readouterr().out
    assert "index: hour, 0-23.9; age, 20-89\n" in said
    assert "source hour 6-" in said
    assert ", age 20-89: " in said
    assert "scaled units of the index away from the nearest source row" in said


@pytest.mark.parametrize("method", ["source-only", "cida", "dann", "cdann"])
def test_every_method_trains(files, tmp_path, method):
    assert fit(files / "ward.csv", tmp_path / "run", "--method", method, "--steps", "2") == 0


@pytest.mark.parametrize("shape", [(5,), (1, 64), (12, 12)], ids=str)
def test_arrays_of_any_shape(tmp_path, capsys, shape):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, *shape))
    u = np.linspace(0, 10, 60)
    y = np.where(u > 5, -1, x.reshape(60, -1)[:, 0] > 0)
    np.savez(tmp_path / "a.npz", X=x, y=y, u=u)
    run, out = str(tmp_path / "run"), tmp_path / "out.csv"
    assert main(["fit", str(tmp_path / "a.npz"), "--out", run, "--steps", "3"]) == 0
    assert "label: y, 2 classes\nindex: u, 0-10\n" in capsys.readouterr().out
    np.savez(tmp_path / "new.npz", X=x[:9], u=u[:9])
    assert main(["predict", run, str(tmp_path / "new.npz"), "--out", str(out)]) == 0
    assert list(pd.read_csv(out)) == [
        "row", "prediction", "probability_0", "probability_1", "beyond",
    ]  # fmt: skip
    np.savez(tmp_path / "other.npz", X=np.ones((9, 3, 3)), u=u[:9])
    out.unlink()
    assert main(["predict", run, str(tmp_path / "other.npz"), "--out", str(out)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not out.exists()


def test_a_terminal_shows_a_bar(files, tmp_path):
    screen = io.StringIO()
    verb = Fit(files / "ward.csv", tmp_path / "run", "outcome", ("age",), seeds=2, steps=3)
    assert verb.run(Console(file=screen, force_terminal=True, width=120)) == 0
    assert "training" in screen.getvalue()
    assert "3/3" in screen.getvalue()


@pytest.mark.parametrize("regression", [False, True])
def test_a_handful_of_rows_is_enough(tmp_path, capsys, regression):
    (tmp_path / "few.csv").write_text("u,x,y\n1,3,7\n2,1,8\n3,2,7\n4,1,8\n5,4,\n")
    words = ["fit", str(tmp_path / "few.csv"), "--label", "y", "--index", "u", *STEPS]
    more = ["--regression"] if regression else []
    assert main([*words, "--out", str(tmp_path / "run"), *more]) == 0
    assert "(4 rows)" in capsys.readouterr().out


# --- bad input ---------------------------------------------------------------------------------


def test_a_place_where_nothing_can_be_written_is_told_before_training(files, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert fit(files / "ward.csv", tmp_path / "file/run", "--steps", "1000000") == 2
    assert "/file/run, where nothing can be written (Not a directory); choose" in said_once(capsys)
    assert fit(files / "ward.csv", tmp_path, "--steps", "1000000") == 2
    assert "which is no empty folder; name one, or one that is not there." in said_once(capsys)


def test_a_run_that_is_stopped_before_it_trains_leaves_nothing(
    files, tmp_path, monkeypatch, capsys
):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("cida.estimators.base.fit_state", stop)
    assert fit(files / "ward.csv", tmp_path / "made/run") == 1
    assert said_once(capsys) == "cida: interrupted; nothing was written.\n"
    assert list(tmp_path.iterdir()) == []


def without(*names):
    return lambda frame: frame.drop(columns=list(names))


def with_cell(name, value):
    def change(frame):
        frame[name] = frame[name].astype(object)
        frame.loc[3, name] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("pulse"), "lacks pulse, which the model was fitted on; add or rename."),
        (without("pulse", "hour"), "lacks pulse, hour, which the model was fitted on; add"),
        (lambda f: f.rename(columns={"pulse": "Pulse"}), "(is it Pulse for pulse?); add or rename"),
        (with_cell("hour", None), "index hour is empty in line 5; every row needs its index"),
        (with_cell("pulse", "fast"), "column pulse has 'fast' in line 5, and in training it held"),
        (with_cell("smoker", "maybe"), "column smoker has 'maybe' in line 5, and in training it"),
        (with_cell("came", "soon"), "column came has 'soon' in line 5, and in training it held"),
        (lambda f: f.iloc[:0], "has no rows; give at least one."),
    ],
)
def test_what_cannot_be_predicted_is_one_sentence_and_exit_code_2(
    run, tmp_path, capsys, change, said
):
    data = tmp_path / "new.csv"
    change(ward(20, seed=3)).to_csv(data, index=False)
    out = tmp_path / "made/out.csv"
    assert main(["predict", str(run), str(data), "--out", str(out)]) == 2
    assert said in said_once(capsys)
    assert list(tmp_path.iterdir()) == [data]


def test_of_a_file_that_is_not_there_fit_and_predict_name_the_nearest(
    run, files, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    typed = str(files / "wart.csv")
    said = f"DATA is {typed}, which is no file; did you mean {files / 'ward.csv'}? give a .csv"
    for words in (
        ["fit", typed, "--label", "y", "--index", "u", "--out", "run"],
        ["predict", str(run), typed, "--out", "x.csv"],
    ):
        assert main(words) == 2
        assert said in said_once(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["RUN", "DATA", "--out", "x.xlsx"], "out is x.xlsx; its name must end in .csv or .parq"),
        (["RUN", "DATA", "--out", "DATA"], "ward.csv, which is DATA; choose another name."),
        (["RUN", "DATA", "--out", "DATA/x.csv"], "where nothing can be written (Not a directory)"),
        (["RUN", "no.csv", "--out", "x.csv"], "DATA is no.csv, which is no file; give a .csv"),
        (["RUN", "no.edf", "--out", "x.csv"], "a run of table; recordings are predicted by runs"),
        (["no", "DATA", "--out", "x.csv"], "there is no model file at no; check the path."),
        (["RUN", "DATA", "--out", "x.csv", "--index", "3"], "index is for recordings; a table has"),
    ],
)
def test_bad_words_for_predict_are_one_sentence(
    run, files, tmp_path, capsys, monkeypatch, words, said
):
    monkeypatch.chdir(tmp_path)
    data = files / "ward.csv"
    before = data.read_bytes()
    swapped = [w.replace("RUN", str(run)).replace("DATA", str(data)) for w in words]
    assert main(["predict", *swapped]) == 2
    assert said in said_once(capsys)
    assert list(tmp_path.iterdir()) == []
    assert data.read_bytes() == before


def test_a_model_that_is_of_no_table_is_one_sentence(files, tmp_path, capsys):
    words = ["predict", str(tmp_path), str(files / "ward.csv"), "--out", str(tmp_path / "x.csv")]
    assert main(words) == 2
    assert "there is no model file at" in said_once(capsys)
    x = np.random.default_rng(0).normal(size=(20, 2))
    model = cida.CIDAClassifier(steps=2, random_state=0).fit(x, np.arange(20) % 2)
    model.save(tmp_path / "model.safetensors")
    assert main(words) == 2
    assert "whose model was not fitted on a table; use it in Python." in said_once(capsys)
    (tmp_path / "model.safetensors").write_text("{")
    assert main(words) == 2
    assert "model.safetensors is damaged or cut short (" in said_once(capsys)
    assert not (tmp_path / "x.csv").exists()


def test_without_pyarrow_it_says_what_to_install(files, tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "cida.tables")  # to be imported anew
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert fit(files / "ward.csv", tmp_path / "run") == 2
    assert said_once(capsys) == (
        'cida: tables need pyarrow, which is not installed; pip install "cida[tables]".\n'
    )
    assert list(tmp_path.iterdir()) == []


def test_report_tells_whether_the_encoding_still_tells_the_index(run, tmp_path, capsys):
    assert main(["report", str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match("The encoding (still tells|shows no trace of) hour: ", lines[0])
    assert lines[-1] == str((run / "report.html").resolve())
    assert main(["report", str(tmp_path)]) == 2
    assert "has no run.json" in capsys.readouterr().err
