"""What is known of each study: its files, indices and channels."""

import pytest

from cida.experiments.sleep.studies import (
    BELT_ALIASES,
    INDEX_NAMES,
    STUDIES,
    is_simulated,
    normalize_label,
    strip_leading_zeros,
)

PLACES = {
    "shhs": (
        200001,
        "polysomnography/edfs/shhs1/shhs1-200001.edf",
        "polysomnography/annotations-events-nsrr/shhs1/shhs1-200001-nsrr.xml",
    ),
    "mesa": (
        1,
        "polysomnography/edfs/mesa-sleep-0001.edf",
        "polysomnography/annotations-events-nsrr/mesa-sleep-0001-nsrr.xml",
    ),
    "sof": (
        53,
        "polysomnography/edfs/sof-visit-8-00053.edf",
        "polysomnography/annotations-events-nsrr/sof-visit-8-00053-nsrr.xml",
    ),
}


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


@pytest.mark.parametrize("name", STUDIES)
def test_files_are_where_nsrr_puts_them(name, tmp_path):
    number, edf, annotation = PLACES[name]
    night = STUDIES[name].recording_paths(tmp_path, number)
    assert (night.edf, night.annotation) == (tmp_path / edf, tmp_path / annotation)
    touch(tmp_path / edf)
    touch((tmp_path / edf).with_name("notes.edf"))
    assert STUDIES[name].find_recordings(tmp_path) == [night]


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_knows_the_age_and_only_indices(name):
    study = STUDIES[name]
    assert study.name == name
    assert set(study.columns) | set(study.constants) <= set(INDEX_NAMES)
    assert study.columns["age"]
    assert len({normalize_label(label) for label in BELT_ALIASES}) == len(BELT_ALIASES)


def test_subjects_are_in_order_of_their_number(tmp_path):
    for number in (1000, 20, 3):
        touch(STUDIES["mesa"].recording_paths(tmp_path, number).edf)
    touch(tmp_path / "polysomnography/edfs/mesa-sleep-10000.edf")
    found = STUDIES["mesa"].find_recordings(tmp_path)
    assert [night.subject for night in found] == ["3", "20", "1000", "10000"]
    assert found[0].annotation.name == "mesa-sleep-0003-nsrr.xml"


def test_a_subject_twice_is_refused(tmp_path):
    touch(tmp_path / "polysomnography/edfs/mesa-sleep-0003.edf")
    touch(tmp_path / "polysomnography/edfs/mesa-sleep-003.edf")
    with pytest.raises(ValueError, match="root has subject 3 twice"):
        STUDIES["mesa"].find_recordings(tmp_path)


def test_a_root_without_nights_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"has no polysomnography/edfs/mesa-sleep-\*.edf; give"):
        STUDIES["mesa"].find_recordings(tmp_path)
    with pytest.raises(ValueError, match="which is not a folder"):
        STUDIES["mesa"].find_recordings(tmp_path / "absent")


def test_the_simulator_leaves_a_mark(tmp_path):
    assert not is_simulated(tmp_path)
    (tmp_path / "SIMULATED.txt").touch()
    assert is_simulated(tmp_path)


def test_ids_have_no_leading_zeros():
    assert [strip_leading_zeros(text) for text in (" 0012 ", "200100", "0")] == [
        "12",
        "200100",
        "0",
    ]
