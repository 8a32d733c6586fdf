"""A misspelt name gets one sentence with the name that was meant, and exit code 2."""

import pytest

from cida.cli import main
from cida.discriminators import make_discriminator
from cida.errors import closest_match, did_you_mean
from cida.games import get_game_class
from cida.selection.validators import get_validator


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("reproduce cirle", "NAME is 'cirle'; did you mean circle? known: circle, sine"),
        ("reproduce circle --preset pape", "preset is 'pape'; did you mean paper? known: best"),
        ("reproduce sine --protocol point", "protocol is 'point'; did you mean points? known"),
        ("reproduce sine --methods dan", "methods has dan; did you mean dann? known are source"),
        ("reproduce sleep-intra --tasks sof-extra", "did you mean sof-extrapolation? known: shhs"),
        ("demo --methods pcid", "methods has pcid; did you mean pcida? known are source-only"),
        ("fit a.csv --out r --method hist", "method is 'hist'; did you mean histogram? known: au"),
        ("data fetch mnst", "NAME is 'mnst'; did you mean mnist? known data sets are"),
        ("check cida.discriminators.regression:L3", "no class in 'cida.discriminators.regression'"),
        ("check cida.discriminators.histogram:Histgram", "did you mean Histogram?"),
    ],
)
def test_the_nearest_name_is_told(words, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert list(tmp_path.iterdir()) == []


def test_a_column_that_is_not_there_is_told_with_the_nearest(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("x,age,outcome\n1,2,0\n2,3,\n")
    ask = ["fit", str(tmp_path / "t.csv"), "--out", str(tmp_path / "r")]
    assert main([*ask, "--label", "outcom", "--index", "age"]) == 2
    assert "label is outcom, which is no column of DATA; did you mean outcome?" in (
        capsys.readouterr().err
    )
    assert main([*ask, "--label", "outcome", "--index", "age", "--periodic", "aeg:24"]) == 2
    assert "no index column (age); did you mean age?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("named", "typed", "told"),
    [
        (make_discriminator, "gausian", "did you mean gaussian? give one of l2"),
        (get_game_class, "adversrial", "did you mean adversarial? give one of"),
        (get_validator, "consensis", "did you mean consensus? known are"),
    ],
)
def test_the_estimators_tell_the_nearest_too(named, typed, told):
    with pytest.raises(ValueError, match="did you mean") as error:
        named(typed)
    assert told in str(error.value)


def test_a_value_that_is_no_word_has_no_nearest():
    assert did_you_mean(3, ["l2"]) == ""
    assert closest_match("AGE ", ["age", "ages"]) == "age"
    assert closest_match("zzz", ["age"]) is None
