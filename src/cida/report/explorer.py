"""The explorer: what models make of some rows as u moves, from arrays that are in the page."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from cida.report.charts import Array
from cida.report.index_axis import index_period
from cida.report.sections.encodings_section import project_principal_components
from cida.report.theme import macro
from cida.runs.snapshot import PlaneMap, RotatedImages, Snapshot

JsonObject = dict[str, Any]

MAX_INDEX_SLIDERS = 4  # of the index that have a slider
MAX_CLASS_BARS = 10  # of classes; those beyond share one
N_RUNS_SHOWN_FIRST = 3  # runs at first
MIN_GAP_SHARE = 0.04  # of the range: source rows that are closer have nothing between them
MAX_ABS_LOG_ODDS = 30.0  # the largest log-odds on a plane
NAN_CODE = 65535  # in 16 bits


def render_explorer(snapshots: Mapping[str, Snapshot], shown_first: Sequence[str] = ()) -> str:
    """The section for runs by their titles, whole in itself; nothing if there are no views."""
    if not snapshots:
        return ""
    data = render_explorer_data(snapshots, shown_first)
    return macro("explorer", 2, "explorer", data) + macro("explorer_assets")


def render_explorer_data(snapshots: Mapping[str, Snapshot], shown_first: Sequence[str]) -> Markup:
    """What an explorer knows, as the page holds it."""
    data = build_explorer_data(snapshots, shown_first)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # so that no name can end the script


def build_explorer_data(
    snapshots: Mapping[str, Snapshot], shown_first: Sequence[str] = ()
) -> JsonObject:
    """All that the page's script knows: index columns, classes, runs, and each array once."""
    arrays = _ArrayStore()
    views = list(snapshots.values())
    n_columns = min(views[0].u.shape[1], MAX_INDEX_SLIDERS)
    columns = [_column(views, k) for k in range(n_columns)]
    classes = None
    if all(view.classes is not None for view in views):
        classes = list(dict.fromkeys(name for view in views for name in view.classes or ()))
    bars = _classes_with_bars(views)
    data: JsonObject = {"columns": columns, "classes": classes, "runs": [], "arrays": arrays.packed}
    shown = tuple(shown_first) or tuple(snapshots)[:N_RUNS_SHOWN_FIRST]
    for title, view in snapshots.items():
        run = {"title": title, "shown": title in shown, **_run_data(view, data, bars, arrays)}
        data["runs"].append(run)
    return data


class _ArrayStore:
    """Numbers in 8 or 16 bits, each array once: rows are often the same for all runs."""

    def __init__(self) -> None:
        self.packed: list[JsonObject] = []

    def add(self, values: Array, bits: int, low: float, high: float) -> int:
        """``value = low + step * code``, the code in so many bits; 16 have one for NaN."""
        codes = 255 if bits == 8 else NAN_CODE - 1
        step = (high - low) / codes
        is_finite = np.isfinite(values)
        shifted = np.where(is_finite, values, low).astype(np.float64) - low
        code = np.rint(shifted / step) if step > 0 else np.zeros(values.shape)
        code = np.where(is_finite, np.clip(code, 0, codes), NAN_CODE)
        data = b64encode(code.astype(f"<u{bits // 8}").tobytes()).decode()
        shape = list(values.shape)
        entry = {"bits": bits, "shape": shape, "low": low, "step": step, "data": data}
        if entry not in self.packed:
            self.packed.append(entry)
        return self.packed.index(entry)

    def add_scaled(self, values: Array, bits: int = 16) -> int:
        """The same, from the least value to the greatest."""
        finite = values[np.isfinite(values)]
        ends = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        return self.add(values, bits, *ends)

    def add_shares(self, values: Array) -> int:
        """Numbers from 0 to 1."""
        return self.add(values, 8, 0.0, 1.0)

    def add_integers(self, values: Array) -> int:
        """Whole numbers from 0 up, or NaN."""
        return self.add(values.astype(np.float64), 16, 0.0, float(NAN_CODE - 1))


def _column(views: Sequence[Snapshot], k: int) -> JsonObject:
    """Of an index column its name, range, period (0 on a line), and where the source is."""
    period = max(index_period(view, k) for view in views)  # a circle if it is one for any run
    u = np.concatenate([view.u[:, k] for view in views])
    source = np.concatenate([view.source for view in views]).astype(bool)
    low, high = (0.0, period) if period else (float(u.min()), float(u.max()))
    ranges = find_source_ranges(u, source, period)
    return {
        "name": views[0].index_names[k],
        "low": low,
        "high": high,
        "period": period,
        "date": any(views[0].is_date[k : k + 1]),
        "source": ranges,
        "start": _middle_of_widest_gap(low, high, period, ranges),
    }


def find_source_ranges(u: Array, source: Array, period: float) -> list[list[float]]:
    """Stretches of u with source rows: parted where there are target rows and no source for long.

    On a circle an end may be beyond the period.
    """
    values = np.mod(u, period) if period else u
    inside, outside = np.unique(values[source]), np.unique(values[~source])
    if not len(inside):
        return []
    extent = period or float(values.max() - values.min())
    following = np.append(inside[1:], inside[0] + extent if period else np.inf)
    around = np.append(outside, outside + extent) if period else outside
    n_before, n_after = np.searchsorted(around, inside, "right"), np.searchsorted(around, following)
    is_gap = (following - inside > MIN_GAP_SHARE * extent) & (n_after > n_before)
    if not period:
        is_gap[-1] = True
    if not is_gap.any():
        return [[0.0, period]]
    ends = np.flatnonzero(is_gap)
    starts = (np.roll(ends, 1) + 1) % len(inside)
    pairs = zip(inside[starts].tolist(), inside[ends].tolist(), strict=True)
    return [[lo, hi + extent if hi < lo else hi] for lo, hi in pairs]


def _middle_of_widest_gap(
    low: float, high: float, period: float, ranges: list[list[float]]
) -> float:
    """The middle of the longest stretch without source: where there is something to see."""
    if not ranges:
        return (low + high) / 2
    edges = [edge for pair in ranges for edge in pair]
    edges = [*edges[1:], edges[0]] if period else sorted([low, high, *edges])
    gaps = list(zip(edges[::2], edges[1::2], strict=True))
    if period:
        gaps = [(lo, hi + period if hi < lo else hi) for lo, hi in gaps]
    lo, hi = max(gaps, key=lambda gap: gap[1] - gap[0])
    return float(np.mod((lo + hi) / 2, period)) if period else (lo + hi) / 2


def _classes_with_bars(views: Sequence[Snapshot]) -> set[str]:
    """Classes with a bar of their own: all, or those that are predicted most."""
    shares: dict[str, float] = {}
    for view in views:
        for name, share in zip(view.classes or (), view.predicted.mean(0), strict=False):
            shares[name] = shares.get(name, 0.0) + float(share)
    max_bars = MAX_CLASS_BARS if len(shares) <= MAX_CLASS_BARS else MAX_CLASS_BARS - 1
    return set(sorted(shares, key=lambda name: -shares[name])[:max_bars])


def _run_data(view: Snapshot, page: JsonObject, bars: set[str], arrays: _ArrayStore) -> JsonObject:
    classes: list[str] | None = page["classes"]
    data: JsonObject = {"u": [], "source": None, "cloud": None, "plane": None}
    for k, column in enumerate(page["columns"]):
        u = np.mod(view.u[:, k], column["period"]) if column["period"] else view.u[:, k]
        data["u"].append(arrays.add(u, 16, column["low"], column["high"]))
    data["source"] = arrays.add_integers(view.source)
    if view.z is not None:
        data["cloud"] = arrays.add_scaled(project_principal_components(view.z)[0])
    if view.plane is not None:
        data["plane"] = _plane_data(view.plane, classes is None, arrays)
    data["expected"] = [
        {
            "lo": np.atleast_1d(cell.lo).tolist(),
            "hi": np.atleast_1d(cell.hi).tolist(),
            **{name: getattr(cell, name) for name in ("score", "low", "high")},
            "checked": cell.is_within_calibration,
        }
        for cell in view.expected
    ]
    if classes is None or view.classes is None:
        data["predicted"] = arrays.add_scaled(view.predicted[:, 0])
        data["truth"] = arrays.add_scaled(view.truth)
        return data
    code = np.array([classes.index(name) for name in view.classes], dtype=np.float64)
    shown = [k for k, name in enumerate(view.classes) if name in bars]
    is_known = np.isfinite(view.truth)
    truth = np.where(is_known, code[np.where(is_known, view.truth, 0).astype(int)], np.nan)
    data["predicted"] = arrays.add_integers(code[view.predicted.argmax(1)])
    data["truth"] = arrays.add_integers(truth)
    data["bars"] = code[shown].astype(int).tolist()
    data["probabilities"] = arrays.add_shares(view.predicted[:, shown])
    if view.rotated_images is not None:
        data["turned"] = _rotated_data(view.rotated_images, view.classes, code, arrays)
    return data


def _plane_data(plane: PlaneMap, is_regression: bool, arrays: _ArrayStore) -> JsonObject:
    """Log-odds: between nodes and stops a boundary moves, and does not fade over."""
    left, right, bottom, top = map(float, plane.box)
    data: JsonObject = {"box": [left, right, bottom, top]}
    data["across"] = arrays.add(plane.x[:, 0], 16, left, right)
    data["up"] = arrays.add(plane.x[:, 1], 16, bottom, top)
    data["stops"] = [stops.tolist() for stops in plane.stops]
    if is_regression:
        data["grid"] = arrays.add_shares(plane.grid)
    else:
        data["grid"] = arrays.add(plane.grid, 16, -MAX_ABS_LOG_ODDS, MAX_ABS_LOG_ODDS)
    return data


def _rotated_data(
    turned: RotatedImages, classes: Sequence[str], code: Array, arrays: _ArrayStore
) -> JsonObject:
    code_by_name = dict(zip(classes, code.tolist(), strict=True))
    truth = np.array([code_by_name.get(str(label), np.nan) for label in turned.labels])
    return {
        "images": arrays.add(turned.images, 8, 0.0, 255.0),
        "labels": arrays.add_integers(truth),
        "stops": turned.stops.tolist(),
        "angle": arrays.add(turned.angle, 16, -360.0, 360.0),
        "predicted": arrays.add_shares(turned.predicted),
        "order": code.astype(int).tolist(),
    }
