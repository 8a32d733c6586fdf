"""Real runs that are short, and a reader of pages that notices what is wrong with them."""

import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

from cida.cli import main
from cida.datasets import make_circle
from cida.estimators import CidaWarning
from cida.experiments.circle_sine.toy_tasks import DEMO_RECIPES, make_toy_data
from cida.experiments.registry import EXPERIMENTS
from cida.experiments.runner import run_recipe
from cida.report import Manifest, read_runs
from cida.runs.records import Origin

VOID = {"meta", "link", "img", "br", "hr", "input", "wbr", "source"}
METHODS = ("source-only", "cida", "histogram")
SEEDS = (100, 101)


class Reader(HTMLParser):
    """Every tag closed in order; ids, headings, resources, and names of figures are collected."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.headings, self.fetched = [], [], [], []
        self.nameless, self.tags, self.links, self.labels = [], [], [], []
        self.scripts, self.data, self.cells, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in found:
            self.ids.append(found["id"])
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.headings.append(int(tag[1]))
        self.links += [found["href"]] if tag == "a" else []
        if tag in ("script", "img", "link", "iframe", "source", "image", "use"):
            self.fetched += [found[k] for k in ("src", "href", "xlink:href") if k in found]
        if tag in ("svg", "img"):
            name = found.get("aria-label") or found.get("alt")
            if not name and found.get("aria-hidden") != "true":
                self.nameless.append(attrs)
            self.labels.append(name)
        if tag in ("td", "th"):
            self.cells.append("")
        if tag == "script":
            self.data.append(found.get("type") == "application/json")
            self.scripts.append("")
        for name, value in attrs:
            assert not name.startswith("on"), f"{name}={value}"

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        assert tag in VOID or "svg" in self.open, tag

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self.scripts[-1] += data
        elif inside != "style":
            self.text.append(data)
            if {"td", "th"} & set(self.open):
                self.cells[-1] += data


@pytest.fixture(scope="session")
def read_page():
    """Reads a page and checks what holds of every page."""

    def read(html):
        reader = Reader()
        reader.feed(html)
        reader.close()
        assert reader.open == []
        assert len(reader.ids) == len(set(reader.ids))
        assert reader.headings[0] == 1
        assert reader.headings.count(1) == 1
        steps = np.diff(reader.headings)
        assert steps.max(initial=0) <= 1, "a heading is left out"
        assert reader.nameless == []
        assert all(address.startswith("data:") for address in reader.fetched)
        assert {link[1:] for link in reader.links if link.startswith("#")} <= set(reader.ids)
        assert all(link.startswith("#") for link in reader.links)
        return reader

    return read


def play(folder, methods=METHODS, seeds=SEEDS, steps=25):
    """Runs of the demo's recipes on a small Circle, as the demo makes them."""
    for seed in seeds:
        sample = make_toy_data(make_circle(n_per_domain=20, seed=seed))
        for name in methods:
            origin = Origin("circle", "demo", "", f"cida demo {name}")
            recipe = DEMO_RECIPES[name].with_settings(steps=steps)
            run_recipe(recipe, sample, seed, folder / f"{name}-seed{seed}", origin=origin)


@pytest.fixture(scope="session")
def circle_folder(tmp_path_factory):
    """Three methods with two seeds, and the story that the demo leaves."""
    folder = tmp_path_factory.mktemp("circle")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        play(folder)
    names = sorted(path.name for path in folder.iterdir())
    (folder / "picture.svg").write_text("<svg>picture</svg>")
    experiment = EXPERIMENTS["circle"]
    Manifest(
        runs=names,
        command="cida demo --seeds 2",
        protocol="training points",
        experiment=experiment.name,
        text=experiment.text,
        tasks=tuple(task.record for task in experiment.tasks),
        figures={"A <title>": "picture.svg"},
    ).save(folder)
    return folder


@pytest.fixture(scope="session")
def circle_runs(circle_folder):
    return read_runs([circle_folder])


def write_ward(path, label="outcome", index="hour", classes=("ill", "well", "worse"), rows=420):
    """A table whose labels exist on both sides of midnight."""
    rng = np.random.default_rng(100)
    hour = rng.uniform(0, 24, rows)
    codes = rng.integers(0, len(classes), rows)
    noise = rng.normal(size=(2, rows))
    known = (hour < 6) | (hour > 21)
    lines = [f"{index},{label},a,b"]
    for k in range(rows):
        said = classes[codes[k]] if known[k] else ""
        lines.append(f"{hour[k]:.3f},{said},{codes[k] + noise[0, k]:.3f},{noise[1, k]:.3f}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def ward_folder(tmp_path_factory):
    """A run of a user's own table along a circle, with two models."""
    folder = tmp_path_factory.mktemp("ward")
    write_ward(folder / "ward.csv")
    words = ["fit", str(folder / "ward.csv"), "--label", "outcome", "--index", "hour"]
    more = ["--periodic", "hour:24", "--steps", "30", "--seeds", "2", "--seed", "100"]
    assert main([*words, *more, "--out", str(folder / "run")]) == 0
    return folder / "run"
