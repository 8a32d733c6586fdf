"""A folder with all that a model needs to be used elsewhere: weights, JSON and a model card."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from cida.estimators.model_file import library_versions, load
from cida.export.model_card import ExportedModel, model_card, render_citation
from cida.export.signature import build_onnx_inputs
from cida.io.files import atomic_new_folder, check_empty_folder
from cida.io.tensors import MODEL_FILE
from cida.runs.run_folder import RECORD_FILE, RESULT_FILE, RunFolder
from cida.version import __version__


def export_folder(exported: ExportedModel, path: str | os.PathLike[str]) -> None:
    """Writes the folder, which must not exist yet or be empty; `cida.load` reads it anywhere.

    ``README.md`` is the model card, ``model.json`` says what goes in and comes out, ``run.json``
    what the run was; weights are safetensors.
    """
    folder = Path(path)
    check_empty_folder(folder, "folder")
    with atomic_new_folder(folder) as temp_folder:
        exported.model.save(temp_folder / MODEL_FILE)
        run_folder = RunFolder(temp_folder)
        if exported.record is not None:
            run_folder.write_record(exported.record)
        if exported.result is not None:
            run_folder.write_result(exported.result)
        metadata = json.dumps(_model_metadata(exported, temp_folder), indent=2) + "\n"
        (temp_folder / "model.json").write_text(metadata)
        (temp_folder / "README.md").write_text(model_card(exported, folder.name))
        (temp_folder / "CITATION.cff").write_text(render_citation())


def read_exported_model(run: Path) -> ExportedModel:
    """The model of a run of cida fit, of one run of cida reproduce or demo, or of a model file."""
    if not run.exists():
        raise ValueError(
            f"RUN is {run}, which is not there; give the folder of one run, or a file that "
            "model.save wrote."
        )
    model = load(run)
    if not (run / RECORD_FILE).is_file():
        return ExportedModel(model)
    folder = RunFolder.open(run)
    result = folder.result if (run / RESULT_FILE).is_file() else None
    return ExportedModel(model, folder.record, result, folder.snapshot)


def _model_metadata(exported: ExportedModel, temp_folder: Path) -> dict[str, Any]:
    """What a program should know without opening the weights."""
    state = exported.state
    classes = getattr(state.labels, "classes", None)
    values = state.index_values.numpy()
    ranges = np.stack([values.min(0), values.max(0)], axis=1).tolist()
    return {
        "schema": 1,
        "cida": __version__,
        "model": type(exported.model).__name__,
        "inputs": [one.to_dict() for one in build_onnx_inputs(state)],
        "classes": None if classes is None else classes.tolist(),
        "index": dict(zip(exported.index_names, ranges, strict=False)),
        "space": state.plan.space.to_dict(),
        "custom_modules": exported.custom_modules,
        "exported_with": library_versions(),
        "files": {MODEL_FILE: hashlib.sha256((temp_folder / MODEL_FILE).read_bytes()).hexdigest()},
    }
