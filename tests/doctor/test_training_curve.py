"""The course of a run, from events made by hand."""

import math

import pytest

from cida.doctor.training_curve import TrainingCurve
from cida.training import Event


def events(count=100, **figures):
    """Events of a run at a constant learning rate; a figure is a number or a function of time."""

    def at(name, time, default):
        value = figures.get(name, default)
        return value(time) if callable(value) else value

    made = []
    for k in range(count):
        time = (k + 0.5) / count
        losses = {"prediction": at("prediction", time, 0.1)}
        ceilings = {}
        if "gap" in figures:
            losses["discriminator"], ceilings["discriminator"] = 3.0 - at("gap", time, 0), 3.0
        names = ("adversarial_gradient_share", "encoding_std")
        health = {name: at(name, time, None) for name in names if name in figures}
        rate = at("rate", time, 1e-3)
        made.append(Event(10 * (k + 1), 10 * count, 1.0, rate, 1.0, losses, ceilings, health))
    return made


@pytest.mark.parametrize("rate", [0.1, 1.0, 5.0, 20.0])
def test_the_last_share_of_an_exponential_fall_is_as_its_rate_says(rate):
    course = TrainingCurve(events(2000, prediction=lambda time: math.exp(-rate * time)))

    def mean(start, stop):
        return (math.exp(-rate * start) - math.exp(-rate * stop)) / (rate * (stop - start))

    expected = (mean(0.6, 0.8) - mean(0.8, 1)) / (1 - mean(0.8, 1))
    assert course.late_decrease_share() == pytest.approx(expected, abs=2e-3)
    assert course.prediction_loss() == pytest.approx(mean(0.8, 1), rel=1e-2)


def test_the_way_is_counted_in_steps_of_the_optimisers_length():
    # A rate that falls to nothing: by the half of the steps three quarters of the way are gone.
    fall = {"prediction": lambda time: 1 - (1 - (1 - time) ** 2), "rate": lambda time: 1 - time}
    course = TrainingCurve(events(2000, **fall))
    # With s = 1 - t, part k of the way is where s^2 is between 1 - k/5 and 1 - (k+1)/5, and the
    # mean of s^2 over its events is that of a parabola.
    for part in range(5):
        high, low = math.sqrt(1 - part / 5), math.sqrt(max(0.0, 0.8 - part / 5))
        mean = (high**3 - low**3) / (3 * (high - low))
        assert course.prediction_loss(part) == pytest.approx(mean, abs=5e-3)


def test_a_loss_that_rises_is_not_still_falling():
    course = TrainingCurve(events(prediction=lambda time: 0.1 + time))
    assert course.late_decrease_share() == 0
    assert course.loss_decrease() < 0


def test_what_is_known_is_the_median_of_the_asked_part():
    course = TrainingCurve(events(gap=lambda time: 0.5 if time > 0.8 else 0.1))
    assert course.index_share_read(0.8) == pytest.approx(1 - math.exp(-1))
    assert course.index_share_read() == pytest.approx(1 - math.exp(-0.2))


def test_one_event_alone_is_not_the_most_that_was_known():
    course = TrainingCurve(events(gap=lambda time: 2.0 if 0.5 < time < 0.51 else 0.0))
    assert course.max_index_share_read() == 0
    course = TrainingCurve(events(gap=lambda time: 2.0 if 0.5 < time < 0.53 else 0.0))
    assert course.max_index_share_read() == pytest.approx(1 - math.exp(-4))


def test_the_start_is_not_counted_as_above_the_ceiling():
    course = TrainingCurve(events(gap=lambda time: -1.0 if time < 0.2 or time > 0.8 else 0.0))
    assert course.share_above_ceiling(0.05) == pytest.approx(0.25)
    assert course.share_above_ceiling(2.0) == 0


def test_the_pull_is_that_of_looks_at_which_the_adversary_was_felt():
    course = TrainingCurve(
        events(
            gap=0.0,
            adversarial_gradient_share=lambda time: 0.6 if int(100 * time) % 4 == 0 else 0.0,
        )
    )
    assert course.active_probe_share() == pytest.approx(0.25, abs=0.02)
    assert course.adversarial_gradient_share() == pytest.approx(0.6)


def test_a_run_without_an_adversary_has_no_such_figures():
    course = TrainingCurve(events(encoding_std=1.0))
    assert (
        course.index_share_read(),
        course.max_index_share_read(),
        course.active_probe_share(),
        course.adversarial_gradient_share(),
    ) == (None,) * 4
    assert course.share_above_ceiling(0.05) == 0
    assert course.n_probes == 100


def test_too_few_events_say_nothing_of_the_prediction():
    course = TrainingCurve(events(4))
    assert course.prediction_loss() is None
    assert course.late_decrease_share() is None
    assert course.loss_decrease() is None
