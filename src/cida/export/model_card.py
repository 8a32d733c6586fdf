"""The model card: what a model is, what it was made from, how far to trust it; in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from cida.estimators.base import CIDAEstimator
from cida.estimators.fitted_state import FittedState
from cida.estimators.labels import ClassLabels
from cida.estimators.model_file import library_versions
from cida.export.signature import INPUT_FORMATS, build_onnx_inputs
from cida.networks import network_config
from cida.runs.records import RunRecord, RunResult
from cida.runs.snapshot import Snapshot
from cida.version import __version__

__all__ = ["CITATION", "ExportedModel", "model_card"]

Array = np.ndarray[Any, Any]

CITATION = f"""cff-version: 1.2.0
message: If you use cida, please cite the software and the paper that it implements.
title: "cida: continuously indexed domain adaptation"
type: software
version: {__version__}
license: MIT
authors:
  - name: The cida authors
preferred-citation:
  type: conference-paper
  title: Continuously Indexed Domain Adaptation
  year: 2020
  authors:
    - {{family-names: Wang, given-names: Hao}}
    - {{family-names: He, given-names: Hao}}
    - {{family-names: Katabi, given-names: Dina}}
  collection-title: Proceedings of the 37th International Conference on Machine Learning
"""
CITATION_NOTE = (
    "Wang, He and Katabi, *Continuously Indexed Domain Adaptation*, ICML 2020; `CITATION.cff` has "
    "it for programs."
)
NO_TARGET_LABELS = "No label of the target was read in training."
LIMITATIONS = (
    "Nothing was learned at index values far from those above; predictions there are not to be "
    "trusted.",
    "Alignment cannot be proved: an encoding may be free of the index and still wrong, as when "
    "domains are turned against each other.",
    "Where the balance of labels itself moves along the index, adapting may do harm.",
    "How right the model is where no labels are, only labels from there can tell.",
)
MAX_SCORE_TABLE_ROWS = 40  # lines of a table along the index
UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ExportedModel:
    """A model, and what its run left beside it: run.json, row.json and the view, where they are."""

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

    def messages(self, topic: str) -> Sequence[str]:
        """What the fit of a user's own table printed on this topic."""
        fit = self.record.fit if self.record is not None else None
        return fit.messages.get(topic, ()) if fit is not None else ()

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
    sections = {
        "What it is": _about(exported),
        "Data": _data(exported),
        "Range of the index": _ranges(exported),
        "Figures": _figures(exported),
        "Can it be trusted?": _trust(exported),
        "Limits": [f"- {sentence}" for sentence in LIMITATIONS if exported.index_names],
        "Inputs of the ONNX file": _inputs(exported),
        "How to load it": _loading(exported, folder),
        "Versions": _versions(exported),
        "How to cite": [CITATION_NOTE],
    }
    front = "---\nlibrary_name: cida\ntags:\n- domain-adaptation\n- continuous-domain-index\n---\n"
    parts = [f"{front}\n# {_escape_markdown(exported.title)}\n"]
    for title, lines in sections.items():
        section_lines = list(lines)
        if section_lines:
            parts.append(f"## {title}\n\n" + "\n".join(section_lines) + "\n")
    return "\n".join(parts)


def _about(exported: ExportedModel) -> Iterator[str]:
    model, state, record = exported.model, exported.state, exported.record
    task = "classes" if isinstance(state.labels, ClassLabels) else "numbers"
    training_note = "was trained on labelled rows alone"
    if state.summary.is_adaptive:
        training_note = "was adapted along a continuous index to rows without labels"
    version = _escape_markdown(exported.versions.get("cida", "unknown"))
    yield f"A `{type(model).__name__}` of cida {version}: it predicts {task}, and {training_note}."
    yield ""
    if record is not None:
        yield f"- method: {_escape_markdown(record.method)}"
    if len(state.members) > 1:
        yield f"- the mean of {len(state.members)} models with a seed each"
    elif record is not None:
        yield f"- seed: {record.seed}"
    yield f"- steps of training: {state.plan.steps}"
    yield f"- space of the index: `{state.plan.space!r}`"
    if isinstance(state.labels, ClassLabels):
        classes = state.labels.classes.tolist()
        yield f"- classes: {', '.join(_escape_markdown(str(name)) for name in classes)}"


def _data(exported: ExportedModel) -> Iterator[str]:
    record, fit_summary = exported.record, exported.state.summary
    if record is not None and record.data:
        yield f"- fingerprint: `{record.data.replace('`', ' ')}`"
    if fit_summary.n_source_rows is not None:
        yield (
            f"- trained on: {fit_summary.n_source_rows:,} rows with labels, "
            f"{fit_summary.n_target_rows:,} without"
        )
    for line in exported.messages("data"):
        yield f"- {_escape_markdown(line)}"
    if record is not None and record.is_oracle:
        yield "- an oracle: trained on the labels of all rows, those of the target too"
    else:
        yield f"- {NO_TARGET_LABELS}"


def _ranges(exported: ExportedModel) -> Iterator[str]:
    """Where labels were, and where rows were without."""
    if not exported.index_names:
        return
    training_index = exported.state.index_values.numpy()
    snapshot = exported.snapshot
    has_snapshot = (
        snapshot is not None
        and len(snapshot.u) > 0
        and snapshot.u.shape[1] == training_index.shape[1]
    )
    yield "| index | seen in training |" + (" with labels | without |" if has_snapshot else "")
    yield "|---|---|" + ("---|---|" if has_snapshot else "")
    for k, (name, date) in enumerate(zip(exported.index_names, exported.dates, strict=True)):
        cells = [_escape_markdown(name), _format_range(training_index[:, k], date)]
        if snapshot is not None and has_snapshot:
            cells += [
                _format_range(snapshot.u[rows, k], date)
                for rows in (snapshot.source, ~snapshot.source)
            ]
        yield f"| {' | '.join(cells)} |"
    if snapshot is not None and has_snapshot:
        yield ""
        yield (
            f"With labels and without: of the {len(snapshot.u):,} rows that the run keeps to show."
        )


def _figures(exported: ExportedModel) -> Iterator[str]:
    result_lines = exported.messages("results")
    yield from (f"- {_escape_markdown(line)}" for line in result_lines)
    result = exported.result
    if result is None:
        return
    is_accuracy = result.metric == "accuracy"
    for part, score in (("source", result.source_score), ("target", result.target_score)):
        yield f"- {part}: {score:.1%}" if is_accuracy else f"- {part}: {result.metric} {score:.4g}"
    yield ""
    yield "Measured on a benchmark whose target labels are known, and used for scoring alone."
    cells = result.by_index
    if cells and is_accuracy and len(cells) <= MAX_SCORE_TABLE_ROWS:
        yield ""
        yield from _cells(cells)


def _cells(cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| from | to | accuracy | rows |"
    yield "|---|---|---|---|"
    for cell in cells:
        lo, hi = (_format_index(cell[end]) for end in ("lo", "hi"))
        yield f"| {lo} | {hi} | {cell['score']:.1%} | {cell['n']:,} |"


def _trust(exported: ExportedModel) -> Iterator[str]:
    fit = exported.record.fit if exported.record is not None else None
    certificate = fit.certificate if fit is not None else None
    lines = certificate.summary() if certificate is not None else []
    yield from (f"- {_escape_markdown(line)}" for line in lines)
    if not lines:
        yield "- No certificate of alignment was made for this run."
    faults = list(dict.fromkeys(str(diagnosis) for diagnosis in exported.state.diagnoses))
    yield from (f"- the doctor says: {_escape_markdown(line)}" for line in faults)
    if not faults:
        was_examined = exported.state.summary.is_complete
        verdict = (
            "found nothing amiss in training" if was_examined else "did not look at this model"
        )
        yield f"- the doctor {verdict}."
    for line in exported.messages("warnings"):
        yield f"- {_escape_markdown(line)}"


def _inputs(exported: ExportedModel) -> Iterator[str]:
    if exported.reads_tables:
        yield "`cida.load` reads these columns as a table has them."
        yield ""
    yield "| input | what |"
    yield "|---|---|"
    for spec in build_onnx_inputs(exported.state):
        shape = f", shape {tuple(spec.shape)}" if spec.shape else ""
        yield (
            f"| {_escape_markdown(spec.column)} | {spec.kind}: {INPUT_FORMATS[spec.kind]}{shape} |"
        )


def _loading(exported: ExportedModel, folder: str) -> Iterator[str]:
    module_arguments = "".join(f", {player}=..." for player in exported.custom_modules)
    yield from ("```python", "import cida", "", f'model = cida.load("{folder}"{module_arguments})')
    if exported.reads_tables:
        yield "model.predict(table)  # pandas, polars, pyarrow, or the path of a file"
        yield "model.is_extrapolated(table)  # rows whose index is far from all that was seen"
    elif exported.index_names:
        yield "model.predict(X, domain_index=u)"
    else:
        yield "model.predict(X)"
    yield "```"
    if exported.custom_modules:
        yield ""
        yield (
            f"The {' and the '.join(exported.custom_modules)} is a module of your own: pass it "
            "again."
        )


def _versions(exported: ExportedModel) -> Iterator[str]:
    yield "| package | trained with |"
    yield "|---|---|"
    for name, version in exported.versions.items():
        yield f"| {_escape_markdown(name)} | {_escape_markdown(version)} |"


def _format_range(values: Array, date: bool) -> str:
    if not len(values):
        return "none"
    low, high = float(values.min()), float(values.max())
    if date:
        return f"{_format_date(low)} to {_format_date(high)}"
    return f"{low:.6g} to {high:.6g}"


def _format_date(days: float) -> str:
    try:
        return f"{(UNIX_EPOCH + timedelta(days=days)).date()}"
    except OverflowError:  # a year beyond the calendar's
        return f"day {days:.6g}"


def _format_index(value: Any) -> str:
    numbers = value if isinstance(value, list) else [value]
    return ", ".join(f"{number:.4g}" for number in numbers)


def _escape_markdown(text: str) -> str:
    """The text as Markdown shows it, on one line."""
    for sign in ("\\", "|", "<", "*", "`", "_", "["):
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
