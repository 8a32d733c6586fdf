"""cida data simulate-sleep: cohorts that prepare-nsrr takes for real ones."""

import errno
import os
import shlex
from importlib import import_module

import pytest

from cida.cli import main
from cida.experiments.sleep.simulate import simulate_cohorts
from cida.experiments.sleep.sleep_data import open_cohort
from cida.experiments.sleep.sleep_store import SleepStore

simulation = import_module("cida.experiments.sleep.simulate")
COHORTS = tuple(simulation.SIMULATED_COHORTS)


def words(out, subjects=1, seed=0, *more):
    numbers = ["--subjects", str(subjects), "--seed", str(seed)]
    return ["data", "simulate-sleep", "--out", str(out), *numbers, *more]


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """One person in each cohort; to be read, not changed."""
    out = tmp_path_factory.mktemp("straight")
    simulate_cohorts(out, 1, 0)
    return contents(out)


def test_from_simulated_people_to_stores_by_what_it_says_to_run_next(tmp_path, capsys):
    out = tmp_path / "two nights"  # a space, so that what is printed must be quoted
    assert main(words(out, 2)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "simulated people: 2 in shhs, 2 in mesa, 2 in sof; nobody was recorded; "
        "6 nights were written now"
    )
    assert lines[1] == "next, for each study that is wanted:"
    assert lines[2] == (
        f"cida data prepare-nsrr --study shhs --root '{out}/shhs' --out '{out}/stores/shhs'"
    )
    assert lines[5:] == [str(out)]
    for study, line in zip(COHORTS, lines[2:5], strict=True):
        assert main(shlex.split(line)[1:]) == 0
        said = capsys.readouterr().out.splitlines()
        assert said[0].startswith("2 simulated subjects with ")
        assert said[-1] == str(out / "stores" / study)
        store = open_cohort(study, out / "stores")
        assert (store.study, store.is_simulated, len(store.subjects)) == (study, True, 2)
        assert len(store) > 2 * 750
    ages = SleepStore.open(out / "stores/shhs").subjects["age"]
    assert ages.tolist() == [simulation.draw_subject("shhs", n, 0).age for n in (200001, 200002)]


def test_a_second_run_keeps_what_is_there_and_adds_to_it(tmp_path, capsys):
    main(words(tmp_path))
    before = contents(tmp_path)
    capsys.readouterr()
    assert main(words(tmp_path)) == 0
    assert "; 0 nights were written now" in capsys.readouterr().out
    assert contents(tmp_path) == before
    assert main(words(tmp_path, 2)) == 0
    assert capsys.readouterr().out.startswith(
        "simulated people: 2 in shhs, 2 in mesa, 2 in sof; nobody was recorded; 3 nights were"
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"subjects": 0}, "subjects is 0; it must be at least 1."),
        ({"seed": -1}, "seed is -1; it must not be negative."),
        ({"jobs": 0}, "jobs is 0; it must be at least 1."),
    ],
)
def test_wrong_numbers_are_one_sentence_and_exit_code_2(tmp_path, capsys, wrong, said):
    flags = {"subjects": 1, "seed": 0, "jobs": 1, **wrong}
    found = [word for flag, value in flags.items() for word in (f"--{flag}", str(value))]
    assert main(["data", "simulate-sleep", "--out", str(tmp_path / "out"), *found]) == 2
    assert capsys.readouterr().err == f"cida: {said}\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("without", ["--out", "--subjects", "--seed"])
def test_a_flag_that_is_missing_is_exit_code_2(tmp_path, capsys, without):
    given = words(tmp_path / "out")
    place = given.index(without)
    assert main(given[:place] + given[place + 2 :]) == 2
    assert without in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_number_that_is_none_is_exit_code_2(tmp_path):
    assert main(words(tmp_path / "out", "many")) == 2


def test_a_file_or_a_folder_of_something_else_is_exit_code_2(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(words(tmp_path / "file")) == 2
    assert "which is not a folder; choose another name." in capsys.readouterr().err
    (tmp_path / "out/shhs").mkdir(parents=True)
    (tmp_path / "out/shhs/patients.csv").write_text("real")
    assert main(words(tmp_path / "out")) == 2
    said = capsys.readouterr().err
    assert f"out has recordings that are not simulated in {tmp_path}/out/shhs; choose" in said
    assert said.count("\n") == 1
    assert contents(tmp_path / "out") == {"shhs/patients.csv": b"real"}


def test_another_seed_is_exit_code_2(tmp_path, capsys):
    main(words(tmp_path))
    before = contents(tmp_path)
    assert main(words(tmp_path, 1, 1)) == 2
    assert "out has nights of another seed in" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_a_missing_package_is_one_sentence_and_exit_code_2(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("cida.experiments.sleep.recording_errors.find_spec", lambda name: None)
    assert main(words(tmp_path / "out")) == 2
    assert capsys.readouterr().err == (
        "cida: writing recordings needs edfio, which is not installed; pip install 'cida[sleep]'.\n"
    )
    assert not (tmp_path / "out").exists()


def full_for_recordings(monkeypatch):
    """There is room for the small files, and a recording comes to its end on no disk."""
    sync = os.fsync

    def sync_small(handle):
        if os.fstat(handle).st_size > 100_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr("cida.io.files.os.fsync", sync_small)


def full_for_annotations(monkeypatch):
    def write(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(simulation, "write_stages", write)


@pytest.mark.parametrize("fill", [full_for_recordings, full_for_annotations])
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(
    tmp_path, capsys, monkeypatch, straight, fill
):
    with monkeypatch.context() as patch:
        fill(patch)
        assert main(words(tmp_path)) == 1
    assert capsys.readouterr().err == (
        f"cida: the disk of {tmp_path} is full; free some space and run it again: "
        "what is finished is kept.\n"
    )
    assert contents(tmp_path).items() < straight.items()
    assert main(words(tmp_path)) == 0
    assert contents(tmp_path) == straight


def test_another_fault_of_the_disk_is_no_full_disk(tmp_path, capsys, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(simulation, "write_stages", broken)
    assert main(words(tmp_path)) == 2
    assert "Input/output error" in capsys.readouterr().err
