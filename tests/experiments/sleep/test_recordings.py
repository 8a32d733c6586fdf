"""EDF recordings: which belt is read, at which rate, in which units."""

import pickle

import numpy as np
import pytest
from edfio import EdfAnnotation, Recording

from cida.experiments.sleep.recording_errors import RecordingError
from cida.experiments.sleep.recordings import read_belt


def test_a_belt_comes_at_its_own_rate_and_in_physical_units(tmp_path, breathing, write_edf):
    signal = 3 * breathing(60, 32)
    path = write_edf(
        tmp_path / "a.edf",
        {"EEG": (breathing(60, 128), 128), "Abdo": (breathing(60, 32), 32), "Thor": (signal, 32)},
    )
    belt = read_belt(path)
    assert (belt.label, belt.rate_hz) == ("Thor", 32)
    assert belt.signal.dtype == np.float32
    assert np.allclose(belt.signal, signal, atol=1e-3)


@pytest.mark.parametrize(
    ("labels", "chosen"),
    [
        (["ABDO RES", "THOR RES"], "THOR RES"),
        (["Abdominal", "thoracic"], "thoracic"),
        (["abdo.res", "EEG"], "abdo.res"),
        (["EEG", "CHEST"], "CHEST"),
        (["Thor_Res", "Thor"], "Thor_Res"),
    ],
)
def test_the_chest_is_preferred_whatever_its_spelling(
    tmp_path, breathing, write_edf, labels, chosen
):
    path = write_edf(tmp_path / "a.edf", {label: (breathing(30, 10), 10) for label in labels})
    assert read_belt(path).label == chosen


def test_a_channel_can_be_named(tmp_path, breathing, write_edf):
    path = write_edf(
        tmp_path / "a.edf",
        {"THOR RES": (breathing(30, 10), 10), "NEW AIR": (breathing(30, 10), 10)},
    )
    assert read_belt(path, "new air").label == "NEW AIR"
    with pytest.raises(RecordingError, match="channel 'Belt' is not among its channels"):
        read_belt(path, "Belt")


def test_a_missing_belt_lists_what_is_there(tmp_path, breathing, write_edf):
    path = write_edf(
        tmp_path / "a.edf", {"EEG": (breathing(30, 10), 10), "Effort 1": (breathing(30, 10), 10)}
    )
    with pytest.raises(RecordingError) as raised:
        read_belt(path)
    assert str(raised.value) == (
        f"{path}: no breathing belt is among its channels ('EEG', 'Effort 1'); "
        "name the belt as channel."
    )


def test_a_rate_may_be_a_fraction(tmp_path, breathing, write_edf):
    signal = np.resize(breathing(60, 10), 96 * 20)
    path = write_edf(tmp_path / "a.edf", {"Thor": (signal, 12.8)}, data_record_duration=7.5)
    assert read_belt(path).rate_hz == pytest.approx(12.8)


@pytest.fixture
def night(tmp_path, breathing, write_edf):
    return write_edf(tmp_path / "a.edf", {"THOR RES": (breathing(60, 10), 10)})


def test_a_file_cut_short_is_refused(night):
    content = night.read_bytes()
    for kept in (len(content) - 1, len(content) - 200):
        night.write_bytes(content[:kept])
        with pytest.raises(RecordingError, match=r"cut short \(\d+ of 60 records are there\)"):
            read_belt(night)


def test_a_header_without_records_is_empty(night):
    content = night.read_bytes()
    night.write_bytes(content[:512])
    with pytest.raises(RecordingError, match="it is empty"):
        read_belt(night)
    night.write_bytes(content[:236] + b"0       " + content[244:])
    with pytest.raises(RecordingError, match="it is empty"):
        read_belt(night)


def test_a_header_that_does_not_count_its_records_is_read_to_the_end(night):
    content = night.read_bytes()
    night.write_bytes(content[:236] + b"-1      " + content[244:])
    assert len(read_belt(night).signal) == 600


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, b"X       "),
        (236, b"many    "),
        (244, b"0       "),
        (244, b"-1      "),
        (252, b"    "),
        (252, b"0   "),
        (252, b"-1  "),
        (252, b"9999"),
        (472, b"        "),
        (472, b"-10     "),
    ],
)
def test_a_broken_header_is_one_sentence(night, place, value):
    content = night.read_bytes()
    night.write_bytes(content[:place] + value + content[place + len(value) :])
    with pytest.raises(
        RecordingError, match=r"not an EDF file, or its header is broken|it is empty"
    ):
        read_belt(night)


@pytest.mark.parametrize("size", [0, 100, 256, 400])
def test_a_piece_of_a_header_is_one_sentence(night, size):
    night.write_bytes(night.read_bytes()[:size])
    with pytest.raises(RecordingError, match="its header is broken"):
        read_belt(night)


def test_a_header_that_only_edfio_stumbles_over_is_one_sentence(night, monkeypatch):
    def stumble(path):
        raise IndexError("tuple index out of range")

    monkeypatch.setattr("cida.experiments.sleep.recordings._open_edf", stumble)
    with pytest.raises(RecordingError, match=r"cannot be read as EDF \(tuple index"):
        read_belt(night)


def test_edf_plus_is_read_if_it_is_continuous(tmp_path, breathing, write_edf):
    path = write_edf(
        tmp_path / "a.edf",
        {"Thor": (breathing(30, 10), 10)},
        annotations=[EdfAnnotation(3, None, "lights off")],
        recording=Recording(),
    )
    assert len(read_belt(path).signal) == 300
    content = path.read_bytes()
    assert content[192:197] == b"EDF+C"
    path.write_bytes(content[:192] + b"EDF+D" + content[197:])
    with pytest.raises(RecordingError, match=r"discontinuous EDF\+"):
        read_belt(path)


def test_a_flat_belt_is_refused(tmp_path, write_edf):
    path = write_edf(tmp_path / "a.edf", {"Thor": (np.full(300, 2.0), 10)})
    with pytest.raises(RecordingError, match="channel 'Thor' is flat"):
        read_belt(path)


def test_a_belt_without_numbers_is_refused(night):
    content = night.read_bytes()
    night.write_bytes(content[:360] + b"nan     " + content[368:])
    with pytest.raises(RecordingError, match="contains no numbers"):
        read_belt(night)


def test_the_error_survives_the_way_back_from_a_job():
    error = pickle.loads(pickle.dumps(RecordingError("a.edf", "it is empty.")))
    assert (error.path, error.message, str(error)) == (
        "a.edf",
        "it is empty.",
        "a.edf: it is empty.",
    )
