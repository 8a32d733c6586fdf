"""Plain values of files that anybody may have written: JSON, read with care and checked by type."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

__all__ = ["decode", "from_dict", "parse_json"]

T = TypeVar("T")

MAX_ABS_INT = 2**63  # of a whole number: what arrays and files can count
_TYPE_NAMES = {int: "whole number", float: "number", str: "text", bool: "true or false"}


def parse_json(text: str | bytes) -> Any:
    """The value; whatever is wrong with the text is a ValueError in a few words."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def from_dict(kind: type[T], values: Any, strict: bool = True) -> T:
    """The dataclass of these JSON values; refuses one that is not of its field's type, by name.

    Without ``strict`` what a newer version may add is passed over.
    """
    if not strict and isinstance(values, dict):
        names = {each.name for each in fields(kind)}  # type: ignore[arg-type]
        values = {name: value for name, value in values.items() if name in names}
    record: T = decode(kind, values, "it")
    return record


def decode(kind: Any, value: Any, name: str) -> Any:
    """The value as this type: lists become tuples, objects dataclasses, whole numbers floats.

    Types are those of annotations: plain ones, lists, tuples, mappings, unions, literals,
    dataclasses and typed dicts; of the latter what is not known is let through.
    """
    if kind is Any:
        return value
    if is_dataclass(kind) or is_typeddict(kind):
        return _decode_record(kind, value, name)
    origin, type_args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        for each in type_args:
            with suppress(ValueError):
                return decode(each, value, name)
        raise _mismatch_error(name, value, str(kind))
    if origin is Literal:
        if value not in type_args or isinstance(value, bool) != isinstance(type_args[0], bool):
            raise _mismatch_error(name, value, f"one of {', '.join(map(str, type_args))}")
        return value
    if origin in (list, tuple, Sequence):
        return _decode_sequence(kind, value, name)
    if (origin or kind) in (dict, Mapping):
        if not isinstance(value, dict):
            raise _mismatch_error(name, value, "object")
        value_type = type_args[1] if type_args else Any
        return {key: decode(value_type, each, f"{name} {key}") for key, each in value.items()}
    return _decode_scalar(kind, value, name)


def _decode_record(kind: Any, value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise _mismatch_error(name, value, "object")
    hints = get_type_hints(kind)
    if is_typeddict(kind):
        for each in sorted(kind.__required_keys__ - set(value)):
            raise ValueError(f"{name} has no {each!r}")
        return {k: decode(hints.get(k, Any), each, k) for k, each in value.items()}
    is_required = {
        f.name: f.default is MISSING and f.default_factory is MISSING for f in fields(kind)
    }
    for each in (*value, *(name for name, must in is_required.items() if must)):
        if each not in is_required or each not in value:
            problem = "has no" if each in is_required else "has a strange"
            raise ValueError(f"{name} {problem} {each[:40]!r}")
    return kind(**{k: decode(hints[k], each, k) for k, each in value.items()})


def _decode_sequence(kind: Any, value: Any, name: str) -> Any:
    if not isinstance(value, list | tuple):
        raise _mismatch_error(name, value, "list")
    origin, type_args = get_origin(kind), get_args(kind)
    if origin is tuple and type_args[-1] is not Ellipsis:
        if len(value) != len(type_args):
            raise _mismatch_error(name, value, f"list of {len(type_args)}")
        return tuple(decode(k, v, name) for k, v in zip(type_args, value, strict=True))
    items = [decode(type_args[0], each, f"{name}[{k}]") for k, each in enumerate(value)]
    return tuple(items) if origin is tuple else items


def _decode_scalar(kind: Any, value: Any, name: str) -> Any:
    is_valid = isinstance(value, (int, float) if kind is float else kind)
    if isinstance(value, bool):
        is_valid = kind is bool
    elif isinstance(value, int):
        is_valid = is_valid and abs(value) < MAX_ABS_INT
    if is_valid:
        return float(value) if kind is float else value
    raise _mismatch_error(name, value, _TYPE_NAMES.get(kind, kind.__name__))


def _mismatch_error(name: str, value: Any, expected: str) -> ValueError:
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return ValueError(f"{name} is {text}, which is no {expected}")
