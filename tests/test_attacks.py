"""Files that somebody made to do harm: refused in one sentence, or harmless.

More of the same are where the parts are tested: markup in tests/report/test_page.py and
test_explorer.py, entities in tests/datasets/sleep/test_stages.py, archives in
tests/datasets/test_package.py, redirects in tests/datasets/test_download.py.
"""

import io
import json
import os
import pickle
import resource
import shutil
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import cida
from cida.cli import main
from cida.io.arrays import read_arrays
from cida.io.files import contained_path
from cida.report import Manifest
from cida.spaces import space_from_dict

VERBS = {
    "predict": ["predict", "RUN", "table.csv", "--out", "predicted.csv"],
    "report": ["report", "RUN", "--no-files"],
    "doctor": ["doctor", "RUN"],
    "export": ["export", "RUN", "--folder", "exported"],
}
MEGABYTES = 400 << 10  # in the kilobytes of getrusage


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A real run of cida fit, and its table."""
    folder = tmp_path_factory.mktemp("attack")
    rng = np.random.default_rng(100)
    u = np.linspace(0, 9, 60)
    lines = [f"{v:.2f},{'ab'[k % 2] if v < 5 else ''},{rng.normal() + k % 2:.3f}"
             for k, v in enumerate(u)]  # fmt: skip
    (folder / "table.csv").write_text("\n".join(["u,label,x", *lines]) + "\n")
    words = ["fit", str(folder / "table.csv"), "--label", "label", "--index", "u"]
    assert main([*words, "--steps", "12", "--no-expected", "--out", str(folder / "run")]) == 0
    return folder


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    """A copy of it to be tampered with, in the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run"


@pytest.fixture
def refused(capsys):
    """Runs a verb on the run; gives the one sentence that it says."""

    def ask(verb, run="run"):
        capsys.readouterr()
        assert main([str(run) if word == "RUN" else word for word in VERBS[verb]]) == 2
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        (sentence,) = said.err.strip().splitlines()
        return sentence

    return ask


def change_header(path, change):
    """Another header in a model file; the tensors stay."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    words = json.loads(header["__metadata__"]["cida"])
    change(words)
    header["__metadata__"]["cida"] = json.dumps(words)
    told = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(told)) + told + content[8 + length :])


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


# --- pickle --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["predict", "report", "doctor", "export"])
def test_a_pickle_in_the_place_of_a_model_is_named_and_not_opened(run, refused, verb):
    (run / "model.safetensors").write_bytes(pickle.dumps(Bomb()))
    assert "is a pickle" in refused(verb)
    assert not Path("exploded").exists()


def test_objects_in_an_npz_file_are_not_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", X=np.array([Bomb()] * 3, dtype=object), u=np.arange(3.0))
    with pytest.raises(ValueError, match="Object arrays cannot be loaded when allow_pickle=False"):
        read_arrays(Path("a.npz"), ("X", "u"))
    assert not Path("exploded").exists()


def test_nothing_in_the_library_unpickles():
    """ruff's S301 looks for pickle.load; these are the others that would."""
    calls = ("allow_pickle=True", "torch.load(", "joblib.load(", "np.load(", "pickle.load")
    for path in Path(cida.__file__).parent.rglob("*.py"):
        text = path.read_text().replace("np.load(path, allow_pickle=False)", "")
        assert not [call for call in calls if call in text], path


# --- a model folder that lies --------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        ("parameters", "encoder_hidden"),
        ("plan", "encoder_hidden"),
        ("layout", "shape"),
        ("encoding_width",),
    ],
    ids=lambda path: ".".join(path),
)
def test_a_small_file_cannot_ask_for_all_memory(tmp_path, path):
    rng = np.random.default_rng(100)
    x, u = rng.normal(size=(40, 2)), np.linspace(0, 1, 40)
    y = np.where(u < 0.5, (x[:, 0] > 0), np.nan)
    settings = {"encoder_hidden": (4,), "coordinates": "learned", "capacity": "mlp"}
    model = cida.CIDAClassifier(**settings, steps=1).fit(x, y, domain_index=u)
    model.save(tmp_path / "m")

    def grow(words):
        for name in path[:-1]:
            words = words[name]
        huge = 60_000
        words[path[-1]] = huge if path[-1] == "encoding_width" else [huge, huge]

    change_header(tmp_path / "m", grow)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if path == ("parameters", "encoder_hidden"):  # what was chosen counts, and fits the weights
        cida.load(tmp_path / "m")
    else:
        with pytest.raises(
            cida.ModelFileError, match=r"describes a network|whole model|fit the we"
        ):
            cida.load(tmp_path / "m")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [("layout", "shape", [10**9]), ("layout", "shape", [10**6, 10**6]), ("", "n_members", 10**12),
     ("", "n_members", 1e400), ("labels", "classes", ["a"]), ("labels", "scale", float("nan")),
     ("table", "index", [["u"]]), ("table", "label", {"a": 1})],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["predict", "export"])
def test_a_run_that_lies_about_its_table_is_refused(run, refused, verb, part, name, value):
    def lie(words):
        if name == "scale":  # of numbers: it has no classes then
            words["labels"] = {"mean": 0.0, "residual": None}
        (words[part] if part else words).update({name: value})

    change_header(run / "model.safetensors", lie)
    assert "model.safetensors" in refused(verb)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["run.json", "events.jsonl"])
def test_json_that_is_too_deep_is_one_sentence(run, refused, verb, name):
    if verb == "predict" or (name == "events.jsonl" and verb == "export"):
        return  # they do not read it
    (run / name).write_text("[" * 200_000)
    assert "nested too deeply" in refused(verb)


def test_names_in_a_file_import_nothing(run, refused):
    Path("evil.py").write_text("import os; os.mkdir('exploded')")
    sys.path.insert(0, str(Path.cwd()))
    try:
        change_header(
            run / "model.safetensors", lambda words: words.update({"class_name": "evil:Evil"})
        )
        assert "model.safetensors" in refused("predict")
        change_header(
            run / "model.safetensors",
            lambda words: words.update(
                {"networks": {"encoder": {"network": "evil.Evil", "arguments": {}}}}
            ),
        )
        refused("predict")
    finally:
        sys.path.remove(str(Path.cwd()))
    assert "evil" not in sys.modules
    assert not Path("exploded").exists()


def test_spaces_in_spaces_have_an_end():
    words = {"kind": "line", "centre": 0, "scale": 1}
    for _ in range(400):
        words = {"kind": "product", "parts": [words]}
    with pytest.raises(ValueError, match="products in products"):
        space_from_dict(words)


# --- links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["run.json", "events.jsonl", "model.safetensors",
                                  "snapshot.safetensors"])  # fmt: skip
def test_a_link_out_of_the_folder_is_not_followed(run, refused, verb, name):
    read_by = {"run.json": ("report", "doctor", "export"), "model.safetensors": VERBS,
               "events.jsonl": ("report", "doctor"),
               "snapshot.safetensors": ("report", "export")}  # fmt: skip
    if verb not in read_by[name]:
        return
    shutil.move(run / name, Path("elsewhere"))
    (run / name).symlink_to(Path("elsewhere").absolute())
    assert f"{name} leads out of its folder" in refused(verb)


def test_a_run_may_be_a_link_itself(run):
    Path("latest").symlink_to(run)
    assert main(["doctor", "latest"]) in (0, 1)


def test_a_pipe_is_not_waited_for(run, refused):
    (run / "run.json").unlink()
    os.mkfifo(run / "run.json")
    assert "run.json is no plain file" in refused("doctor")


def test_a_report_replaces_a_link_and_does_not_write_through_it(run):
    Path("precious").write_text("mine")
    (run / "report.html").unlink()
    (run / "report.html").symlink_to(Path("precious").absolute())
    assert main(["report", "run", "--no-files"]) == 0
    assert Path("precious").read_text() == "mine"
    assert not (run / "report.html").is_symlink()


def test_figures_are_not_written_through_a_link(run, capsys):
    Path("elsewhere").mkdir()
    (run / "report-files").symlink_to(Path("elsewhere").absolute())
    assert main(["report", "run"]) == 2
    assert "report-files is a link to" in capsys.readouterr().err
    assert list(Path("elsewhere").iterdir()) == []


def test_a_storys_pictures_are_those_of_its_folder(tmp_path):
    (tmp_path / "secret.svg").write_text("secret")
    (tmp_path / "out").mkdir()
    for name in ("../secret.svg", str(tmp_path / "secret.svg")):
        with pytest.raises(ValueError, match="leads out of its folder"):
            Manifest(figures={"a": name}).read_figures(tmp_path / "out")


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "b/../../a"])
def test_a_name_that_leads_out_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="leads out of its folder"):
        contained_path(tmp_path / "folder", name)


# --- archives ------------------------------------------------------------------------------------


def test_a_zip_bomb_is_not_unpacked(tmp_path, monkeypatch):
    # Of a gigabyte it would take a minute.
    monkeypatch.setattr("cida.io.arrays.MAX_UNPACKED_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros(1 << 20))
    with pytest.raises(ValueError, match=r"X\.npy unpacks to [0-9]+ times its size"):
        read_arrays(tmp_path / "a.npz", ("X",))


def test_an_array_is_no_larger_than_its_bytes(tmp_path):
    made = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(made, header)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", made.getvalue())
    with pytest.raises(ValueError, match=r"Unable to allocate|EOF"):
        read_arrays(tmp_path / "a.npz", ("X",))


def test_a_member_that_is_no_array_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", b"text")
    with pytest.raises(ValueError, match="X is no array"):
        read_arrays(tmp_path / "a.npz", ("X",))


# --- files of ours -------------------------------------------------------------------------------


def test_what_a_fit_leaves_has_the_users_umask(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o027)
    try:
        words = ["fit", str(made / "table.csv"), "--label", "label", "--index", "u"]
        assert main([*words, "--steps", "1", "--no-expected", "--out", "run"]) == 0
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in Path("run").iterdir()}
    assert set(modes.values()) == {0o640}, modes
    assert Path("run").stat().st_mode & 0o777 == 0o750


def test_a_name_in_a_file_does_not_steer_the_terminal(tmp_path, capsys):
    (tmp_path / "a.csv").write_bytes(b"u,\x1b[2J\x07evil\n1,2\n")
    words = ["fit", str(tmp_path / "a.csv"), "--label", "y", "--index", "u"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "?[2J?evil" in said
    assert "\x1b[2J" not in said
