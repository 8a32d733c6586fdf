"""Plain values of files that anybody may have written: JSON, read with care and checked by type."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

__all__ = ["checked", "from_words", "parse_json"]

T = TypeVar("T")

WIDEST = 2**63  # of a whole number: what arrays and files can count
_WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false"}


def parse_json(text: str | bytes) -> Any:
    """The value; whatever is wrong with the text is a ValueError in a few words."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def from_words(kind: type[T], words: Any) -> T:
    """The dataclass of these JSON values; refuses one that is not of its field's type, by name."""
    made: T = checked(kind, words, "it")
    return made


def checked(kind: Any, value: Any, name: str) -> Any:
    """The value as this type: lists become tuples, objects dataclasses, whole numbers floats.

    Types are those of annotations: plain ones, lists, tuples, mappings, unions, literals,
    dataclasses and typed dicts; of the latter what is not known is let through.
    """
    if kind is Any:
        return value
    if is_dataclass(kind) or is_typeddict(kind):
        return _record(kind, value, name)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _one_of(inner, kind, value, name)
    if origin is Literal:
        if value not in inner or isinstance(value, bool) != isinstance(inner[0], bool):
            raise _fault(name, value, f"one of {', '.join(map(str, inner))}")
        return value
    if origin in (list, tuple, Sequence):
        return _several(kind, value, name)
    if (origin or kind) in (dict, Mapping):
        if not isinstance(value, dict):
            raise _fault(name, value, "object")
        of = inner[1] if inner else Any
        return {key: checked(of, each, f"{name} {key}") for key, each in value.items()}
    return _plain(kind, value, name)


def _record(kind: Any, value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise _fault(name, value, "object")
    hints = get_type_hints(kind)
    if is_typeddict(kind):
        for each in sorted(kind.__required_keys__ - set(value)):
            raise ValueError(f"{name} has no {each!r}")
        return {k: checked(hints.get(k, Any), each, k) for k, each in value.items()}
    needed = {f.name: f.default is MISSING and f.default_factory is MISSING for f in fields(kind)}
    for each in (*value, *(name for name, must in needed.items() if must)):
        if each not in needed or each not in value:
            lacks = "has no" if each in needed else "has a strange"
            raise ValueError(f"{name} {lacks} {each[:40]!r}")
    return kind(**{k: checked(hints[k], each, k) for k, each in value.items()})


def _one_of(inner: Sequence[Any], kind: Any, value: Any, name: str) -> Any:
    if value is None and type(None) in inner:
        return None
    for each in inner:
        if each is not type(None):
            try:
                return checked(each, value, name)
            except ValueError:
                continue
    raise _fault(name, value, str(kind))


def _several(kind: Any, value: Any, name: str) -> Any:
    if not isinstance(value, list | tuple):
        raise _fault(name, value, "list")
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple and inner[-1] is not Ellipsis:
        if len(value) != len(inner):
            raise _fault(name, value, f"list of {len(inner)}")
        return tuple(checked(k, v, name) for k, v in zip(inner, value, strict=True))
    found = [checked(inner[0], each, f"{name}[{k}]") for k, each in enumerate(value)]
    return tuple(found) if origin is tuple else found


def _plain(kind: Any, value: Any, name: str) -> Any:
    right = isinstance(value, (int, float) if kind is float else kind)
    if isinstance(value, bool):
        right = kind is bool
    elif isinstance(value, int):
        right = right and abs(value) < WIDEST
    if right:
        return float(value) if kind is float else value
    raise _fault(name, value, _WORDS.get(kind, kind.__name__))


def _fault(name: str, value: Any, what: str) -> ValueError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return ValueError(f"{name} is {shown}, which is no {what}")
