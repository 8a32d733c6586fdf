"""Models from files and folders, wherever they were written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from torch import nn

from cida.discriminators import Discriminator
from cida.estimators.saving import load_estimator
from cida.io.files import contained_path
from cida.runs.run_folder import MODEL_FILE, has_table_model

__all__ = ["load"]


def load(
    path: str | os.PathLike[str],
    encoder: nn.Module | None = None,
    predictor: nn.Module | None = None,
    discriminator: Discriminator | None = None,
) -> Any:
    """The model in a file that ``save`` wrote, or in a folder of `cida export` or of a run.

    An estimator; of a run of `cida fit` a `TablePredictor`, which predicts from tables by the names
    of their columns. Networks of this library are made again; modules of your own must be passed
    again. A discriminator of your own is needed to fit again, not to predict.
    """
    folder = Path(path)
    if not folder.is_dir():
        return load_estimator(path, encoder, predictor, discriminator)
    if has_table_model(folder):
        from cida.estimators.table import TableModel  # they need pyarrow
        from cida.estimators.table_predictor import TablePredictor

        return TablePredictor(TableModel.load(folder))
    model = contained_path(folder, MODEL_FILE)
    if not model.is_file():
        raise FileNotFoundError(
            f"there is no model file at {model}; give a folder that cida export wrote, "
            "that of one run, or a file that save wrote."
        )
    return load_estimator(model, encoder, predictor, discriminator)
