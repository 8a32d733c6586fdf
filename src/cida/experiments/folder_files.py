"""The texts and published scores that stand beside an experiment's code, in its folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from cida.io.json_decode import decode, parse_json
from cida.runs.records import ExperimentText, PublishedScore

__all__ = ["load_published_scores", "load_text"]

TEXT_FILE, PUBLISHED_FILE = "text.md", "published.json"


@cache
def load_published_scores(package: str) -> Mapping[str, Mapping[str, PublishedScore]]:
    """The scores in ``published.json`` of an experiment's package, by task and method."""
    content = parse_json((files(package) / PUBLISHED_FILE).read_bytes())
    scores: Mapping[str, Mapping[str, PublishedScore]] = decode(
        dict[str, dict[str, PublishedScore]], content, PUBLISHED_FILE
    )
    return scores


def load_text(package: str, experiment: str) -> ExperimentText:
    """The experiment's section of ``text.md``, whose headings name the fields."""
    markdown = (files(package) / TEXT_FILE).read_text(encoding="utf-8")
    sections = _split_at_headings(markdown, 1)
    fields = {
        name: " ".join(text.split())
        for name, text in _split_at_headings(sections[experiment], 2).items()
    }
    return ExperimentText(
        fields["title"],
        fields.get("lead", ""),
        fields.get("columns", ""),
        fields.get("figures", ""),
    )


def _split_at_headings(markdown: str, level: int) -> dict[str, str]:
    parts = re.split(rf"^{'#' * level} (.+)$", markdown, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))
