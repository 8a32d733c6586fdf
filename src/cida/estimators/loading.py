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
    """Read a fitted model from a file, a run folder or an exported folder.

    Parameters
    ----------
    path : str or path
        What `save`, ``cida fit`` or ``cida export`` wrote.
    encoder : torch.nn.Module, optional
        Your own encoder, if the model had one; its weights are replaced.
    predictor : torch.nn.Module, optional
        Your own predictor, if the model had one.
    discriminator : Discriminator, optional
        Your own discriminator, if the model had one.

    Returns
    -------
    CIDAClassifier or CIDARegressor
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file cannot be used; the message says why.
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
