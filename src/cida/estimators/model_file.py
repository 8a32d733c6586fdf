"""A fitted state to a file and back: one safetensors file with a JSON header, no pickle."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import sklearn
import torch
from torch import Tensor, nn

from cida.data import RowLayout
from cida.discriminators import DISCRIMINATORS, Discriminator
from cida.doctor import Diagnosis, FitSummary
from cida.errors import CidaWarning, error_summary
from cida.estimators.array_checks import caller_stacklevel
from cida.estimators.fitted_state import FittedState
from cida.estimators.fitting import FitOptions, Fitter
from cida.estimators.labels import LabelCodec, codec_from_dict
from cida.estimators.parameters import check_parameters
from cida.estimators.scaling import MAX_ABS_VALUE, Scaler
from cida.games import GAMES
from cida.io.json_decode import decode, from_dict
from cida.io.tensors import ModelFileError, read_model_file, write_model_file
from cida.networks import network_config, network_from_config
from cida.policy import Plan
from cida.spaces import Space, space_from_dict
from cida.version import __version__

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["ModelFileError", "library_versions", "load_model", "save_model", "to_json_value"]

MAX_DRAWS = 10_000  # of a file: more would take for ever
MAX_SPARE_BYTES = 1 << 26  # that a described network may be larger than its weights
_CUSTOM_MODULE = {"own": True}


class ModelHeader(TypedDict):
    """What the header says, as JSON values."""

    cida_version: str
    class_name: str
    parameters: dict[str, Any]
    plan: dict[str, Any]
    layout: dict[str, Any]
    labels: dict[str, Any]
    table: dict[str, Any] | None
    n_features_in: int
    encoding_width: int
    n_members: int
    index_names: list[str] | None
    feature_names: list[str] | None
    summary: dict[str, Any]
    diagnoses: list[dict[str, Any]]
    networks: dict[str, Any]


def save_model(
    path: str | os.PathLike[str], class_name: str, parameters: Mapping[str, Any], state: FittedState
) -> None:
    """Write all that prediction needs, and the parameters to fit again."""
    space = state.plan.space
    if space_from_dict(space.to_dict()) != space:
        raise ValueError(
            f"space is {space!r}, which a file cannot hold; use Line, Periodic or Product."
        )
    tensors = {
        "index_seen": state.index_values,
        "x_mean": torch.as_tensor(state.scaler.mean),
        "x_scale": torch.as_tensor(state.scaler.scale),
    }
    for number, game in enumerate(state.members):
        for name in ("encoder", "predictor"):
            prefix = _tensor_prefix(number, name)
            weights = getattr(game, name).state_dict()
            tensors |= {f"{prefix}{key}": value for key, value in weights.items()}
    layout = state.layout
    header: ModelHeader = {
        "cida_version": __version__,
        "class_name": class_name,
        "parameters": {name: to_json_value(value) for name, value in parameters.items()},
        "plan": state.plan.to_dict(),
        "layout": {**vars(layout), "shape": list(layout.shape)},
        "labels": state.labels.to_dict(),
        "table": None if state.table is None else state.table.to_dict(),
        "n_features_in": state.n_features_in,
        "encoding_width": state.encoding_width,
        "n_members": len(state.members),
        "index_names": None if state.index_names is None else list(state.index_names),
        "feature_names": None if state.feature_names is None else list(state.feature_names),
        "summary": state.summary.to_dict(),
        "diagnoses": [diagnosis.to_dict() for diagnosis in state.diagnoses],
        "networks": {name: network_config(getattr(state.game, name))
                     for name in state.custom_modules},
    }  # fmt: skip
    write_model_file(path, tensors, dict(header))


def _tensor_prefix(member: int, player: str) -> str:
    return f"{player}." if member == 0 else f"member{member}.{player}."


def library_versions() -> dict[str, str]:
    """The versions that decide a result."""
    return {
        "cida": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def load_model(
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
        values: ModelHeader = decode(ModelHeader, dict(header), "the header")
        return _Loader(path, tensors, values).build(encoder, predictor, discriminator)
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
        self, path: str | os.PathLike[str], tensors: dict[str, Tensor], header: ModelHeader
    ) -> None:
        self.path, self.tensors, self.header = path, tensors, header
        self.n_bytes = sum(t.numel() * t.element_size() for t in tensors.values())

    def build(
        self,
        encoder: nn.Module | None,
        predictor: nn.Module | None,
        discriminator: Discriminator | None,
    ) -> CIDAEstimator:
        from cida.estimators import CIDAClassifier, CIDARegressor  # they import this module

        header = self.header
        classes = {"CIDAClassifier": CIDAClassifier, "CIDARegressor": CIDARegressor}
        parameters = {k: _from_json_value(v) for k, v in header["parameters"].items()}
        for name, module in {"encoder": encoder, "predictor": predictor}.items():
            parameters[name] = self._module(name, parameters[name], module)
        if parameters["discriminator"] == _CUSTOM_MODULE:
            parameters["discriminator"] = discriminator
            if discriminator is None:
                warnings.warn(
                    "discriminator was one of your own and is not stored in the file; predictions "
                    "are the same, but to fit again pass it: load(path, discriminator=...).",
                    CidaWarning,
                    stacklevel=caller_stacklevel(),
                )
        model = classes[header["class_name"]](**parameters)
        check_parameters({**model.get_params(deep=False), "validator": "consensus"}, sys.maxsize)
        if model.n_draws > MAX_DRAWS:
            raise ValueError(f"n_draws is {model.n_draws}, which is more than {MAX_DRAWS}")
        model.state_ = self._state(model._options())
        if isinstance(model, CIDAClassifier) != ("classes" in header["labels"]):
            raise ValueError(f"its labels are not those of a {header['class_name']}")
        return model

    def _module(self, name: str, value: Any, given: nn.Module | None) -> nn.Module | None:
        if value == _CUSTOM_MODULE and given is None:
            config = self.header["networks"].get(name)  # of one of ours, which it can make again
            if config is None:
                raise ModelFileError(
                    f"{name} was a module of your own and is not stored in the file; pass it "
                    f"again: load(path, {name}=...)."
                )
            self._check_bytes(partial(network_from_config, config))
            return network_from_config(config)
        return given

    def _state(self, options: FitOptions) -> FittedState:
        header, tensors = self.header, self.tensors
        plan = Plan.from_dict(header["plan"])
        layout = from_dict(RowLayout, header["layout"])
        labels = codec_from_dict(header["labels"])
        scaler = Scaler(tensors.pop("x_mean").numpy(), tensors.pop("x_scale").numpy())
        index_values = tensors.pop("index_seen")
        table = None
        if header["table"] is not None:
            from cida.tables import TableFormat

            table = TableFormat.from_dict(header["table"])
        _check_parts(header, plan, layout, scaler, index_values)
        has_columns = table is not None and layout.kind == "columns"
        if table is not None and has_columns and table.schema.width != math.prod(layout.shape):
            raise ValueError(f"its columns give {table.schema.width} numbers a row")
        return FittedState(
            plan=plan,
            layout=layout,
            scaler=scaler,
            labels=labels,
            members=self._members(plan, layout, labels, options),
            index_values=index_values,
            n_features_in=header["n_features_in"],
            encoding_width=header["encoding_width"],
            summary=FitSummary.from_dict(header["summary"]),
            diagnoses=tuple(Diagnosis.from_dict(each) for each in header["diagnoses"]),
            table=table,
            index_names=_as_tuple(header["index_names"]),
            feature_names=_as_tuple(header["feature_names"]),
            custom_modules=tuple(header["networks"]),
        )

    def _members(
        self, plan: Plan, layout: RowLayout, labels: LabelCodec, options: FitOptions
    ) -> tuple[Any, ...]:
        fitter = Fitter(plan, options, layout, labels)
        width = self.header["encoding_width"]
        self._check_bytes(fitter.build_encoder)
        self._check_bytes(partial(fitter.build_predictor, width))
        members = []
        for number in range(self.header["n_members"]):
            game = fitter.source_only(fitter.build_encoder(), fitter.build_predictor(width))
            for name in ("encoder", "predictor"):
                self._load_weights(getattr(game, name), name, _tensor_prefix(number, name))
            members.append(game.eval())
        if not members:
            raise ValueError("n_members is 0; there is one at least")
        return tuple(members)

    def _load_weights(self, module: nn.Module, name: str, prefix: str) -> None:
        weights = {
            key.removeprefix(prefix): value
            for key, value in self.tensors.items()
            if key.startswith(prefix)
        }
        try:
            module.load_state_dict(weights)
        except RuntimeError as error:
            raise ModelFileError(
                f"{name} does not fit the weights in {os.fspath(self.path)} "
                f"({error_summary(error)}); pass load() the {name} that the model was fitted with, "
                "or save the model again."
            ) from None

    def _check_bytes(self, build: Callable[[], nn.Module]) -> None:
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


def _check_parts(
    header: ModelHeader, plan: Plan, layout: RowLayout, scaler: Scaler, index_values: Tensor
) -> None:
    """Refuses parts that do not fit together."""
    shape, width = layout.shape, plan.space.width
    if not shape or min(shape) < (0 if layout.kind == "columns" else 1):
        raise ValueError(f"shape is {list(shape)}, which is no shape of rows")
    if layout.n_numbers < 0 or any(size < 1 for size in layout.category_sizes):
        raise ValueError("its layout has more categories than columns")
    if any(not 0 <= k < layout.n_numbers for k in layout.missing_indicators):
        raise ValueError("missing_indicators names a column that is not there")
    names = header["feature_names"]
    if header["table"] is None and names is not None and len(names) != shape[0]:
        raise ValueError(f"feature_names has {len(names)} names for {shape[0]} columns")
    if header["index_names"] is not None and len(header["index_names"]) != width:
        raise ValueError(f"index_names has {len(header['index_names'])} names for {width} columns")
    _check_numbers("index_seen", index_values, (len(index_values), width))
    if not len(index_values):
        raise ValueError("index_seen has no row")
    for name, values in (("x_mean", scaler.mean), ("x_scale", scaler.scale)):
        if values.shape not in ((), (1,), shape):
            raise ValueError(f"{name} has the shape {list(values.shape)}, not {list(shape)}")
        _check_numbers(name, torch.from_numpy(values), values.shape)
    if not (scaler.scale > 1 / MAX_ABS_VALUE).all():
        raise ValueError(f"x_scale has a number that is not above {1 / MAX_ABS_VALUE:g}")


def _check_numbers(name: str, values: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(values.shape) != tuple(shape):
        raise ValueError(f"{name} has the shape {list(values.shape)}, not {list(shape)}")
    if not values.is_floating_point() or not bool(values.isfinite().all()):
        raise ValueError(f"{name} holds what is no finite number")
    if values.numel() and float(values.abs().max()) > MAX_ABS_VALUE:
        raise ValueError(f"{name} holds a number beyond {MAX_ABS_VALUE:g}")


def _as_tuple(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


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
    """Undoes `to_json_value`."""
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
