"""``python -m benchmarks.regret FOLDER``: the adaptive estimators on real tables along an index.

FOLDER has tables (.csv or .csv.gz) with all labels. The last three columns are the index, the label
and ``source``: 1 where the label may be used, 0 for the target, which is scored alone. ``--half``
takes every second table of each kind, in the order of their names: the first half is for
development.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cida import AdaptiveClassifier, AdaptiveRegressor, CIDAClassifier, CIDARegressor
from cida.array_types import Array
from cida.coordinates import IndexWindows
from cida.errors import CidaWarning
from cida.estimators.validation import FitArguments
from cida.threads import single_threaded

MAX_CLASSES = 10  # a label of more different values is a number
ADAPTIVE, NO_GAME = "adaptive", "CIDA, no game"


class Table(NamedTuple):
    """A table with its roles, and its inputs as numbers for models that take nothing else."""

    name: str
    frame: Any
    label: str
    index_name: str
    is_regression: bool
    truth: Array
    source: Array
    columns: Array
    windows: Array
    u: Array


def read_table(path: Path) -> Table:
    """A table whose target labels are kept apart."""
    import pandas as pd

    frame = pd.read_csv(path)
    index, label, mask = frame.columns[-3:]
    source = frame.pop(mask).to_numpy().astype(bool)
    is_regression = frame[label].dtype.kind == "f" and frame[label].nunique() > MAX_CLASSES
    truth = frame[label].to_numpy(copy=True)
    truth = truth if is_regression else truth.astype(str)
    frame[label] = frame[label] if is_regression else frame[label].astype(str)
    frame.loc[~source, label] = np.nan if is_regression else None
    reader = CIDARegressor() if is_regression else CIDAClassifier()
    data = reader.read_training_data(FitArguments(frame, label, (index,)))
    x = data.dataset[torch.arange(len(data))].x
    numbers, missing, _ = data.layout.split(x)
    u = data.dataset.u.numpy()
    moved = IndexWindows().fit_transform(numbers.masked_fill(missing, torch.nan), domain_index=u)
    in_windows = torch.from_numpy(np.nan_to_num(moved)).float()
    return Table(
        path.name.removesuffix(".gz").removesuffix(".csv"),
        frame,
        label,
        index,
        is_regression,
        truth,
        source,
        data.layout.design_matrix(x).double().numpy(),
        data.layout.design_matrix(x, in_windows).double().numpy(),
        u,
    )


def score_models(table: Table, seed: int) -> tuple[dict[str, float], Mapping[str, float]]:
    """The score of each model on the target in per cent, and the figures of the committee."""
    reg, with_u = table.is_regression, np.hstack([table.columns, table.u])
    linear = Ridge if reg else LogisticRegression
    boosting = HistGradientBoostingRegressor if reg else HistGradientBoostingClassifier
    network: Any = MLPRegressor if reg else MLPClassifier
    mlp = network(early_stopping=True, max_iter=500, random_state=seed)
    models: list[tuple[str, Any, Array]] = [
        ("linear", make_pipeline(StandardScaler(), linear()), table.columns),
        ("linear with u", make_pipeline(StandardScaler(), linear()), with_u),
        ("boosting", boosting(random_state=seed), table.columns),
        ("boosting with u", boosting(random_state=seed), with_u),
        ("MLP", make_pipeline(StandardScaler(), mlp), table.columns),
        ("linear in windows", make_pipeline(StandardScaler(), linear()), table.windows),
    ]
    scores = {}
    for name, model, x in models:
        model.fit(x[table.source], table.truth[table.source])
        scores[name] = _score(table, model.predict(x[~table.source]))
    kind: Callable[..., Any] = CIDARegressor if reg else CIDAClassifier
    for name, settings in ((NO_GAME, {"discriminator": None}), ("CIDA", {})):
        model = kind(random_state=seed, **settings)
        model.fit(table.frame, table.label, domain_index=[table.index_name])
        scores[name] = _score(table, model.predict(table.frame)[~table.source])
    scores[ADAPTIVE], figures = _score_committee(table, seed)
    return scores, figures


def _score_committee(table: Table, seed: int) -> tuple[float, Mapping[str, float]]:
    kind = AdaptiveRegressor if table.is_regression else AdaptiveClassifier
    start = time.perf_counter()
    model = kind(random_state=seed).fit(table.frame, table.label, domain_index=[table.index_name])
    figures = {
        "seconds": time.perf_counter() - start,
        "adapted": 100 * model.decision_.adapted_share,
    }
    score = _score(table, model.predict(table.frame)[~table.source])
    if isinstance(model, AdaptiveClassifier):
        (cell,) = model.expected_score(table.frame, table.label, [table.index_name], n_bins=1)
        figures |= {"expected": 100 * cell.score, "low": 100 * cell.low, "high": 100 * cell.high}
    return score, figures


def _score(table: Table, predicted: Array) -> float:
    truth = table.truth[~table.source]
    if table.is_regression:
        return 100 * float(r2_score(truth, predicted))
    return 100 * float(accuracy_score(truth, predicted.astype(str)))


def main() -> None:
    """Score all models on each table, and print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("development", "other", "all"), default="development")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tables = [read_table(path) for path in sorted(arguments.folder.glob("*.csv*"))]
    if not tables:
        raise SystemExit(f"there is no .csv or .csv.gz file in {arguments.folder}.")
    if arguments.half != "all":
        start = arguments.half == "other"
        kinds = [[t for t in tables if t.is_regression is reg] for reg in (False, True)]
        tables = [table for kind in kinds for table in kind[start::2]]
    rows: list[tuple[bool, dict[str, float], Mapping[str, float]]] = []
    for table in tables:
        with warnings.catch_warnings(), single_threaded():
            warnings.simplefilter("ignore", CidaWarning)
            scores, figures = score_models(table, arguments.seed)
        if not rows:
            print("| table |", " | ".join([*scores, "regret", "adapted %", "expected", "s"]), "|")
            print("|---|" + "---|" * (len(scores) + 4))
        regret = max(scores.values()) - scores[ADAPTIVE]
        expected = ""
        if not table.is_regression:
            expected = "{expected:.0f} ({low:.0f}-{high:.0f})".format(**figures)
        cells = [f"{each:.1f}" for each in (*scores.values(), regret, figures["adapted"])]
        name = f"{table.name} (R2)" if table.is_regression else table.name
        cells = [name, *cells, expected, f"{figures['seconds']:.1f}"]
        print("|", " | ".join(cells), "|", flush=True)
        rows.append((table.is_regression, scores, figures))
    print_summary([(s, f) for is_regression, s, f in rows if not is_regression])


def print_summary(rows: list[tuple[dict[str, float], Mapping[str, float]]]) -> None:
    """Regret of each model over all classification tables, and the committee against each."""
    names = list(rows[0][0])
    scores = np.array([[each[name] for name in names] for each, _ in rows])
    own = scores[:, names.index(ADAPTIVE)]
    best = scores.max(axis=1)
    print(f"\n{len(rows)} classification tables, points of target accuracy:\n")
    print("| always | mean | regret | worst | adaptive better by > 1 | worse by > 1 |")
    print("|---|---|---|---|---|---|")
    for name, column in zip(names, scores.T, strict=True):
        regret, gain = best - column, own - column
        cells = f"{column.mean():.1f} | {regret.mean():.2f} | {regret.max():.1f}"
        print(f"| {name} | {cells} | {(gain > 1).sum()} | {(gain < -1).sum()} |")
    error = np.array([f["expected"] for _, f in rows]) - own
    inside = [f["low"] <= a <= f["high"] for (_, f), a in zip(rows, own, strict=True)]
    width = np.mean([f["high"] - f["low"] for _, f in rows])
    print(
        f"\nExpected accuracy: off by {np.abs(error).mean():.1f} points in the mean, bias "
        f"{error.mean():+.1f}; the interval holds the truth in {np.mean(inside):.0%} of the tables "
        f"and is {width:.1f} points wide."
    )


if __name__ == "__main__":
    main()
