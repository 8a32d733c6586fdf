"""A store of 30 s segments is made of recordings and their stages."""

import csv
import errno

import numpy as np
import pytest

from cida.experiments.sleep import prepare, sleep_store
from cida.experiments.sleep.prepare import prepare_study
from cida.experiments.sleep.recording_errors import PreparationError
from cida.experiments.sleep.sleep_store import SleepStore
from cida.experiments.sleep.stages import write_stages
from cida.experiments.sleep.studies import STUDIES

SHHS = STUDIES["shhs"]
FILES = ["report.csv", "segments.npy", "stages.npy", "store.json", "subject.npy", "subjects.csv"]


def contents(folder):
    assert sorted(path.name for path in folder.iterdir()) == FILES
    return {name: (folder / name).read_bytes() for name in FILES}


def failures(folder):
    with (folder / "report.csv").open(newline="") as file:
        return {line["subject"]: line["sentence"] for line in csv.DictReader(file)}


@pytest.fixture
def no_reading(monkeypatch):
    def refuse(*_):
        raise AssertionError("a recording was read")

    def install():
        monkeypatch.setattr(prepare, "read_signal", refuse)

    return install


def test_segments_are_the_scaled_signal_with_its_stage(shhs, tmp_path):
    report = prepare_study(SHHS, shhs(1), tmp_path / "out")
    found = report.store
    assert found.stages.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 1]
    assert (report.n_nights_read, report.failures) == (1, ())
    assert (report.counts.segments, report.counts.unscored) == (11, 1)
    time = np.arange(3300) / 10
    wave = np.sin(2 * np.pi * 0.25 * time)
    assert np.corrcoef(found.segments.ravel().astype(float), wave)[0, 1] > 0.99
    assert found.segments.astype(float).std() < 2


def test_a_belt_at_32_hz_gives_the_same_night(shhs, tmp_path):
    slow = prepare_study(SHHS, shhs(1), tmp_path / "slow").store
    fast = prepare_study(SHHS, shhs(1, label="Thor", rate_hz=32, root=tmp_path / "fast-root"),
                   tmp_path / "fast").store  # fmt: skip
    assert np.array_equal(slow.stages, fast.stages)
    first, second = (one.segments[3:8].ravel().astype(float) for one in (slow, fast))
    assert np.corrcoef(first, second)[0, 1] > 0.99


def test_two_jobs_give_the_same_store(shhs, tmp_path):
    root = shhs(5)
    (SHHS.recording_paths(root, 200002).edf).write_bytes(b"rubbish")
    seen = []
    for jobs in (1, 2):
        prepare_study(
            SHHS, root, tmp_path / str(jobs), jobs, on_progress=lambda *done: seen.append(done)
        )
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    assert seen == [(number, 5) for number in range(1, 6)] * 2


def test_a_second_run_reads_nothing(shhs, tmp_path, no_reading):
    root = shhs()
    prepare_study(SHHS, root, tmp_path / "out")
    before = contents(tmp_path / "out")
    no_reading()
    report = prepare_study(SHHS, root, tmp_path / "out")
    assert (report.n_nights_read, len(report.store)) == (0, 33)
    assert contents(tmp_path / "out") == before


def test_a_stopped_run_goes_on_where_it_was(shhs, tmp_path, monkeypatch):
    root = shhs(4)
    prepare_study(SHHS, root, tmp_path / "straight")

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_study(SHHS, root, tmp_path / "out", on_progress=stop)
    assert not (tmp_path / "out/sleep_store.json").exists()
    (tmp_path / "out/parts/200002.npz").write_bytes(b"damaged")
    (tmp_path / "out/parts/.200003.npz.abc").write_bytes(b"left by a killed job")
    report = prepare_study(SHHS, root, tmp_path / "out")
    assert report.n_nights_read == 3
    assert contents(tmp_path / "out") == contents(tmp_path / "straight")


def test_new_subjects_join_an_old_store_as_if_they_had_been_there(shhs, tmp_path):
    root = shhs(4)
    prepare_study(SHHS, root, tmp_path / "straight")
    late = SHHS.recording_paths(root, 200002).edf
    late.rename(tmp_path / "late.edf")
    prepare_study(SHHS, root, tmp_path / "out")
    (tmp_path / "late.edf").rename(late)
    assert prepare_study(SHHS, root, tmp_path / "out").n_nights_read == 1
    assert contents(tmp_path / "out") == contents(tmp_path / "straight")


def test_parts_of_other_settings_are_read_again(shhs, tmp_path):
    root = shhs(2)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_study(SHHS, root, tmp_path / "out", channel="SaO2", on_progress=stop)
    assert prepare_study(SHHS, root, tmp_path / "out").n_nights_read == 2


@pytest.mark.parametrize("other", [{"channel": "SaO2"}, {"columns": {"vitality": "pf_s1"}}])
def test_a_store_of_other_settings_is_refused(shhs, tmp_path, other):
    root = shhs(1)
    prepare_study(SHHS, root, tmp_path / "out")
    with pytest.raises(ValueError, match="a store with other settings"):
        prepare_study(SHHS, root, tmp_path / "out", **other)


def test_the_mark_of_the_simulator_is_carried_on(shhs, tmp_path):
    root = shhs(1)
    (root / "SIMULATED.txt").touch()
    assert prepare_study(SHHS, root, tmp_path / "out").store.is_simulated
    assert SleepStore.open(tmp_path / "out").is_simulated


def test_a_failed_subject_is_a_line_and_the_others_go_on(shhs, tmp_path):
    root = shhs(9)
    nights = SHHS.find_recordings(root)
    nights[0].annotation.unlink()
    nights[1].edf.write_bytes(nights[1].edf.read_bytes()[:-1])
    write_stages(nights[2].annotation, [0] * 24)
    write_stages(nights[3].annotation, [9] * 12)
    table = SHHS.find_table(root)
    lines = table.read_text().splitlines()
    lines[5] = lines[5].replace(",45,", ",,")
    del lines[6]
    table.write_text("\n".join(lines))
    report = prepare_study(SHHS, root, tmp_path / "out")
    assert report.store.subjects.ids == ("200007", "200008", "200009")
    found = failures(tmp_path / "out")
    assert found == {
        "200001": "it cannot be read (No such file or directory).",
        "200002": "it was cut short (359 of 360 records are there); download it again.",
        "200003": "it has 24 epochs of 30 s and the recording 12; see whether they are of the same "
        "night.",
        "200004": "no segment has both a sleep stage and a signal.",
        "200005": "subject 200005 has no age in it; fill it in.",
        "200006": "subject 200006 is not in it; add the line.",
    }
    assert {one.subject: one.message for one in report.failures} == found
    assert report.failures[0].file == str(nights[0].annotation)


def test_what_failed_is_tried_again_and_the_report_follows(shhs, tmp_path):
    root = shhs(2)
    path = SHHS.recording_paths(root, 200001).annotation
    path.rename(tmp_path / "away.xml")
    prepare_study(SHHS, root, tmp_path / "out")
    assert set(failures(tmp_path / "out")) == {"200001"}
    (tmp_path / "away.xml").rename(path)
    assert prepare_study(SHHS, root, tmp_path / "out").failures == ()
    assert failures(tmp_path / "out") == {}


@pytest.mark.parametrize(
    ("epochs", "cut"), [(100, 0), (101, 0), (99, 0), (103, 3), (96, 4), (108, None), (90, None)]
)
def test_an_annotation_may_differ_a_little_in_length(tmp_path, breathing, write_edf, epochs, cut):
    recording = SHHS.recording_paths(tmp_path, 200001)
    write_edf(recording.edf, {"THOR RES": (breathing(3000, 10), 10)})
    write_stages(recording.annotation, [2] * epochs)
    if cut is None:
        with pytest.raises(ValueError, match=f"it has {epochs} epochs of 30 s and the recording"):
            prepare.read_night(recording)
    else:
        found = prepare.read_night(recording)
        assert (len(found.stages), found.counts.cut) == (min(epochs, 100), cut)


def test_gaps_are_left_out_and_counted(tmp_path, breathing, write_edf):
    recording = SHHS.recording_paths(tmp_path, 200001)
    signal = breathing(3000, 32)
    signal[32 * 300 : 32 * 390] = signal[32 * 300]  # segments 10, 11 and 12
    write_edf(recording.edf, {"Thor": (signal, 32)})
    write_stages(recording.annotation, [*[1] * 11, 9, *[5] * 88])
    found = prepare.read_night(recording)
    assert (found.counts.unscored, found.counts.gaps) == (1, 2)
    assert found.stages.tolist() == [1] * 10 + [3] * 87


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_while_reading_stops_and_keeps_what_is_done(shhs, tmp_path, monkeypatch, code):
    root, calls = shhs(3), []

    def full(path, content, write=prepare.write_atomically):
        calls.append(path)
        if len(calls) == 2:
            raise OSError(code, "No space left on device")
        write(path, content)

    monkeypatch.setattr(prepare, "write_atomically", full)
    with pytest.raises(PreparationError, match=r"the disk of .* is full; free some space and run"):
        prepare_study(SHHS, root, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").rglob("*")] == ["parts", "200001.npz"]
    assert prepare_study(SHHS, root, tmp_path / "out").n_nights_read == 2


@pytest.mark.parametrize("where", ["np.lib.format.write_array_header_1_0", "write_atomically"])
def test_a_full_disk_while_writing_the_store_leaves_the_old_one(
    shhs, tmp_path, monkeypatch, where, no_reading
):
    root = shhs(3)
    late = SHHS.recording_paths(root, 200001).edf
    late.rename(tmp_path / "late.edf")
    prepare_study(SHHS, root, tmp_path / "out")
    before = contents(tmp_path / "out")
    (tmp_path / "late.edf").rename(late)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"{sleep_store.__name__}.{where}", full)
        with pytest.raises(PreparationError, match="is full"):
            prepare_study(SHHS, root, tmp_path / "out")
    assert {name: (tmp_path / "out" / name).read_bytes() for name in FILES} == before
    assert not list((tmp_path / "out").glob(".store-*"))
    no_reading()
    assert prepare_study(SHHS, root, tmp_path / "out").store.subjects.ids[0] == "200001"
    assert len(contents(tmp_path / "out")) == len(FILES)


def test_another_fault_of_the_disk_is_raised_as_it_is(shhs, tmp_path, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(prepare, "write_atomically", broken)
    with pytest.raises(OSError, match="Input/output error"):
        prepare_study(SHHS, shhs(1), tmp_path / "out")


def test_nobody_prepared_is_an_error_with_the_first_reason(shhs, tmp_path):
    root = shhs(2, label="Effort")
    with pytest.raises(PreparationError) as raised:
        prepare_study(SHHS, root, tmp_path / "out")
    words = str(raised.value)
    assert words.startswith("none of the 2 subjects could be prepared (the first: ")
    assert "no breathing belt is among its channels ('SaO2', 'Effort')" in words
    assert words.endswith(f"all are in {tmp_path}/out/report.csv.")
    assert set(failures(tmp_path / "out")) == {"200001", "200002"}
    assert prepare_study(SHHS, root, tmp_path / "out", channel="Effort").store.subjects.ids


def test_a_folder_of_the_user_beside_the_parts_is_not_touched(shhs, tmp_path):
    (tmp_path / "out/parts").mkdir(parents=True)
    (tmp_path / "out/parts/bicycle.txt").write_text("mine")
    prepare_study(SHHS, shhs(1), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out/parts").iterdir()] == ["bicycle.txt"]


def test_wrong_arguments_are_one_sentence(shhs, tmp_path, monkeypatch):
    root = shhs(1)
    with pytest.raises(ValueError, match="jobs is 0; it must be at least 1"):
        prepare_study(SHHS, root, tmp_path / "out", n_jobs=0)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="which is not a folder; choose another name"):
        prepare_study(SHHS, root, tmp_path / "file")
    monkeypatch.setattr("cida.experiments.sleep.recording_errors.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs edfio, .* pip install 'cida\[sleep\]'"):
        prepare_study(SHHS, root, tmp_path / "out")
