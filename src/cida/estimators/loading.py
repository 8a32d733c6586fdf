"""Models from files and folders, wherever they were written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypedDict

from torch import nn

from cida.discriminators import Discriminator
from cida.estimators.saving import ModelFileError, load_estimator
from cida.io.files import contained_path
from cida.io.json_decode import decode, parse_json

__all__ = ["MODEL_FILE_NAME", "RUN_FILE_NAME", "load", "read_run_or_empty", "read_run_record"]

MODEL_FILE_NAME, RUN_FILE_NAME = "model.safetensors", "run.json"
TABLE_RUN_KIND = "table"  # the world of a run of `cida fit`; the module that says so needs pyarrow


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
    if read_run_or_empty(folder).get("world") == TABLE_RUN_KIND:
        from cida.estimators.table import TableModel  # they need pyarrow
        from cida.estimators.table_predictor import TablePredictor

        return TablePredictor(TableModel.load(folder))
    model = contained_path(folder, MODEL_FILE_NAME)
    if not model.is_file():
        raise FileNotFoundError(
            f"there is no model file at {model}; give a folder that cida export wrote, "
            "that of one run, or a file that save wrote."
        )
    return load_estimator(model, encoder, predictor, discriminator)


class RunDict(TypedDict, total=False):
    """What run.json may say, of those things that cida reads in it."""

    world: str
    method: str
    title: str
    oracle: bool
    command: str
    seed: int
    seeds: int
    rows: int
    source_rows: int
    threads: int
    settings: dict[str, Any]
    versions: dict[str, str]
    origin: dict[str, str]
    words: dict[str, list[str]]
    trust: dict[str, list[str]]
    figures: FiguresDict
    table: TableDict


class TableDict(TypedDict, total=False):
    """Of a run of `cida fit`, beside what `TableModel` reads of it."""

    label: str
    index: list[str]


class FiguresDict(TypedDict, total=False):
    """Of a run of `cida fit`: the figures of the source rows that were held out."""

    scores: dict[str, float]


def read_run_or_empty(folder: Path) -> dict[str, Any]:
    """What the folder's run.json says; nothing where there is none."""
    try:
        return read_run_record(folder)
    except FileNotFoundError:
        return {}


def read_run_record(folder: Path) -> dict[str, Any]:
    """What the folder's run.json says, as far as it says it in the right kind of words."""
    path = contained_path(folder, RUN_FILE_NAME)
    try:
        values = parse_json(path.read_bytes())
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} cannot be read ({error}).") from None
    try:
        record: dict[str, Any] = decode(RunDict, values, "it")
    except ValueError as error:
        raise ModelFileError(f"{path} is not as cida writes it ({error}).") from None
    return record
