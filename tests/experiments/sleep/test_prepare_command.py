"""cida data prepare-nsrr: what it says, and what it leaves."""

import edfio
import numpy as np
import pytest

from cida.cli import main
from cida.experiments.sleep.sleep_store import SleepStore
from cida.experiments.sleep.stages import write_stages
from cida.experiments.sleep.studies import STUDIES


@pytest.fixture
def mesa(tmp_path):
    """Two nights of five minutes."""
    root = tmp_path / "mesa"
    random = np.random.default_rng(1)
    for number in (1, 2):
        night = STUDIES["mesa"].recording_paths(root, number)
        for path in (night.edf, night.annotation):
            path.parent.mkdir(parents=True, exist_ok=True)
        signal = edfio.EdfSignal(random.normal(size=9600), 32, label="Thor")
        edfio.Edf([signal]).write(night.edf)
        write_stages(night.annotation, [0, 1, 2, 3, 4, 5, 5, 5, 9, 9])
    (root / "datasets").mkdir()
    table = root / "datasets/mesa-sleep-dataset-0.7.0.csv"
    table.write_text("mesaid,sleepage5c,years\n1,60,61\n2,70,71\n")
    return root


def words(root, out, *more):
    places = ["--root", str(root), "--out", str(out)]
    return ["data", "prepare-nsrr", "--study", "mesa", *places, *more]


def test_it_ends_with_the_store(mesa, tmp_path, capsys):
    assert main(words(mesa, tmp_path / "out")) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 subjects with 16 segments of 30 s; 2 nights were read now",
        "left out: 4 epochs without a stage, 0 without a signal, "
        "0 beyond the end of recording or annotation",
        str(tmp_path / "out"),
    ]
    assert SleepStore.open(tmp_path / "out").subjects["age"].tolist() == [60, 70]
    assert main(words(mesa, tmp_path / "out")) == 0
    assert "; 0 nights were read now" in capsys.readouterr().out


def test_columns_and_channel_can_be_named(mesa, tmp_path):
    together = ["--column", "age=years", "heart_rate=sleepage5c", "--channel", "THOR"]
    apart = ["--column", "age=years", "--column", "heart_rate=sleepage5c"]
    for name, more in (("one", together), ("two", apart)):
        assert main(words(mesa, tmp_path / name, *more)) == 0
        subjects = SleepStore.open(tmp_path / name).subjects
        assert subjects["age"].tolist() == [61, 71]
        assert subjects["heart_rate"].tolist() == [60, 70]


def test_who_failed_is_said_and_the_exit_code_is_0(mesa, tmp_path, capsys):
    STUDIES["mesa"].recording_paths(mesa, 2).annotation.unlink()
    (mesa / "SIMULATED.txt").touch()
    assert main(words(mesa, tmp_path / "out")) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("1 simulated subjects with 8 segments")
    assert out[-2:] == [
        f"1 subjects failed; why is in {tmp_path}/out/report.csv",
        str(tmp_path / "out"),
    ]


def test_if_all_failed_the_exit_code_is_1(mesa, tmp_path, capsys):
    assert main(words(mesa, tmp_path / "out", "--channel", "Nose")) == 1
    said = capsys.readouterr().err
    assert said.startswith("cida: none of the 2 subjects could be prepared (the first: ")
    assert "channel 'Nose' is not among its channels ('Thor')" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--column", "age"], "column is 'age'; write INDEX=COLUMN, for example age=my_age."),
        (["--column", "age=a", "--column", "age=b"], "column has age twice; keep one."),
        (["--column", "mood=years"], "columns has 'mood'; the indices are age, heart_rate"),
        (["--column", "age=birthday"], "has no column birthday"),
        (["--jobs", "0"], "jobs is 0; it must be at least 1."),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(mesa, tmp_path, capsys, more, said):
    assert main(words(mesa, tmp_path / "out", *more)) == 2
    found = capsys.readouterr().err
    assert found.startswith("cida: ")
    assert said in found
    assert found.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_wrong_root_is_exit_code_2(tmp_path, capsys):
    assert main(words(tmp_path / "absent", tmp_path / "out")) == 2
    assert "which is not a folder" in capsys.readouterr().err
