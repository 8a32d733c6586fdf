"""Simulated people: what sleep and breathing do with age and health, each number with its reason.

Not a model to draw medical conclusions from. It is stylised, and the drift with age is larger than
life, so that a few hundred nights can show what thousands of real ones do. Sources are named where
a number follows one; the others are set so that one 30 s segment of breathing stages about as well
as it does on real recordings (three in four right).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from cida.experiments.sleep.stages import EPOCH_SECONDS

Generator = np.random.Generator

WAKE, N1, N2, N3, REM = range(5)

_NUMBERS = tomllib.loads(Path(__file__).with_name("physiology.toml").read_text())
SF36_SCALES: dict[str, list[float]] = _NUMBERS["sf36_scales"]
LOG_IRREGULARITY_WEIGHTS: dict[str, float] = _NUMBERS["log_irregularity_weights"]
STAGE_TRANSITIONS_AT_60 = np.array(_NUMBERS["stages"]["transitions_at_60"])
SF36_SCALE_NOISE_STD = 11.0  # what a scale does not share with the others


@dataclass(frozen=True)
class Person:
    """The eleven indices of the paper: age, resting heart rate, gender (1 man, 2 woman), SF-36."""

    age: float
    heart_rate: float
    gender: int
    scales: dict[str, float]

    @property
    def decades_past_60(self) -> float:
        """Decades past 60."""
        return (self.age - 60) / 10


def draw_person(age: float, is_woman: bool, rng: Generator) -> Person:
    """A person of this age; the scales share one factor, general health."""
    decades = (age - 60) / 10
    health = rng.normal()
    scales = {}
    for name, (mean, slope, load) in SF36_SCALES.items():
        score = mean + slope * decades + load * health + SF36_SCALE_NOISE_STD * rng.normal()
        scales[name] = float(np.clip(score, 0, 100).round(1))
    # Women's hearts beat some 3/min faster at rest; the unfit have faster ones too.
    heart_rate = 66 + 3 * is_woman - 2 * health + 8 * rng.normal()
    return Person(age, float(np.clip(heart_rate, 42, 110).round()), 2 if is_woman else 1, scales)


@dataclass(frozen=True)
class BreathingTraits:
    """How a person breathes, whatever the stage: fixed for the night.

    ``irregularity`` multiplies the breath-to-breath variation of rate and depth. It grows with
    age, and most of all around 84, as the control of breathing loses damping and periodic
    breathing sets in; that is the drift a model of the young does not know.
    """

    rate_per_minute: float
    irregularity: float
    restlessness: float
    apneas_per_hour: float
    asymmetry: float
    heartbeat_amplitude: float

    @classmethod
    def draw(cls, person: Person, rng: Generator) -> BreathingTraits:
        d, woman = person.decades_past_60, person.gender == 2
        frailty = 1 / (1 + np.exp((84 - person.age) / 2))
        heart_rate_z = (person.heart_rate - 66) / 9
        scale_deficits = {name: (60 - score) / 18 for name, score in person.scales.items()}
        weights = LOG_IRREGULARITY_WEIGHTS
        log_irregularity = 0.09 * d + 0.65 * frailty
        log_irregularity += weights["heart_rate"] * heart_rate_z + weights["gender"] * (woman - 0.5)
        log_irregularity += sum(-weights[n] * (low + 0.9) for n, low in scale_deficits.items())
        discomfort = scale_deficits["bodily_pain"] + scale_deficits["mental_health"] + 1.6
        return cls(
            # 12 to 20 a minute in adults at rest; faster in women and with a stiffer chest.
            rate_per_minute=14.6 + 0.35 * d + 0.7 * woman + 0.5 * heart_rate_z + 0.7 * rng.normal(),
            irregularity=float(np.exp(log_irregularity + 0.08 * rng.normal())),
            # Pain and worry move people about.
            restlessness=float(np.exp(0.10 * d + 0.15 * discomfort + 0.15 * rng.normal())),
            # Mild apnoea is common and doubles about every twenty years; men have more.
            apneas_per_hour=float(np.exp(1.5 + 0.35 * d - 0.5 * woman + 0.5 * rng.normal())),
            # Breathing in is quicker than breathing out, the more so the stiffer the chest.
            asymmetry=float(np.clip(0.30 + 0.03 * d + 0.03 * rng.normal(), 0, 0.8)),
            # Heartbeats shake the belt: more in wide arteries.
            heartbeat_amplitude=0.05 + 0.006 * d,
        )


def _transition_matrix(decades: float, night_share: float) -> np.ndarray:
    """The chances at this age, at this share of the night: deep sleep early, REM late.

    Past 60 deep sleep falls by a little and waking rises (Ohayon 2004: most of the loss of deep
    sleep comes before).
    """
    steps = STAGE_TRANSITIONS_AT_60.copy()
    steps[:, N3] *= np.where(np.arange(5) == N3, 1, (1.5 - night_share) * np.exp(-0.08 * decades))
    steps[:, REM] *= np.where(np.arange(5) == REM, 1, 0.5 + night_share)
    steps[[N2, N3, REM], WAKE] *= np.exp(0.06 * decades)
    leave_probability = steps.sum(1) - np.diag(steps)
    np.fill_diagonal(steps, 1 - leave_probability)
    return steps


def simulate_hypnogram(person: Person, n_epochs: int, rng: Generator) -> np.ndarray:
    """The stage of each 30 s: a Markov chain that begins awake."""
    decades = person.decades_past_60
    transitions = [_transition_matrix(decades, night).cumsum(1) for night in np.linspace(0, 1, 12)]
    stages, stage = np.empty(n_epochs, dtype=np.int64), WAKE
    for epoch, draw in enumerate(rng.random(n_epochs)):
        chances = transitions[epoch * len(transitions) // n_epochs][stage]
        stage = stages[epoch] = min(np.searchsorted(chances, draw, side="right"), REM)
    return stages


BREATH_SAMPLE_HZ = 2.0  # rate and depth change from breath to breath, not faster


@dataclass(frozen=True)
class StageBreathing:
    """What a stage does to breathing: rate and depth against the person's own, and their
    breath-to-breath variation (standard deviation of the logarithm), movements a minute, share of
    the person's apnoeas.

    Deep sleep breathes like a clock; REM and waking do not (Krieger 2005). Depth falls in REM,
    when only the diaphragm works.
    """

    rate: float
    rate_spread: float
    depth: float
    depth_spread: float
    movements_per_minute: float
    apnoeas: float


_BREATHING = enumerate(_NUMBERS["stages"]["breathing"])
BREATHING_BY_STAGE = {stage: StageBreathing(*numbers) for stage, numbers in _BREATHING}


def simulate_belts(
    traits: BreathingTraits, heart_rate: float, stages: np.ndarray, rate_hz: float, rng: Generator
) -> tuple[np.ndarray, np.ndarray]:
    """What a thoracic and an abdominal belt record, one number a sample, no unit yet.

    ``belt(t) = depth(t) * wave(phase(t))``, the phase being the integral of the breathing rate.
    """
    seconds = len(stages) * EPOCH_SECONDS
    breath_times = np.arange(int(seconds * BREATH_SAMPLE_HZ)) / BREATH_SAMPLE_HZ
    epoch = np.minimum((breath_times // EPOCH_SECONDS).astype(np.int64), len(stages) - 1)
    stage = stages[epoch]

    def variation(spread: str) -> np.ndarray:
        spreads = _stage_values(spread, stage) * traits.irregularity
        return np.asarray(np.exp(spreads * _breath_variation(len(breath_times), rng)))

    rate = _stage_values("rate", stage) * traits.rate_per_minute / 60
    rate *= variation("rate_spread")
    depth = _stage_values("depth", stage) * variation("depth_spread")
    depth *= _apnea_depth(traits, stage, rng)
    n_samples = int(seconds * rate_hz)
    phase = _interpolate(2 * np.pi * np.cumsum(rate) / BREATH_SAMPLE_HZ, n_samples, rate_hz)
    depth = _interpolate(depth, n_samples, rate_hz)
    beats = 0.93 * heart_rate / 60 * np.arange(n_samples) / rate_hz
    artifact = traits.heartbeat_amplitude * _float32_sin(2 * np.pi * beats)
    artifact += _interpolate(_simulate_movements(traits, stage, rng), n_samples, rate_hz)
    recorded_belts = []
    for share, lag in ((1.0, 0.0), (0.8, 0.25)):
        wave = _float32_sin(phase - lag + traits.asymmetry * _float32_sin(phase - lag))
        noise = np.float32(0.04) * rng.standard_normal(n_samples, dtype=np.float32)
        recorded_belts.append(share * depth.astype(np.float32) * wave + artifact + noise)
    return recorded_belts[0], recorded_belts[1]


def _interpolate(slow_values: np.ndarray, samples: int, rate_hz: float) -> np.ndarray:
    """Slow values at the belt's rate, on straight lines between them."""
    places = np.arange(samples) * (BREATH_SAMPLE_HZ / rate_hz)
    return np.asarray(np.interp(places, np.arange(len(slow_values)), slow_values))


def _float32_sin(angle: np.ndarray) -> np.ndarray:
    """The sine in single precision, which is several times faster, of angles that may be large."""
    return np.sin((angle % (2 * np.pi)).astype(np.float32))


def _stage_values(field_name: str, stage: np.ndarray) -> np.ndarray:
    table = np.array([getattr(breathing, field_name) for breathing in BREATHING_BY_STAGE.values()])
    return np.asarray(table[stage])


def _breath_variation(length: int, rng: Generator) -> np.ndarray:
    """Unit variance: most of it from breath to breath (4 s), some over minutes."""
    quick = _smooth_noise(length, 4.0, rng)
    slow = _smooth_noise(length, 60.0, rng)
    return np.asarray(0.9 * quick + np.sqrt(1 - 0.9**2) * slow)


def _smooth_noise(length: int, seconds: float, rng: Generator) -> np.ndarray:
    """``n[t] = a n[t-1] + sqrt(1 - a^2) e[t]``, forgotten after so many seconds."""
    decay = np.exp(-1 / (BREATH_SAMPLE_HZ * seconds))
    start = rng.standard_normal() * decay
    innovations = np.sqrt(1 - decay**2) * rng.standard_normal(length)
    return np.asarray(lfilter([1.0], [1.0, -decay], innovations, zi=[start])[0])


def _apnea_depth(traits: BreathingTraits, stage: np.ndarray, rng: Generator) -> np.ndarray:
    """Depth falls to a fifth for 10 to 30 s, then overshoots for two breaths."""
    depth = np.ones(len(stage))
    per_hour = _stage_values("apnoeas", stage) * traits.apneas_per_hour
    probability = per_hour / (3600 * BREATH_SAMPLE_HZ)
    for start in np.flatnonzero(rng.random(len(stage)) < probability):
        stop = start + int(BREATH_SAMPLE_HZ * rng.uniform(10, 30))
        depth[start:stop] = rng.uniform(0.1, 0.35)
        depth[stop : stop + int(BREATH_SAMPLE_HZ * 8)] = 1.4
    return depth


def _simulate_movements(traits: BreathingTraits, stage: np.ndarray, rng: Generator) -> np.ndarray:
    """Bursts of 3 to 12 s, larger than a breath."""
    movement = np.zeros(len(stage))
    rate_per_minute = _stage_values("movements_per_minute", stage) * traits.restlessness
    for start in np.flatnonzero(rng.random(len(stage)) < rate_per_minute / (60 * BREATH_SAMPLE_HZ)):
        length = int(BREATH_SAMPLE_HZ * rng.uniform(3, 12))
        burst = 2.0 * _smooth_noise(length, 1.0, rng) * np.hanning(length + 2)[1:-1]
        movement[start : start + length] += burst[: len(stage) - start]
    return movement
