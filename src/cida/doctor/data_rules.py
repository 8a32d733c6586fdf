"""Faults of the rows: an index or labels that no game can do well with."""

from __future__ import annotations

from collections.abc import Iterator

from cida.doctor.diagnosis import Diagnosis
from cida.doctor.fit_summary import FitSummary

__all__ = ["diagnose_index", "diagnose_label_shift", "diagnose_row_counts"]

# Set on the worlds circle, sine, plane and irrelevant_index, seeds 103 to 105 (docs/doctor.md).
MAX_MODE_SHARE = 0.9  # of the rows have one index value
MAX_DENSEST_SHARE = 0.35  # of the rows lie in a hundredth of the index range
MAX_TIED_SHARE = 0.8  # of these may have one value, so that u is no index of a few values
INDEX_STD_RANGE = (0.1, 10.0)  # of a coordinate that was scaled to deviation 1
MIN_ROWS_PER_SIDE = (
    60  # labelled, and unlabelled; with fewer there is no trial of coordinates either
)
MIN_ROWS_PER_CLASS = 10


def diagnose_index(summary: FitSummary) -> Iterator[Diagnosis]:
    """Columns of u that hardly change, or that a few stray values stretch."""
    several = len(summary.index_columns) > 1
    for number, column in enumerate(summary.index_columns):
        column_name = f"column {number} of domain_index" if several else "domain_index"
        if column.mode_share >= MAX_MODE_SHARE:
            yield Diagnosis(
                "index-constant",
                f"{column.mode_share:.0%} of the rows have the same value in {column_name}.",
                f"Give a domain_index that differs between rows, or leave {column_name} out.",
            )
        elif (
            column.densest_share >= MAX_DENSEST_SHARE
            and column.mode_share < MAX_TIED_SHARE * column.densest_share
        ):
            yield Diagnosis(
                "index-unscaled",
                f"{column.densest_share:.0%} of the rows lie within a hundredth of the range of "
                f"{column_name}: "
                "a few stray or very large values make up the rest.",
                "Pass domain_index without the stray values (drop those rows, or clip them), or "
                "its logarithm or rank.",
            )
        elif column.std is not None and not INDEX_STD_RANGE[0] <= column.std <= INDEX_STD_RANGE[1]:
            yield Diagnosis(
                "index-unscaled",
                f"{column_name} has a deviation of {column.std:.3g} in the coordinates of space, "
                "where 1 is meant.",
                "Use space=cida.Line(), which scales it, or give your own space a fit that does.",
            )


def diagnose_row_counts(summary: FitSummary) -> Iterator[Diagnosis]:
    """So few rows on one side that they are learnt by heart."""
    if summary.n_source_rows is None or summary.n_target_rows is None or not summary.is_adaptive:
        return
    min_source_rows = max(MIN_ROWS_PER_SIDE, MIN_ROWS_PER_CLASS * (summary.n_classes or 0))
    if summary.n_source_rows < min_source_rows:
        yield Diagnosis(
            "too-few-rows",
            f"Only {summary.n_source_rows} rows have a label.",
            f"Label at least {min_source_rows} in y, or compare with discriminator=None before "
            "trusting it.",
        )
    if summary.n_target_rows < MIN_ROWS_PER_SIDE:
        yield Diagnosis(
            "too-few-rows",
            f"Only {summary.n_target_rows} rows have no label, which is too few to align.",
            f"Add rows without a label to X and domain_index, {MIN_ROWS_PER_SIDE} at least, or use "
            "discriminator=None.",
        )


def diagnose_label_shift(summary: FitSummary) -> Iterator[Diagnosis]:
    """Labels whose balance moves along u, in a game that hides u."""
    if summary.label_shift_summary and summary.is_adaptive and not summary.is_conditional:
        yield Diagnosis(
            "label-shift",
            f"y itself seems to depend on domain_index: {summary.label_shift_summary}.",
            "Compare with discriminator=None, or use game='conditional' with coordinates='raw'.",
        )
