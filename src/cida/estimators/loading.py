"""Models from files and folders, wherever they were written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from torch import nn

from cida.discriminators import Discriminator
from cida.estimators.model_file import load_model
from cida.io.files import contained_path
from cida.io.tensors import MODEL_FILE

__all__ = ["load"]


def load(
    path: str | os.PathLike[str],
    encoder: nn.Module | None = None,
    predictor: nn.Module | None = None,
    discriminator: Discriminator | None = None,
) -> Any:
    """Load a fitted estimator from a file or a folder.

    Parameters
    ----------
    path : str or path
        A file that ``save`` wrote, or a folder of `cida export`, `cida fit` or one run.
    encoder, predictor : torch.nn.Module, optional
        Modules of your own that the model was fitted with; those of this library are made again.
    discriminator : Discriminator, optional
        A head of your own; needed to fit again, not to predict.

    Returns
    -------
    CIDAClassifier or CIDARegressor
        The fitted estimator.
    """
    folder = Path(path)
    if not folder.is_dir():
        return load_model(path, encoder, predictor, discriminator)
    model = contained_path(folder, MODEL_FILE)
    if not model.is_file():
        raise FileNotFoundError(
            f"there is no model file at {model}; give a folder that cida export wrote, "
            "that of one run, or a file that save wrote."
        )
    return load_model(model, encoder, predictor, discriminator)
