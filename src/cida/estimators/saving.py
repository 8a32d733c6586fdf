"""Fitted estimators to files and back, without pickle."""

from __future__ import annotations

import json
import os
import platform
import warnings
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
import torch
from torch import Tensor, nn

from cida.discriminators import DISCRIMINATORS, Discriminator
from cida.estimators import checkup, players
from cida.estimators.choices import Choices
from cida.estimators.header import check_model, check_size, read_header
from cida.estimators.inputs import CidaWarning, outside
from cida.estimators.scaling import Scaling
from cida.games import GAMES
from cida.networks import make_network, network_words
from cida.plain import from_words
from cida.space import Space, space_from_dict
from cida.training.checkpoint import ModelFileError, read_model_file, write_model_file
from cida.version import __version__
from cida.words import one_line

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["ModelFileError", "load_estimator", "plain", "save_estimator", "versions"]


def save_estimator(model: CIDAEstimator, path: str | os.PathLike[str]) -> None:
    """All that prediction needs, and the parameters to fit again."""
    if space_from_dict(model.space_.to_dict()) != model.space_:
        raise ValueError(
            f"space is {model.space_!r}, which a file cannot hold; use Line, Periodic or Product."
        )
    tensors = {
        **{f"encoder.{k}": v for k, v in model.game_.encoder.state_dict().items()},
        **{f"predictor.{k}": v for k, v in model.game_.predictor.state_dict().items()},
        "index_seen": model._seen,
        "x_mean": torch.as_tensor(model._scaling.mean),
        "x_scale": torch.as_tensor(model._scaling.scale),
    }
    header = {
        "cida_version": __version__,
        "class": type(model).__name__,
        "parameters": {k: plain(v) for k, v in model.get_params(deep=False).items()},
        "space": model.space_.to_dict(),
        "index_width": model.index_width_,
        "index_names": model._index_names,
        "row_shape": list(model._row_shape),
        "encoding_width": model._n_features_out,
        "steps": model.n_steps_,
        "features": model.n_features_in_,
        "feature_names": _names(model),
        "labels": model._label_state(),
        "choices": {k: plain(v) for k, v in vars(model.choices_).items()},
        "facts": model.facts_.words(),
        "findings": [asdict(finding) for finding in model.findings_],
        "networks": {
            name: network_words(getattr(model.game_, name))
            for name in ("encoder", "predictor")
            if getattr(model, name) is not None
        },
    }
    write_model_file(path, tensors, header)


def versions() -> dict[str, str]:
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
        header = read_header(header)
        return _rebuild(path, tensors, header, encoder, predictor, discriminator)
    except (LookupError, AttributeError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{os.fspath(path)} does not hold a whole model ({one_line(error)}); save the model "
            "again, and pass load() the same encoder and predictor classes that it was fitted with."
        ) from None


def _rebuild(
    path: str | os.PathLike[str],
    tensors: dict[str, Tensor],
    header: dict[str, Any],
    encoder: nn.Module | None,
    predictor: nn.Module | None,
    discriminator: Discriminator | None,
) -> CIDAEstimator:
    from cida.estimators import CIDAClassifier, CIDARegressor  # they import this module

    classes = {"CIDAClassifier": CIDAClassifier, "CIDARegressor": CIDARegressor}
    room = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    parameters = {k: _object(v) for k, v in header["parameters"].items()}
    for name, given in {"encoder": encoder, "predictor": predictor}.items():
        if parameters[name] == _OWN and given is None:
            words = header.get("networks", {}).get(name)  # of one of ours, which it can make again
            if words is not None:
                check_size(path, partial(make_network, words), room)
                given = make_network(words)
        if parameters[name] == _OWN and given is None:
            raise ModelFileError(
                f"{name} was a module of your own and is not stored in the file; pass it again: "
                f"load(path, {name}=...)."
            )
        parameters[name] = given
    if parameters["discriminator"] == _OWN:
        parameters["discriminator"] = discriminator
        if discriminator is None:
            warnings.warn(
                "discriminator was one of your own and is not stored in the file; predictions are "
                "the same, but to fit again pass it: load(path, discriminator=...).",
                CidaWarning,
                stacklevel=outside(),
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
    model._scaling = Scaling(tensors.pop("x_mean").numpy(), tensors.pop("x_scale").numpy())
    model._seen = tensors.pop("index_seen")
    model._n_features_out = header["encoding_width"]
    model.n_steps_ = header["steps"]
    model.choices_ = from_words(Choices, header["choices"])
    model.history_ = []
    model.facts_ = checkup.facts_in(header)
    model.findings_ = checkup.findings_in(header)
    check_model(model)
    makers = (
        partial(players.make_encoder, model, model._row_shape),
        partial(players.make_predictor, model, model._n_features_out),
    )
    for make in makers:
        check_size(path, make, room)
    game = players.source_only(model, *(make() for make in makers))
    for name in ("encoder", "predictor"):
        _load_weights(path, getattr(game, name), name, tensors)
    model.game_ = game.eval()
    return model


def _load_weights(
    path: str | os.PathLike[str], module: nn.Module, name: str, tensors: dict[str, Tensor]
) -> None:
    mine = {k.removeprefix(f"{name}."): v for k, v in tensors.items() if k.startswith(f"{name}.")}
    try:
        module.load_state_dict(mine)
    except RuntimeError as error:
        raise ModelFileError(
            f"{name} does not fit the weights in {os.fspath(path)} ({one_line(error)}); pass "
            f"load() the {name} that the model was fitted with, or save the model again."
        ) from None


_OWN = {"own": True}


def plain(value: Any) -> Any:
    """A parameter as JSON; what a file should not hold (callbacks, random states) becomes None."""
    if isinstance(value, nn.Module):
        return _discriminator_words(value) if isinstance(value, Discriminator) else _OWN
    if isinstance(value, type):  # a game's class by its name; one of the user's own becomes None
        return {kind: name for name, kind in GAMES.items()}.get(value)
    if isinstance(value, Space):
        return {"space": value.to_dict()}
    if isinstance(value, dict):  # as pairs: JSON would turn the keys into text
        return {"pairs": [[plain(k), plain(v)] for k, v in value.items()]}
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_number))
    except (TypeError, ValueError):
        return None


def _number(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _object(value: Any) -> Any:
    """Undoes `plain`."""
    if isinstance(value, dict) and "pairs" in value:
        return {k: _object(v) for k, v in value["pairs"]}
    if isinstance(value, dict) and "discriminator" in value:
        return DISCRIMINATORS[value["discriminator"]](**value["settings"])
    if isinstance(value, dict) and "space" in value:
        return space_from_dict(value["space"])
    return tuple(value) if isinstance(value, list) else value


def _discriminator_words(discriminator: Discriminator) -> Any:
    """A built-in head by name and settings; one of the user's own only as such."""
    for name, kind in DISCRIMINATORS.items():
        if type(discriminator) is kind and discriminator.body is None:
            settings = {k: plain(v) for k, v in discriminator.settings.items()}
            return {"discriminator": name, "settings": settings}
    return _OWN


def _names(model: CIDAEstimator) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]
