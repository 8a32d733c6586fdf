"""What a run left in its folder, read so that its model can go elsewhere."""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from cida.errors import error_summary
from cida.estimators.base import CIDAEstimator
from cida.estimators.header import check_network_bytes
from cida.estimators.loading import MODEL_FILE_NAME, load, read_run_or_empty
from cida.estimators.saving import ModelFileError, load_estimator
from cida.experiments.recipe_networks import ImageNetworks, SignalNetworks, TableNetworks
from cida.export.model_card import ExportedModel
from cida.io.files import contained_path
from cida.networks import Convolution
from cida.report.runs import read_result
from cida.runs.snapshot import Snapshot, load_snapshot
from cida.spaces import Line, space_from_dict

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
    networks = record.get("settings", {}).get("networks")
    if isinstance(networks, dict) and not _has_table(record):
        model = _benchmark_model(run, record, networks)
    else:
        loaded = load(run)
        model = loaded if isinstance(loaded, CIDAEstimator) else loaded.model
    return ExportedModel(model, record, _read_result(run), _read_snapshot(run))


def _has_table(record: dict[str, Any]) -> bool:
    return "table" in record


def _benchmark_model(run: Path, record: dict[str, Any], networks: dict[str, Any]) -> CIDAEstimator:
    """The model of a recipe with networks of its own; those of older runs only run.json tells."""
    try:
        return load_estimator(contained_path(run, MODEL_FILE_NAME))
    except ModelFileError:
        encoder = _build_encoder(run, record, networks)
    return load_estimator(run / MODEL_FILE_NAME, encoder=encoder)


def _build_encoder(run: Path, record: dict[str, Any], networks: dict[str, Any]) -> nn.Module:
    config_classes: tuple[type[ImageNetworks | SignalNetworks | TableNetworks], ...] = (
        ImageNetworks,
        SignalNetworks,
        TableNetworks,
    )
    space_config = record["settings"].get("space")
    for config_class in config_classes:
        if set(networks) <= {field.name for field in fields(config_class)}:
            try:
                space = Line() if space_config is None else space_from_dict(space_config["space"])
                values = {name: _to_tuples(name, value) for name, value in networks.items()}
                build = partial(config_class(**values).encoder, space, 0)
                check_network_bytes(run / "run.json", build, (run / MODEL_FILE_NAME).stat().st_size)
                return build()
            except (AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
                raise ValueError(
                    f"{run / 'run.json'} has networks that cannot be made ({error_summary(error)})."
                ) from None
    raise ValueError(
        f"{run / 'run.json'} has networks that this cida does not know ({', '.join(networks)})."
    )


def _to_tuples(name: str, value: Any) -> Any:
    if name == "layers":
        return tuple(Convolution(*layer) for layer in value)
    return tuple(value) if isinstance(value, list) else value


def _read_result(run: Path) -> dict[str, Any]:
    if not (run / RESULT_FILE).is_file():
        return {}
    return asdict(read_result(contained_path(run, RESULT_FILE)))


def _read_snapshot(run: Path) -> Snapshot | None:
    snapshot_path = contained_path(run, SNAPSHOT_FILE)  # an older run has none
    return load_snapshot(snapshot_path) if snapshot_path.is_file() else None
