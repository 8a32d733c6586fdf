"""What a run left in its folder, read so that its model can go elsewhere."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from cida.estimators.base import CIDAEstimator
from cida.estimators.loading import load, read_run_or_empty
from cida.export.model_card import ExportedModel
from cida.io.files import contained_path
from cida.report.runs import read_result
from cida.runs.snapshot import Snapshot, load_snapshot

__all__ = ["read_exported_model"]

SNAPSHOT_FILE, RESULT_FILE = "view.safetensors", "row.json"


def read_exported_model(run: Path) -> ExportedModel:
    """The model of a run of cida fit, of one run of cida reproduce or demo, or of a model file."""
    if not run.exists():
        raise ValueError(
            f"RUN is {run}, which is not there; give the folder of one run, or a file that "
            "model.save wrote."
        )
    if not run.is_dir():
        return ExportedModel(load(run))
    record = read_run_or_empty(run)
    loaded = load(run)
    model = loaded if isinstance(loaded, CIDAEstimator) else loaded.model
    return ExportedModel(model, record, _read_result(run), _read_snapshot(run))


def _read_result(run: Path) -> dict[str, Any]:
    if not (run / RESULT_FILE).is_file():
        return {}
    return asdict(read_result(contained_path(run, RESULT_FILE)))


def _read_snapshot(run: Path) -> Snapshot | None:
    snapshot_path = contained_path(run, SNAPSHOT_FILE)  # an older run has none
    return load_snapshot(snapshot_path) if snapshot_path.is_file() else None
