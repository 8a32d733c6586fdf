"""The progress bar: losses, ceilings, steps."""

import io
from dataclasses import replace

import pytest
from rich.console import Console
from sklearn.base import clone

from cida import CIDAClassifier
from cida.training import Event
from cida.training.progress import ProgressBar, make_status_items

EVENT = Event(
    step=30,
    steps=120,
    seconds=1.0,
    learning_rate=1e-3,
    active_share=1.0,
    losses={"prediction": 0.0123, "discriminator": 3.39711},
    ceilings={"discriminator": 3.4012},
)


def test_each_loss_stands_before_its_ceiling():
    prediction, discriminator, *_ = (item.text for item in make_status_items(EVENT, {}, 0.0))
    assert prediction == "prediction 0.012"
    assert discriminator == "discriminator 3.397 / 3.401"


def test_the_bar_shows_the_step_and_the_losses():
    screen = io.StringIO()
    with ProgressBar("circle", Console(file=screen, force_terminal=True, width=120)) as bar:
        bar(EVENT)
        bar.refresh()
        (task,) = bar.tasks
        assert (task.completed, task.total) == (30, 120)
    assert "circle" in screen.getvalue()
    assert "30/120" in screen.getvalue()
    assert "discriminator 3.397 / 3.401" in screen.getvalue()


HEALTH = {
    "encoding_std": 1.234,
    "adversarial_gradient_share": 0.62,
    "discriminator_gain": 0.01,
    "majority_share_source": 0.52,
    "majority_share_far": 0.55,
}
HEALTHY = replace(EVENT, step=100, health=HEALTH)


def shown(event, width=120, terminal=True):
    """What the bar leaves on the screen after this event."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=width, color_system=None)
    with ProgressBar("circle", console) as bar:
        bar(HEALTHY)
        bar(event)
    return screen.getvalue().split("\x1b[2K")[-1]


def marked(event, widest=1.0):
    return [
        each.text for each in make_status_items(event, event.health, widest) if not each.is_healthy
    ]


def test_a_healthy_event_marks_no_figure():
    words = [reading.text for reading in make_status_items(HEALTHY, HEALTH, 1.3)]
    assert words == [
        "prediction 0.012",
        "discriminator 3.397 / 3.401",
        "index read in z 1%",
        "adversarial gradient 62%",
        "std of z 1.23",
        "one class far 55%, source 52%",
    ]
    assert marked(HEALTHY) == []


@pytest.mark.parametrize(
    ("losses", "health", "words"),
    [
        ({"discriminator": 2.9}, {}, ["index read in z 63%"]),
        (
            {"discriminator": 2.9},
            {"adversarial_gradient_share": 0.03},
            ["index read in z 63%", "adversarial gradient 3%"],
        ),
        ({"discriminator": 3.9}, {}, ["discriminator 3.900 / 3.401"]),
        ({}, {"encoding_std": 0.001}, ["std of z 0.001"]),
        ({}, {"majority_share_far": 1.0}, ["one class far 100%, source 52%"]),
    ],
)
def test_a_figure_out_of_its_range_is_marked_when_it_is_late(losses, health, words):
    late = replace(HEALTHY, losses={**EVENT.losses, **losses}, health={**HEALTH, **health})
    assert marked(late) == words
    early = replace(late, step=10)
    assert set(marked(early)) <= {"std of z 0.001"}


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("terminal", [True, False])
def test_no_figure_is_cut_however_narrow_the_screen(width, terminal):
    bad = replace(HEALTHY, step=110, losses={"prediction": 0.5, "discriminator": 2.4})
    text = shown(bad, width, terminal)
    assert all(len(line) <= width for line in text.splitlines())
    for reading in make_status_items(bad, HEALTH, 1.3):
        assert reading.text + ("" if reading.is_healthy else " !") in text


def test_an_event_without_figures_keeps_the_last_ones_on_the_screen():
    assert "std of z 1.23" in shown(replace(EVENT, step=110))


def test_where_nobody_looks_the_last_state_is_written_once():
    text = shown(replace(HEALTHY, step=110), terminal=False)
    assert text.count("circle") == 1
    assert "110/120" in text


def test_a_run_without_an_adversary_shows_what_it_has():
    plain = replace(EVENT, losses={"prediction": 0.1}, ceilings={}, health={"encoding_std": 2.0})
    words = [reading.text for reading in make_status_items(plain, plain.health, 2.0)]
    assert words == ["prediction 0.100", "std of z 2"]


def test_a_model_with_a_bar_can_be_cloned():
    bar = ProgressBar()
    assert clone(CIDAClassifier(callbacks=[bar])).callbacks == [bar]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_every_line_fits_the_terminal(width):
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    bar = ProgressBar("Default (moving frame), seed 12345", console)
    bar(HEALTHY)
    lines = console.render_lines(bar.get_renderable(), pad=False)
    words = ["".join(part.text for part in line) for line in lines]
    assert max(map(len, words)) <= width
    assert words[0].startswith("Default")
    assert "100/120" in words[0]
    for reading in make_status_items(HEALTHY, HEALTH, 1.3):
        assert any(reading.text in line for line in words)


def test_lines_that_wrap_in_a_narrower_terminal_are_cleared():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)
    with ProgressBar("Default (moving frame), seed 12345", console) as bar:
        bar(HEALTHY)
        bar.refresh()
        wide = sum(max(0, length - 1) // 40 for length in bar.line_widths)
        height = len(bar.line_widths)
        screen.truncate(screen.seek(0))
        console.width = 40
        bar.refresh()
        ups = screen.getvalue().split("Default")[0].count("\x1b[1A")
    assert wide > 0
    assert ups == wide + height - 1
