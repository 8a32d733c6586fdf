"""What an experiment adds to the report of its runs; kept beside them, so that it is not lost."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from cida.benchmarks.tables import Cells
from cida.files import own_file, write_atomically
from cida.plain import checked, from_words, parse_json

__all__ = ["STORY", "Story"]

STORY = "story.json"


@dataclass(frozen=True)
class Story:
    """The command and protocol of an experiment, its verdicts, more tables, and its pictures.

    ``runs`` are the folders of its runs, from the experiment's own: a story is told of all of them
    or not at all. ``pictures`` are the files of SVG pictures there, by title; ``tables`` have their
    captions as names. ``line_a_method`` is how the main table is turned.
    """

    runs: Sequence[str] = ()
    command: str = ""
    protocol: str = ""
    simulated: bool = False
    line_a_method: bool = False
    sentences: Sequence[str] = ()
    tables: Mapping[str, Sequence[Cells]] = field(default_factory=dict)
    pictures: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Leaves it in the experiment's folder."""
        text = json.dumps({"schema": 1, **asdict(self)}, indent=2, ensure_ascii=False) + "\n"
        write_atomically(folder / STORY, text.encode())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """What `write` left there."""
        path = own_file(folder, STORY)
        try:
            words = checked(dict[str, Any], parse_json(path.read_bytes()), "it")
            if words.pop("schema", None) != 1:
                raise ValueError("of another version")
            return from_words(cls, words)
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} is damaged ({error}); run the experiment again.") from None

    def is_of(self, folder: Path, runs: Collection[Path]) -> bool:
        """Whether these are all its runs, and no others."""
        mine = {(folder / name).resolve() for name in self.runs}
        return mine == {run.resolve() for run in runs}

    def drawn(self, folder: Path) -> dict[str, str]:
        """The SVG texts by title, of those pictures that are still there."""
        found = {title: own_file(folder, name) for title, name in self.pictures.items()}
        return {t: p.read_text(encoding="utf-8") for t, p in found.items() if p.is_file()}
