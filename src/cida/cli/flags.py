"""A verb's dataclass as the flags that it has: for help, completion and the words on a mistake."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import MISSING, Field, dataclass, fields
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

__all__ = ["Flag", "flags"]

POSITIONAL = tyro.conf.Positional[str].__metadata__[0]  # type: ignore[attr-defined]
VALUES = {int: "N", float: "NUMBER", Path: "PATH", str: "NAME"}


@dataclass(frozen=True)
class Flag:
    """One field of the dataclass, as it is typed."""

    name: str  # --first-seed; DATA, if it has no dashes
    value: str  # what is shown behind it; nothing behind a switch
    words: str
    default: str
    kind: type
    required: bool
    positional: bool
    many: bool
    choices: tuple[str, ...]

    @property
    def switch(self) -> bool:
        """Whether it stands alone: --resume, --no-figures."""
        return self.kind is bool

    @property
    def spellings(self) -> tuple[str, ...]:
        """What may be typed for it."""
        if self.positional:
            return ()
        return (self.name, f"--no-{self.name[2:]}") if self.switch else (self.name,)

    @property
    def shown(self) -> str:
        """How help has it."""
        if self.switch:
            return f"--[no-]{self.name[2:]}" if self.default else self.name
        return self.name if self.positional else f"{self.name} {self.value}"


def flags(verb: type) -> list[Flag]:
    """All flags of a verb, those without dashes first."""
    hints = get_type_hints(verb, include_extras=True)
    words = _field_words(verb)
    found = [_flag(field, hints[field.name], words.get(field.name, "")) for field in fields(verb)]
    return sorted(found, key=lambda flag: not flag.positional)


def _flag(field: Field[Any], hint: Any, words: str) -> Flag:
    metadata = getattr(hint, "__metadata__", ())
    kind, many, choices = _kind(hint)
    shown = next((m.metavar for m in metadata if getattr(m, "metavar", None)), None)
    value = shown or ("|".join(choices) or VALUES.get(kind, "VALUE")) + " ..." * many
    positional = POSITIONAL in metadata
    name = value if positional else f"--{field.name.replace('_', '-')}"
    required = field.default is MISSING and field.default_factory is MISSING
    default = "" if required else _default(field.default)
    return Flag(name, value, words, default, kind, required, positional, many, choices)


def _kind(hint: Any) -> tuple[type, bool, tuple[str, ...]]:
    """What one value is, whether there may be many, and all that it may be."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _kind(get_args(hint)[0])
    if origin in (Union, UnionType):
        return _kind(next(part for part in get_args(hint) if part is not NoneType))
    if origin is tuple:
        kind, _, choices = _kind(get_args(hint)[0])
        return kind, True, choices
    if origin is Literal:
        return str, False, get_args(hint)
    return hint, False, ()


def _default(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None or value is False else str(value)


def _field_words(verb: type) -> dict[str, str]:
    """The text below each field, which Python itself does not keep."""
    words = {}
    for owner in reversed(verb.__mro__[:-1]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        lines = body.body if isinstance(body, ast.ClassDef) else []
        for line, below in pairwise(lines):
            if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)):
                continue
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                words[line.target.id] = " ".join(str(below.value.value).split())
    return words
