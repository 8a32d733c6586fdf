"""The recipes, texts and published scores that stand beside an experiment's code, in its folder."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from cida.experiments.spec import PAPER_SETTINGS, Experiment, Preset, TaskSpec
from cida.io.json_decode import decode, parse_json
from cida.runs.records import ExperimentText, PublishedScore
from cida.spaces import Line, Periodic

Scores = dict[str, PublishedScore]
SPACES = {"line": Line(), "degrees": Periodic(360)}


class RecipeBook(NamedTuple):
    """The methods of an experiment's tables, its presets and its protocols."""

    methods: tuple[str, ...]
    presets: Mapping[str, Preset]
    protocols: Mapping[str, str]


def load_recipes(package: str, networks: Mapping[str, Any] | None = None) -> RecipeBook:
    """What ``recipes.toml`` says; ``networks`` are those of the presets that have some, by name.

    ``base`` names the settings that a preset begins with: ``paper``, or an earlier preset, whose
    ``methods`` it has too where it names none of its own.
    """
    content = tomllib.loads((files(package) / "recipes.toml").read_text(encoding="utf-8"))
    presets = {"": Preset({}), "paper": Preset(PAPER_SETTINGS)}
    for name, entry in content["presets"].items():
        base = presets[entry.get("base", "")]
        methods = {k: _to_settings(v) for k, v in entry.get("methods", {}).items()}
        presets[name] = Preset(
            {**base.settings, **_to_settings(entry.get("settings", {}))},
            methods or base.method_settings,
            (networks or {}).get(name),
            entry["protocol"],
        )
    own_presets = {name: presets[name] for name in content["presets"]}
    return RecipeBook(tuple(content.get("methods", ())), own_presets, content["protocols"])


def _to_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """Of an estimator: lists are tuples there, and a space is an object."""
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    return settings | ({"space": SPACES[table["space"]]} if "space" in table else {})


@cache
def load_published_scores(package: str) -> Mapping[str, Scores]:
    """The scores in ``published.json`` of an experiment's package, by task and method."""
    content = parse_json((files(package) / "published.json").read_bytes())
    scores: dict[str, Scores] = decode(dict[str, Scores], content, "published.json")
    return scores


def load_text(package: str, experiment: str) -> ExperimentText:
    """The experiment's section of ``text.md``, whose headings name the fields."""
    markdown = (files(package) / "text.md").read_text(encoding="utf-8")
    fields = _split_at_headings(_split_at_headings(markdown, 1)[experiment], 2)
    names = ("title", "lead", "columns", "figures")
    return ExperimentText(*(" ".join(fields.get(name, "").split()) for name in names))


def make_experiments(
    package: str, tasks_by_name: Mapping[str, tuple[TaskSpec, ...]], figures: str, **options: Any
) -> tuple[Experiment, ...]:
    """The experiments of a folder with their texts; ``figures`` is the module that draws."""
    texts = {name: load_text(package, name) for name in tasks_by_name}
    pairs = tasks_by_name.items()
    return tuple(Experiment(name, tasks, texts[name], figures, **options) for name, tasks in pairs)


def _split_at_headings(markdown: str, level: int) -> dict[str, str]:
    parts = re.split(rf"^{'#' * level} (.+)$", markdown, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))
