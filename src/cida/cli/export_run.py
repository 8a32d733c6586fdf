"""What a run left in its folder, read so that its model can go elsewhere."""

from __future__ import annotations

from pathlib import Path

from cida.estimators.model_file import load
from cida.export.model_card import ExportedModel
from cida.runs.run_folder import RECORD_FILE, RESULT_FILE, RunFolder

__all__ = ["read_exported_model"]


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
