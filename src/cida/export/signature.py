"""What goes into a model's ONNX file, and how a row of it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cida.estimators.fitted_state import FittedState

if TYPE_CHECKING:  # it needs pyarrow, and estimators are exported without
    from cida.tables import Column

__all__ = [
    "CLASSIFIER_OUTPUTS",
    "INPUT_FORMATS",
    "REGRESSOR_OUTPUTS",
    "OnnxInput",
    "build_onnx_inputs",
]

CLASSIFIER_OUTPUTS = ("probabilities", "label")
REGRESSOR_OUTPUTS = ("prediction", "deviation")
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

    def to_dict(self) -> dict[str, Any]:
        """The input as JSON values."""
        categories = {"categories": list(self.categories)} if self.kind == "category" else {}
        format_note = INPUT_FORMATS[self.kind]
        fields = {"name": self.name, "column": self.column, "kind": self.kind, "how": format_note}
        return {**fields, "type": self.dtype, "shape": ["rows", *self.shape], **categories}


def build_onnx_inputs(state: FittedState) -> tuple[OnnxInput, ...]:
    """The inputs of the model's file, in their order."""
    shape, width = state.layout.shape, state.index_width
    if state.table is None or not state.table.index:
        rows = OnnxInput("X", "X", "rows", shape, "double" if len(shape) == 1 else "float")
        return (rows,) if width is None else (rows, OnnxInput("u", "u", "index", (width,)))
    table = state.table
    if state.layout.kind == "columns":
        columns = [_column_input(column) for column in table.schema.columns]
    else:
        columns = [OnnxInput("X", "X", "rows", shape, "float")]
    kinds: list[InputKind] = ["index date" if k == "date" else "index" for k in table.index_kinds]
    index = [
        OnnxInput(_unreserved_name(n), n, kind) for n, kind in zip(table.index, kinds, strict=True)
    ]
    return (*columns, *index)


def _column_input(column: Column) -> OnnxInput:
    name = _unreserved_name(column.name)
    if column.is_numeric:
        return OnnxInput(name, column.name, column.kind)
    return OnnxInput(name, column.name, "category", (), "string", column.categories)


def _unreserved_name(column: str) -> str:
    """The column's own name, unless an output has it or it is none at all."""
    return (
        column
        if column and column not in (*CLASSIFIER_OUTPUTS, *REGRESSOR_OUTPUTS)
        else f"input.{column}"
    )
