"""The model card: what a model is, what it was made from, how far to trust it; in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from cida.diagnostics.view import View
from cida.estimators.base import CIDAEstimator
from cida.estimators.classifier import CIDAClassifier
from cida.estimators.saving import versions
from cida.networks import network_words
from cida.report.onnx_inputs import INPUTS, inputs_of
from cida.version import __version__

if TYPE_CHECKING:  # it needs pyarrow, and estimators have a card without
    from cida.estimators.table import TableModel

__all__ = ["CITATION", "Deployed", "model_card"]

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
PAPER = (
    "Wang, He and Katabi, *Continuously Indexed Domain Adaptation*, ICML 2020; `CITATION.cff` has "
    "it for programs."
)
NO_TARGET_LABELS = "No label of the target was read in training."
LIMITS = (
    "Nothing was learned at index values far from those above; predictions there are not to be "
    "trusted.",
    "Alignment cannot be proved: an encoding may be free of the index and still wrong, as when "
    "domains are turned against each other.",
    "Where the balance of labels itself moves along the index, adapting may do harm.",
    "How right the model is where no labels are, only labels from there can tell.",
)
MOST_CELLS = 40  # lines of a table along the index
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Deployed:
    """A model, and what its run left beside it: run.json, row.json and the view, where they are."""

    model: CIDAEstimator | TableModel
    words: Mapping[str, Any] = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)
    view: View | None = None

    @property
    def estimators(self) -> tuple[CIDAEstimator, ...]:
        model = self.model
        return (model,) if isinstance(model, CIDAEstimator) else model.estimators

    @property
    def title(self) -> str:
        """What the model tells, or the run that it is of."""
        if not isinstance(self.model, CIDAEstimator):
            return f"{self.model.label} along {', '.join(self.model.index)}"
        if "world" in self.words:
            method = self.words.get("title", self.words.get("method", ""))
            return f"{self.words['world']}, {method}"
        return type(self.model).__name__

    @property
    def index(self) -> tuple[str, ...]:
        """The names of the index columns."""
        model = self.model
        if not isinstance(model, CIDAEstimator):
            return model.index
        width = model.index_width_
        if width is None:
            return ()
        names = model._index_names or (self.view.index if self.view is not None else None)
        return tuple(names or (["u"] if width == 1 else [f"u{k}" for k in range(width)]))

    @property
    def dates(self) -> tuple[bool, ...]:
        """Which index columns are days since 1970-01-01."""
        if isinstance(self.model, CIDAEstimator):
            return (False,) * len(self.index)
        return tuple(kind == "date" for kind in self.model.index_kinds)

    @property
    def lacks(self) -> list[str]:
        """The players that are modules of the user's own, which no file holds."""
        return [
            player
            for player in ("encoder", "predictor")
            for model in self.estimators[:1]
            if isinstance(self.model, CIDAEstimator)
            and getattr(model, player) is not None
            and network_words(getattr(model.game_, player)) is None
        ]


def model_card(deployed: Deployed, folder: str = "DIR") -> str:
    """The card; ``folder`` is how the lines of code call the folder that it lies in."""
    sections = {
        "What it is": _about(deployed),
        "Data": _data(deployed),
        "Range of the index": _ranges(deployed),
        "Figures": _figures(deployed),
        "Can it be trusted?": _trust(deployed),
        "Limits": [f"- {sentence}" for sentence in LIMITS if deployed.index],
        "Inputs of the ONNX file": _inputs(deployed),
        "How to load it": _loading(deployed, folder),
        "Versions": _versions(deployed),
        "How to cite": [PAPER],
    }
    front = "---\nlibrary_name: cida\ntags:\n- domain-adaptation\n- continuous-domain-index\n---\n"
    parts = [f"{front}\n# {_escaped(deployed.title)}\n"]
    for title, lines in sections.items():
        found = list(lines)
        if found:
            parts.append(f"## {title}\n\n" + "\n".join(found) + "\n")
    return "\n".join(parts)


def _about(deployed: Deployed) -> Iterator[str]:
    model, words = deployed.estimators[0], deployed.words
    task = "classes" if isinstance(model, CIDAClassifier) else "numbers"
    trained = "was trained on labelled rows alone"
    if model.facts_.adapts:
        trained = "was adapted along a continuous index to rows without labels"
    version = _escaped(words.get("versions", versions()).get("cida", "unknown"))
    yield f"A `{type(model).__name__}` of cida {version}: it predicts {task}, and {trained}."
    yield ""
    if "method" in words:
        yield f"- method: {_escaped(str(words['method']))}"
    if len(deployed.estimators) > 1:
        yield f"- the mean of {len(deployed.estimators)} models with a seed each"
    elif "seed" in words:
        yield f"- seed: {words['seed']}"
    yield f"- steps of training: {model.n_steps_}"
    yield f"- space of the index: `{model.space_!r}`"
    if isinstance(model, CIDAClassifier):
        known = getattr(deployed.model, "classes", None) or model.classes_.tolist()
        yield f"- classes: {', '.join(_escaped(str(name)) for name in known)}"


def _data(deployed: Deployed) -> Iterator[str]:
    words, facts = deployed.words, deployed.estimators[0].facts_
    if "data" in words:
        yield f"- fingerprint: `{str(words['data']).replace('`', ' ')}`"
    if facts.source_rows is not None:
        yield f"- trained on: {facts.source_rows:,} rows with labels, {facts.target_rows:,} without"
    for line in words.get("words", {}).get("understood", ()):
        yield f"- {_escaped(line)}"
    if words.get("oracle"):
        yield "- an oracle: trained on the labels of all rows, those of the target too"
    else:
        yield f"- {NO_TARGET_LABELS}"


def _ranges(deployed: Deployed) -> Iterator[str]:
    """Where labels were, and where rows were without."""
    if not deployed.index:
        return
    seen = deployed.estimators[0]._seen.numpy()
    view = deployed.view
    shown = view is not None and len(view.u) > 0 and view.u.shape[1] == seen.shape[1]
    yield "| index | seen in training |" + (" with labels | without |" if shown else "")
    yield "|---|---|" + ("---|---|" if shown else "")
    for k, (name, date) in enumerate(zip(deployed.index, deployed.dates, strict=True)):
        cells = [_escaped(name), _span(seen[:, k], date)]
        if view is not None and shown:
            cells += [_span(view.u[rows, k], date) for rows in (view.source, ~view.source)]
        yield f"| {' | '.join(cells)} |"
    if view is not None and shown:
        yield ""
        yield f"With labels and without: of the {len(view.u):,} rows that the run keeps to show."


def _figures(deployed: Deployed) -> Iterator[str]:
    came_to = deployed.words.get("words", {}).get("came_to", ())
    yield from (f"- {_escaped(line)}" for line in came_to)
    if not came_to:
        scores = deployed.words.get("figures", {}).get("scores", {})
        yield from (f"- held-out source, {name}: {score:.3g}" for name, score in scores.items())
    row = deployed.row
    if not row:
        return
    form = ".1%" if _is_share(row) else ".4g"
    for part in ("source", "target"):
        yield f"- {part}: {row[f'{part}_accuracy']:{form}}"
    yield ""
    yield "Measured on a benchmark whose target labels are known, and used for scoring alone."
    cells = row.get("by_index", ())
    if cells and _is_share(row) and len(cells) <= MOST_CELLS:
        yield ""
        yield from _cells(cells)


def _cells(cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| from | to | accuracy | rows |"
    yield "|---|---|---|---|"
    for cell in cells:
        lo, hi = (_place(cell[end]) for end in ("lo", "hi"))
        yield f"| {lo} | {hi} | {cell['accuracy']:.1%} | {cell['n']:,} |"


def _trust(deployed: Deployed) -> Iterator[str]:
    trust = deployed.words.get("trust", {})
    lines = list(trust.get("certificate", ()))
    yield from (f"- {_escaped(line)}" for line in lines)
    if not lines:
        yield "- No certificate of alignment was made for this run."
    faults = trust.get("faults")
    if faults is None:
        found = [finding for model in deployed.estimators for finding in model.findings_]
        faults = list(dict.fromkeys(str(finding) for finding in found))
    yield from (f"- the doctor says: {_escaped(line)}" for line in faults)
    if not faults:
        looked = "words" in deployed.words or deployed.estimators[0].facts_.complete
        told = "found nothing amiss in training" if looked else "did not look at this model"
        yield f"- the doctor {told}."
    for line in deployed.words.get("words", {}).get("warnings", ()):
        yield f"- {_escaped(line)}"


def _inputs(deployed: Deployed) -> Iterator[str]:
    if not isinstance(deployed.model, CIDAEstimator):
        yield "`cida.load` reads these columns as a table has them."
        yield ""
    yield "| input | what |"
    yield "|---|---|"
    for one in inputs_of(deployed.model):
        shape = f", shape {tuple(one.shape)}" if one.shape else ""
        yield f"| {_escaped(one.column)} | {one.kind}: {INPUTS[one.kind]}{shape} |"


def _loading(deployed: Deployed, folder: str) -> Iterator[str]:
    own = "".join(f", {player}=..." for player in deployed.lacks)
    yield from ("```python", "import cida", "", f'model = cida.load("{folder}"{own})')
    if not isinstance(deployed.model, CIDAEstimator):
        yield "model.predict(table)  # pandas, polars, pyarrow, or the path of a file"
        yield "model.beyond(table)  # rows whose index is far from all that was seen"
    elif deployed.index:
        yield "model.predict(X, domain_index=u)"
    else:
        yield "model.predict(X)"
    yield "```"
    if deployed.lacks:
        yield ""
        yield f"The {' and the '.join(deployed.lacks)} is a module of your own: pass it again."


def _versions(deployed: Deployed) -> Iterator[str]:
    yield "| package | trained with |"
    yield "|---|---|"
    for name, version in deployed.words.get("versions", versions()).items():
        yield f"| {_escaped(name)} | {_escaped(version)} |"


def _span(values: Array, date: bool) -> str:
    if not len(values):
        return "none"
    low, high = float(values.min()), float(values.max())
    if date:
        return f"{_day(low)} to {_day(high)}"
    return f"{low:.6g} to {high:.6g}"


def _day(days: float) -> str:
    try:
        return f"{(EPOCH + timedelta(days=days)).date()}"
    except OverflowError:  # a year beyond the calendar's
        return f"day {days:.6g}"


def _place(value: Any) -> str:
    numbers = value if isinstance(value, list) else [value]
    return ", ".join(f"{number:.4g}" for number in numbers)


def _is_share(row: Mapping[str, Any]) -> bool:
    """Whether the figures are accuracies; those of a regression may be anything."""
    known = [row.get(name) for name in ("source_accuracy", "target_accuracy")]
    return all(isinstance(value, float | int) and 0 <= value <= 1 for value in known)


def _escaped(text: str) -> str:
    """The text as Markdown shows it, on one line."""
    for sign in ("\\", "|", "<", "*", "`", "_", "["):
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
