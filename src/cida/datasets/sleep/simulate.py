"""Three simulated cohorts, written as NSRR would: EDF, annotation XML and a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cida.datasets.sleep.jobs import Watch, in_jobs, need_packages, stopping
from cida.datasets.sleep.physiology import N3, Person, Traits, belts, draw_person, hypnogram
from cida.datasets.sleep.stages import write_stages
from cida.datasets.sleep.studies import SIMULATED, STUDIES, Study
from cida.files import claimed, write_atomically

__all__ = ["COHORTS", "Cohort", "simulate"]

Array = np.ndarray[Any, Any]

NOTICE = (
    "These people and their nights were made by cida data simulate-sleep. Nobody was recorded.\n"
)
UNSCORED = 9  # NSRR's number


@dataclass(frozen=True)
class Cohort:
    """Who is in a study, and how it records: each belt's names, and the rates, in Hz.

    The usual name and rate come first; one night in eight has one of the others, as in studies
    that ran for years. Scorers of ``stage_4`` part deep sleep in two, as rules did before 2007.
    """

    ages: tuple[int, int]
    mean_age: float
    spread: float
    women: float
    rates_hz: tuple[int, ...]
    names: tuple[tuple[str, str], ...]
    first_id: int
    table: str
    stage_4: bool


# Ranges as in section 5.4 of the paper, shapes after its histograms: SHHS in middle age, MESA a
# little older, SOF women of about eighty.
COHORTS: dict[str, Cohort] = {
    "shhs": Cohort(
        (44, 90), 63, 12, 0.53, (10, 8), (("THOR RES", "ABDO RES"), ("Thor_Res", "Abdo_Res")),
        200001, "datasets/shhs1-dataset-0.20.0.csv", stage_4=True,
    ),
    "mesa": Cohort(
        (54, 95), 66, 10, 0.54, (32, 16), (("Thor", "Abdo"), ("Chest", "Belly")),
        1, "datasets/mesa-sleep-dataset-0.7.0.csv", stage_4=False,
    ),
    "sof": Cohort(
        (72, 90), 81, 5, 1.0, (16, 10), (("Thoracic", "Abdominal"), ("THOR EFFORT", "ABDO EFFORT")),
        1, "datasets/sof-visit-8-dataset-0.8.0.csv", stage_4=True,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """One night to write."""

    study: str
    root: Path
    number: int
    seed: int


def simulate(
    out: str | Path,
    subjects: int,
    seed: int,
    jobs: int = 1,
    watch: Watch = lambda *_: None,
    cohorts: Iterable[str] = tuple(COHORTS),
) -> list[Path]:
    """So many people in each of the cohorts, each below ``out`` in the layout of its study.

    Everything follows from the seed, and a person from seed and number alone: more subjects leave
    the first ones as they were. Nights that are there already are kept.
    """
    if subjects < 1:
        raise ValueError(f"subjects is {subjects}; it must be at least 1.")
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must not be negative.")
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}; it must be at least 1.")
    need_packages("writing recordings", "edfio")
    out = Path(out).expanduser()
    roots = {name: out / name for name in cohorts}
    notice = f"{NOTICE}seed {seed}\n"
    for root in roots.values():
        _check(root, notice)
    with stopping(out), claimed(out, out / ".lock"):
        tasks = []
        for name, root in roots.items():
            write_atomically(root / SIMULATED, notice.encode())
            first = COHORTS[name].first_id
            tasks += [Task(name, root, number, seed) for number in range(first, first + subjects)]
            everyone = range(first, max(first + subjects, _last(name, root) + 1))
            write_atomically(root / COHORTS[name].table, _table(STUDIES[name], everyone, seed))
        due = [task for task in tasks if not _is_there(task)]
        for done, _ in enumerate(in_jobs(write_night, due, jobs)):
            watch(done + 1, len(due))
    return list(roots.values())


def _check(root: Path, notice: str) -> None:
    """Refuses a folder that has nights of another seed or of real people."""
    there = root / SIMULATED
    found = there.read_text() if there.exists() else None
    if found not in (None, notice) or (found is None and root.exists() and any(root.iterdir())):
        what = "recordings that are not simulated" if found is None else "nights of another seed"
        raise ValueError(f"out has {what} in {root}; choose another folder.")


def _last(study: str, root: Path) -> int:
    """The highest number of a night that is there: more people than are asked for now, perhaps."""
    if not any(root.glob("polysomnography/**/*.edf")):
        return 0
    return int(STUDIES[study].recordings(root)[-1].subject)


def _is_there(task: Task) -> bool:
    recording = STUDIES[task.study].recording(task.root, task.number)
    return recording.edf.exists() and recording.annotation.exists()


# --- people --------------------------------------------------------------------------------------


def person_of(study: str, number: int, seed: int) -> Person:
    """The person with this number."""
    cohort = COHORTS[study]
    rng = np.random.default_rng([seed, list(COHORTS).index(study), number, 0])
    low, high = cohort.ages
    age = -1.0
    while not low <= age <= high:
        age = float(np.round(rng.normal(cohort.mean_age, cohort.spread)))
    return draw_person(age, bool(rng.random() < cohort.women), rng)


def _table(study: Study, numbers: range, seed: int) -> bytes:
    """The study's own columns of what it knows about its people."""
    made = io.StringIO()
    lines = csv.writer(made, lineterminator="\n")
    lines.writerow([study.id_column, *(names[0] for names in study.columns.values())])
    codes = {value: code for code, value in reversed(list(study.genders.items()))}
    for number in numbers:
        person = person_of(study.name, number, seed)
        known = {
            "age": f"{person.age:g}",
            "heart_rate": f"{person.heart_rate:g}",
            "gender": codes[person.gender],
            **{name: f"{score:g}" for name, score in person.scales.items()},
        }
        lines.writerow([number, *(known[index] for index in study.columns)])
    return made.getvalue().encode()


# --- nights --------------------------------------------------------------------------------------


def write_night(task: Task) -> None:
    """One person's EDF and annotation; the annotation last, so that a night is whole or not."""
    cohort = COHORTS[task.study]
    recording = STUDIES[task.study].recording(task.root, task.number)
    person = person_of(task.study, task.number, task.seed)
    rng = np.random.default_rng([task.seed, list(COHORTS).index(task.study), task.number, 1])
    epochs = int(np.clip(rng.normal(1000, 50), 840, 1160))  # 8.33 h, as in the paper
    stages = hypnogram(person, epochs, rng)
    rate_hz = cohort.rates_hz[_usual_or_not(len(cohort.rates_hz), rng)]
    names = cohort.names[_usual_or_not(len(cohort.names), rng)]
    signals = belts(Traits.of(person, rng), person.heart_rate, stages, rate_hz, rng)
    gain = float(np.exp(rng.normal(0, 0.5)))
    _loosen(signals, rate_hz, rng)
    _write_edf(recording.edf, [np.float32(gain) * signal for signal in signals], names, rate_hz)
    write_stages(recording.annotation, _scored(stages, cohort.stage_4, rng))


def _usual_or_not(choices: int, rng: np.random.Generator) -> int:
    return 0 if rng.random() > 1 / 8 else int(rng.integers(1, choices))


def _loosen(signals: tuple[Array, Array], rate_hz: int, rng: np.random.Generator) -> None:
    """In one night in six the belts come off for some minutes: a flat line."""
    if rng.random() < 1 / 6:
        length = int(rng.uniform(120, 600) * rate_hz)
        start = int(rng.integers(len(signals[0]) - length))
        for signal in signals:
            signal[start : start + length] = signal[start]


def _scored(stages: Array, stage_4: bool, rng: np.random.Generator) -> list[int]:
    """NSRR's numbers, as a person would score: one epoch in twenty a neighbouring stage instead.

    The last minutes, and now and then some in between, are not scored.
    """
    neighbour = np.array([1, 0, 3, 2, 1])  # awake and stage 1, stage 2 and deep, REM and stage 1
    said = np.where(rng.random(len(stages)) < 0.05, neighbour[stages], stages)
    numbers = np.array([0, 1, 2, 3, 5])[said]
    if stage_4:
        numbers[(said == N3) & (rng.random(len(said)) < 0.4)] = 4
    numbers[len(numbers) - int(rng.integers(2, 20)) :] = UNSCORED
    if rng.random() < 0.1:
        start = int(rng.integers(len(numbers) - 40))
        numbers[start : start + int(rng.integers(5, 40))] = UNSCORED
    return [int(number) for number in numbers]


def _write_edf(path: Path, signals: list[Array], names: tuple[str, str], rate_hz: int) -> None:
    from edfio import Edf, EdfSignal

    made = [
        EdfSignal(signal, rate_hz, label=name, physical_dimension="mV")
        for signal, name in zip(signals, names, strict=True)
    ]
    file = io.BytesIO()
    Edf(made, data_record_duration=1).write(file)
    write_atomically(path, file.getvalue())
