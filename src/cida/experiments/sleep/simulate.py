"""Three simulated cohorts, written as NSRR would: EDF, annotation XML and a table."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cida.experiments.backends import iterate_results
from cida.experiments.sleep import physiology
from cida.experiments.sleep.recording_errors import (
    ProgressCallback,
    require_packages,
    translate_job_errors,
)
from cida.experiments.sleep.sleep_store import format_csv
from cida.experiments.sleep.stages import write_stages
from cida.experiments.sleep.studies import SIMULATED_COHORTS, SIMULATED_MARKER, STUDIES, Study
from cida.io.files import exclusive_lock, write_atomically
from cida.io.json_decode import decode, parse_json

NOTICE = "These people and their nights were made by cida data simulate-sleep. Nobody was recorded."
SETTINGS_FILE = "simulation.json"
NSRR_UNSCORED = 9  # NSRR's number


@dataclass(frozen=True)
class SimulationJob:
    """One night to write."""

    study: str
    root: Path
    number: int
    seed: int

    @property
    def paths(self) -> tuple[Path, Path]:
        """The recording and its annotation."""
        recording = STUDIES[self.study].recording_paths(self.root, self.number)
        return recording.edf, recording.annotation


def simulate_cohorts(
    out: str | Path,
    n_subjects: int,
    seed: int,
    n_jobs: int = 1,
    on_progress: ProgressCallback = lambda *_: None,
    cohorts: Iterable[str] = tuple(SIMULATED_COHORTS),
) -> list[Path]:
    """So many people in each of the cohorts, each below ``out`` in the layout of its study.

    Everything follows from the seed, and a person from seed and number alone: more subjects leave
    the first ones as they were. Nights that are there already are kept.
    """
    for name, value in (("subjects", n_subjects), ("jobs", n_jobs)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1.")
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must not be negative.")
    require_packages("writing recordings", "edfio")
    out = Path(out).expanduser()
    roots = {name: out / name for name in cohorts}
    for root in roots.values():
        _check_folder(root, seed)
    with translate_job_errors(out), exclusive_lock(out, out / ".lock"):
        jobs = []
        for name, root in roots.items():
            write_atomically(root / SIMULATED_MARKER, f"{NOTICE}\n".encode())
            write_atomically(root / SETTINGS_FILE, json.dumps({"seed": seed}).encode())
            first, table = SIMULATED_COHORTS[name].first_id, SIMULATED_COHORTS[name].table_path
            stop = first + n_subjects
            jobs += [SimulationJob(name, root, number, seed) for number in range(first, stop)]
            everybody = range(first, max(stop, _last_subject_number(name, root) + 1))
            write_atomically(root / table, _covariate_table(STUDIES[name], everybody, seed))
        pending = [job for job in jobs if not all(path.exists() for path in job.paths)]
        for n_done, _ in enumerate(iterate_results(write_night, pending, n_jobs), 1):
            on_progress(n_done, len(pending))
    return list(roots.values())


def _check_folder(root: Path, seed: int) -> None:
    """Refuses a folder that has nights of another seed or of real people."""
    if (root / SETTINGS_FILE).exists():
        settings = decode(dict[str, int], parse_json((root / SETTINGS_FILE).read_bytes()), "it")
        if settings["seed"] != seed:
            raise ValueError(f"out has nights of another seed in {root}; choose another folder.")
    elif root.exists() and any(root.iterdir()):
        problem = f"out has recordings that are not simulated in {root}"
        raise ValueError(f"{problem}; choose another folder.")


def _last_subject_number(study: str, root: Path) -> int:
    """The highest number of a night that is there: more people than are asked for now, perhaps."""
    if not any(root.glob("polysomnography/**/*.edf")):
        return 0
    return int(STUDIES[study].find_recordings(root)[-1].subject)


def draw_subject(study: str, number: int, seed: int) -> physiology.Person:
    """The person with this number."""
    cohort = SIMULATED_COHORTS[study]
    rng = _make_rng(study, number, seed, 0)
    low, high = cohort.age_range
    age = -1.0
    while not low <= age <= high:
        age = float(np.round(rng.normal(cohort.mean_age, cohort.age_std)))
    return physiology.draw_person(age, bool(rng.random() < cohort.share_women), rng)


def _make_rng(study: str, number: int, seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng([seed, list(SIMULATED_COHORTS).index(study), number, stream])


def _covariate_table(study: Study, numbers: range, seed: int) -> bytes:
    """The study's own columns of what it knows about its people."""
    lines: list[list[Any]] = [[study.id_column, *(c[0] for c in study.columns.values())]]
    codes = {value: code for code, value in reversed(list(study.gender_codes.items()))}
    for number in numbers:
        person = draw_subject(study.name, number, seed)
        values = {
            "age": f"{person.age:g}",
            "heart_rate": f"{person.heart_rate:g}",
            "gender": codes[person.gender],
            **{name: f"{score:g}" for name, score in person.scales.items()},
        }
        lines.append([number, *(values[index] for index in study.columns)])
    return format_csv(lines)


def write_night(job: SimulationJob) -> None:
    """One person's EDF and annotation; the annotation last, so that a night is whole or not."""
    cohort, (edf, annotation) = SIMULATED_COHORTS[job.study], job.paths
    person = draw_subject(job.study, job.number, job.seed)
    rng = _make_rng(job.study, job.number, job.seed, 1)
    epochs = int(np.clip(rng.normal(1000, 50), 840, 1160))  # 8.33 h, as in the paper
    stages = physiology.simulate_hypnogram(person, epochs, rng)
    rate_hz = cohort.rates_hz[_draw_variant(len(cohort.rates_hz), rng)]
    names = cohort.belt_names[_draw_variant(len(cohort.belt_names), rng)]
    traits = physiology.BreathingTraits.draw(person, rng)
    signals = physiology.simulate_belts(traits, person.heart_rate, stages, rate_hz, rng)
    gain = float(np.exp(rng.normal(0, 0.5)))
    _add_belt_gap(signals, rate_hz, rng)
    _write_edf(edf, [np.float32(gain) * signal for signal in signals], names, rate_hz)
    write_stages(annotation, _score_stages(stages, cohort.has_stage_4, rng))


def _draw_variant(n_choices: int, rng: np.random.Generator) -> int:
    return 0 if rng.random() > 1 / 8 else int(rng.integers(1, n_choices))


def _add_belt_gap(signals: Sequence[np.ndarray], rate_hz: int, rng: np.random.Generator) -> None:
    """In one night in six the belts come off for some minutes: a flat line."""
    if rng.random() < 1 / 6:
        length = int(rng.uniform(120, 600) * rate_hz)
        start = int(rng.integers(len(signals[0]) - length))
        for signal in signals:
            signal[start : start + length] = signal[start]


def _score_stages(stages: np.ndarray, has_stage_4: bool, rng: np.random.Generator) -> list[int]:
    """NSRR's numbers, as a person would score: one epoch in twenty a neighbouring stage instead.

    The last minutes, and now and then some in between, are not scored.
    """
    neighbour = np.array([1, 0, 3, 2, 1])  # awake and stage 1, stage 2 and deep, REM and stage 1
    scored_stages = np.where(rng.random(len(stages)) < 0.05, neighbour[stages], stages)
    numbers = np.array([0, 1, 2, 3, 5])[scored_stages]
    if has_stage_4:
        numbers[(scored_stages == physiology.N3) & (rng.random(len(scored_stages)) < 0.4)] = 4
    numbers[len(numbers) - int(rng.integers(2, 20)) :] = NSRR_UNSCORED
    if rng.random() < 0.1:
        start = int(rng.integers(len(numbers) - 40))
        numbers[start : start + int(rng.integers(5, 40))] = NSRR_UNSCORED
    return list(map(int, numbers))


def _write_edf(path: Path, signals: list[np.ndarray], names: tuple[str, str], rate_hz: int) -> None:
    from edfio import Edf, EdfSignal

    make_signal = partial(EdfSignal, sampling_frequency=rate_hz, physical_dimension="mV")
    belts = [make_signal(values, label=n) for values, n in zip(signals, names, strict=True)]
    file = io.BytesIO()
    Edf(belts, data_record_duration=1).write(file)
    write_atomically(path, file.getvalue())
