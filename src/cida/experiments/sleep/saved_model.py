"""Models that runs left in their folders."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from cida.errors import error_summary
from cida.estimators import CIDAClassifier
from cida.estimators.header import check_network_bytes
from cida.estimators.loading import read_run_record
from cida.experiments.recipe_networks import SignalNetworks
from cida.experiments.registry import TASK_SPECS
from cida.experiments.spec import MODEL_FILE_NAME
from cida.io.files import contained_path
from cida.spaces import space_from_dict

__all__ = ["load_sleep_model"]


def load_sleep_model(folder: Path) -> CIDAClassifier:
    """The classifier of a run of a sleep experiment; run.json says which networks it has."""
    record = _read_run_record(folder)
    task_name = record.get("world")
    if task_name not in TASK_SPECS or not str(task_name).startswith("sleep-"):
        raise ValueError(
            f"RUN is {folder}, a run of {task_name}; recordings are predicted by runs of "
            "sleep-intra, "
            "sleep-cross or sleep-multi."
        )
    try:
        settings = record["settings"]
        space = space_from_dict(settings["space"]["space"])
        build_encoder = partial(SignalNetworks(**settings["networks"]).encoder, space, 0)
        file = contained_path(folder, MODEL_FILE_NAME)
        check_network_bytes(
            folder / "run.json", build_encoder, file.stat().st_size if file.is_file() else 0
        )
        encoder = build_encoder()
    except (LookupError, AttributeError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{folder / 'run.json'} is not as cida writes it ({error_summary(error)})."
        ) from None
    return CIDAClassifier.load(file, encoder=encoder)


def _read_run_record(folder: Path) -> dict[str, Any]:
    try:
        return read_run_record(folder)
    except FileNotFoundError:
        raise ValueError(
            f"RUN is {folder}, which has no run.json; give the folder of one run, such as "
            "runs/sleep-intra-best/shhs-extrapolation/histogram-seed0."
        ) from None
