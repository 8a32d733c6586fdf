"""Models that runs left in their folders."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from cida.benchmarks.catalogue import BENCHMARKS
from cida.benchmarks.networks import SignalNetworks
from cida.benchmarks.recipes import MODEL
from cida.estimators import CIDAClassifier
from cida.estimators.header import check_size
from cida.estimators.loading import read_run
from cida.files import own_file
from cida.space import space_from_dict
from cida.words import one_line

__all__ = ["load_sleep_model"]


def load_sleep_model(folder: Path) -> CIDAClassifier:
    """The classifier of a run of a sleep experiment; run.json says which networks it has."""
    words = _read_run(folder)
    world = words.get("world")
    if world not in BENCHMARKS or not str(world).startswith("sleep-"):
        raise ValueError(
            f"RUN is {folder}, a run of {world}; recordings are predicted by runs of sleep-intra, "
            "sleep-cross or sleep-multi."
        )
    try:
        settings = words["settings"]
        space = space_from_dict(settings["space"]["space"])
        make = partial(SignalNetworks(**settings["networks"]).encoder, space, 0)
        file = own_file(folder, MODEL)
        check_size(folder / "run.json", make, file.stat().st_size if file.is_file() else 0)
        encoder = make()
    except (LookupError, AttributeError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{folder / 'run.json'} is not as cida writes it ({one_line(error)})."
        ) from None
    return CIDAClassifier.load(file, encoder=encoder)


def _read_run(folder: Path) -> dict[str, Any]:
    try:
        return read_run(folder)
    except FileNotFoundError:
        raise ValueError(
            f"RUN is {folder}, which has no run.json; give the folder of one run, such as "
            "runs/sleep-intra-best/shhs-extrapolation/histogram-seed0."
        ) from None
