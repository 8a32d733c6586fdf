"""The explorer: what models make of some rows as u moves, from arrays that are in the page."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from cida.diagnostics.expected import Expected
from cida.diagnostics.view import Plane, Turned, View
from cida.space import Periodic, Space

__all__ = ["assets", "explorer", "explorer_data", "explorer_section"]

Array = np.ndarray[Any, Any]
Words = dict[str, Any]

SCRIPTS = (
    "numbers.js", "marching.js", "colours.js", "pictures.js", "digits.js", "dial.js", "pad.js",
    "slider.js", "legend.js", "panel.js", "explorer.js",
)  # fmt: skip
STYLES = ("explorer.css",)
MOST_COLUMNS = 4  # of the index that have a slider
MOST_BARS = 10  # of classes; those beyond share one
INTRODUCTION = (
    "Move the index, or let it play. Bright rows are near it, and all figures are of the rows near "
    "it, weighted by how near. The line on top of a panel is the same figure along the whole index."
)
SHOWN = 3  # runs at first
APART = 0.04  # of the range: source rows that are closer have nothing between them
MOST_SURE = 30.0  # the largest log-odds on a plane
UNKNOWN = 65535  # in 16 bits


def explorer(views: Mapping[str, View], first: Sequence[str] = ()) -> str:
    """The section for runs by their titles, whole in itself; nothing if there are no views.

    ``first`` are the titles shown at first: if not given, the best of those that saw no target
    label, Source-Only and one more.
    """
    return explorer_section(views, first) + assets() if views else ""


def explorer_section(
    views: Mapping[str, View], first: Sequence[str] = (), place: str = "explorer", level: int = 2
) -> str:
    """One of several explorers of a page, which needs the `assets` behind the last of them."""
    words = json.dumps(explorer_data(views, first), ensure_ascii=False, separators=(",", ":"))
    safe = words.replace("<", "\\u003c")  # so that no name can end the script
    return (
        f'<section class="explorer" aria-labelledby="{place}"><h{level} id="{place}">Explorer'
        f'</h{level}><p class="soft">{INTRODUCTION}</p>'
        f'<script type="application/json" class="explorer-data">{safe}</script>'
        "<noscript><p>The explorer needs JavaScript, which is in this file.</p></noscript>"
        "</section>"
    )


def assets() -> str:
    """The explorer's style and script, as the page holds them."""
    style, script = ("\n".join(map(_asset, names)) for names in (STYLES, SCRIPTS))
    return (
        f'<style>\n{style}</style>\n<script>\n(() => {{\n"use strict";\n{script}}})();\n</script>'
    )


def _asset(name: str) -> str:
    return files("cida.report").joinpath("assets", name).read_text(encoding="utf-8")


def explorer_data(views: Mapping[str, View], first: Sequence[str] = ()) -> Words:
    """All that the page's script knows: index columns, classes, runs, and each array once."""
    arrays = _Arrays()
    every = list(views.values())
    columns = _columns(every)
    classes = _all_classes(every)
    bars = _bars(every)
    shown = tuple(first) or _first_shown(views)
    return {
        "columns": columns,
        "classes": classes,
        "runs": [
            {"title": title, "shown": title in shown, **_run(view, columns, classes, bars, arrays)}
            for title, view in views.items()
        ],
        "arrays": arrays.packed,
    }


# --- arrays --------------------------------------------------------------------------------------


class _Arrays:
    """Numbers in 8 or 16 bits, each array once: rows are often the same for all runs."""

    def __init__(self) -> None:
        self.packed: list[Words] = []
        self._number: dict[str, int] = {}

    def add(self, values: Array, bits: int, low: float, high: float) -> int:
        """``value = low + step * code``, the code in so many bits; 16 have one for NaN."""
        codes = 255 if bits == 8 else UNKNOWN - 1
        step = (high - low) / codes
        known = np.isfinite(values)
        inside = np.where(known, values, low).astype(np.float64)
        code = np.rint((inside - low) / step) if step > 0 else np.zeros(inside.shape)
        code = np.where(known, np.clip(code, 0, codes), UNKNOWN)
        data = code.astype("<u1" if bits == 8 else "<u2").tobytes()
        words = {
            "bits": bits,
            "shape": list(values.shape),
            "low": low,
            "step": step,
            "data": b64encode(data).decode(),
        }
        key = json.dumps(words)
        if key not in self._number:
            self._number[key] = len(self.packed)
            self.packed.append(words)
        return self._number[key]

    def spread(self, values: Array, bits: int = 16) -> int:
        """The same, from the least value to the greatest."""
        known = values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        return self.add(values, bits, low, high)

    def shares(self, values: Array) -> int:
        """Numbers from 0 to 1."""
        return self.add(values, 8, 0.0, 1.0)

    def whole(self, values: Array) -> int:
        """Whole numbers from 0 up, or NaN."""
        return self.add(values.astype(np.float64), 16, 0.0, float(UNKNOWN - 1))


# --- the index -----------------------------------------------------------------------------------


def _columns(views: Sequence[View]) -> list[Words]:
    """Of each index column its name, range, period (0 on a line), and where the source is."""
    view = views[0]
    u, source = np.concatenate([v.u for v in views]), np.concatenate([v.source for v in views])
    return [
        _column(view.index[k], any(view.dates[k : k + 1]), _period(views, k), u[:, k], source)
        for k in range(min(u.shape[1], MOST_COLUMNS))
    ]


def _column(name: str, date: bool, period: float, u: Array, source: Array) -> Words:
    low, high = (0.0, period) if period else (float(u.min()), float(u.max()))
    ranges = source_ranges(u, source.astype(bool), period)
    return {
        "name": name,
        "low": low,
        "high": high,
        "period": period,
        "date": date,
        "source": ranges,
        "start": _far_away(low, high, period, ranges),
    }


def _period(views: Sequence[View], column: int) -> float:
    """The column's period, if one of the runs takes it for a circle."""
    spaces: Iterable[Space] = (view.space.columns[column] for view in views)
    return max((s.period for s in spaces if isinstance(s, Periodic)), default=0.0)


def source_ranges(u: Array, source: Array, period: float) -> list[list[float]]:
    """Stretches of u with source rows: parted where there are target rows and no source for long.

    On a circle an end may be beyond the period.
    """
    values = np.mod(u, period) if period else u
    mine, others = np.unique(values[source]), np.unique(values[~source])
    if not len(mine):
        return []
    whole = period or float(values.max() - values.min())
    following = np.append(mine[1:], mine[0] + whole if period else np.inf)
    beyond = np.append(others, others + whole) if period else others
    between = np.searchsorted(beyond, following) > np.searchsorted(beyond, mine, side="right")
    parted = (following - mine > APART * whole) & between
    if not period:
        parted[-1] = True
    if not parted.any():
        return [[0.0, period]]
    ends = np.flatnonzero(parted)
    starts = (np.roll(ends, 1) + 1) % len(mine)
    pairs = zip(mine[starts].tolist(), mine[ends].tolist(), strict=True)
    return [[lo, hi + whole if hi < lo else hi] for lo, hi in pairs]


def _far_away(low: float, high: float, period: float, ranges: list[list[float]]) -> float:
    """The middle of the longest stretch without source: where there is something to see."""
    if not ranges:
        return (low + high) / 2
    edges = [edge for pair in ranges for edge in pair]
    if period:
        gaps = [(edges[k], edges[(k + 1) % len(edges)]) for k in range(1, len(edges), 2)]
        gaps = [(lo, hi + period if hi < lo else hi) for lo, hi in gaps]
    else:
        around = sorted([low, high, *edges])
        gaps = list(zip(around[::2], around[1::2], strict=True))
    lo, hi = max(gaps, key=lambda gap: gap[1] - gap[0])
    return float(np.mod((lo + hi) / 2, period)) if period else (lo + hi) / 2


# --- classes -------------------------------------------------------------------------------------


def _all_classes(views: Sequence[View]) -> list[str] | None:
    """The names of all classes, in their order; None where numbers are predicted."""
    if any(view.classes is None for view in views):
        return None
    return list(dict.fromkeys(name for view in views for name in view.classes or ()))


def _bars(views: Sequence[View]) -> set[str]:
    """Classes with a bar of their own: all, or those that are predicted most."""
    weight: dict[str, float] = {}
    for view in views:
        for name, share in zip(view.classes or (), view.predicted.mean(0), strict=False):
            weight[name] = weight.get(name, 0.0) + float(share)
    most = MOST_BARS if len(weight) <= MOST_BARS else MOST_BARS - 1
    return set(sorted(weight, key=lambda name: -weight[name])[:most])


def _first_shown(views: Mapping[str, View]) -> tuple[str, ...]:
    """The best, Source-Only and the next: as far as the truth is known, else the first ones."""
    plain = [t for t in views if "source-only" in t.lower()][:1]
    others = [t for t in views if t not in plain and "oracle" not in t.lower()]
    ranked = sorted(others, key=lambda title: -_merit(views[title])) or list(views)
    best, rest = ranked[:1], ranked[1:]
    return tuple(dict.fromkeys([*best, *plain, *rest, *views]))[:SHOWN]


def _merit(view: View) -> float:
    """The share of target rows that are right, or how little numbers are off; 0 if nobody knows."""
    rows = np.isfinite(view.truth) & ~view.source.astype(bool)
    if not rows.any():
        return 0.0
    truth, predicted = view.truth[rows], view.predicted[rows]
    if view.classes is None:
        return -float(np.abs(predicted[:, 0] - truth).mean())
    return float((predicted.argmax(1) == truth).mean())


# --- runs ----------------------------------------------------------------------------------------


def _run(
    view: View,
    columns: Sequence[Words],
    classes: list[str] | None,
    bars: set[str],
    arrays: _Arrays,
) -> Words:
    found = {
        "u": [_index(view.u[:, k], column, arrays) for k, column in enumerate(columns)],
        "source": arrays.whole(view.source),
        "cloud": None if view.z is None else arrays.spread(_components(view.z)),
        "plane": None if view.plane is None else _plane(view.plane, classes is None, arrays),
        "expected": [_expected(cell) for cell in view.expected],
    }
    if classes is None or view.classes is None:
        found["predicted"] = arrays.spread(view.predicted[:, 0])
        found["truth"] = arrays.spread(view.truth)
        return found
    code = np.array([classes.index(name) for name in view.classes], dtype=np.float64)
    drawn = [k for k, name in enumerate(view.classes) if name in bars]
    found["predicted"] = arrays.whole(code[view.predicted.argmax(1)])
    found["truth"] = arrays.whole(_recoded(view.truth, code))
    found["bars"] = code[drawn].astype(int).tolist()
    found["probabilities"] = arrays.shares(view.predicted[:, drawn])
    if view.turned is not None:
        found["turned"] = _turned(view.turned, view.classes, code, arrays)
    return found


def _index(u: Array, column: Words, arrays: _Arrays) -> int:
    period = column["period"]
    return arrays.add(np.mod(u, period) if period else u, 16, column["low"], column["high"])


def _recoded(truth: Array, code: Array) -> Array:
    known = np.isfinite(truth)
    return np.where(known, code[np.where(known, truth, 0).astype(int)], np.nan)


def _components(z: Array) -> Array:
    """The first two principal components of z, each with its largest loading positive."""
    flat = z.reshape(len(z), -1).astype(np.float64)
    centred = flat - flat.mean(0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])
    found = centred @ (axes * signs[:, None]).T
    return np.pad(found, ((0, 0), (0, 2 - found.shape[1])))


def _plane(plane: Plane, regression: bool, arrays: _Arrays) -> Words:
    """Log-odds: between nodes and stops a boundary moves, and does not fade over."""
    left, right, bottom, top = (float(side) for side in plane.box)
    return {
        "box": [left, right, bottom, top],
        "across": arrays.add(plane.x[:, 0], 16, left, right),
        "up": arrays.add(plane.x[:, 1], 16, bottom, top),
        "stops": [stops.tolist() for stops in plane.stops],
        "grid": arrays.shares(plane.grid) if regression else _log_odds(plane.grid, arrays),
    }


def _log_odds(grid: Array, arrays: _Arrays) -> int:
    return arrays.add(grid.astype(np.float64), 16, -MOST_SURE, MOST_SURE)


def _turned(turned: Turned, classes: Sequence[str], code: Array, arrays: _Arrays) -> Words:
    names = list(classes)
    truth = [code[names.index(str(n))] if str(n) in names else np.nan for n in turned.labels]
    return {
        "images": arrays.add(turned.images, 8, 0.0, 255.0),
        "labels": arrays.whole(np.array(truth)),
        "stops": turned.stops.tolist(),
        "angle": arrays.add(turned.angle, 16, -360.0, 360.0),
        "predicted": arrays.shares(turned.predicted),
        "order": code.astype(int).tolist(),
    }


def _expected(cell: Expected) -> Words:
    return {
        "lo": np.atleast_1d(cell.lo).tolist(),
        "hi": np.atleast_1d(cell.hi).tolist(),
        "score": cell.score,
        "low": cell.low,
        "high": cell.high,
        "checked": cell.checked,
    }
