"""Tables that are odd in one way: what a user is told."""

import numpy as np
import pandas as pd
import pytest

import cida
from cida.cli import main

ROWS = 300


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    u = np.linspace(0, 1, ROWS).round(4)
    x = rng.normal(size=ROWS).round(6)
    y = np.where(x > 0, "yes", "no").astype(object)
    return pd.DataFrame({"u": u, "x": x, "z": rng.normal(size=ROWS).round(3),
                         "y": np.where(u < 0.5, y, None)})  # fmt: skip


def fit(path, run, *more):
    names = [] if path.suffix == ".npz" else ["--label", "y", "--index", "u"]
    return main(["fit", str(path), *names, "--steps", "5", "--out", str(run), *more])


def test_one_cell_that_is_no_number_is_named_with_the_column_that_is_left_out(
    frame, tmp_path, capsys
):
    frame["x"] = frame["x"].astype(str)
    frame.loc[7, "x"] = "?"
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert fit(tmp_path / "a.csv", tmp_path / "run") == 0
    said = capsys.readouterr().out
    assert (
        "left out: 'x', since most of its cells are numbers and some are not, such as '?'" in said
    )


def test_decimal_commas_are_told(frame, tmp_path, capsys):
    frame.to_csv(tmp_path / "a.csv", index=False, sep=";", decimal=",")
    assert main(["fit", str(tmp_path / "a.csv"), "--label", "y", "--index", "u", "--out",
                 str(tmp_path / "run")]) == 2  # fmt: skip
    frame["u"] = range(ROWS)
    frame.to_csv(tmp_path / "b.csv", index=False, sep=";", decimal=",")
    assert fit(tmp_path / "b.csv", tmp_path / "run") == 2  # no column is left
    assert "decimal comma" in capsys.readouterr().err


def test_a_tsv_file_has_tabs_whatever_its_names_hold(frame, tmp_path):
    frame.rename(columns={"x": "x, cm"}).to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    assert fit(tmp_path / "a.tsv", tmp_path / "run") == 0
    assert set(cida.load(tmp_path / "run").state_.table.schema.names) == {"x, cm", "z"}


def test_a_date_column_may_be_empty_in_the_rows_to_predict(frame, tmp_path, capsys):
    frame["came"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(ROWS) % 50, "D")
    frame.to_parquet(tmp_path / "a.parquet")
    assert fit(tmp_path / "a.parquet", tmp_path / "run") == 0
    frame["came"] = None
    frame.to_parquet(tmp_path / "b.parquet")
    out = tmp_path / "p.csv"
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "b.parquet"), "--out",
                 str(out)]) == 0  # fmt: skip
    assert len(pd.read_csv(out)) == ROWS


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_labels_beyond_what_can_be_computed_with_are_refused(frame, tmp_path, capsys, scale):
    frame["y"] = np.where(frame["u"] < 0.5, frame["x"] * scale, np.nan)
    frame.to_parquet(tmp_path / "a.parquet")
    assert fit(tmp_path / "a.parquet", tmp_path / "run", "--regression") == 2
    assert "give it in other units" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_index_beyond_what_can_be_computed_with_is_refused(frame, tmp_path, capsys):
    frame["u"] = 1.7e308 * np.linspace(-1, 1, ROWS)
    frame.to_parquet(tmp_path / "a.parquet")
    assert fit(tmp_path / "a.parquet", tmp_path / "run") == 2
    assert "index u reaches 1.7e+308" in capsys.readouterr().err


def test_categories_alone_are_a_table_too(frame, tmp_path, recwarn):
    frame["x"] = np.where(frame["x"] > 0, "up", "down")
    frame.drop(columns="z").to_csv(tmp_path / "a.csv", index=False)
    assert fit(tmp_path / "a.csv", tmp_path / "run") == 0
    assert not [w for w in recwarn if "zero-element" in str(w.message)]


def images(path, shape, rng):
    u = np.linspace(0, 1, 60)
    y = np.where(u < 0.5, rng.integers(0, 2, 60), -1)
    np.savez(path, X=rng.random((60, *shape)), y=y, u=u)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_images_that_hardly_differ_are_taken_for_all_the_same(tmp_path):
    path = tmp_path / "a.npz"
    images(path, (12, 12), np.random.default_rng(0))
    arrays = dict(np.load(path))
    np.savez(path, **{**arrays, "X": 1e-61 * arrays["X"]})
    assert fit(path, tmp_path / "run") == 0


def test_images_of_another_shape_are_refused_by_predict(tmp_path, capsys):
    rng = np.random.default_rng(0)
    images(tmp_path / "a.npz", (12, 12), rng)
    images(tmp_path / "b.npz", (2, 72), rng)  # as many numbers
    assert fit(tmp_path / "a.npz", tmp_path / "run") == 0
    command = ["predict", str(tmp_path / "run"), str(tmp_path / "b.npz"), "--out"]
    assert main([*command, str(tmp_path / "p.csv")]) == 2
    assert "give rows of the same shape" in capsys.readouterr().err
    assert not (tmp_path / "p.csv").exists()


def test_an_array_that_is_no_table_is_one_sentence(tmp_path, capsys):
    np.savez(
        tmp_path / "a.npz", X=np.arange(9.0), y=[0, 1, 0, 1, 0, 1, 0, -1, -1], u=np.arange(9.0)
    )
    assert fit(tmp_path / "a.npz", tmp_path / "run") == 2
    assert "(rows, 1)" in capsys.readouterr().err


def test_ctrl_c_says_that_nothing_was_written(frame, tmp_path, capsys, monkeypatch):
    frame.to_csv(tmp_path / "a.csv", index=False)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("cida.estimators.base.fit_state", stop)
    assert fit(tmp_path / "a.csv", tmp_path / "run") == 1
    assert "nothing was written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


SMALL = "age,x,c,y\n" + "".join(f"{k},{k % 5},{'ab'[k % 2]},{'pq'[k % 2]}\n" for k in range(20))
WITH_TARGET = SMALL + "30,1,a,\n31,2,b,\n"
ASK = ["--label", "y", "--index", "age"]


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (WITH_TARGET, ["--label", "Y1", "--index", "age"], "label is Y1, which is no column"),
        (WITH_TARGET, ["--label", "y", "--index", "agee"], "did you mean age?"),
        (WITH_TARGET, ["--index", "age"], "label is missing; name the column to predict"),
        (WITH_TARGET, ["--label", "y"], "index is missing; name the column along which labels end"),
        (
            WITH_TARGET,
            [*ASK, "--method", "magic"],
            "method is 'magic'; known: auto, adaptive, source-only",
        ),
        (WITH_TARGET, [*ASK, "--seeds", "0"], "seeds is 0; it must be at least 1."),
        (WITH_TARGET, [*ASK, "--seed", "-1"], "seed is -1; it must not be negative."),
        (WITH_TARGET, [*ASK, "--periodic", "age"], "periodic is 'age'; write COLUMN:PERIOD"),
        (WITH_TARGET, [*ASK, "--periodic", "x:24"], "periodic has x, which is no index column"),
        (WITH_TARGET, [*ASK, "--regression"], "label y has 'p' in line 2; a regression needs"),
        (SMALL, ASK, "label y is given in all 20 rows, so there is no target to adapt to"),
        (SMALL.replace("p\n", "\n").replace("q\n", "\n"), ASK, "label y is empty in all 20 rows"),
        (WITH_TARGET.replace("\n7,", "\nold,"), ASK, "index age has 'old' in line 9; an index"),
        (WITH_TARGET.replace("\n7,", "\n,"), ASK, "index age is empty in line 9; every row needs"),
        (WITH_TARGET + "40,1,é,\n", ASK, "has bytes in line 24 that are not UTF-8"),
        (WITH_TARGET + "40,1\n", ASK, "has 2 cells in line 24 and 4 columns in its first line"),
        (WITH_TARGET + "40,1,a,r\n", ASK, "has the class 'r' only once, in line 24; a class needs"),
        ("", ASK, "is empty; its first line must name the columns."),
        ("age,x,y\n", ASK, "has no rows below the names of its columns."),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_what_cannot_be_fitted_is_one_sentence_and_exit_code_2(tmp_path, capsys, text, words, said):
    data = tmp_path / "data.csv"
    data.write_bytes(text.encode("latin-1"))
    assert main(["fit", str(data), *words, "--out", str(tmp_path / "made/run")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize("shape", [(3,), (12, 12)])
def test_a_folder_of_npy_files_gives_the_model_and_the_predictions_of_an_npz_file(shape, tmp_path):
    images(tmp_path / "a.npz", shape, np.random.default_rng(0))
    folder = tmp_path / "arrays"
    folder.mkdir()
    for name, array in np.load(tmp_path / "a.npz").items():
        np.save(folder / f"{name}.npy", array)
    predicted = []
    for data in (tmp_path / "a.npz", folder):
        run, out = tmp_path / f"run-{data.stem}", tmp_path / f"{data.stem}.csv"
        command = ["fit", str(data), "--steps", "5", "--no-expected", "--out", str(run)]
        assert main(command) == 0
        assert main(["predict", str(run), str(data), "--out", str(out)]) == 0
        predicted.append(out.read_text())
    assert predicted[0] == predicted[1]
