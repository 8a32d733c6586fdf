"""What a run left in its folder, read so that its model can go elsewhere."""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from cida.benchmarks.networks import ImageNetworks, SignalNetworks, TableNetworks
from cida.diagnostics.view import View, read_view
from cida.estimators.base import CIDAEstimator
from cida.estimators.header import check_size
from cida.estimators.loading import MODEL, load, run_words
from cida.estimators.saving import ModelFileError, load_estimator
from cida.files import own_file
from cida.networks import Convolution
from cida.report.card import Deployed
from cida.report.runs import read_row
from cida.space import Line, space_from_dict
from cida.words import one_line

__all__ = ["read_deployed"]

VIEW, ROW = "view.safetensors", "row.json"


def read_deployed(run: Path) -> Deployed:
    """The model of a run of cida fit, of one run of cida reproduce or demo, or of a model file."""
    if not run.exists():
        raise ValueError(
            f"RUN is {run}, which is not there; give the folder of one run, or a file that "
            "model.save wrote."
        )
    if not run.is_dir():
        return Deployed(load(run))
    words = run_words(run)
    networks = words.get("settings", {}).get("networks")
    if isinstance(networks, dict) and not _has_table(words):
        model = _benchmark_model(run, words, networks)
    else:
        found = load(run)
        model = found if isinstance(found, CIDAEstimator) else found.model
    return Deployed(model, words, _row(run), _view(run))


def _has_table(words: dict[str, Any]) -> bool:
    return "table" in words


def _benchmark_model(run: Path, words: dict[str, Any], networks: dict[str, Any]) -> CIDAEstimator:
    """The model of a recipe with networks of its own; those of older runs only run.json tells."""
    try:
        return load_estimator(own_file(run, MODEL))
    except ModelFileError:
        encoder = _encoder(run, words, networks)
    return load_estimator(run / MODEL, encoder=encoder)


def _encoder(run: Path, words: dict[str, Any], networks: dict[str, Any]) -> nn.Module:
    kinds: tuple[type[ImageNetworks | SignalNetworks | TableNetworks], ...] = (
        ImageNetworks,
        SignalNetworks,
        TableNetworks,
    )
    named = words["settings"].get("space")
    for kind in kinds:
        if set(networks) <= {field.name for field in fields(kind)}:
            try:
                space = Line() if named is None else space_from_dict(named["space"])
                values = {name: _tuples(name, value) for name, value in networks.items()}
                make = partial(kind(**values).encoder, space, 0)
                check_size(run / "run.json", make, (run / MODEL).stat().st_size)
                return make()
            except (AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
                raise ValueError(
                    f"{run / 'run.json'} has networks that cannot be made ({one_line(error)})."
                ) from None
    raise ValueError(
        f"{run / 'run.json'} has networks that this cida does not know ({', '.join(networks)})."
    )


def _tuples(name: str, value: Any) -> Any:
    if name == "layers":
        return tuple(Convolution(*layer) for layer in value)
    return tuple(value) if isinstance(value, list) else value


def _row(run: Path) -> dict[str, Any]:
    if not (run / ROW).is_file():
        return {}
    return asdict(read_row(own_file(run, ROW)))


def _view(run: Path) -> View | None:
    view = own_file(run, VIEW)  # an older run has none
    return read_view(view) if view.is_file() else None
