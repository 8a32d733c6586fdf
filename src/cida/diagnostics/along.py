"""Where along u an encoding still depends on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from torch import Tensor

from cida.diagnostics.directions import Strata, some_rows
from cida.diagnostics.independence import Place, independence
from cida.diagnostics.probes import Probe
from cida.space import Bins, Space

__all__ = ["Along", "Cell", "Cells", "along_index", "cells_along"]

Array = np.ndarray[Any, Any]

MOST_CELLS = 10
ROWS_A_CELL = 100  # on the mean
FEWEST_OUTSIDE = 20  # rows whose mean can be compared with the rest
FEWEST_INSIDE = 50  # rows inside which anything can be seen
WORTH_SPLITTING = 0.005  # of V[u]: of less, parts are noise


@dataclass(frozen=True)
class Cell:
    """One cell along u, ``lo`` to ``hi`` in the units of u, a number for each column.

    ``apart``: does z here differ from z elsewhere? ``within``: does z tell u inside the cell? Both
    are p-values that allow for the number of cells, None where there are too few rows or, inside,
    one value of u alone. ``surprise`` is ``-log p`` of the first, to tell the worst.
    """

    lo: tuple[float, ...]
    hi: tuple[float, ...]
    n: int
    apart: float | None
    surprise: float
    within: float | None


@dataclass(frozen=True)
class Along:
    """The cells, and the share of what boosting explains that lies between cells.

    ``between`` is ``Cov(E[p | cell], E[u | cell]) / Cov(p, u)`` of its predictions p on rows that
    it was not fitted on; None where it explains next to nothing.
    """

    cells: tuple[Cell, ...]
    between: float | None
    level: float

    @property
    def worst(self) -> Cell | None:
        """The cell whose z is farthest from z elsewhere, where that is beyond chance."""
        told = [cell for cell in self.cells if cell.apart is not None and cell.apart <= self.level]
        return max(told, key=lambda cell: cell.surprise, default=None)

    @property
    def worst_within(self) -> Cell | None:
        """The cell inside which z tells u most surely, where that is beyond chance."""
        told = [cell for cell in self.cells if (cell.within or 1.0) <= self.level]
        return min(told, key=lambda cell: cell.within or 1.0, default=None)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        cells = [{**asdict(c), "lo": list(c.lo), "hi": list(c.hi)} for c in self.cells]
        return {"between": self.between, "cells": cells}


@dataclass(frozen=True)
class Cells:
    """``of_rows``: the cell of each row, -1 where the cell has too few to be compared."""

    bins: Bins
    of_rows: Array


def cells_along(space: Space, u: Tensor) -> Cells:
    """At most ten cells, and a hundred rows each on the mean."""
    bins = space.bins(u, int(np.clip(len(u) // ROWS_A_CELL, 2, MOST_CELLS)))
    owner = bins.rows.numpy()
    counts = np.bincount(owner, minlength=len(bins))
    return Cells(bins, np.where(counts[owner] >= FEWEST_OUTSIDE, owner, -1))


def along_index(
    z: Array,
    e: Array,
    cells: Cells,
    places: dict[int, Place],
    probe: Probe,
    level: float,
    seed: int,
) -> Along:
    """``places`` and ``probe`` are those of all rows."""
    bins, owner = cells.bins, cells.bins.rows.numpy()
    members = {cell: np.flatnonzero(owner == cell) for cell in range(len(bins))}
    inside = {cell: _inside(z[rows], e[rows], seed) for cell, rows in members.items() if len(rows)}
    within = _holm({cell: p for cell, p in inside.items() if p is not None})
    told = []
    for cell, rows in members.items():
        if len(rows):
            place = places.get(cell)
            told.append(
                Cell(
                    tuple(bins.lo[cell].tolist()),
                    tuple(bins.hi[cell].tolist()),
                    len(rows),
                    None if place is None else place.p,
                    0.0 if place is None else place.surprise,
                    within.get(cell),
                )
            )
    some = some_rows(len(z), len(probe.predicted))
    return Along(tuple(told), _between(probe, e[some], owner[some]), level)


def _inside(z: Array, e: Array, seed: int) -> float | None:
    if len(z) < FEWEST_INSIDE or not (np.ptp(e, axis=0) > 0).any():
        return None
    varies = z[:, z.std(0) > 1e-6]
    if not varies.shape[1]:
        return None
    return independence(varies, e, Strata.whole(len(z)), pairs=False, seed=seed).p


def _holm(found: dict[int, float]) -> dict[int, float]:
    """Holm's correction: the smallest p-value times their number, the next times one less ..."""
    adjusted, highest = {}, 0.0
    for rank, cell in enumerate(sorted(found, key=lambda cell: found[cell])):
        highest = max(highest, min(1.0, found[cell] * (len(found) - rank)))
        adjusted[cell] = highest
    return adjusted


def _between(probe: Probe, e: Array, owner: Array) -> float | None:
    if probe.share < WORTH_SPLITTING:
        return None
    p, left = probe.predicted - probe.predicted.mean(0), e - e.mean(0)
    cells = Strata(owner)
    p_inside, left_inside = cells.without(p), cells.without(left)
    return float(np.clip(1 - (p_inside * left_inside).sum() / (p * left).sum(), 0.0, 1.0))
