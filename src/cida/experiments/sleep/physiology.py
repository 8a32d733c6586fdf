"""Simulated people: what sleep and breathing do with age and health, each number with its reason.

Not a model to draw medical conclusions from. It is stylised, and the drift with age is larger than
life, so that a few hundred nights can show what thousands of real ones do. Sources are named where
a number follows one; the others are set so that one 30 s segment of breathing stages about as well
as it does on real recordings (three in four right).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import lfilter

from cida.experiments.sleep.stages import EPOCH_SECONDS

__all__ = [
    "EPOCH_SECONDS",
    "SF36_SCALES",
    "BreathingTraits",
    "Person",
    "draw_person",
    "simulate_belts",
    "simulate_hypnogram",
]

Array = np.ndarray[Any, Any]
Generator = np.random.Generator

WAKE, N1, N2, N3, REM = range(5)

# --- people --------------------------------------------------------------------------------------

# The eight SF-36 scales, 0 (worst) to 100 (best): mean at 60, change a decade, how far they follow
# a person's general health. Physical scales fall with age, mental ones hardly do (Ware 1993).
SF36_SCALES: dict[str, tuple[float, float, float]] = {
    "physical_functioning": (80, -7, 14),
    "role_physical": (76, -5, 17),
    "general_health": (70, -3, 13),
    "role_emotional": (83, -1, 14),
    "vitality": (62, -2, 12),
    "mental_health": (78, 0.5, 10),
    "social_functioning": (86, -1, 12),
    "bodily_pain": (72, -2, 13),
}
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


# Log irregularity a standard deviation of the index (the scales' are about 18, the heart rate's 9).
# A fast heart and poor health go with an unsteady drive to breathe, women breathe more steadily.
LOG_IRREGULARITY_WEIGHTS: dict[str, float] = {
    "heart_rate": 0.12,
    "gender": -0.20,  # a woman's against a man's
    "physical_functioning": -0.045,
    "role_physical": -0.025,
    "general_health": -0.04,
    "role_emotional": -0.025,
    "vitality": -0.035,
    "mental_health": -0.035,
    "social_functioning": -0.025,
    "bodily_pain": -0.03,
}


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
        log_irregularity = 0.09 * d + 0.65 * frailty
        log_irregularity += LOG_IRREGULARITY_WEIGHTS[
            "heart_rate"
        ] * heart_rate_z + LOG_IRREGULARITY_WEIGHTS["gender"] * (woman - 0.5)
        log_irregularity += sum(
            -LOG_IRREGULARITY_WEIGHTS[name] * (scale_deficits[name] + 0.9)
            for name in scale_deficits
        )
        return cls(
            # 12 to 20 a minute in adults at rest; faster in women and with a stiffer chest.
            rate_per_minute=14.6 + 0.35 * d + 0.7 * woman + 0.5 * heart_rate_z + 0.7 * rng.normal(),
            irregularity=float(np.exp(log_irregularity + 0.08 * rng.normal())),
            # Pain and worry move people about.
            restlessness=float(
                np.exp(
                    0.10 * d
                    + 0.15 * (scale_deficits["bodily_pain"] + scale_deficits["mental_health"] + 1.6)
                    + 0.15 * rng.normal()
                )
            ),
            # Mild apnoea is common and doubles about every twenty years; men have more.
            apneas_per_hour=float(np.exp(1.5 + 0.35 * d - 0.5 * woman + 0.5 * rng.normal())),
            # Breathing in is quicker than breathing out, the more so the stiffer the chest.
            asymmetry=float(np.clip(0.30 + 0.03 * d + 0.03 * rng.normal(), 0, 0.8)),
            # Heartbeats shake the belt: more in wide arteries.
            heartbeat_amplitude=0.05 + 0.006 * d,
        )


# --- stages --------------------------------------------------------------------------------------

# Chance of going from a stage to the next in 30 s, at 60 years. Gives, over a night, about a
# sixth awake, not quite half light, a sixth deep and a fifth REM, much as in people of that age
# (Ohayon 2004).
STAGE_TRANSITIONS_AT_60 = np.array(
    [
        [0.860, 0.110, 0.020, 0.000, 0.010],
        [0.090, 0.420, 0.430, 0.000, 0.060],
        [0.022, 0.030, 0.895, 0.033, 0.020],
        [0.008, 0.006, 0.066, 0.920, 0.000],
        [0.022, 0.018, 0.020, 0.000, 0.940],
    ]
)


def _transition_matrix(decades: float, night_share: float) -> Array:
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


def simulate_hypnogram(person: Person, n_epochs: int, rng: Generator) -> Array:
    """The stage of each 30 s: a Markov chain that begins awake."""
    cumulative_transitions = [
        _transition_matrix(person.decades_past_60, night).cumsum(1)
        for night in np.linspace(0, 1, 12)
    ]
    draws = rng.random(n_epochs)
    stages = np.empty(n_epochs, dtype=np.int64)
    stage = WAKE
    for epoch in range(n_epochs):
        rows = cumulative_transitions[epoch * len(cumulative_transitions) // n_epochs]
        stage = int(min(np.searchsorted(rows[stage], draws[epoch], side="right"), REM))
        stages[epoch] = stage
    return stages


# --- breathing -----------------------------------------------------------------------------------

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


BREATHING_BY_STAGE: dict[int, StageBreathing] = {
    WAKE: StageBreathing(1.08, 0.18, 1.00, 0.34, 0.90, 0.1),
    N1: StageBreathing(1.00, 0.11, 0.92, 0.16, 0.20, 1.0),
    N2: StageBreathing(0.98, 0.070, 0.92, 0.105, 0.08, 1.0),
    N3: StageBreathing(0.96, 0.032, 1.00, 0.048, 0.02, 0.3),
    REM: StageBreathing(1.03, 0.150, 0.76, 0.22, 0.06, 1.5),
}


def simulate_belts(
    traits: BreathingTraits, heart_rate: float, stages: Array, rate_hz: float, rng: Generator
) -> tuple[Array, Array]:
    """What a thoracic and an abdominal belt record, one number a sample, no unit yet.

    ``belt(t) = depth(t) * wave(phase(t))``, the phase being the integral of the breathing rate.
    """
    seconds = len(stages) * EPOCH_SECONDS
    breath_times = np.arange(int(seconds * BREATH_SAMPLE_HZ)) / BREATH_SAMPLE_HZ
    epoch = np.minimum((breath_times // EPOCH_SECONDS).astype(np.int64), len(stages) - 1)
    stage = stages[epoch]
    rate = _stage_values("rate", stage) * traits.rate_per_minute / 60
    rate *= np.exp(
        _stage_values("rate_spread", stage)
        * traits.irregularity
        * _breath_variation(len(breath_times), rng)
    )
    depth = _stage_values("depth", stage) * np.exp(
        _stage_values("depth_spread", stage)
        * traits.irregularity
        * _breath_variation(len(breath_times), rng)
    )
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
        noise = rng.standard_normal(n_samples, dtype=np.float32)
        recorded_belts.append(
            share * depth.astype(np.float32) * wave + artifact + np.float32(0.04) * noise
        )
    return recorded_belts[0], recorded_belts[1]


def _interpolate(slow_values: Array, samples: int, rate_hz: float) -> Array:
    """Slow values at the belt's rate, on straight lines between them."""
    places = np.arange(samples) * (BREATH_SAMPLE_HZ / rate_hz)
    values: Array = np.interp(places, np.arange(len(slow_values)), slow_values)
    return values


def _float32_sin(angle: Array) -> Array:
    """The sine in single precision, which is several times faster, of angles that may be large."""
    values: Array = np.sin((angle % (2 * np.pi)).astype(np.float32))
    return values


def _stage_values(field_name: str, stage: Array) -> Array:
    table = np.array([getattr(BREATHING_BY_STAGE[number], field_name) for number in range(5)])
    values: Array = table[stage]
    return values


def _breath_variation(length: int, rng: Generator) -> Array:
    """Unit variance: most of it from breath to breath (4 s), some over minutes."""
    quick = _smooth_noise(length, 4.0, rng)
    slow = _smooth_noise(length, 60.0, rng)
    wander: Array = 0.9 * quick + np.sqrt(1 - 0.9**2) * slow
    return wander


def _smooth_noise(length: int, seconds: float, rng: Generator) -> Array:
    """``n[t] = a n[t-1] + sqrt(1 - a^2) e[t]``, forgotten after so many seconds."""
    decay = np.exp(-1 / (BREATH_SAMPLE_HZ * seconds))
    start = rng.standard_normal() * decay
    innovations = np.sqrt(1 - decay**2) * rng.standard_normal(length)
    noise: Array = lfilter([1.0], [1.0, -decay], innovations, zi=[start])[0]
    return noise


def _apnea_depth(traits: BreathingTraits, stage: Array, rng: Generator) -> Array:
    """Depth falls to a fifth for 10 to 30 s, then overshoots for two breaths."""
    depth = np.ones(len(stage))
    probability = (
        _stage_values("apnoeas", stage) * traits.apneas_per_hour / (3600 * BREATH_SAMPLE_HZ)
    )
    for start in np.flatnonzero(rng.random(len(stage)) < probability):
        stop = start + int(BREATH_SAMPLE_HZ * rng.uniform(10, 30))
        depth[start:stop] = rng.uniform(0.1, 0.35)
        depth[stop : stop + int(BREATH_SAMPLE_HZ * 8)] = 1.4
    return depth


def _simulate_movements(traits: BreathingTraits, stage: Array, rng: Generator) -> Array:
    """Bursts of 3 to 12 s, larger than a breath."""
    movement = np.zeros(len(stage))
    rate_per_minute = _stage_values("movements_per_minute", stage) * traits.restlessness
    for start in np.flatnonzero(rng.random(len(stage)) < rate_per_minute / (60 * BREATH_SAMPLE_HZ)):
        length = int(BREATH_SAMPLE_HZ * rng.uniform(3, 12))
        burst = 2.0 * _smooth_noise(length, 1.0, rng) * np.hanning(length + 2)[1:-1]
        movement[start : start + length] += burst[: len(stage) - start]
    return movement
