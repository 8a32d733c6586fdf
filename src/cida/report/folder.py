"""A folder with all that a model needs to be used elsewhere: weights, JSON and a model card."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from cida.estimators.base import CIDAEstimator
from cida.estimators.classifier import CIDAClassifier
from cida.estimators.loading import MODEL, RUN
from cida.estimators.saving import versions
from cida.files import new_folder
from cida.report.card import CITATION, Deployed, model_card
from cida.report.onnx_inputs import inputs_of
from cida.version import __version__

__all__ = ["check_new", "export_folder"]

CARD, WORDS, CITE = "README.md", "model.json", "CITATION.cff"


def export_folder(deployed: Deployed, path: str | os.PathLike[str]) -> None:
    """Writes the folder, which must not exist yet or be empty; `cida.load` reads it anywhere.

    ``README.md`` is the model card, ``model.json`` says what goes in and comes out, ``run.json``
    what the run was; weights are safetensors.
    """
    folder = Path(path)
    check_new(folder)
    with new_folder(folder) as room:
        _weights(deployed, room)
        _write_json(room / WORDS, _words(deployed, room))
        (room / CARD).write_text(model_card(deployed, folder.name))
        (room / CITE).write_text(CITATION)


def check_new(folder: Path) -> None:
    """Refuses a folder that has something in it."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ValueError(
            f"folder is {folder}, which is no empty folder; name one, or one that is not there."
        )


def _weights(deployed: Deployed, room: Path) -> None:
    model: Any = deployed.model
    if isinstance(model, CIDAEstimator):
        model.save(room / MODEL)
    else:
        model.save(room, {})
        (room / "events.jsonl").unlink()  # of a model from a file there are none
    if deployed.words:
        _write_json(room / RUN, dict(deployed.words))
    if deployed.row:
        _write_json(room / "row.json", dict(deployed.row))


def _words(deployed: Deployed, room: Path) -> dict[str, Any]:
    """What a program should know without opening the weights."""
    model, first = deployed.model, deployed.estimators[0]
    classes: Any = None
    if isinstance(first, CIDAClassifier):
        classes = getattr(model, "classes", None) or first.classes_.tolist()
    seen = first._seen.numpy()
    ranges = np.stack([seen.min(0), seen.max(0)], axis=1).tolist()
    return {
        "schema": 1,
        "cida": __version__,
        "model": type(model).__name__,
        "inputs": [one.words() for one in inputs_of(model)],
        "classes": classes,
        "index": dict(zip(deployed.index, ranges, strict=False)),
        "space": first.space_.to_dict(),
        "lacks": deployed.lacks,
        "exported_with": versions(),
        "files": {path.name: _sha256(path) for path in sorted(room.glob("*.safetensors"))},
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_json(path: Path, words: dict[str, Any]) -> None:
    path.write_text(json.dumps(words, indent=2) + "\n")
