"""Networks as JSON values, from which a model file can build them again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar

import torch
from torch import nn

__all__ = ["NETWORKS", "configurable", "configurable_part", "network_config", "network_from_config"]

M = TypeVar("M", bound=nn.Module)
P = TypeVar("P")

NETWORKS: dict[str, type[nn.Module]] = {}  # those that can be described, by name
_CONFIGURABLE_PARTS: dict[str, Callable[..., Any]] = {}  # values that they are made of

Config = dict[str, Any]


def configurable(kind: type[M]) -> type[M]:
    """Class decorator: instances record their constructor's arguments as JSON values."""
    original_init, signature = kind.__init__, inspect.signature(kind)

    @functools.wraps(original_init)
    def init_and_record(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        original_init(self, *args, **kwargs)
        if type(self) is kind:  # a class of the user's own below this one is another network
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            self.__dict__["_made"] = _arguments_to_json(bound.arguments)

    kind.__init__ = init_and_record  # type: ignore[method-assign]
    NETWORKS[kind.__name__] = kind
    return kind


def configurable_part(kind: type[P]) -> type[P]:
    """Class decorator for small values that networks are made of: their fields are JSON values."""
    _CONFIGURABLE_PARTS[kind.__name__] = kind
    return kind


def network_config(module: nn.Module) -> Config | None:
    """Return how to build a network again, without its weights.

    Parameters
    ----------
    module : torch.nn.Module
        Any module.

    Returns
    -------
    dict or None
        The network's name and arguments; None if it is no network of this package, or was changed
        after it was made, so that a copy would differ.
    """
    arguments = module.__dict__.get("_made")
    if arguments is None or NETWORKS.get(type(module).__name__) is not type(module):
        return None
    config = {"network": type(module).__name__, "arguments": arguments}
    return config if _structure(network_from_config(config)) == _structure(module) else None


def network_from_config(config: Mapping[str, Any]) -> nn.Module:
    """Build the network that `network_config` described, with new random weights.

    Parameters
    ----------
    config : mapping
        What `network_config` returned.

    Returns
    -------
    torch.nn.Module
        The network. torch's random state is left unchanged.

    Raises
    ------
    ValueError
        If the values describe no network.
    """
    with torch.random.fork_rng(devices=[]):
        network = _from_json(config)
    if not isinstance(network, nn.Module):
        raise ValueError(f"{config!r} is no network.")
    return network


def _arguments_to_json(arguments: Mapping[str, Any]) -> Config | None:
    try:
        return {name: _to_json(value) for name, value in arguments.items()}
    except TypeError:  # something that JSON has no word for, such as a layer of the user's own
        return None


def _to_json(value: Any) -> Any:
    if isinstance(value, nn.Module) and (config := network_config(value)) is not None:
        return config
    if type(value) is _CONFIGURABLE_PARTS.get(type(value).__name__):
        fields = asdict(value) if is_dataclass(value) else value._asdict()
        return {"part": type(value).__name__, "arguments": fields}
    if isinstance(value, list | tuple | range):
        return [_to_json(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} cannot be described")


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    kind = NETWORKS[value["network"]] if "network" in value else _CONFIGURABLE_PARTS[value["part"]]
    return kind(**{name: _from_json(each) for name, each in value["arguments"].items()})


def _structure(module: nn.Module) -> tuple[str, dict[str, Any]]:
    return str(module), {name: tensor.shape for name, tensor in module.state_dict().items()}
