"""Everything in cida that reads a file, each with valid files to begin from."""

import io
import warnings
from dataclasses import dataclass

import numpy as np
from rich.console import Console

import cida
from cida.cli.doctor import Doctor
from cida.cli.fit import Fit
from cida.cli.predict import predict_table
from cida.datasets import make_circle
from cida.experiments.circle_sine.toy_tasks import DEMO_RECIPES, make_toy_data
from cida.experiments.runner import run_recipe
from cida.experiments.sleep.covariates import read_covariates
from cida.experiments.sleep.recordings import read_signal
from cida.experiments.sleep.sleep_store import (
    SegmentCounts,
    SleepStore,
    StoreEntry,
    StoreSettings,
    write_store,
)
from cida.experiments.sleep.stages import read_stages, write_stages
from cida.experiments.sleep.studies import INDEX_NAMES, STUDIES
from cida.export.export_folder import export_folder, read_exported_model
from cida.report import Manifest, read_runs, render_report
from cida.runs.records import Origin
from cida.runs.result_table import ResultTable
from cida.tables import ColumnRoles, map_rows, open_table, read_table

ROWS = 60
FULL_FITS = 0.004  # the share of tables that are trained on, too


@dataclass(frozen=True)
class Loader:
    """``examples(home)`` gives valid files by name, ``load(folder, rng)`` reads some of them.

    What is in ``home`` is there for all inputs and is never wrong.
    """

    name: str
    examples: object
    load: object


def quiet():
    return Console(file=io.StringIO())


# --- tables --------------------------------------------------------------------------------------


def columns():
    rng = np.random.default_rng(0)
    u = np.linspace(0, 24, ROWS).round(2)
    classes = np.array(["ill", "well", "worse"])[rng.integers(0, 3, ROWS)]
    return {
        "u": u,
        "label": np.where(u < 12, classes, ""),
        "a": rng.normal(size=ROWS).round(3),
        "b": np.where(rng.random(ROWS) < 0.2, "", rng.integers(0, 9, ROWS).astype(str)),
        "kind": np.array(["x", "y z", 'q"uo,te'])[rng.integers(0, 3, ROWS)],
        "day": np.array("2020-01-01", "M8[D]") + rng.integers(0, 99, ROWS),
        "yes": np.where(rng.random(ROWS) < 0.5, "true", "false"),
    }


def csv_bytes():
    import csv

    made, found = io.StringIO(), columns()
    lines = csv.writer(made, lineterminator="\n")
    lines.writerow(found)
    lines.writerows(zip(*found.values(), strict=True))
    return made.getvalue().encode()


def csv_tables(home):
    text = csv_bytes()
    return [
        {"table.csv": text},
        {"table.csv": text.replace(b",", b";").replace(b"\n", b"\r\n")},
        {"table.csv": b"\xef\xbb\xbf" + text},
    ]


def parquet_tables(home):
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = columns()
    cells = {
        "u": pa.array(found["u"]),
        "label": pa.array(found["label"]).dictionary_encode(),
        "a": pa.array(found["a"], pa.float32()),
        "b": pa.array([int(b) if b else None for b in found["b"]], pa.int16()),
        "kind": pa.array(found["kind"]),
        "day": pa.array(found["day"]),
        "yes": pa.array(found["yes"] == "true"),
        "list": pa.array([[1]] * ROWS),
        "price": pa.array(range(ROWS)).cast(pa.decimal128(24, 2)),
        "time": pa.array(range(ROWS), pa.timestamp("ms", tz="UTC")),
    }
    made = []
    for options in ({}, {"compression": "none", "use_dictionary": False}, {"compression": "gzip"}):
        file = io.BytesIO()
        pq.write_table(pa.table(cells), file, **options)
        made.append({"table.parquet": file.getvalue()})
    return made


def npz_tables(home):
    rng, found = np.random.default_rng(0), columns()
    y = np.where(found["u"] < 12, rng.integers(0, 2, ROWS), -1)
    vectors = {"X": rng.normal(size=(ROWS, 2)), "y": y, "u": found["u"]}
    images = {"X": rng.random((ROWS, 8, 8)).astype("f4"), "y": y.astype("f8"), "u": found["u"]}
    texts = {"X": np.arange(2 * ROWS).reshape(ROWS, 2), "y": found["label"],
             "u": rng.normal(size=(ROWS, 2))}  # fmt: skip
    made = []
    for arrays in (vectors, images, texts):
        file = io.BytesIO()
        np.savez(file, **arrays)
        made.append({"table.npz": file.getvalue()})
    return made


def load_table(folder, rng, home):
    (path,) = folder.glob("table.*")
    arrays = path.suffix == ".npz"
    label, index = ("", ()) if arrays else ("label", ("u",))
    if rng.random() < 0.3:
        predict_table(
            home / "runs" / ("arrays" if arrays else "table"), path, folder / "out.csv", quiet()
        )
    elif rng.random() < FULL_FITS:
        Fit(path, folder / "run", label, index, steps=1, expected=False).run(quiet())
    else:
        table = open_table(path)
        roles = ColumnRoles(
            label or table.default_label,
            index or tuple(table.default_index),
            regression=rng.random() < 0.2,
        )
        data = read_table(table, roles)
        map_rows(data.iter_encoded(), data.schema.width)


# --- models and runs -----------------------------------------------------------------------------


def make_runs(home):
    """One real run of `cida fit` on a table, one on arrays, and one of a recipe."""
    runs = home / "runs"
    runs.mkdir(parents=True)
    (runs / "table.csv").write_bytes(csv_bytes())
    (runs / "arrays.npz").write_bytes(npz_tables(home)[0]["table.npz"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cida.CidaWarning)
        Fit(
            runs / "table.csv", runs / "table", "label", ("u",), ("u:24",), steps=12, expected=False
        ).run(quiet())
        Fit(runs / "arrays.npz", runs / "arrays", steps=2, expected=False).run(quiet())
        sample = make_toy_data(make_circle(n_per_domain=3, seed=0))
        recipe = DEMO_RECIPES["histogram"].with_settings(
            steps=12, encoder_hidden=(4,), encoding_width=2
        )
        run_recipe(recipe, sample, 0, runs / "circle", origin=Origin("circle"))
        u = columns()["u"]
        regressor = cida.CIDARegressor(
            steps=2, encoder_hidden=(4,), encoding_width=2, stochastic="gaussian"
        )
        regressor.fit(u[:, None] * [1, 2], np.where(u < 12, u, np.nan), domain_index=u)
        regressor.save(runs / "regressor.safetensors")
    (runs / "circle" / "picture.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")


def model_files(home):
    runs = home / "runs"
    paths = (runs / "circle" / "model.safetensors", runs / "regressor.safetensors")
    return [{"model.safetensors": path.read_bytes()} for path in paths]


def load_model_file(folder, rng, home):
    path = folder / "model.safetensors"
    if rng.random() < 0.2:
        Doctor((path,)).run(quiet())
        return
    kind = rng.choice((None, cida.CIDAClassifier, cida.CIDARegressor))
    model = cida.load(path) if kind is None else kind.load(path)
    x = np.ones((2, 2))
    if getattr(model, "n_features_in_", None) == 2 and model.index_width_ == 1:
        found = model.predict(x, domain_index=np.ones(2))
        assert len(found) == 2


def folders(home):
    runs = home / "runs"
    return [_folder(runs / "table"), _folder(runs / "circle")]


def _folder(path):
    left_out = ("report.html",)
    return {
        p.name: p.read_bytes() for p in path.iterdir() if p.is_file() and p.name not in left_out
    }


def load_model_folder(folder, rng, home):
    way = rng.random()
    if way < 0.4:
        predict_table(folder, home / "runs" / "table.csv", folder / "out.csv", quiet())
    elif way < 0.6:
        cida.load(folder)
    elif way < 0.8:
        Doctor((folder,)).run(quiet())
    else:
        export_folder(read_exported_model(folder), folder / "exported")


def run_folders(home):
    found = folders(home)
    story = Manifest(["."], "cida demo", "training points", sentences=["So it is."],
                  tables={"More": ResultTable.of([{"method": "a", "accuracy": 1.0}])},
                  figures={"A title": "picture.svg"})  # fmt: skip
    story.save(home)
    found[1]["manifest.json"] = (home / "manifest.json").read_bytes()
    return found


def load_report(folder, rng, home):
    render_report(read_runs([folder]), certificate_scope="few")


# --- sleep ---------------------------------------------------------------------------------------


def recordings(home):
    import edfio

    time = np.arange(120 * 10) / 10
    belt = np.sin(2 * np.pi * 0.25 * time) + 0.05 * np.random.default_rng(0).normal(size=len(time))
    made = []
    for number, labels in enumerate((["THOR RES"], ["ECG", "Abdo"])):
        signals = [edfio.EdfSignal(belt, 10.0, label=label) for label in labels]
        path = home / f"night-{number}.edf"
        edfio.Edf(signals).write(path)
        made.append({"night.edf": path.read_bytes()})
    return made


def load_recording(folder, rng, home):
    read_signal(folder / "night.edf", "Abdo" if rng.random() < 0.1 else None)


def annotations(home):
    write_stages(home / "night.xml", [0, 0, 1, 2, 3, 4, 5, 9, 2])
    return [{"night.xml": (home / "night.xml").read_bytes()}]


def load_annotation(folder, rng, home):
    read_stages(folder / "night.xml")


STUDY = STUDIES["mesa"]


def covariates(home):
    names = [STUDY.id_column, *(names[0] for names in STUDY.columns.values())]
    lines = [",".join(names)]
    for k in range(1, 9):
        values = ["1" if "gender" in name else str(40 + k) for name in names[1:]]
        lines.append(",".join([str(k), *values]))
    return [{"datasets/mesa-sleep-dataset-0.7.0.csv": "\n".join(lines).encode()}]


def load_covariates(folder, rng, home):
    read_covariates(folder, STUDY)


def stores(home):
    rng = np.random.default_rng(0)

    def night():
        return rng.normal(size=(4, 300)), rng.integers(0, 4, 4)

    indices = dict.fromkeys(INDEX_NAMES, 50.0)
    entries = [StoreEntry(str(k), indices, SegmentCounts(4, 0, 0, 0), night) for k in (1, 2)]
    folder = home / "store"
    folder.mkdir()
    write_store(folder, StoreSettings("mesa", True, None, {}), entries)
    return [_folder(folder)]


def load_store(folder, rng, home):
    store = SleepStore.open(folder)
    for number in range(min(5, len(store.subjects))):
        first, count = store.night_rows(number)
        assert len(store.segments[first : first + count]) == count


LOADERS = (
    Loader("CSV", csv_tables, load_table),
    Loader("Parquet", parquet_tables, load_table),
    Loader("npz", npz_tables, load_table),
    Loader("model file", model_files, load_model_file),
    Loader("model folder", folders, load_model_folder),
    Loader("run folder", run_folders, load_report),
    Loader("EDF", recordings, load_recording),
    Loader("annotation XML", annotations, load_annotation),
    Loader("covariates CSV", covariates, load_covariates),
    Loader("sleep store", stores, load_store),
)
