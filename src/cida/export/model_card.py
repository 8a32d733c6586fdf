"""The model card: what a model is, what it was made from, how far to trust it; in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from cida.array_types import Array
from cida.estimators.base import CIDAEstimator
from cida.estimators.fitted_state import FittedState
from cida.estimators.labels import ClassLabels
from cida.estimators.model_file import library_versions
from cida.export.signature import INPUT_FORMATS, build_onnx_inputs
from cida.networks import network_config
from cida.runs.fit_lines import FitTopic, fit_lines
from cida.runs.records import RunRecord, RunResult
from cida.runs.snapshot import Snapshot
from cida.version import __version__

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ExportedModel:
    """A model, and what its run left beside it: record, result and snapshot, where they are."""

    model: CIDAEstimator
    record: RunRecord | None = None
    result: RunResult | None = None
    snapshot: Snapshot | None = None

    @property
    def state(self) -> FittedState:
        """What the fit found."""
        state: FittedState = self.model.state_
        return state

    @property
    def title(self) -> str:
        """What the model tells, or the run that it is of."""
        table = self.state.table
        if table is not None and table.label:
            return f"{table.label} along {', '.join(table.index)}"
        if self.record is not None:
            return f"{self.record.task}, {self.record.title or self.record.method}"
        return type(self.model).__name__

    @property
    def reads_tables(self) -> bool:
        """Whether it finds its columns and its index in a table by their names."""
        return self.state.table is not None and bool(self.state.table.index)

    @property
    def versions(self) -> Mapping[str, str]:
        """The packages that the model was trained with, as far as the run recorded them."""
        return library_versions() if self.record is None else self.record.versions

    def fit_lines(self, topic: FitTopic) -> Sequence[str]:
        """What is said of the fit of a user's own table on this topic."""
        fit = self.record.fit if self.record is not None else None
        return fit_lines(fit, topic) if fit is not None else ()

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of the index columns."""
        width = self.state.index_width
        if width is None:
            return ()
        names = self.state.index_names or (
            self.snapshot.index_names if self.snapshot is not None else None
        )
        return tuple(names or (["u"] if width == 1 else [f"u{k}" for k in range(width)]))

    @property
    def dates(self) -> tuple[bool, ...]:
        """Which index columns are days since 1970-01-01."""
        table = self.state.table
        if table is None or not table.index:
            return (False,) * len(self.index_names)
        return tuple(kind == "date" for kind in table.index_kinds)

    @property
    def custom_modules(self) -> list[str]:
        """The players that are modules of the user's own, which no file holds."""
        return [
            player
            for player in self.state.custom_modules
            if network_config(getattr(self.state.game, player)) is None
        ]


def model_card(exported: ExportedModel, folder: str = "DIR") -> str:
    """The card; ``folder`` is how the lines of code call the folder that it lies in."""
    state, record = exported.state, exported.record
    fit = record.fit if record is not None else None
    certificate = fit.certificate if fit is not None else None
    labels, snapshot = state.labels, exported.snapshot
    if snapshot is not None and snapshot.u.shape[1] != state.index_width:
        snapshot = None
    return (
        _templates()
        .get_template("model_card.md")
        .render(
            exported=exported,
            model_name=type(exported.model).__name__,
            state=state,
            record=record,
            result=exported.result,
            classes=labels.classes.tolist() if isinstance(labels, ClassLabels) else None,
            ranges=_index_ranges(exported, snapshot),
            n_shown_rows=0 if snapshot is None else len(snapshot.u),
            certificate=certificate.summary() if certificate is not None else [],
            faults=list(dict.fromkeys(map(str, state.diagnoses))),
            inputs=build_onnx_inputs(state),
            input_formats=INPUT_FORMATS,
            folder=folder,
        )
    )


def render_citation() -> str:
    """How to cite cida, as CITATION.cff has it."""
    return _templates().get_template("CITATION.cff").render(version=__version__)


@cache
def _templates() -> Environment:
    """The templates, which are Markdown: the filter ``md`` escapes for it."""
    environment = Environment(
        loader=PackageLoader("cida.export"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"md": _escape_markdown, "index": _format_index}
    return environment


def _index_ranges(exported: ExportedModel, snapshot: Snapshot | None) -> dict[str, list[str]]:
    """Of each index column where it was seen in training, where labels were, and where none."""
    if not exported.index_names:
        return {}
    values = [exported.state.index_values.numpy()]
    if snapshot is not None and len(snapshot.u):
        values += [snapshot.u[snapshot.source], snapshot.u[~snapshot.source]]
    names = zip(exported.index_names, exported.dates, strict=True)
    return {n: [_format_range(u[:, k], d) for u in values] for k, (n, d) in enumerate(names)}


def _format_range(values: Array, is_date: bool) -> str:
    if not len(values):
        return "none"
    format_value = _format_date if is_date else "{:.6g}".format
    return f"{format_value(float(values.min()))} to {format_value(float(values.max()))}"


def _format_date(days: float) -> str:
    try:
        return f"{(UNIX_EPOCH + timedelta(days=days)).date()}"
    except OverflowError:  # a year beyond the calendar's
        return f"day {days:.6g}"


def _format_index(value: float | list[float]) -> str:
    return ", ".join(f"{number:.4g}" for number in np.atleast_1d(value))


def _escape_markdown(text: str) -> str:
    """The text as Markdown shows it, on one line."""
    escapes = str.maketrans({sign: f"\\{sign}" for sign in "\\|<*`_["})
    return " ".join(text.translate(escapes).split())
