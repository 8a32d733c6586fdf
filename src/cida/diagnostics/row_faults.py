"""Faults of the rows: an index or labels that no game can do well with."""

from __future__ import annotations

from collections.abc import Iterator

from cida.diagnostics.facts import Facts
from cida.diagnostics.findings import Finding

__all__ = ["few_rows", "index_faults", "shifting_labels"]

# Set on the worlds circle, sine, plane and irrelevant_index, seeds 103 to 105 (docs/doctor.md).
NEARLY_CONSTANT = 0.9  # of the rows have one index value
CROWDED = 0.35  # of the rows lie in a hundredth of the index range
TIES = 0.8  # of these may have one value, so that u is no index of a few values
SCALES = (0.1, 10.0)  # of a coordinate that was scaled to deviation 1
FEWEST_ROWS = 60  # labelled, and unlabelled; with fewer there is no trial of coordinates either
FEWEST_OF_CLASS = 10


def index_faults(facts: Facts) -> Iterator[Finding]:
    """Columns of u that hardly change, or that a few stray values stretch."""
    several = len(facts.index) > 1
    for number, column in enumerate(facts.index):
        which = f"column {number} of domain_index" if several else "domain_index"
        if column.same >= NEARLY_CONSTANT:
            yield Finding(
                "index-constant",
                f"{column.same:.0%} of the rows have the same value in {which}.",
                f"Give a domain_index that differs between rows, or leave {which} out.",
            )
        elif column.crowded >= CROWDED and column.same < TIES * column.crowded:
            yield Finding(
                "index-unscaled",
                f"{column.crowded:.0%} of the rows lie within a hundredth of the range of {which}: "
                "a few stray or very large values make up the rest.",
                "Pass domain_index without the stray values (drop those rows, or clip them), or "
                "its logarithm or rank.",
            )
        elif column.spread is not None and not SCALES[0] <= column.spread <= SCALES[1]:
            yield Finding(
                "index-unscaled",
                f"{which} has a deviation of {column.spread:.3g} in the coordinates of space, "
                "where 1 is meant.",
                "Use space=cida.Line(), which scales it, or give your own space a fit that does.",
            )


def few_rows(facts: Facts) -> Iterator[Finding]:
    """So few rows on one side that they are learnt by heart."""
    if facts.source_rows is None or facts.target_rows is None or not facts.adapts:
        return
    wanted = max(FEWEST_ROWS, FEWEST_OF_CLASS * (facts.classes or 0))
    if facts.source_rows < wanted:
        yield Finding(
            "too-few-rows",
            f"Only {facts.source_rows} rows have a label.",
            f"Label at least {wanted} in y, or compare with discriminator=None before trusting it.",
        )
    if facts.target_rows < FEWEST_ROWS:
        yield Finding(
            "too-few-rows",
            f"Only {facts.target_rows} rows have no label, which is too few to align.",
            f"Add rows without a label to X and domain_index, {FEWEST_ROWS} at least, or use "
            "discriminator=None.",
        )


def shifting_labels(facts: Facts) -> Iterator[Finding]:
    """Labels whose balance moves along u, in a game that hides u."""
    if facts.label_shift and facts.adapts and not facts.conditional:
        yield Finding(
            "label-shift",
            f"y itself seems to depend on domain_index: {facts.label_shift}.",
            "Compare with discriminator=None, or use game='conditional' with "
            "index_in_encoder=False.",
        )
