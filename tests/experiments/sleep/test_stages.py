"""Sleep stages: annotations become the paper's four classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cida.experiments.sleep.recording_errors import RecordingError
from cida.experiments.sleep.stages import (
    AWAKE,
    DEEP,
    LIGHT,
    NSRR_STAGES,
    REM,
    STAGE_CLASSES,
    UNSCORED,
    read_stages,
    write_stages,
)


def test_stages_become_the_four_classes_of_the_paper(annotate):
    path = annotate(
        ("Wake|0", 0, 30),
        ("Stage 1 sleep|1", 30, 30.0),
        ("Stage 2 sleep|2", 60, 60),
        ("Stage 3 sleep|3", 120, 30),
        ("Stage 4 sleep|4", 150, 30),
        ("REM sleep|5", 180, "60.0"),
        ("Unscored|9", 240, 30),
        ("Movement|6", 270, 30),
    )
    found = read_stages(path)
    assert found.dtype == np.int8
    assert found.tolist() == [AWAKE, LIGHT, LIGHT, LIGHT, DEEP, DEEP, REM, REM, UNSCORED, UNSCORED]
    assert [STAGE_CLASSES[stage] for stage in (AWAKE, LIGHT, DEEP, REM)] == list(STAGE_CLASSES)


def test_epochs_that_no_event_covers_are_unscored_and_order_does_not_matter(annotate):
    path = annotate(("REM sleep|5", 90, 30), ("Wake|0", 0, 30))
    assert read_stages(path).tolist() == [AWAKE, UNSCORED, UNSCORED, REM]


def test_other_events_are_not_stages(annotate):
    path = annotate(("Hypopnea|Hypopnea", 3.7, 12.2), kind="Respiratory|Respiratory")
    with pytest.raises(RecordingError, match="it has no sleep stage"):
        read_stages(path)


@given(st.lists(st.sampled_from(sorted(NSRR_STAGES)), min_size=1, max_size=60))
def test_what_is_written_is_read_again(tmp_path_factory, numbers):
    path = tmp_path_factory.getbasetemp() / "round-trip.xml"
    write_stages(path, numbers)
    assert read_stages(path).tolist() == [NSRR_STAGES[number][1] for number in numbers]


def test_a_run_of_equal_stages_is_one_event(tmp_path):
    write_stages(tmp_path / "a.xml", np.array([0, 0, 0, 5, 5, 0]))
    text = (tmp_path / "a.xml").read_text()
    assert text.count("<ScoredEvent>") == 3
    assert "<EventConcept>REM sleep|5</EventConcept>\n<Start>90.0</Start>" in text


@pytest.mark.parametrize(("numbers", "words"), [([], "is empty"), ([0, 7], "has 7")])
def test_only_stages_are_written(tmp_path, numbers, words):
    with pytest.raises(ValueError, match=f"numbers {words}"):
        write_stages(tmp_path / "a.xml", numbers)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([("Wake|0", 0, 60), ("REM sleep|5", 30, 30)], "the stage at 30 s overlaps another"),
        (
            [("Stage 7 sleep|7", 0, 30)],
            "'Stage 7 sleep|7' is not a stage; known stages are Wake|0, ",
        ),
        ([("Wake", 0, 30)], "'Wake' is not a stage"),
        ([("Wake|0", 0, 45)], "Duration '45'; it must be a multiple of 30"),
        ([("Wake|0", 15, 30)], "Start '15'; it must be a multiple of 30"),
        ([("Wake|0", -30, 30)], "Start '-30'"),
        ([("Wake|0", 0, -30)], "Duration '-30'"),
        ([("Wake|0", "nan", 30)], "Start 'nan'"),
        ([("Wake|0", 0, "inf")], "Duration 'inf'"),
        ([("Wake|0", 0, "")], "Duration ''"),
        ([("Wake|0", 0, 3e12)], "that is not a night"),
    ],
)
def test_a_wrong_event_is_one_sentence(annotate, events, words):
    path = annotate(*events)
    with pytest.raises(RecordingError) as raised:
        read_stages(path)
    assert words in raised.value.message
    assert str(raised.value).startswith(f"{path}: ")


BOMB = """<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<PSGAnnotation>&b;</PSGAnnotation>"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not XML"),
        ("nonsense", "not XML"),
        ("<PSGAnnotation><ScoredEvents>", "not XML"),
        ('<?xml version="1.0" encoding="no-such"?><a/>', "not XML"),
        (BOMB, "declares XML entities"),
        ('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><x>&a;</x>', "XML entities"),
        ("<PSGAnnotation/>", "no sleep stage"),
    ],
)
def test_what_is_no_annotation_is_one_sentence(tmp_path, text, words):
    path = tmp_path / "night.xml"
    path.write_text(text)
    with pytest.raises(RecordingError, match=words):
        read_stages(path)
