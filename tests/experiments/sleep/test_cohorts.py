"""The cohorts of the experiments: simulated at first use, or a user's own."""

from importlib import import_module

import pytest

from cida.experiments.sleep.prepare import prepare_study
from cida.experiments.sleep.simulate import simulate_cohorts
from cida.experiments.sleep.sleep_data import (
    open_cohort,
    simulate_missing_cohorts,
    simulated_data_home,
)
from cida.experiments.sleep.sleep_store import SleepStore
from cida.experiments.sleep.studies import STUDIES

COHORTS = import_module("cida.experiments.sleep.simulate").SIMULATED_COHORTS


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Three people of shhs, of seed 0; to be read, not changed."""
    (root,) = simulate_cohorts(tmp_path_factory.mktemp("recorded"), 3, 0, cohorts=["shhs"])
    return root


def contents(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_cohorts_are_made_once_and_opened(tmp_path, monkeypatch):
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path))
    home = simulated_data_home()
    assert home.parent == tmp_path
    with pytest.raises(ValueError, match="cohort mesa is not there; cida reproduce makes it"):
        open_cohort("mesa", None)
    seen = []
    simulate_missing_cohorts(home, 3, on_progress=lambda *said: seen.append(said))
    expected = [(f"{verb} {name}", done, 3)
                for name in COHORTS for verb in ("simulating", "preparing")
                for done in (1, 2, 3)]  # fmt: skip
    assert seen == expected
    assert sorted(path.name for path in home.iterdir()) == sorted(COHORTS)  # no recordings
    for name in COHORTS:
        store = open_cohort(name, None)
        assert (store.study, store.is_simulated, len(store.subjects)) == (name, True, 3)
        assert store.folder == home / name
        assert len(store) > 3 * 750
    seen.clear()
    simulate_missing_cohorts(home, 3, on_progress=lambda *said: seen.append(said))
    assert seen == []


def test_cohorts_of_a_stopped_run_are_finished(recorded, tmp_path, monkeypatch):
    module = import_module("cida.experiments.sleep.sleep_data")
    monkeypatch.setattr(module, "SIMULATED_COHORTS", {"shhs": COHORTS["shhs"]})
    seen = []

    def stop_at(moment):
        def watch(*said):
            seen.append(said)
            if said == moment:
                raise KeyboardInterrupt

        return watch

    for moment in (("simulating shhs", 1, 3), ("preparing shhs", 2, 3)):
        with pytest.raises(KeyboardInterrupt):
            simulate_missing_cohorts(tmp_path, 3, on_progress=stop_at(moment))
    simulate_missing_cohorts(tmp_path, 3, on_progress=stop_at(None))
    # No night is simulated or read twice.
    assert [done for *done, _ in seen if done[0] == "simulating shhs"] == [
        ["simulating shhs", done] for done in (1, 1, 2)
    ]
    assert [done for *done, _ in seen if done[0] == "preparing shhs"] == [
        ["preparing shhs", done] for done in (1, 2, 1)
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["shhs"]
    prepare_study(STUDIES["shhs"], recorded, tmp_path / "straight")
    assert contents(tmp_path / "shhs") == contents(tmp_path / "straight")


def test_ones_own_stores_are_opened_by_study(recorded, tmp_path):
    with pytest.raises(ValueError, match=r"no folder shhs; prepare .* prepare-nsrr --study shhs "):
        open_cohort("shhs", tmp_path)
    (tmp_path / "sof").mkdir()
    with pytest.raises(
        ValueError, match=r"is not a store of sleep segments: it has no store\.json"
    ):
        open_cohort("sof", tmp_path)
    prepare_study(STUDIES["shhs"], recorded, tmp_path / "shhs")
    opened = open_cohort("shhs", tmp_path)
    assert opened.settings == SleepStore.open(tmp_path / "shhs").settings
    assert opened.folder == tmp_path / "shhs"
