"""Fitted estimators to files and back, without pickle."""

from __future__ import annotations

import json
import os
import platform
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
import torch
from torch import Tensor, nn

from cida.discriminators import DISCRIMINATORS, Discriminator
from cida.errors import error_summary
from cida.estimators import checkup, players
from cida.estimators.choices import Plan
from cida.estimators.header import check_model, check_network_bytes, validate_header
from cida.estimators.inputs import CidaWarning, caller_stacklevel
from cida.estimators.scaling import Scaler
from cida.games import GAMES
from cida.io.json_decode import from_dict
from cida.io.tensors import ModelFileError, read_model_file, write_model_file
from cida.networks import network_config, network_from_config
from cida.spaces import Space, space_from_dict
from cida.version import __version__

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = [
    "ModelFileError",
    "library_versions",
    "load_estimator",
    "save_estimator",
    "to_json_value",
]


def save_estimator(model: CIDAEstimator, path: str | os.PathLike[str]) -> None:
    """All that prediction needs, and the parameters to fit again."""
    if space_from_dict(model.space_.to_dict()) != model.space_:
        raise ValueError(
            f"space is {model.space_!r}, which a file cannot hold; use Line, Periodic or Product."
        )
    tensors = {
        **{f"encoder.{k}": v for k, v in model.game_.encoder.state_dict().items()},
        **{f"predictor.{k}": v for k, v in model.game_.predictor.state_dict().items()},
        "index_seen": model._training_index,
        "x_mean": torch.as_tensor(model._scaler.mean),
        "x_scale": torch.as_tensor(model._scaler.scale),
    }
    header = {
        "cida_version": __version__,
        "class": type(model).__name__,
        "parameters": {k: to_json_value(v) for k, v in model.get_params(deep=False).items()},
        "space": model.space_.to_dict(),
        "index_width": model.index_width_,
        "index_names": model._index_names,
        "row_shape": list(model._row_shape),
        "encoding_width": model._n_features_out,
        "steps": model.n_steps_,
        "features": model.n_features_in_,
        "feature_names": _feature_names(model),
        "labels": model._label_state(),
        "choices": {k: to_json_value(v) for k, v in vars(model.plan_).items()},
        "summary": model.summary_.to_dict(),
        "diagnoses": [diagnosis.to_dict() for diagnosis in model.diagnoses_],
        "networks": {
            name: network_config(getattr(model.game_, name))
            for name in ("encoder", "predictor")
            if getattr(model, name) is not None
        },
    }
    write_model_file(path, tensors, header)


def library_versions() -> dict[str, str]:
    """The versions that decide a result."""
    return {
        "cida": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def load_estimator(
    path: str | os.PathLike[str],
    encoder: nn.Module | None = None,
    predictor: nn.Module | None = None,
    discriminator: Discriminator | None = None,
) -> CIDAEstimator:
    """The estimator in the file; modules of your own must be passed again.

    A discriminator of your own is needed to fit again, not to predict.
    """
    tensors, header = read_model_file(path)
    try:
        header = validate_header(header)
        return _build_estimator(path, tensors, header, encoder, predictor, discriminator)
    except (LookupError, AttributeError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{os.fspath(path)} does not hold a whole model ({error_summary(error)}); save the "
            "model "
            "again, and pass load() the same encoder and predictor classes that it was fitted with."
        ) from None


def _build_estimator(
    path: str | os.PathLike[str],
    tensors: dict[str, Tensor],
    header: dict[str, Any],
    encoder: nn.Module | None,
    predictor: nn.Module | None,
    discriminator: Discriminator | None,
) -> CIDAEstimator:
    from cida.estimators import CIDAClassifier, CIDARegressor  # they import this module

    classes = {"CIDAClassifier": CIDAClassifier, "CIDARegressor": CIDARegressor}
    n_weight_bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    parameters = {k: _from_json_value(v) for k, v in header["parameters"].items()}
    for name, module in {"encoder": encoder, "predictor": predictor}.items():
        if parameters[name] == _CUSTOM_MODULE and module is None:
            config = header.get("networks", {}).get(name)  # of one of ours, which it can make again
            if config is not None:
                check_network_bytes(path, partial(network_from_config, config), n_weight_bytes)
                module = network_from_config(config)
        if parameters[name] == _CUSTOM_MODULE and module is None:
            raise ModelFileError(
                f"{name} was a module of your own and is not stored in the file; pass it again: "
                f"load(path, {name}=...)."
            )
        parameters[name] = module
    if parameters["discriminator"] == _CUSTOM_MODULE:
        parameters["discriminator"] = discriminator
        if discriminator is None:
            warnings.warn(
                "discriminator was one of your own and is not stored in the file; predictions are "
                "the same, but to fit again pass it: load(path, discriminator=...).",
                CidaWarning,
                stacklevel=caller_stacklevel(),
            )
    model = classes[header["class"]](**parameters)
    model.space_ = space_from_dict(header["space"])
    model.index_width_ = header["index_width"]
    model._index_names = header["index_names"]
    model._row_shape = tuple(header["row_shape"])
    model.n_features_in_ = header["features"]
    if header["feature_names"] is not None:
        model.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    model._restore_labels(header["labels"])
    model._scaler = Scaler(tensors.pop("x_mean").numpy(), tensors.pop("x_scale").numpy())
    model._training_index = tensors.pop("index_seen")
    model._n_features_out = header["encoding_width"]
    model.n_steps_ = header["steps"]
    model.plan_ = from_dict(Plan, header["choices"])
    model.history_ = []
    model.summary_ = checkup.read_summary(header)
    model.diagnoses_ = checkup.read_diagnoses(header)
    check_model(model)
    builders = (
        partial(players.make_encoder, model, model._row_shape),
        partial(players.make_predictor, model, model._n_features_out),
    )
    for make in builders:
        check_network_bytes(path, make, n_weight_bytes)
    game = players.make_source_only_game(model, *(make() for make in builders))
    for name in ("encoder", "predictor"):
        _load_weights(path, getattr(game, name), name, tensors)
    model.game_ = game.eval()
    return model


def _load_weights(
    path: str | os.PathLike[str], module: nn.Module, name: str, tensors: dict[str, Tensor]
) -> None:
    state = {k.removeprefix(f"{name}."): v for k, v in tensors.items() if k.startswith(f"{name}.")}
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise ModelFileError(
            f"{name} does not fit the weights in {os.fspath(path)} ({error_summary(error)}); pass "
            f"load() the {name} that the model was fitted with, or save the model again."
        ) from None


_CUSTOM_MODULE = {"own": True}


def to_json_value(value: Any) -> Any:
    """A parameter as JSON; what a file should not hold (callbacks, random states) becomes None."""
    if isinstance(value, nn.Module):
        return _discriminator_config(value) if isinstance(value, Discriminator) else _CUSTOM_MODULE
    if isinstance(value, type):  # a game's class by its name; one of the user's own becomes None
        return {kind: name for name, kind in GAMES.items()}.get(value)
    if isinstance(value, Space):
        return {"space": value.to_dict()}
    if isinstance(value, dict):  # as pairs: JSON would turn the keys into text
        return {"pairs": [[to_json_value(k), to_json_value(v)] for k, v in value.items()]}
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_json_default))
    except (TypeError, ValueError):
        return None


def _json_default(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _from_json_value(value: Any) -> Any:
    """Undoes `plain`."""
    if isinstance(value, dict) and "pairs" in value:
        return {k: _from_json_value(v) for k, v in value["pairs"]}
    if isinstance(value, dict) and "discriminator" in value:
        return DISCRIMINATORS[value["discriminator"]](**value["settings"])
    if isinstance(value, dict) and "space" in value:
        return space_from_dict(value["space"])
    return tuple(value) if isinstance(value, list) else value


def _discriminator_config(discriminator: Discriminator) -> Any:
    """A built-in head by name and settings; one of the user's own only as such."""
    for name, kind in DISCRIMINATORS.items():
        if type(discriminator) is kind and discriminator.body is None:
            settings = {k: to_json_value(v) for k, v in discriminator.settings.items()}
            return {"discriminator": name, "settings": settings}
    return _CUSTOM_MODULE


def _feature_names(model: CIDAEstimator) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]
