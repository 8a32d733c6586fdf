"""How time and memory of ``cida fit`` and ``cida predict`` grow with the rows of a table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Effort, Measurement
from benchmarks.processes import measure_command

__all__ = ["TableTime", "table_figures", "table_times", "write_big_table"]

N_TABLE_COLUMNS = 20
TABLE_ROW_COUNTS = (20_000, 200_000, 2_000_000)
ROWS_PER_WRITE = 100_000
FIT_STEPS = "1000"  # the same for all: what grows is reading, encoding and predicting


@dataclass(frozen=True)
class TableTime:
    """Seconds and the most memory in GB of one command on a table of so many rows."""

    rows: int
    verb: str
    seconds: float
    peak_gb: float

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds


def table_figures(effort: Effort) -> Iterator[Measurement]:
    """Rows a second of both commands on tables of 20,000 to 2,000,000 rows."""
    for one in table_times(TABLE_ROW_COUNTS):
        beside = f"{one.seconds:.1f} s, {one.peak_gb:.2f} GB at most with the pages of files"
        yield Measurement(f"cida {one.verb}, {one.rows:,} rows", one.rate, "rows/s", note=beside)


def table_times(counts: Sequence[int]) -> Iterator[TableTime]:
    """Fits and predicts tables of so many rows and 20 columns, each command in a process."""
    for rows in counts:
        with tempfile.TemporaryDirectory() as folder:
            data, run = Path(folder, "big.parquet"), Path(folder, "run")
            write_big_table(data, rows)
            fit: list[str | Path] = [
                "fit",
                data,
                "--label",
                "y",
                "--index",
                "u",
                "--steps",
                FIT_STEPS,
                "--out",
                run,
            ]
            yield TableTime(rows, "fit", *measure_command(fit))
            out = Path(folder, "predicted.parquet")
            yield TableTime(rows, "predict", *measure_command(["predict", run, data, "--out", out]))


def write_big_table(path: Path, rows: int, seed: int = 0) -> None:
    """A drifting table: 17 numbers, one with holes, and a category; labels where u is below 0.5."""
    generator = np.random.default_rng(seed)
    writer = None
    for start in range(0, rows, ROWS_PER_WRITE):
        table = _part(min(ROWS_PER_WRITE, rows - start), generator)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _part(rows: int, generator: np.random.Generator) -> Any:
    u = generator.uniform(0, 1, rows)
    x = generator.normal(size=(rows, N_TABLE_COLUMNS - 3)).astype(np.float32)
    y = np.where(x[:, 0] + x[:, 1] + generator.normal(size=rows) > 0, "yes", "no").astype(object)
    y[u > 0.5] = None
    columns = {"u": pa.array(u), "y": pa.array(y)}
    for k in range(x.shape[1]):
        holes = generator.random(rows) < 0.05 if k == 0 else None
        columns[f"x{k}"] = pa.array(x[:, k] + 3 * u * (k % 3), mask=holes)
    columns["kind"] = pa.array(np.array(["a", "b", "c"])[generator.integers(0, 3, rows)])
    return pa.table(columns)
