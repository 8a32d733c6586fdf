"""Models from files and folders, wherever they were written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from torch import nn

from cida.discriminators import Discriminator
from cida.estimators.saving import ModelFileError, load_estimator

__all__ = ["MODEL", "RUN", "load", "run_words"]

MODEL, RUN = "model.safetensors", "run.json"
TABLE = "table"  # the world of a run of `cida fit`; the module that says so needs pyarrow


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
    if run_words(folder).get("world") == TABLE:
        from cida.estimators.table import TableModel  # they need pyarrow
        from cida.estimators.table_predictor import TablePredictor

        return TablePredictor(TableModel.load(folder))
    if not (folder / MODEL).is_file():
        raise FileNotFoundError(
            f"there is no model file at {folder / MODEL}; give a folder that cida export wrote, "
            "that of one run, or a file that save wrote."
        )
    return load_estimator(folder / MODEL, encoder, predictor, discriminator)


def run_words(folder: Path) -> dict[str, Any]:
    """What the folder's run.json says; nothing where there is none."""
    try:
        words = json.loads((folder / RUN).read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{folder / RUN} cannot be read ({error}).") from None
    if not isinstance(words, dict):
        raise ModelFileError(f"{folder / RUN} is not as cida writes it.")
    return words
