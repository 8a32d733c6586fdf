"""The header of a model file, which anybody may have written: checked before anything is built."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import torch
from torch import Tensor, nn

from cida.estimators.parameters import check_parameters
from cida.estimators.scaling import MAX_ABS_VALUE
from cida.io.json_decode import decode
from cida.io.tensors import ModelFileError

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["check_model", "check_network_bytes", "read_classes", "validate_header"]

MAX_FILE_DRAWS = 10_000  # of a file: more would take for ever
MAX_CLASS_NAME_LETTERS = 1_000  # letters
MAX_EXCESS_WEIGHT_BYTES = 1 << 26


class HeaderDict(TypedDict, total=False):
    """What the header may say; the class's name, which no field can have, is looked up."""

    parameters: dict[str, Any]
    space: dict[str, Any]
    index_width: int | None
    index_names: list[str] | None
    row_shape: list[int]
    encoding_width: int
    steps: int
    features: int
    feature_names: list[str] | None
    labels: dict[str, Any]
    choices: dict[str, Any]
    summary: dict[str, Any] | None
    diagnoses: list[dict[str, Any]]
    networks: dict[str, Any]


def validate_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """The header with every value of the right kind, and none missing."""
    checked_header: dict[str, Any] = decode(HeaderDict, dict(header), "the header")
    optional = ("summary", "diagnoses", "networks")
    for name in ("class", *HeaderDict.__annotations__):
        if name not in checked_header and name not in optional:
            raise ValueError(f"its header has no {name}")
    return checked_header


def check_network_bytes(path: Any, build: Callable[[], nn.Module], available_bytes: int) -> None:
    """Refuses a network of more bytes than there are: a small file must not ask for all memory.

    It is made without memory first.
    """
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of a layer without weights
        meta_module = build()
    if any(not tensor.numel() for tensor in meta_module.parameters()):
        raise ModelFileError(f"{path} describes a layer without weights; save the model again.")
    required_bytes = sum(
        tensor.numel() * tensor.element_size() for tensor in meta_module.state_dict().values()
    )
    if (
        required_bytes > available_bytes + MAX_EXCESS_WEIGHT_BYTES
    ):  # of a few that are missing the next check tells the names
        raise ModelFileError(
            f"{path} describes a network of {required_bytes:,} bytes, and has weights of "
            f"{available_bytes:,}; save the "
            "model again or copy it again."
        )


def read_classes(values: Any, dtype_name: Any) -> np.ndarray[Any, Any]:
    """The classes as an array of this type."""
    names = decode(list[str | float | bool], values, "classes")
    dtype = np.dtype(decode(str, dtype_name, "dtype"))
    if dtype.kind not in "biufUSO" or dtype.itemsize > 4 * MAX_CLASS_NAME_LETTERS:
        raise ValueError(f"dtype is {dtype_name!r}, which is no type of classes")
    if len(names) < 2:
        raise ValueError(f"classes are {names!r}, and there must be two at least")
    try:
        classes = np.array(values, dtype=object if dtype.hasobject else dtype)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"classes are not all of the dtype {dtype_name!r}") from None
    if len(set(classes.tolist())) < len(classes):
        raise ValueError("classes has one of them twice")
    return classes


def check_model(model: CIDAEstimator) -> None:
    """Refuses parts that do not fit together."""
    check_parameters({**model.get_params(deep=False), "validator": "consensus"}, sys.maxsize)
    if model.n_draws > MAX_FILE_DRAWS:
        raise ValueError(f"draws is {model.n_draws}, which is more than {MAX_FILE_DRAWS}")
    shape, width = model._row_shape, model.space_.width
    if not shape or min(shape) < 1:
        raise ValueError(f"row_shape is {list(shape)}, which is no shape of rows")
    if model.n_features_in_ != shape[0]:
        raise ValueError(f"features is {model.n_features_in_} and row_shape {list(shape)}")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and len(names) != shape[0]:
        raise ValueError(f"feature_names has {len(names)} names for {shape[0]} columns")
    if model.index_width_ not in (None, width):
        raise ValueError(f"index_width is {model.index_width_}, and the space has {width} columns")
    if model._index_names is not None and len(model._index_names) != width:
        raise ValueError(f"index_names has {len(model._index_names)} names for {width} columns")
    check_numbers("index_seen", model._training_index, (len(model._training_index), width))
    if not len(model._training_index):
        raise ValueError("index_seen has no row")
    for name, values in (("x_mean", model._scaler.mean), ("x_scale", model._scaler.scale)):
        if values.shape not in ((), (1,), shape):
            raise ValueError(f"{name} has the shape {list(values.shape)}, not {list(shape)}")
        check_numbers(name, torch.from_numpy(values), values.shape)
    if not (model._scaler.scale > 1 / MAX_ABS_VALUE).all():
        raise ValueError(f"x_scale has a number that is not above {1 / MAX_ABS_VALUE:g}")


def check_numbers(name: str, values: Tensor, shape: tuple[int, ...]) -> None:
    """Refuses what is no array of finite numbers of this shape."""
    if tuple(values.shape) != tuple(shape):
        raise ValueError(f"{name} has the shape {list(values.shape)}, not {list(shape)}")
    if not values.is_floating_point() or not bool(values.isfinite().all()):
        raise ValueError(f"{name} holds what is no finite number")
    if values.numel() and float(values.abs().max()) > MAX_ABS_VALUE:
        raise ValueError(f"{name} holds a number beyond {MAX_ABS_VALUE:g}")
