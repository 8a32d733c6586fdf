"""A fit is followed through nine modules, in Python and on the command line.

The call is traced. Every module of cida that it enters is a step of the walk or one of the parts
that a step alone owns; these are listed with the step they belong to, so that a new module on the
way is a decision and not an accident. docs/architecture.md shows the same walks.
"""

import csv
import importlib
import pkgutil
import re
import sys
import threading
from fnmatch import fnmatch
from pathlib import Path

import pytest

import cida
from cida import CIDAClassifier
from cida.cli.app import main
from cida.datasets import make_circle

PACKAGE = Path(cida.__file__).parent
MAX_STEPS = 9

IN_PYTHON = {  # step: its function that is called
    "estimators/base": "fit",
    "estimators/validation": "training_data",
    "policy": "resolve",
    "coordinates/trial": "compare_coordinates",
    "estimators/fitting": "fit_state",
    "networks/builders": "build_encoder",
    "training/trainer": "run",
    "training/sampling": "draw_source",
    "games/adversarial": "moves",
}
ON_THE_COMMAND_LINE = {
    "cli/fit": "run",
    "estimators/base": "read_training_data",
    "tables/sources": "open_table",
    "tables/schema_builder": "build",
    "runs/run_folder": "create",
    "policy": "resolve",
    "estimators/fitting": "fit_state",
    "runs/probe": "figures",
    "report/build": "group_runs",
}

# What a step alone owns, or what is a value or a layer and leads nowhere.
PARTS = {
    "values and layers": ["spaces/*", "discriminators/*", "networks/*", "data", "indexing"],
    "the estimator": [
        "estimators/classifier",
        "estimators/fitted_estimator",
        "estimators/parameters",
        "selection/validators",
    ],
    "validation": ["array_checks", "estimators/labels", "estimators/scaling"],
    "the trial": ["coordinates/*", "kernel_ridge"],
    "the trainer": ["training/*", "games/*", "distributed"],
    "after the training": ["doctor/*", "estimators/summarize", "label_shift", "metrics"],
}
PARTS_OF_THE_COMMAND = {
    "the program": ["cli/*", "errors", "io/*"],
    "the fit, as in Python": ["estimators/*", "coordinates/*"],
    "the table": ["tables/*"],
    "the probe": ["certificate/*", "selection/*", "support", "dependence", "runs/snapshot"],
    "records": ["runs/*", "plan_summary"],
    "the page": ["report/*"],
}


@pytest.fixture(scope="module", autouse=True)
def _everything_is_imported():
    for module in pkgutil.walk_packages(cida.__path__, "cida."):
        if not module.name.startswith(("cida.experiments", "cida.__main__")):
            importlib.import_module(module.name)


def functions_entered(call):
    """The functions of cida that a call enters as (module, name), in the order of first entry."""
    entered = {}

    def note(frame, event, _):
        if event == "call":
            entered.setdefault((frame.f_code.co_filename, frame.f_code.co_name))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    own = [(Path(path), name) for path, name in entered if path.startswith(f"{PACKAGE}/")]
    return [(p.relative_to(PACKAGE).with_suffix("").as_posix(), name) for p, name in own]


def steps_taken(entered, walk):
    return [module for module, name in entered if walk.get(module) == name]


def off_the_walk(entered, walk, *parts):
    patterns = [pattern for group in parts for names in group.values() for pattern in names]
    patterns += [*walk, "*__init__"]
    return {m for m, _ in entered if not any(fnmatch(m, pattern) for pattern in patterns)}


def test_a_fit_in_python_is_followed_through_nine_modules():
    data = make_circle(seed=100)
    x, y, u = data.x, data.training_labels, data.u
    model = CIDAClassifier(steps=3, random_state=100)
    entered = functions_entered(lambda: model.fit(x, y, domain_index=u))
    assert steps_taken(entered, IN_PYTHON) == [*IN_PYTHON]
    assert off_the_walk(entered, IN_PYTHON, PARTS) == set()


def test_a_fit_on_the_command_line_is_followed_through_nine_modules(tmp_path):
    data = make_circle(seed=100)
    table = tmp_path / "patients.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "age", "outcome"])
        outcome = [int(y) if known else "" for y, known in zip(data.y, data.source, strict=True)]
        writer.writerows([*x, u, y] for x, u, y in zip(data.x, data.u, outcome, strict=True))
    command = f"fit {table} --label outcome --index age --out {tmp_path / 'p'} --steps 20"
    entered = functions_entered(lambda: main(command.split()))
    assert steps_taken(entered, ON_THE_COMMAND_LINE) == [*ON_THE_COMMAND_LINE]
    assert off_the_walk(entered, ON_THE_COMMAND_LINE, PARTS, PARTS_OF_THE_COMMAND) == set()
    assert (tmp_path / "p" / "report.html").exists()


@pytest.mark.parametrize("walk", [IN_PYTHON, ON_THE_COMMAND_LINE])
def test_the_walks_are_short_and_are_those_of_the_architecture_page(walk):
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    parts = [part.split(", with its head")[0] for part in re.split(r"\n- |\n\n", page)]
    assert [*walk] in [re.findall(r"`([a-z_/]+)`", part) for part in parts if " → " in part]
    assert len(walk) <= MAX_STEPS
