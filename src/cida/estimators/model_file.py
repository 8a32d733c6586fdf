"""A fitted state to a file and back: one safetensors file with a JSON header, no pickle."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import sklearn
import torch
from sklearn.base import is_classifier
from torch import Tensor, nn

from cida.array_checks import MAX_ABS_VALUE
from cida.committee import Committee, Decision
from cida.data import RowLayout
from cida.discriminators import DISCRIMINATORS, Discriminator
from cida.doctor import Diagnosis, FitSummary
from cida.errors import error_summary, warn_user
from cida.estimators.fitted_state import FittedState
from cida.estimators.fitting import Fitter
from cida.estimators.labels import codec_from_dict
from cida.estimators.parameters import check_parameters
from cida.estimators.scaling import Scaler
from cida.games import GAMES, Game
from cida.io.files import contained_path
from cida.io.json_decode import decode
from cida.io.tensors import MODEL_FILE, ModelFileError, read_model_file, write_model_file
from cida.networks import network_config, network_from_config
from cida.policy import FitRequest, Plan
from cida.spaces import Space, space_from_dict
from cida.version import __version__

__all__ = ["ModelFileError", "library_versions", "load", "save_model", "to_json_value"]

MAX_DRAWS = 10_000  # of a file: more would take for ever
MAX_SPARE_BYTES = 1 << 26  # that a described network may be larger than its weights
HEAD_NAMES = {kind: name for name, kind in DISCRIMINATORS.items()}
_CUSTOM_MODULE = {"own": True}
ADAPTIVE_ESTIMATORS = ("AdaptiveClassifier", "AdaptiveRegressor")
ESTIMATORS = (*ADAPTIVE_ESTIMATORS, "CIDAClassifier", "CIDARegressor")


class ModelHeader(TypedDict):
    """What the header says."""

    cida_version: str
    class_name: str
    parameters: dict[str, Any]
    plan: dict[str, Any]
    layout: RowLayout
    labels: dict[str, Any]
    table: dict[str, Any] | None
    n_features_in: int
    encoding_width: int
    n_members: int
    index_names: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None
    summary: dict[str, Any]
    diagnoses: tuple[Diagnosis, ...]
    networks: dict[str, Any]
    decision: dict[str, Any] | None


def save_model(
    path: str | os.PathLike[str], class_name: str, parameters: Mapping[str, Any], state: FittedState
) -> None:
    """Write all that prediction needs, and the parameters to fit again."""
    space = state.plan.space
    if space_from_dict(space.to_dict()) != space:
        raise ValueError(
            f"space is {space!r}, which a file cannot hold; use Line, Periodic or Product."
        )
    networks = {name: network_config(getattr(state.game, name)) for name in state.custom_modules}
    if state.decision is not None and networks["encoder"] is None:
        raise ValueError(
            "candidates has an estimator of your own with a weight above 0, which a file cannot "
            "hold; fit without it, or keep the model in memory."
        )
    tensors = {
        "index_seen": state.index_values,
        "x_mean": torch.as_tensor(state.scaler.mean),
        "x_scale": torch.as_tensor(state.scaler.scale),
    }
    for number, game in enumerate(state.members):
        for prefix, module in _players(number, game).items():
            tensors |= {f"{prefix}{key}": value for key, value in module.state_dict().items()}
    header = {
        "cida_version": __version__,
        "class_name": class_name,
        "parameters": {name: to_json_value(value) for name, value in parameters.items()},
        "plan": state.plan.to_dict(),
        "layout": asdict(state.layout),
        "labels": state.labels.to_dict(),
        "table": state.table and state.table.to_dict(),
        "n_features_in": state.n_features_in,
        "encoding_width": state.encoding_width,
        "n_members": len(state.members),
        "index_names": state.index_names,
        "feature_names": state.feature_names,
        "summary": state.summary.to_dict(),
        "diagnoses": [diagnosis.to_dict() for diagnosis in state.diagnoses],
        "networks": networks,
        "decision": state.decision and state.decision.to_dict(),
    }
    write_model_file(path, tensors, header)


def _players(number: int, game: Game) -> dict[str, nn.Module]:
    """The networks of a member by the prefix of their tensors; the first has no number."""
    member = f"member{number}." if number else ""
    return {f"{member}{name}.": getattr(game, name) for name in ("encoder", "predictor")}


def library_versions() -> dict[str, str]:
    """The versions that decide a result."""
    return {
        "cida": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


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
        Your own discriminator, if the model had one; it is needed to fit again, not to predict.

    Returns
    -------
    CIDAClassifier or CIDARegressor
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file cannot be used; the message says why.
    """
    if Path(path).is_dir():
        path = contained_path(Path(path), MODEL_FILE)
        if not path.is_file():
            raise FileNotFoundError(
                f"there is no model file at {path}; give a folder that cida export wrote, "
                "that of one run, or a file that save wrote."
            )
    tensors, header = read_model_file(path)
    try:
        header = decode(ModelHeader, header, "the header")
        modules = {"encoder": encoder, "predictor": predictor, "discriminator": discriminator}
        return _Loader(path, tensors, header).build(modules)
    except (LookupError, AttributeError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{os.fspath(path)} does not hold a whole model ({error_summary(error)}); save the "
            "model again, and pass load() the same encoder and predictor classes that it was "
            "fitted with."
        ) from None


class _Loader:
    """One file on its way to an estimator; everything in it is checked before it is built."""

    def __init__(
        self, path: str | os.PathLike[str], tensors: dict[str, Tensor], header: dict[str, Any]
    ) -> None:
        self.path, self.tensors, self.header = path, tensors, header
        self.n_bytes = sum(t.numel() * t.element_size() for t in tensors.values())

    def build(self, modules: Mapping[str, nn.Module | None]) -> Any:
        from cida import estimators  # which import this module

        class_name = self.header["class_name"]
        if class_name not in ESTIMATORS:
            raise ValueError(f"it holds a {class_name}, which is no estimator of cida's")
        parameters = {k: _from_json_value(v) for k, v in self.header["parameters"].items()}
        if (self.header["decision"] is not None) != (class_name in ADAPTIVE_ESTIMATORS):
            raise ValueError(f"a {class_name} and its decision do not fit together")
        if self.header["decision"] is not None:
            return self._restore(getattr(estimators, class_name)(**parameters))
        for name in ("encoder", "predictor"):
            parameters[name] = self._module(name, parameters[name], modules[name])
        if parameters["discriminator"] == _CUSTOM_MODULE:
            parameters["discriminator"] = modules["discriminator"]
            if modules["discriminator"] is None:
                warn_user(
                    "discriminator was one of your own and is not stored in the file; predictions "
                    "are the same, but to fit again pass it: load(path, discriminator=...)."
                )
        model = getattr(estimators, class_name)(**parameters)
        check_parameters({**model.get_params(deep=False), "validator": "consensus"}, sys.maxsize)
        if model.n_draws > MAX_DRAWS:
            raise ValueError(f"n_draws is {model.n_draws}, which is more than {MAX_DRAWS}")
        return self._restore(model)

    def _restore(self, model: Any) -> Any:
        """The estimator with its state; its labels must be of its kind."""
        if is_classifier(model) != ("classes" in self.header["labels"]):
            raise ValueError(f"its labels are not those of a {type(model).__name__}")
        model.state_ = self._state(model)
        return model

    def _module(self, name: str, value: Any, given: nn.Module | None) -> nn.Module | None:
        if value != _CUSTOM_MODULE or given is not None:
            return given
        config = self.header["networks"].get(name)  # of one of ours, which it can make again
        if config is None:
            raise ModelFileError(
                f"{name} was a module of your own and is not stored in the file; pass it "
                f"again: load(path, {name}=...)."
            )
        return self._build_checked(partial(network_from_config, config))

    def _state(self, options: FitRequest) -> FittedState:
        header, table = self.header, None
        if header["table"] is not None:
            from cida.tables import TableFormat

            table = TableFormat.from_dict(header["table"])
        shared = ("layout", "n_features_in", "encoding_width", "index_names", "feature_names")
        mean, scale = self.tensors["x_mean"], self.tensors["x_scale"]
        state = FittedState(
            plan=Plan.from_dict(header["plan"]),
            scaler=Scaler(mean.numpy(), scale.numpy()),
            labels=codec_from_dict(header["labels"]),
            members=(),
            index_values=self.tensors["index_seen"],
            summary=FitSummary.from_dict(header["summary"]),
            diagnoses=header["diagnoses"],
            table=table,
            custom_modules=tuple(header["networks"]),
            decision=header["decision"] and Decision.from_dict(header["decision"]),
            **{name: header[name] for name in shared},
        )
        _check_parts(state)
        return replace(state, members=self._members(state, options))

    def _members(self, state: FittedState, options: FitRequest) -> tuple[Game, ...]:
        fitter = Fitter(state.plan, options, state.layout, state.labels)
        build_encoder: Callable[[], nn.Module] = fitter.build_encoder
        build_predictor: Callable[[], nn.Module]
        build_predictor = partial(fitter.build_predictor, state.encoding_width)
        if state.decision is not None:  # a committee, whose outputs are the prediction
            build_encoder = partial(network_from_config, self.header["networks"]["encoder"])
            build_predictor = nn.Identity
        members = []
        for number in range(self.header["n_members"]):
            encoder = self._build_checked(build_encoder)
            game = fitter.source_only(encoder, self._build_checked(build_predictor))
            for prefix, module in _players(number, game).items():
                self._load_weights(module, prefix)
            members.append(game.eval())
            if state.decision is not None:
                _check_committee(state, encoder)
        if not members:
            raise ValueError("n_members is 0; there is one at least")
        return tuple(members)

    def _load_weights(self, module: nn.Module, prefix: str) -> None:
        own = {k: value for k, value in self.tensors.items() if k.startswith(prefix)}
        try:
            module.load_state_dict({k.removeprefix(prefix): value for k, value in own.items()})
        except RuntimeError as error:
            name = prefix.split(".")[-2]
            raise ModelFileError(
                f"{name} does not fit the weights in {os.fspath(self.path)} "
                f"({error_summary(error)}); pass load() the {name} that the model was fitted with, "
                "or save the model again."
            ) from None

    def _build_checked(self, build: Callable[[], nn.Module]) -> nn.Module:
        """Refuses a network of more bytes than there are: a small file must not ask for much."""
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, of a layer without weights
            twin = build()
        if any(not tensor.numel() for tensor in twin.parameters()):
            raise ModelFileError(
                f"{self.path} describes a layer without weights; save the model again."
            )
        needed = sum(t.numel() * t.element_size() for t in twin.state_dict().values())
        if needed > self.n_bytes + MAX_SPARE_BYTES:
            raise ModelFileError(
                f"{self.path} describes a network of {needed:,} bytes, and has weights of "
                f"{self.n_bytes:,}; save the model again or copy it again."
            )
        return build()


@torch.no_grad()
def _check_committee(state: FittedState, committee: nn.Module) -> None:
    """Refuses what is no committee for rows of this layout: it is tried on two of zeros."""
    if not isinstance(committee, Committee):
        raise ValueError(f"encoder is a {type(committee).__name__}, and no committee")
    rows = torch.zeros(2, *state.layout.shape)
    outputs = committee(rows, torch.zeros(2, state.plan.space.embedding_width))
    if tuple(outputs.shape) != (2, state.labels.output_width):
        raise ValueError(f"the committee gives outputs of shape {tuple(outputs.shape)}")


def _check_parts(state: FittedState) -> None:
    """Refuses parts that do not fit together."""
    layout, table, width = state.layout, state.table, state.plan.space.width
    shape = layout.shape
    if not shape or min(shape) < (0 if layout.kind == "columns" else 1):
        raise ValueError(f"shape is {list(shape)}, which is no shape of rows")
    if layout.n_numbers < 0 or any(size < 1 for size in layout.category_sizes):
        raise ValueError("its layout has more categories than columns")
    if any(not 0 <= k < layout.n_numbers for k in layout.missing_indicators):
        raise ValueError("missing_indicators names a column that is not there")
    if table is not None and layout.kind == "columns" and table.schema.width != math.prod(shape):
        raise ValueError(f"its columns give {table.schema.width} numbers a row")
    counts = {"index_names": width} | ({"feature_names": shape[0]} if table is None else {})
    for name, count in counts.items():
        names = getattr(state, name)
        if names is not None and len(names) != count:
            raise ValueError(f"{name} has {len(names)} names for {count} columns")
    _check_numbers("index_seen", state.index_values, (len(state.index_values), width))
    if not len(state.index_values):
        raise ValueError("index_seen has no row")
    for name, numbers in (("x_mean", state.scaler.mean), ("x_scale", state.scaler.scale)):
        _check_numbers(name, torch.from_numpy(numbers), (), (1,), shape)
    if not (state.scaler.scale > 1 / MAX_ABS_VALUE).all():
        raise ValueError(f"x_scale has a number that is not above {1 / MAX_ABS_VALUE:g}")


def _check_numbers(name: str, values: Tensor, *shapes: tuple[int, ...]) -> None:
    if tuple(values.shape) not in shapes:
        raise ValueError(f"{name} has the shape {list(values.shape)}, not {list(shapes[-1])}")
    if not values.is_floating_point() or not bool(values.isfinite().all()):
        raise ValueError(f"{name} holds what is no finite number")
    if values.numel() and float(values.abs().max()) > MAX_ABS_VALUE:
        raise ValueError(f"{name} holds a number beyond {MAX_ABS_VALUE:g}")


def to_json_value(value: Any) -> Any:
    """A parameter as JSON; what a file should not hold (callbacks, random states) becomes None."""
    if isinstance(value, Discriminator) and value.body is None and type(value) in HEAD_NAMES:
        settings = {name: to_json_value(each) for name, each in value.settings.items()}
        return {"discriminator": HEAD_NAMES[type(value)], "settings": settings}
    if isinstance(value, nn.Module):
        return _CUSTOM_MODULE
    if isinstance(value, type):  # a game's class by its name; one of the user's own becomes None
        return {kind: name for name, kind in GAMES.items()}.get(value)
    if isinstance(value, Space):
        return {"space": value.to_dict()}
    if isinstance(value, dict):  # as pairs: JSON would turn the keys into text
        return {"pairs": [[to_json_value(k), to_json_value(v)] for k, v in value.items()]}
    try:  # of numpy's values and arrays their plain form
        return json.loads(json.dumps(value, allow_nan=False, default=lambda each: each.tolist()))
    except (AttributeError, TypeError, ValueError):
        return None


def _from_json_value(value: Any) -> Any:
    """Undoes `to_json_value`."""
    match value:
        case {"pairs": pairs}:
            return {k: _from_json_value(v) for k, v in pairs}
        case {"discriminator": name}:
            return DISCRIMINATORS[name](**value["settings"])
        case {"space": space}:
            return space_from_dict(space)
    return tuple(value) if isinstance(value, list) else value
