"""A store of segments: its rows, people and header, and damaged ones."""

import json

import numpy as np
import pytest

from cida.experiments.sleep.prepare import prepare_study
from cida.experiments.sleep.sleep_store import SleepStore
from cida.experiments.sleep.studies import INDEX_NAMES, STUDIES


@pytest.fixture
def store(shhs, tmp_path):
    prepare_study(STUDIES["shhs"], shhs(), tmp_path / "store")
    return tmp_path / "store"


def test_a_store_has_rows_and_people(store):
    found = SleepStore.open(store)
    assert (found.study, found.is_simulated, len(found)) == ("shhs", False, 33)
    assert (found.segments.shape, found.segments.dtype) == ((33, 300), np.float16)
    assert (found.stages.dtype, found.subject.dtype) == (np.int8, np.int32)
    assert isinstance(found.segments, np.memmap)
    assert found.subject.tolist() == [0] * 11 + [1] * 11 + [2] * 11
    assert found.stages[:11].tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 1]
    assert [found.night_rows(number) for number in range(3)] == [(0, 11), (11, 11), (22, 11)]
    assert found.subjects.ids == ("200001", "200002", "200003")
    assert tuple(found.subjects.indices) == INDEX_NAMES
    assert found.subjects["age"].tolist() == [41, 42, 43]
    assert found.subjects["gender"].tolist() == [2, 1, 2]
    assert found.subjects["physical_functioning"].tolist() == [80.5] * 3
    assert np.isnan(found.subjects["vitality"]).all()


def test_the_header_says_what_it_is(store):
    header = json.loads((store / "store.json").read_text())
    assert header == {
        "schema": 1,
        "study": "shhs",
        "simulated": False,
        "channel": None,
        "columns": {},
        "rate_hz": 10.0,
        "segment_seconds": 30,
        "counts": {"subjects": 3, "segments": 33, "unscored": 3, "gaps": 0, "cut": 0},
    }


def test_a_foreign_folder_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"is not a store of sleep segments: it has no store.json"):
        SleepStore.open(tmp_path)
    for text, words in (("{", "cannot be read"), ("[]", "has schema None"),
                        ('{"schema": 2}', "has schema 2; this version of cida reads 1"),
                        ('{"schema": 1}', "is damaged")):  # fmt: skip
        (tmp_path / "store.json").write_text(text)
        with pytest.raises(ValueError, match=words):
            SleepStore.open(tmp_path)


@pytest.mark.parametrize("name", ["segments.npy", "stages.npy", "subject.npy", "subjects.csv"])
def test_a_broken_store_is_one_sentence(store, name):
    content = (store / name).read_bytes()
    cut = content[: len(content) * 2 // 3].rpartition(b"\n")[0]
    for wrong in (None, b"", b"rubbish", cut):
        (store / name).unlink()
        if wrong is not None:
            (store / name).write_bytes(wrong)
        else:
            (store / name).symlink_to("absent")
        with pytest.raises(ValueError, match=r"is damaged|do not agree") as raised:
            SleepStore.open(store)
        assert "\n" not in str(raised.value)


def test_an_array_of_another_kind_is_refused(store):
    np.save(store / "stages.npy", np.zeros(33, np.int64))
    with pytest.raises(ValueError, match="do not agree"):
        SleepStore.open(store)
    np.save(store / "stages.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="is damaged"):
        SleepStore.open(store)
