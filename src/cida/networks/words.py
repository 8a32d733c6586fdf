"""Networks of ours as plain values, from which a file can say how to make them again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar

import torch
from torch import nn

__all__ = ["NETWORKS", "described", "described_part", "make_network", "network_words"]

M = TypeVar("M", bound=nn.Module)
P = TypeVar("P")

NETWORKS: dict[str, type[nn.Module]] = {}  # those that can be described, by name
_PARTS: dict[str, Callable[..., Any]] = {}  # values that they are made of

Words = dict[str, Any]


def described(kind: type[M]) -> type[M]:
    """A class decorator: objects of the class remember what they were made with, as JSON values."""
    make, signature = kind.__init__, inspect.signature(kind)

    @functools.wraps(make)
    def remember(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        if type(self) is kind:  # a class of the user's own below this one is another network
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            self.__dict__["_made"] = _plain_arguments(given.arguments)

    kind.__init__ = remember  # type: ignore[method-assign]
    NETWORKS[kind.__name__] = kind
    return kind


def described_part(kind: type[P]) -> type[P]:
    """A class decorator for small values that networks are made of: their fields are plain."""
    _PARTS[kind.__name__] = kind
    return kind


def network_words(module: nn.Module) -> Words | None:
    """How to make the module again, without its weights; None if it is none of ours.

    Neither is one of ours that was changed after it was made: the twin would not be the same.
    """
    made = module.__dict__.get("_made")
    if made is None or NETWORKS.get(type(module).__name__) is not type(module):
        return None
    words = {"network": type(module).__name__, "arguments": made}
    return words if _looks(make_network(words)) == _looks(module) else None


def make_network(words: Mapping[str, Any]) -> nn.Module:
    """Undoes `network_words`; the weights are drawn anew, and torch's random state is kept."""
    with torch.random.fork_rng(devices=[]):
        made = _object(words)
    if not isinstance(made, nn.Module):
        raise ValueError(f"{words!r} is no network.")
    return made


def _plain_arguments(arguments: Mapping[str, Any]) -> Words | None:
    try:
        return {name: _plain(value) for name, value in arguments.items()}
    except TypeError:  # something that JSON has no word for, such as a layer of the user's own
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, nn.Module):
        words = network_words(value)
        if words is None:
            raise TypeError(f"{type(value).__name__} cannot be described")
        return words
    if type(value) is _PARTS.get(type(value).__name__):
        fields = asdict(value) if is_dataclass(value) else value._asdict()
        return {"part": type(value).__name__, "arguments": fields}
    if isinstance(value, list | tuple | range):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} cannot be described")


def _object(value: Any) -> Any:
    if isinstance(value, list):
        return [_object(each) for each in value]
    if not isinstance(value, dict | Mapping):
        return value
    kind = NETWORKS[value["network"]] if "network" in value else _PARTS[value["part"]]
    return kind(**{name: _object(each) for name, each in value["arguments"].items()})


def _looks(module: nn.Module) -> tuple[str, dict[str, Any]]:
    return str(module), {name: tensor.shape for name, tensor in module.state_dict().items()}
