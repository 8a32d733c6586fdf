"""A real browser: pages are opened from files, and nothing may be fetched or go wrong."""

import base64
import io
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from cida.datasets import make_circle, make_drifting_regression, make_hours, make_plane
from cida.estimators import CIDAClassifier, CIDARegressor, CidaWarning
from cida.experiments.display_rows import take_snapshot
from cida.experiments.rotating_mnist.rotating_tasks import ROTATING_DIGITS
from cida.experiments.spec import build_recipes
from cida.experiments.task_data import select_display_rows
from cida.report.explorer import render_explorer
from cida.spaces import Periodic

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OURS = ("file:", "data:", "blob:", "about:")

OpenFile = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The machine's own Chromium; playwright's is not downloaded."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail(
            "no browser was found, and the report is tested in a real one: run 'make browser' "
            "(Debian, Ubuntu), or install Chromium or Chrome so that one of "
            f"{', '.join(NAMES)} is on the PATH."
        )
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def open_file(browser) -> Iterator[OpenFile]:
    """Opens a file in a fresh context; at the end nobody has complained or asked the network."""
    complaints: list[str] = []
    contexts = []

    def opened(path: Path, **settings) -> Page:
        settings = {"viewport": {"width": 1280, "height": 900}, **settings}
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda m: m.type == "error" and complaints.append(f"console: {m.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "request", lambda r: r.url.startswith(OURS) or complaints.append(f"request: {r.url}")
        )
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


# --- looking -------------------------------------------------------------------------------------


class Look:
    """What a test sees of an explorer, and how it moves it."""

    @staticmethod
    def settle(page):
        """Two frames: what was asked for is drawn in the first of them."""
        page.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    @staticmethod
    def pixels(page, selector, panel=0):
        Look.settle(page)
        canvas = page.locator(f".ex-panel >> nth={panel}").locator(selector)
        url = canvas.evaluate("canvas => canvas.toDataURL()")
        image = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
        return np.asarray(image.convert("RGBA"), dtype=float)

    @staticmethod
    def apart(first, second):
        return float(np.abs(first - second).mean())

    @staticmethod
    def slide(page, value, number=0):
        page.locator("input[type=range]").nth(number).fill(str(value))

    @staticmethod
    def shown_value(page, number=0):
        return float(page.locator(".ex-value").nth(number).inner_text())

    @staticmethod
    def wait_until(page, condition):
        """Until this holds of the first index column's value."""
        value = "Number(document.querySelector('.ex-value').textContent)"
        page.wait_for_function(f"(value => {condition})({value})")

    @staticmethod
    def overflow(page):
        return page.evaluate("document.scrollingElement.scrollWidth - innerWidth")

    @staticmethod
    def titles(page):
        return page.locator(".ex-panel h3").all_inner_texts()


@pytest.fixture(scope="session")
def look() -> type[Look]:
    """How to look at an explorer."""
    return Look


# --- views of real trainings that are short -------------------------------------------------------

SEED = 100
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>test</title><style>
:root {{ --ink: #1c2430; --soft: #5a6675; --paper: #ffffff; --card: #f6f8fa; --rule: #d8dee6;
  --red: #c8322b; --blue: #2c62b4; --frame: #1c8a4b; --band: #1c8a4b1c; --s0: #7a8594;
  --s1: #c97a12; --s2: #7b4bb3; --s3: #0e8a7c; --s4: #c8322b; --s5: #2c62b4; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6eaf0; --paper: #12161c; --red: #ff7a70;
  --blue: #7fb0ff; }} }}
:root[data-theme="dark"] {{ --ink: #e6eaf0; --paper: #12161c; --red: #ff7a70; --blue: #7fb0ff; }}
* {{ box-sizing: border-box; }} body {{ margin: 0; padding: 20px; background: var(--paper);
  color: var(--ink); font: 16px/1.5 sans-serif; }} figure {{ margin: 0; background: var(--card); }}
</style></head><body>{}</body></html>"""


@contextmanager
def hurried() -> Iterator[None]:
    """Trainings that are too short, which needs no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        yield


class Sample:
    """A world to show; of points in two columns a plane is drawn too."""

    def __init__(self, world, **changes):
        self.world = world
        self.rows = replace(select_display_rows(world), **changes)

    def display_rows(self):
        return self.rows

    def view(self, kind=CIDAClassifier, **settings):
        settings = {"coordinates": "learned", "steps": 120, "random_state": SEED, **settings}
        world, model = self.world, kind(**settings)
        with hurried():
            model.fit(world.x, world.training_labels, domain_index=world.u)
        return take_snapshot(model, self.display_rows(), kind is CIDARegressor)


@pytest.fixture(scope="session")
def page_of(tmp_path_factory) -> Callable[..., Path]:
    """Writes the page with the explorer of these views."""
    folder = tmp_path_factory.mktemp("pages")

    def written(name, views):
        path = folder / f"{name}.html"
        path.write_text(PAGE.format(render_explorer(views)), encoding="utf-8")
        return path

    return written


@pytest.fixture(scope="session")
def circle_views():
    sample = Sample(make_circle(n_per_domain=40, seed=SEED))
    return {
        "Default": sample.view(),
        "Source-Only": sample.view(discriminator=None, coordinates="raw"),
    }


@pytest.fixture(scope="session")
def circle_page(page_of, circle_views):
    return page_of("circle", {**circle_views, "again": circle_views["Default"],
                                      "and again": circle_views["Default"]})  # fmt: skip


@pytest.fixture(scope="session")
def hours_page(page_of):
    sample = Sample(make_hours(n_samples=600, seed=SEED), space=Periodic(24), index_names=("hour",))
    return page_of("hours", {"Default": sample.view(space=Periodic(24))})


@pytest.fixture(scope="session")
def plane_page(page_of):
    world = make_plane(n_samples=600, seed=SEED)
    sample = Sample(replace(world, x=world.x[:, :2]))
    return page_of("plane", {"Default": sample.view()})


@pytest.fixture(scope="session")
def regression_view():
    return Sample(make_drifting_regression(n_samples=600, seed=SEED)).view(CIDARegressor)


@pytest.fixture(scope="session")
def digits_view():
    recipe = build_recipes(ROTATING_DIGITS, "best")["histogram"].with_settings(steps=40)
    sample = ROTATING_DIGITS.draw_data(SEED, "development")
    model = recipe.build_model(SEED)
    with hurried():
        sample.train(model, False)
    return take_snapshot(model, sample.display_rows(), regression=False)


@pytest.fixture(scope="session")
def digits_page(page_of, digits_view):
    return page_of("digits", {"Histogram head": digits_view})
