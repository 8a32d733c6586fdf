"""Covariates of people: which are read of each study, and what is unknown."""

import math

import pytest

from cida.experiments.sleep.covariates import get_covariates, read_covariates
from cida.experiments.sleep.recording_errors import RecordingError
from cida.experiments.sleep.studies import INDEX_NAMES, STUDIES


@pytest.fixture
def table(tmp_path):
    def write(text, name="shhs1-dataset-0.20.0.csv"):
        (tmp_path / "datasets").mkdir(exist_ok=True)
        (tmp_path / "datasets" / name).write_bytes(text.encode("latin-1"))
        return tmp_path

    return write


def test_shhs_has_all_eleven_indices(table):
    root = table(
        "nsrrid,age_s1,gender,ventrate,pf_s1,rp_s1,gh_s1,re_s1,vt_s1,mh_s1,sf_s1,bp_s1\n"
        "200001,55,2,61,1,2,3,4,5,6,7,8\n"
    )
    found = read_covariates(root, STUDIES["shhs"])
    assert list(found) == ["200001"]
    assert tuple(found["200001"]) == INDEX_NAMES
    assert list(found["200001"].values()) == [55, 61, 2, 1, 2, 3, 4, 5, 6, 7, 8]


def test_what_is_empty_or_not_a_number_is_unknown(table):
    root = table('nsrrid,age_s1,gender,vt_s1,pf_s1,note\n1,55,,.,.M,"Se\xf1or, 3"\n2,60.5,1,50\n\n')
    found = read_covariates(root, STUDIES["shhs"])
    assert found["2"]["vitality"] == 50
    for index in INDEX_NAMES[1:]:
        assert math.isnan(found["1"][index])


def test_genders_mean_the_same_in_every_study(table):
    mesa = table("mesaid,sleepage5c,gender1\n1,60,0\n2,61,1\n", "mesa-sleep-dataset-0.7.0.csv")
    found = read_covariates(mesa, STUDIES["mesa"])
    assert [found[name]["gender"] for name in "12"] == [2, 1]
    sof = table("SOFID,V8AGE\n00012,83\n", "sof-visit-8-dataset-0.8.0.csv")
    assert read_covariates(sof, STUDIES["sof"])["12"]["gender"] == 2


def test_the_first_candidate_counts_and_another_column_can_be_named(table):
    root = table("nsrrid,nsrr_age,age_s1,mine,nsrr_sex\n1,50,51,52,female\n")
    assert read_covariates(root, STUDIES["shhs"])["1"]["age"] == 51
    found = read_covariates(root, STUDIES["shhs"], {"age": "Mine", "vitality": "mine"})["1"]
    assert (found["age"], found["vitality"], found["gender"]) == (52, 52, 2)


def test_of_several_versions_the_newest_is_read(table):
    table("nsrrid,age_s1\n1,50\n", "shhs1-dataset-0.9.0.csv")
    table("nsrrid,age_s1\n1,51\n", "shhs1-dataset-0.21.0.csv")
    root = table("nsrrid,age_s1\n1,52\n", "shhs1-dataset-0.3.0.csv")
    assert read_covariates(root, STUDIES["shhs"])["1"]["age"] == 51


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        ("nsrrid,age\n1,50\n", {}, "has no column age_s1 or nsrr_age; name the one with the age"),
        ("id,age_s1\n1,50\n", {}, "has no column nsrrid; its first ones are id, age_s1"),
        ('id,age_s1,"a\nb"\n1,50,2\n', {}, "its first ones are id, age_s1, a b"),
        ("nsrrid,age_s1\n1,50\n", {"age": "years"}, "has no column years"),
        ("nsrrid,age_s1\n1,50\n", {"height": "age_s1"}, "columns has 'height'; the indices are"),
        ("nsrrid,age_s1\n7,50\n007,50\n", {}, r"has subject 7 twice \(again in line 3\)"),
        ("nsrrid,age_s1,x\n1,50,high\n", {"vitality": "x"}, "has 'high' and no value for vitality"),
        ("", {}, "has no column age_s1"),
    ],
)
def test_a_wrong_table_is_one_sentence(table, text, columns, words):
    with pytest.raises(ValueError, match=words):
        read_covariates(table(text), STUDIES["shhs"], columns)


def test_no_table_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"has no datasets/shhs1-dataset-\*.csv"):
        read_covariates(tmp_path, STUDIES["shhs"])


def test_a_subject_needs_a_line_and_an_age(table):
    root = table("nsrrid,age_s1\n1,50\n2,\n")
    path = root / "datasets/shhs1-dataset-0.20.0.csv"
    covariates = read_covariates(root, STUDIES["shhs"])
    assert get_covariates("1", covariates, path)["age"] == 50
    with pytest.raises(RecordingError, match="subject 2 has no age in it"):
        get_covariates("2", covariates, path)
    with pytest.raises(RecordingError, match="subject 3 is not in it"):
        get_covariates("3", covariates, path)
