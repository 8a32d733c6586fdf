"""What goes into a model's ONNX file, and how a row of it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cida.estimators.fitted_state import FittedState

if TYPE_CHECKING:  # it needs pyarrow, and estimators are exported without
    from cida.tables import TableFormat

OUTPUTS = {"classifier": ("probabilities", "label"), "regressor": ("prediction", "deviation")}
INPUT_FORMATS = {
    "number": "double, NaN where missing",
    "boolean": "double, 0 or 1, NaN where missing",
    "date": "double, days since 1970-01-01, NaN where missing",
    "category": "string without blanks around it, empty where missing",
    "rows": "the rows",
    "index": "double",
    "index date": "double, days since 1970-01-01",
}
InputKind = Literal["number", "boolean", "date", "category", "rows", "index", "index date"]


@dataclass(frozen=True)
class OnnxInput:
    """An input of the file: its name, the column it is, and the shape and type of a row."""

    name: str
    column: str
    kind: InputKind
    shape: tuple[int, ...] = ()
    dtype: str = "double"
    categories: tuple[str, ...] = ()

    @property
    def is_index(self) -> bool:
        """Whether it is of the index."""
        return self.kind in ("index", "index date")

    def to_dict(self) -> dict[str, Any]:
        """The input as JSON values."""
        categories = {"categories": list(self.categories)} if self.kind == "category" else {}
        names = {"name": self.name, "column": self.column, "kind": self.kind}
        row = {"how": INPUT_FORMATS[self.kind], "type": self.dtype, "shape": ["rows", *self.shape]}
        return {**names, **row, **categories}


def indexed_table(state: FittedState) -> TableFormat | None:
    """How the model finds its columns and its index by name; None where they come as arrays."""
    table = state.table
    return table if table is not None and table.index else None


def build_onnx_inputs(state: FittedState) -> tuple[OnnxInput, ...]:
    """The inputs of the model's file, in their order."""
    shape, width = state.layout.shape, state.index_width
    rows = OnnxInput("X", "X", "rows", shape, "double" if len(shape) == 1 else "float")
    table = indexed_table(state)
    if table is None:
        return (rows,) if width is None else (rows, OnnxInput("u", "u", "index", (width,)))
    inputs = [] if state.layout.kind == "columns" else [rows]
    for column in table.schema.columns:  # of images and signals there are none
        name, dtype = _unreserved_name(column.name), "double" if column.is_numeric else "string"
        inputs.append(OnnxInput(name, column.name, column.kind, (), dtype, column.categories))
    for name, kind in zip(table.index, table.index_kinds, strict=True):
        index_kind: InputKind = "index date" if kind == "date" else "index"
        inputs.append(OnnxInput(_unreserved_name(name), name, index_kind))
    return tuple(inputs)


def _unreserved_name(column: str) -> str:
    """The column's own name, unless an output has it or it is none at all."""
    is_free = column and not any(column in names for names in OUTPUTS.values())
    return column if is_free else f"input.{column}"
