"""The explorer: what models make of some rows as u moves, from arrays that are in the page."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from cida.runs.snapshot import PlaneMap, RotatedImages, Snapshot
from cida.selection.expected_score import ExpectedScore
from cida.spaces import Periodic, Space

__all__ = ["build_explorer_data", "render_assets", "render_explorer", "render_explorer_section"]

Array = np.ndarray[Any, Any]
JsonObject = dict[str, Any]

SCRIPT_FILES = (
    "numbers.js",
    "marching.js",
    "colours.js",
    "pictures.js",
    "digits.js",
    "dial.js",
    "pad.js",
    "slider.js",
    "legend.js",
    "panel.js",
    "explorer.js",
)
STYLE_FILES = ("explorer.css",)
MAX_INDEX_SLIDERS = 4  # of the index that have a slider
MAX_CLASS_BARS = 10  # of classes; those beyond share one
INTRODUCTION = (
    "Move the index, or let it play. Bright rows are near it, and all figures are of the rows near "
    "it, weighted by how near. The line on top of a panel is the same figure along the whole index."
)
N_RUNS_SHOWN_FIRST = 3  # runs at first
MIN_GAP_SHARE = 0.04  # of the range: source rows that are closer have nothing between them
MAX_ABS_LOG_ODDS = 30.0  # the largest log-odds on a plane
NAN_CODE = 65535  # in 16 bits


def render_explorer(snapshots: Mapping[str, Snapshot], shown_first: Sequence[str] = ()) -> str:
    """The section for runs by their titles, whole in itself; nothing if there are no views.

    ``first`` are the titles shown at first: if not given, the best of those that saw no target
    label, Source-Only and one more.
    """
    return render_explorer_section(snapshots, shown_first) + render_assets() if snapshots else ""


def render_explorer_section(
    snapshots: Mapping[str, Snapshot],
    shown_first: Sequence[str] = (),
    anchor: str = "explorer",
    level: int = 2,
) -> str:
    """One of several explorers of a page, which needs the `assets` behind the last of them."""
    data = json.dumps(
        build_explorer_data(snapshots, shown_first), ensure_ascii=False, separators=(",", ":")
    )
    safe = data.replace("<", "\\u003c")  # so that no name can end the script
    return (
        f'<section class="explorer" aria-labelledby="{anchor}"><h{level} id="{anchor}">Explorer'
        f'</h{level}><p class="soft">{INTRODUCTION}</p>'
        f'<script type="application/json" class="explorer-data">{safe}</script>'
        "<noscript><p>The explorer needs JavaScript, which is in this file.</p></noscript>"
        "</section>"
    )


def render_assets() -> str:
    """The explorer's style and script, as the page holds them."""
    style, script = ("\n".join(map(_asset, names)) for names in (STYLE_FILES, SCRIPT_FILES))
    return (
        f'<style>\n{style}</style>\n<script>\n(() => {{\n"use strict";\n{script}}})();\n</script>'
    )


def _asset(name: str) -> str:
    return files("cida.report").joinpath("assets", name).read_text(encoding="utf-8")


def build_explorer_data(
    snapshots: Mapping[str, Snapshot], shown_first: Sequence[str] = ()
) -> JsonObject:
    """All that the page's script knows: index columns, classes, runs, and each array once."""
    arrays = _ArrayStore()
    all_snapshots = list(snapshots.values())
    columns = _columns(all_snapshots)
    classes = _all_classes(all_snapshots)
    bars = _classes_with_bars(all_snapshots)
    shown_titles = tuple(shown_first) or tuple(snapshots)[:N_RUNS_SHOWN_FIRST]
    return {
        "columns": columns,
        "classes": classes,
        "runs": [
            {
                "title": title,
                "shown": title in shown_titles,
                **_run_data(view, columns, classes, bars, arrays),
            }
            for title, view in snapshots.items()
        ],
        "arrays": arrays.packed,
    }


# --- arrays --------------------------------------------------------------------------------------


class _ArrayStore:
    """Numbers in 8 or 16 bits, each array once: rows are often the same for all runs."""

    def __init__(self) -> None:
        self.packed: list[JsonObject] = []
        self._position_by_key: dict[str, int] = {}

    def add(self, values: Array, bits: int, low: float, high: float) -> int:
        """``value = low + step * code``, the code in so many bits; 16 have one for NaN."""
        codes = 255 if bits == 8 else NAN_CODE - 1
        step = (high - low) / codes
        is_finite = np.isfinite(values)
        finite_values = np.where(is_finite, values, low).astype(np.float64)
        code = np.rint((finite_values - low) / step) if step > 0 else np.zeros(finite_values.shape)
        code = np.where(is_finite, np.clip(code, 0, codes), NAN_CODE)
        data = code.astype("<u1" if bits == 8 else "<u2").tobytes()
        entry = {
            "bits": bits,
            "shape": list(values.shape),
            "low": low,
            "step": step,
            "data": b64encode(data).decode(),
        }
        key = json.dumps(entry)
        if key not in self._position_by_key:
            self._position_by_key[key] = len(self.packed)
            self.packed.append(entry)
        return self._position_by_key[key]

    def add_scaled(self, values: Array, bits: int = 16) -> int:
        """The same, from the least value to the greatest."""
        finite_values = values[np.isfinite(values)]
        low, high = (
            (float(finite_values.min()), float(finite_values.max()))
            if finite_values.size
            else (0.0, 0.0)
        )
        return self.add(values, bits, low, high)

    def add_shares(self, values: Array) -> int:
        """Numbers from 0 to 1."""
        return self.add(values, 8, 0.0, 1.0)

    def add_integers(self, values: Array) -> int:
        """Whole numbers from 0 up, or NaN."""
        return self.add(values.astype(np.float64), 16, 0.0, float(NAN_CODE - 1))


# --- the index -----------------------------------------------------------------------------------


def _columns(snapshots: Sequence[Snapshot]) -> list[JsonObject]:
    """Of each index column its name, range, period (0 on a line), and where the source is."""
    snapshot = snapshots[0]
    u, source = (
        np.concatenate([v.u for v in snapshots]),
        np.concatenate([v.source for v in snapshots]),
    )
    return [
        _column(
            snapshot.index_names[k],
            any(snapshot.is_date[k : k + 1]),
            _period(snapshots, k),
            u[:, k],
            source,
        )
        for k in range(min(u.shape[1], MAX_INDEX_SLIDERS))
    ]


def _column(name: str, date: bool, period: float, u: Array, source: Array) -> JsonObject:
    low, high = (0.0, period) if period else (float(u.min()), float(u.max()))
    ranges = find_source_ranges(u, source.astype(bool), period)
    return {
        "name": name,
        "low": low,
        "high": high,
        "period": period,
        "date": date,
        "source": ranges,
        "start": _middle_of_widest_gap(low, high, period, ranges),
    }


def _period(snapshots: Sequence[Snapshot], column: int) -> float:
    """The column's period, if one of the runs takes it for a circle."""
    spaces: Iterable[Space] = (view.space.column_spaces[column] for view in snapshots)
    return max((s.period for s in spaces if isinstance(s, Periodic)), default=0.0)


def find_source_ranges(u: Array, source: Array, period: float) -> list[list[float]]:
    """Stretches of u with source rows: parted where there are target rows and no source for long.

    On a circle an end may be beyond the period.
    """
    values = np.mod(u, period) if period else u
    source_values, target_values = np.unique(values[source]), np.unique(values[~source])
    if not len(source_values):
        return []
    extent = period or float(values.max() - values.min())
    next_values = np.append(source_values[1:], source_values[0] + extent if period else np.inf)
    target_around = np.append(target_values, target_values + extent) if period else target_values
    has_target_between = np.searchsorted(target_around, next_values) > np.searchsorted(
        target_around, source_values, side="right"
    )
    is_gap = (next_values - source_values > MIN_GAP_SHARE * extent) & has_target_between
    if not period:
        is_gap[-1] = True
    if not is_gap.any():
        return [[0.0, period]]
    ends = np.flatnonzero(is_gap)
    starts = (np.roll(ends, 1) + 1) % len(source_values)
    pairs = zip(source_values[starts].tolist(), source_values[ends].tolist(), strict=True)
    return [[lo, hi + extent if hi < lo else hi] for lo, hi in pairs]


def _middle_of_widest_gap(
    low: float, high: float, period: float, ranges: list[list[float]]
) -> float:
    """The middle of the longest stretch without source: where there is something to see."""
    if not ranges:
        return (low + high) / 2
    edges = [edge for pair in ranges for edge in pair]
    if period:
        gaps = [(edges[k], edges[(k + 1) % len(edges)]) for k in range(1, len(edges), 2)]
        gaps = [(lo, hi + period if hi < lo else hi) for lo, hi in gaps]
    else:
        bounds = sorted([low, high, *edges])
        gaps = list(zip(bounds[::2], bounds[1::2], strict=True))
    lo, hi = max(gaps, key=lambda gap: gap[1] - gap[0])
    return float(np.mod((lo + hi) / 2, period)) if period else (lo + hi) / 2


# --- classes -------------------------------------------------------------------------------------


def _all_classes(snapshots: Sequence[Snapshot]) -> list[str] | None:
    """The names of all classes, in their order; None where numbers are predicted."""
    if any(view.classes is None for view in snapshots):
        return None
    return list(dict.fromkeys(name for view in snapshots for name in view.classes or ()))


def _classes_with_bars(snapshots: Sequence[Snapshot]) -> set[str]:
    """Classes with a bar of their own: all, or those that are predicted most."""
    mean_share: dict[str, float] = {}
    for snapshot in snapshots:
        for name, share in zip(snapshot.classes or (), snapshot.predicted.mean(0), strict=False):
            mean_share[name] = mean_share.get(name, 0.0) + float(share)
    max_bars = MAX_CLASS_BARS if len(mean_share) <= MAX_CLASS_BARS else MAX_CLASS_BARS - 1
    return set(sorted(mean_share, key=lambda name: -mean_share[name])[:max_bars])


# --- runs ----------------------------------------------------------------------------------------


def _run_data(
    snapshot: Snapshot,
    columns: Sequence[JsonObject],
    classes: list[str] | None,
    bars: set[str],
    arrays: _ArrayStore,
) -> JsonObject:
    run_data = {
        "u": [_add_index(snapshot.u[:, k], column, arrays) for k, column in enumerate(columns)],
        "source": arrays.add_integers(snapshot.source),
        "cloud": None
        if snapshot.z is None
        else arrays.add_scaled(_principal_components(snapshot.z)),
        "plane": None
        if snapshot.plane is None
        else _plane_data(snapshot.plane, classes is None, arrays),
        "expected": [_expected_data(cell) for cell in snapshot.expected],
    }
    if classes is None or snapshot.classes is None:
        run_data["predicted"] = arrays.add_scaled(snapshot.predicted[:, 0])
        run_data["truth"] = arrays.add_scaled(snapshot.truth)
        return run_data
    code = np.array([classes.index(name) for name in snapshot.classes], dtype=np.float64)
    bar_columns = [k for k, name in enumerate(snapshot.classes) if name in bars]
    run_data["predicted"] = arrays.add_integers(code[snapshot.predicted.argmax(1)])
    run_data["truth"] = arrays.add_integers(_recode(snapshot.truth, code))
    run_data["bars"] = code[bar_columns].astype(int).tolist()
    run_data["probabilities"] = arrays.add_shares(snapshot.predicted[:, bar_columns])
    if snapshot.rotated_images is not None:
        run_data["turned"] = _rotated_data(snapshot.rotated_images, snapshot.classes, code, arrays)
    return run_data


def _add_index(u: Array, column: JsonObject, arrays: _ArrayStore) -> int:
    period = column["period"]
    return arrays.add(np.mod(u, period) if period else u, 16, column["low"], column["high"])


def _recode(truth: Array, code: Array) -> Array:
    is_labelled = np.isfinite(truth)
    return np.where(is_labelled, code[np.where(is_labelled, truth, 0).astype(int)], np.nan)


def _principal_components(z: Array) -> Array:
    """The first two principal components of z, each with its largest loading positive."""
    flat = z.reshape(len(z), -1).astype(np.float64)
    centred = flat - flat.mean(0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])
    projected = centred @ (axes * signs[:, None]).T
    return np.pad(projected, ((0, 0), (0, 2 - projected.shape[1])))


def _plane_data(plane: PlaneMap, regression: bool, arrays: _ArrayStore) -> JsonObject:
    """Log-odds: between nodes and stops a boundary moves, and does not fade over."""
    left, right, bottom, top = (float(side) for side in plane.box)
    return {
        "box": [left, right, bottom, top],
        "across": arrays.add(plane.x[:, 0], 16, left, right),
        "up": arrays.add(plane.x[:, 1], 16, bottom, top),
        "stops": [stops.tolist() for stops in plane.stops],
        "grid": arrays.add_shares(plane.grid) if regression else _add_log_odds(plane.grid, arrays),
    }


def _add_log_odds(grid: Array, arrays: _ArrayStore) -> int:
    return arrays.add(grid.astype(np.float64), 16, -MAX_ABS_LOG_ODDS, MAX_ABS_LOG_ODDS)


def _rotated_data(
    turned: RotatedImages, classes: Sequence[str], code: Array, arrays: _ArrayStore
) -> JsonObject:
    names = list(classes)
    truth = [code[names.index(str(n))] if str(n) in names else np.nan for n in turned.labels]
    return {
        "images": arrays.add(turned.images, 8, 0.0, 255.0),
        "labels": arrays.add_integers(np.array(truth)),
        "stops": turned.stops.tolist(),
        "angle": arrays.add(turned.angle, 16, -360.0, 360.0),
        "predicted": arrays.add_shares(turned.predicted),
        "order": code.astype(int).tolist(),
    }


def _expected_data(cell: ExpectedScore) -> JsonObject:
    return {
        "lo": np.atleast_1d(cell.lo).tolist(),
        "hi": np.atleast_1d(cell.hi).tolist(),
        "score": cell.score,
        "low": cell.low,
        "high": cell.high,
        "checked": cell.is_within_calibration,
    }
