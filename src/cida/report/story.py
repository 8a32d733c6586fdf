"""What an experiment adds to the report of its runs; kept beside them, so that it is not lost."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from cida.experiments.results import TableLine
from cida.io.files import contained_path, write_atomically
from cida.io.json_decode import decode, from_dict, parse_json

__all__ = ["MANIFEST_FILE", "Manifest"]

MANIFEST_FILE = "story.json"


@dataclass(frozen=True)
class Manifest:
    """The command and protocol of an experiment, its verdicts, more tables, and its pictures.

    ``runs`` are the folders of its runs, from the experiment's own: a story is told of all of them
    or not at all. ``pictures`` are the files of SVG pictures there, by title; ``tables`` have their
    captions as names. ``line_a_method`` is how the main table is turned.
    """

    runs: Sequence[str] = ()
    command: str = ""
    protocol: str = ""
    is_simulated: bool = False
    methods_as_rows: bool = False
    sentences: Sequence[str] = ()
    tables: Mapping[str, Sequence[TableLine]] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Leaves it in the experiment's folder."""
        text = json.dumps({"schema": 1, **asdict(self)}, indent=2, ensure_ascii=False) + "\n"
        write_atomically(folder / MANIFEST_FILE, text.encode())

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What `write` left there."""
        path = contained_path(folder, MANIFEST_FILE)
        try:
            data = decode(dict[str, Any], parse_json(path.read_bytes()), "it")
            if data.pop("schema", None) != 1:
                raise ValueError("of another version")
            return from_dict(cls, data)
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} is damaged ({error}); run the experiment again.") from None

    def has_exactly_runs(self, folder: Path, runs: Collection[Path]) -> bool:
        """Whether these are all its runs, and no others."""
        manifest_runs = {(folder / name).resolve() for name in self.runs}
        return manifest_runs == {run.resolve() for run in runs}

    def read_figures(self, folder: Path) -> dict[str, str]:
        """The SVG texts by title, of those pictures that are still there."""
        paths = {title: contained_path(folder, name) for title, name in self.figures.items()}
        return {t: p.read_text(encoding="utf-8") for t, p in paths.items() if p.is_file()}
