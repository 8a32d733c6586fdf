"""The sleep experiments through the command line: from recordings to a table, to predictions."""

import csv
import json
import re
import shutil

import edfio
import numpy as np
import pytest

from cida.cli import main
from cida.experiments.sleep.sleep_store import SleepStore
from cida.experiments.sleep.stages import STAGE_CLASSES
from cida.experiments.sleep.studies import STUDIES

TASKS = ("shhs-extrapolation", "sof-interpolation")
METHODS = ("source-only", "histogram")
RUNS = [f"{task}/{method}-seed0" for task in TASKS for method in METHODS]
PICTURES = {f"{name}.{kind}" for name in ("ages", "accuracy") for kind in ("png", "svg")}
QUICK = ["--steps", "3", "--seeds", "1"]


def reproduce(folder, stores, *more):
    command = ["reproduce", "sleep-intra", "--root", str(stores), "--tasks", *TASKS]
    return main([*command, "--methods", *METHODS, *QUICK, "--out", str(folder), *more])


@pytest.fixture(scope="module")
def whole(cohorts, tmp_path_factory):
    """Two tasks, two methods, one seed, with figures; to be read, not changed."""
    folder = tmp_path_factory.mktemp("sleep")
    assert reproduce(folder, cohorts.stores) == 0
    return folder


@pytest.fixture(scope="module")
def multi(cohorts, tmp_path_factory):
    """One run with eleven indices."""
    folder = tmp_path_factory.mktemp("multi")
    command = ["reproduce", "sleep-multi", "--root", str(cohorts.stores), "--tasks", "11"]
    more = ["--methods", "source-only", "histogram", "--no-figures", "--out", str(folder)]
    assert main([*command, *QUICK, *more]) == 0
    return folder


@pytest.fixture
def edf(cohorts):
    """The recording of the first simulated person of shhs."""
    return STUDIES["shhs"].recording_paths(cohorts.recordings / "shhs", 200001).edf


def words_of(folder):
    return json.loads((folder / "results.json").read_text())


def stamps(folder):
    """When each file of each run was written."""
    return {path: path.stat().st_mtime_ns for path in sorted(folder.glob("*/*-seed0/*"))}


def said_once(capsys):
    """The one line on stderr."""
    error = capsys.readouterr().err
    assert error.startswith("cida: ")
    assert error.count("\n") == 1
    return error


# --- what a whole run leaves -------------------------------------------------------------------


def test_all_files_are_written_and_a_task_has_a_folder_of_its_own(whole):
    assert {path.name for path in whole.iterdir()} == {
        "results.json", "manifest.json", "table.md", "report.html", *TASKS, *PICTURES,
    }  # fmt: skip
    for run in RUNS:
        assert {path.name for path in (whole / run).iterdir()} == {
            "model.safetensors", "run.json", "events.jsonl", "result.json", "snapshot.safetensors",
        }  # fmt: skip
    for name in PICTURES:
        start = b"\x89PNG" if name.endswith("png") else b"<?xml"
        assert (whole / name).read_bytes().startswith(start)


def test_results_json_says_simulated_and_the_task_of_each_row(whole):
    words = words_of(whole)
    assert (words["schema"], words["benchmark"], words["preset"]) == (1, "sleep-intra", "best")
    assert words["is_simulated"] is True
    assert words["protocol"].startswith("clean: four fifths of the source people")
    made = [(row["task"], row["method"], row["seed"]) for row in words["rows"]]
    assert made == [(f"sleep-intra/{task}", method, 0) for task in TASKS for method in METHODS]
    for row in words["rows"]:
        count = sum(cell["n"] for cell in row["by_index"])
        right = sum(cell["n"] * cell["score"] for cell in row["by_index"])
        assert right / count == pytest.approx(row["target_score"])
        assert set(row["extra_metrics"]["recall"]) == set(STAGE_CLASSES)
        assert -1 <= row["extra_metrics"]["kappa"] <= 1
    assert [(line["task"], line["method"]) for line in words["summary"]] == [
        (task, method) for task, method, _ in made
    ]


def test_table_md_has_the_papers_table_the_people_and_every_method(whole):
    text = (whole / "table.md").read_text()
    table, told, details = text.split("\n\n")
    lines = [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines()]
    assert lines[0] == ["task", "Source-Only", "Histogram head"]
    assert [line[0] for line in lines[2:]] == [
        "SHHS@[44,52] → SHHS@(52,90]", "the paper, on real data",
        "SOF@Outside → SOF@(79,86]", "the paper, on real data",
    ]  # fmt: skip
    assert [line[1:] for line in lines[3::2]] == [["77.4", ""], ["71.8", ""]]
    rows = words_of(whole)["rows"]
    shown = [float(cell.strip("*")) for line in lines[2::2] for cell in line[1:]]
    assert shown == [pytest.approx(100 * row["target_score"], abs=0.051) for row in rows]
    assert "- Simulated: nobody was recorded;" in told
    assert "100% of the target people are outside the convex hull" in told
    assert "; 0% of the target people are outside the convex hull" in told
    assert len(details.splitlines()) == 2 + len(RUNS)
    assert all(f" {name} |" in details for name in ("kappa", *STAGE_CLASSES))


def test_the_report_says_simulated_holds_the_figures_and_fetches_nothing(whole):
    page = (whole / "report.html").read_text()
    assert "SIMULATED: these people exist in a computer alone." in page
    assert "Sleep staging across ages" in page
    assert "cida reproduce sleep-intra --preset best --seeds 1 --steps 3 --tasks" in page
    sources = re.findall(r"<[^>]*\bsrc\s*=\s*[\"']([^\"']{0,20})", page)
    assert len(sources) == 2
    assert all(source.startswith("data:image/svg") for source in sources)
    assert all(place.startswith("#") for place in re.findall(r"\bhref=[\"']([^\"']*)", page))


def test_resume_keeps_finished_runs_and_makes_the_missing_one_again(cohorts, whole, tmp_path):
    shutil.copytree(whole, tmp_path / "copy")
    before, words = stamps(tmp_path / "copy"), words_of(whole)
    (tmp_path / "copy" / RUNS[3] / "result.json").unlink()
    assert reproduce(tmp_path / "copy", cohorts.stores, "--resume", "--no-figures") == 0
    after = stamps(tmp_path / "copy")
    for path, stamp in after.items():
        again = str(path.parent.relative_to(tmp_path / "copy")) == RUNS[3]
        assert (stamp != before[path]) == again, path
    for old, new in zip(words["rows"], words_of(tmp_path / "copy")["rows"], strict=True):
        assert {**old, "seconds": 0} == {**new, "seconds": 0}


def test_eleven_indices_are_trained_on_and_tabulated(multi):
    words = words_of(multi)
    assert {row["task"] for row in words["rows"]} == {"sleep-multi/11"}
    assert "| 11 indices |" in (multi / "table.md").read_text()
    run = json.loads((multi / "11/histogram-seed0/run.json").read_text())
    assert len(run["settings"]["space"]["space"]["parts"]) == 11
    assert not list(multi.glob("*.png"))


def test_one_simulated_study_among_real_ones_makes_the_whole_simulated(cohorts, tmp_path):
    shutil.copytree(cohorts.stores, tmp_path / "stores")
    header = tmp_path / "stores/shhs/store.json"
    words = json.loads(header.read_text())
    assert words["simulated"] is True
    header.write_text(json.dumps({**words, "simulated": False}))
    assert reproduce(tmp_path / "out", tmp_path / "stores", "--no-figures") == 0
    assert words_of(tmp_path / "out")["is_simulated"] is True
    assert "SIMULATED" in (tmp_path / "out/report.html").read_text()


def test_without_a_root_the_cohorts_of_the_data_home_are_taken(cohorts, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (home / "sleep-simulated-1").symlink_to(cohorts.stores)
    monkeypatch.setenv("CIDA_DATA_HOME", str(home))
    command = ["reproduce", "sleep-cross", "--tasks", "sof-shhs", "--methods", "source-only"]
    assert main([*command, *QUICK, "--no-figures", "--out", str(tmp_path / "out")]) == 0
    (row,) = words_of(tmp_path / "out")["rows"]
    assert row["task"] == "sleep-cross/sof-shhs"


# --- predictions for one recording -------------------------------------------------------------


def predict(run, data, out, *more, index=("63",)):
    return main(["predict", str(run), str(data), "--index", *index, "--out", str(out), *more])


def test_a_recording_gets_a_stage_and_probabilities_for_each_30_s(whole, edf, tmp_path, capsys):
    out = tmp_path / "made/stages.csv"
    assert predict(whole / RUNS[1], edf, out) == 0
    with out.open(newline="") as file:
        lines = list(csv.DictReader(file))
    seconds = edfio.read_edf(edf, lazy_load_data=True).duration
    assert len(lines) == seconds // 30
    assert [int(line["start_seconds"]) for line in lines] == [30 * k for k in range(len(lines))]
    real = [line for line in lines if line["stage"] != "no signal"]
    assert len(real) > 800  # this person's belts came off for some minutes
    probability = np.array([[float(line[name]) for name in STAGE_CLASSES] for line in real])
    assert np.abs(probability.sum(1) - 1).max() < 2.1e-4  # four digits of each
    for line, chances in zip(real, probability, strict=True):
        assert chances[STAGE_CLASSES.index(line["stage"])] == chances.max()
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == str(out)
    shares = {line[:10].strip(): float(line[10:].strip("% ")) for line in said[:-1]}
    assert set(shares) == {line["stage"] for line in lines}
    assert sum(shares.values()) == pytest.approx(100, abs=0.2)


def test_where_the_belt_was_off_there_is_no_stage(whole, tmp_path, capsys):
    signal = np.sin(np.arange(6000) / 10 * 1.6) + 0.1 * np.random.default_rng(0).normal(size=6000)
    signal[1500:2400] = signal[1500]  # 150 to 240 s
    night, out = tmp_path / "night.edf", tmp_path / "stages.csv"
    edfio.Edf([edfio.EdfSignal(signal, 10, label="Chest")]).write(night)
    assert predict(whole / RUNS[0], night, out) == 0
    with out.open(newline="") as file:
        lines = list(csv.DictReader(file))
    off = [line for line in lines if line["stage"] == "no signal"]
    assert [line["start_seconds"] for line in off] == ["150", "180", "210"]
    assert {line[name] for line in off for name in STAGE_CLASSES} == {""}
    assert "no signal   15.0%" in capsys.readouterr().out


def test_an_index_far_from_all_that_were_trained_on_is_told(whole, edf, tmp_path, capsys):
    assert predict(whole / RUNS[1], edf, tmp_path / "stages.csv", index=("20",)) == 0
    assert "domain_index is far from what was fitted" in capsys.readouterr().out


def test_a_model_of_eleven_indices_takes_eleven(multi, edf, tmp_path, capsys):
    run, out = multi / "11/histogram-seed0", tmp_path / "stages.csv"
    assert predict(run, edf, out) == 2
    assert "index has 1 numbers and the model was trained with 11; give" in said_once(capsys)
    assert not out.exists()
    eleven = ("63", "66", "2", *["70"] * 8)
    assert predict(run, edf, out, index=eleven) == 0
    assert out.exists()


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"run": ""}, "which has no run.json; give the folder of one run, such as runs/"),
        ({"run": "sine"}, "a run of sine; recordings are predicted by runs of sleep-intra, "),
        ({"run": "list"}, "run.json is not as cida writes it (it is [], which is no object)."),
        ({"run": "garbled"}, "run.json cannot be read ("),
        ({"run": "lost"}, "there is no model file at "),
        ({"index": ("63", "70")}, "index has 2 numbers and the model was trained with 1; give"),
        ({"index": ("nan",)}, "index is nan; it must be numbers."),
        ({"data": "absent.edf"}, "which is no file; did you mean"),
        (
            {"data": "text.edf"},
            "it is not an EDF file, or its header is broken; download it again.",
        ),
        ({"data": "nose.edf"}, "no breathing belt is among its channels ('Nose', 'SaO2'); name"),
        (
            {"more": ["--channel", "Nose"]},
            "channel 'Nose' is not among its channels ('THOR RES', 'ABDO RES'); name the belt",
        ),
    ],
    ids=lambda value: " ".join(f"{k}" for k in value) if isinstance(value, dict) else value[:24],
)
def test_what_cannot_be_predicted_is_one_sentence_and_exit_code_2(
    whole, edf, tmp_path, capsys, wrong, said
):
    signals = [edfio.EdfSignal(np.arange(600.0), 10, label=name) for name in ("Nose", "SaO2")]
    edfio.Edf(signals).write(tmp_path / "nose.edf")
    (tmp_path / "text.edf").write_text("not a recording\n" * 100)
    sine = '{"schema": 2, "task": "sine", "method": "cida"}'
    runs = {"": None, "sine": sine, "list": "[]", "garbled": "{",
            "lost": (whole / RUNS[1] / "run.json").read_text()}  # fmt: skip
    for name, text in runs.items():
        if text is not None:
            (tmp_path / name).mkdir()
            (tmp_path / name / "run.json").write_text(text)
    run = tmp_path / wrong["run"] if "run" in wrong else whole / RUNS[1]
    data = tmp_path / wrong["data"] if "data" in wrong else edf
    out = tmp_path / "out/stages.csv"
    assert predict(run, data, out, *wrong.get("more", ()), index=wrong.get("index", ("63",))) == 2
    assert said in said_once(capsys)
    assert not out.parent.exists()


def test_predicting_without_edfio_says_what_to_install(whole, edf, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("cida.experiments.sleep.recording_errors.find_spec", lambda name: None)
    assert predict(whole / RUNS[1], edf, tmp_path / "stages.csv") == 2
    assert said_once(capsys) == (
        "cida: reading a recording needs edfio, which is not installed; "
        "pip install 'cida[sleep]'.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sleep-intra", "--tasks", "young"], "tasks is 'young'; known: shhs-extrapolation, mesa"),
        (["sleep-multi", "--tasks", "3"], "tasks is '3'; known: 01, 02, 04, 11."),
        (["sleep-intra", "--tasks"], "tasks is ''; known: shhs-extrapolation"),
        (["circle", "--tasks", "01"], "tasks is for experiments that have several; circle is one"),
        (["circle", "--root", "stores"], "root is for the sleep experiments; circle brings its"),
        (
            ["sleep-cross", "--methods", "magic"],
            "methods has magic; known are source-only, source-",
        ),
        (["sleep-cross", "--protocol", "paper"], "protocol is 'paper'; known: clean, development."),
    ],
)
def test_what_cannot_be_run_is_one_sentence_and_exit_code_2(
    arguments, said, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    assert said in said_once(capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_study_that_is_missing_is_told_before_the_first_run(cohorts, tmp_path, capsys):
    stores, out = tmp_path / "stores", tmp_path / "out"
    stores.mkdir()
    (stores / "shhs").symlink_to(cohorts.stores / "shhs")
    assert reproduce(out, stores) == 2
    assert said_once(capsys) == (
        f"cida: root is {stores}, which has no folder sof; prepare the study into it: "
        f"cida data prepare-nsrr --study sof --root DIR --out {stores}/sof.\n"
    )
    assert not out.exists()


def test_a_folder_that_is_no_store_and_a_store_with_too_few_people_are_told(
    cohorts, tmp_path, capsys
):
    stores, out = tmp_path / "stores", tmp_path / "out"
    (stores / "shhs").mkdir(parents=True)
    assert reproduce(out, stores) == 2
    assert "shhs is not a store of sleep segments: it has no store.json; make one" in said_once(
        capsys
    )
    few, ages = tmp_path / "few", SleepStore.open(cohorts.stores / "sof").subjects["age"]
    (few / "shhs").mkdir(parents=True)
    assert ages.min() > 52  # none of them is young enough for SHHS's source
    for path in (cohorts.stores / "sof").glob("*.*"):
        shutil.copy(path, few / "shhs" / path.name)
    assert reproduce(out, few) == 2
    assert "sleep-intra/shhs-extrapolation has too few source people: shhs has 0" in said_once(
        capsys
    )
    assert not out.exists()
