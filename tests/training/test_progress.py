import io

from rich.console import Console

from cida.training import Event
from cida.training.progress import ProgressBar, loss_words

EVENT = Event(
    step=30,
    steps=120,
    seconds=1.0,
    learning_rate=1e-3,
    active=1.0,
    losses={"prediction": 0.0123, "discriminator": 3.39711},
    ceilings={"discriminator": 3.4012},
)


def test_each_loss_stands_before_its_ceiling():
    assert loss_words(EVENT) == "prediction 0.012, discriminator 3.397 / 3.401"


def test_the_bar_shows_the_step_and_the_losses():
    screen = io.StringIO()
    with ProgressBar("circle", Console(file=screen, force_terminal=True, width=120)) as bar:
        bar(EVENT)
        bar.progress.refresh()
        (task,) = bar.progress.tasks
        assert (task.completed, task.total) == (30, 120)
    assert "circle" in screen.getvalue()
    assert "30/120" in screen.getvalue()
    assert "discriminator 3.397 / 3.401" in screen.getvalue()
