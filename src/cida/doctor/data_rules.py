"""Problems of the data: an index or labels with which no game can do well."""

from __future__ import annotations

from collections.abc import Iterator

from cida.doctor.diagnosis import Diagnosis, Suggestion
from cida.doctor.fit_summary import FitSummary
from cida.doctor.thresholds import THRESHOLDS

__all__ = ["diagnose_index", "diagnose_label_shift", "diagnose_row_counts"]


def diagnose_index(summary: FitSummary) -> Iterator[Diagnosis]:
    """Columns of u that hardly change, or whose range is stretched by a few outliers."""
    for number, column in enumerate(summary.index_columns):
        position = {"column": float(number)} if len(summary.index_columns) > 1 else {}
        if column.mode_share >= THRESHOLDS.max_mode_share:
            yield Diagnosis("index-constant", {"mode_share": column.mode_share, **position})
        elif (
            column.densest_share >= THRESHOLDS.max_densest_share
            and column.mode_share < THRESHOLDS.max_tied_share * column.densest_share
        ):
            yield Diagnosis("index-unscaled", {"densest_share": column.densest_share, **position})
        elif column.std is not None and not (
            THRESHOLDS.min_index_std <= column.std <= THRESHOLDS.max_index_std
        ):
            yield Diagnosis("index-unscaled", {"index_std": column.std, **position})


def diagnose_row_counts(summary: FitSummary) -> Iterator[Diagnosis]:
    """So few rows on one side that they can be memorized."""
    if summary.n_source_rows is None or summary.n_target_rows is None or not summary.is_adaptive:
        return
    min_target_rows = THRESHOLDS.min_rows_per_side
    min_source_rows = max(min_target_rows, THRESHOLDS.min_rows_per_class * (summary.n_classes or 0))
    for side, n_rows, min_rows in (
        ("source", summary.n_source_rows, min_source_rows),
        ("target", summary.n_target_rows, min_target_rows),
    ):
        if n_rows < min_rows:
            counts: dict[str, float] = {f"n_{side}_rows": n_rows, f"min_{side}_rows": min_rows}
            yield Diagnosis("too-few-rows", counts)


def diagnose_label_shift(summary: FitSummary) -> Iterator[Diagnosis]:
    """Labels whose distribution changes along u, in a game that hides u."""
    shift = summary.label_shift
    if shift is None or not shift.is_suspected or not summary.is_adaptive or summary.is_conditional:
        return
    evidence = {"min_class_share": shift.low, "max_class_share": shift.high}
    if shift.label is None:
        evidence = {"between_variance_share": shift.shift}
    yield Diagnosis("label-shift", evidence, Suggestion("game", summary.game, "conditional"))
