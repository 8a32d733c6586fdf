"""Small studies, laid out as NSRR does it, with real EDF files and hand-made tables."""

from pathlib import Path

import edfio
import numpy as np
import pytest

from cida.experiments.sleep.stages import write_stages
from cida.experiments.sleep.studies import STUDIES

EPOCHS = 12
STAGES = (0, 0, 1, 2, 2, 3, 4, 4, 5, 5, 2, 9)


def breathe(seconds, rate_hz, seed=0):
    time = np.arange(round(seconds * rate_hz)) / rate_hz
    noise = np.random.default_rng(seed).normal(size=len(time))
    return np.sin(2 * np.pi * 0.25 * time) + 0.05 * noise


def record(path, channels, **more):
    """An EDF file of ``label: (values, rate)``."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    signals = [edfio.EdfSignal(values, rate, label=label)
               for label, (values, rate) in channels.items()]  # fmt: skip
    edfio.Edf(signals, **more).write(path)
    return Path(path)


@pytest.fixture
def breathing():
    return breathe


@pytest.fixture
def write_edf():
    return record


@pytest.fixture
def annotate(tmp_path):
    """Writes an annotation file of hand-written events, each concept, start and duration."""

    def write(*events, path=tmp_path / "night-nsrr.xml", kind="Stages|Stages"):
        body = "".join(
            f"<ScoredEvent><EventType>{kind}</EventType><EventConcept>{concept}</EventConcept>"
            f"<Start>{start}</Start><Duration>{duration}</Duration></ScoredEvent>"
            for concept, start, duration in events
        )
        start = "<ScoredEvent><EventType/><EventConcept>Recording Start Time</EventConcept>"
        start += "<Start>0</Start><Duration>999.5</Duration></ScoredEvent>"
        path.write_text(
            '<?xml version="1.0" encoding="UTF-8"?><PSGAnnotation><EpochLength>30</EpochLength>'
            f"<ScoredEvents>{start}{body}</ScoredEvents></PSGAnnotation>"
        )
        return path

    return write


@pytest.fixture
def shhs(tmp_path):
    """Writes SHHS subjects 200001, 200002, ... into a root of its own."""

    def write(count=3, stages=STAGES, label="THOR RES", rate_hz=10, root=tmp_path / "shhs"):
        lines = ["nsrrid,visitnumber,age_s1,gender,ventrate,pf_s1,vt_s1"]
        for number in range(200001, 200001 + count):
            night = STUDIES["shhs"].recording_paths(root, number)
            signal = breathe(30 * EPOCHS, rate_hz, number)
            record(night.edf, {"SaO2": (signal + 95, 1 * rate_hz), label: (signal, rate_hz)})
            night.annotation.parent.mkdir(parents=True, exist_ok=True)
            write_stages(night.annotation, stages)
            lines.append(f"{number},1,{number - 199960},{1 + number % 2},61,80.5,")
        (root / "datasets").mkdir(exist_ok=True)
        (root / "datasets/shhs1-dataset-0.20.0.csv").write_text("\n".join(lines) + "\n")
        return root

    return write
