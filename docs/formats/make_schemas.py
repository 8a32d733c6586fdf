"""JSON Schemas of records in files, from their dataclasses; python docs/formats/make_schemas.py."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from cida.doctor import Diagnosis
from cida.runs.records import Manifest, RunRecord, RunResult

FOLDER = Path(__file__).parent
RECORDS: dict[str, type] = {
    "run": RunRecord,
    "result": RunResult,
    "manifest": Manifest,
    "diagnosis": Diagnosis,
}
PLAIN_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type that a record has as a field."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return {}
    if kind in PLAIN_TYPES:
        return {"type": PLAIN_TYPES[kind]}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(each) for each in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if dataclasses.is_dataclass(kind):
        return record_schema(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [each.value for each in kind]}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return {"type": "array", "prefixItems": [schema_of(each) for each in arguments]}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": schema_of(arguments[0])}
    raise TypeError(f"{kind!r} has no JSON Schema here; add it to schema_of.")


def record_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a dataclass: its fields, and which of them have no default."""
    hints = typing.get_type_hints(kind)
    own_fields = dataclasses.fields(kind)
    required = [
        each.name
        for each in own_fields
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    ]
    return {
        "title": kind.__name__,
        "description": (kind.__doc__ or "").split("\n")[0],
        "type": "object",
        "properties": {each.name: schema_of(hints[each.name]) for each in own_fields},
        "required": required,
    }


def schema_text(name: str) -> str:
    """Return the text of one schema file."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**schema, **record_schema(RECORDS[name])}, indent=2) + "\n"


if __name__ == "__main__":
    for name in RECORDS:
        (FOLDER / f"{name}.schema.json").write_text(schema_text(name), encoding="utf-8")
