"""``cida speed``: the speed benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import torch
from rich.console import Console
from rich.table import Table

from cida.benchmarks.speed import step_over_floor
from cida.cli.output import print_json, table_words
from cida.discriminators import DISCRIMINATORS

__all__ = ["Speed"]

TABLE_ROWS = (20_000, 200_000, 2_000_000)
EXPORT_PACKAGES = ("onnx", "onnxscript", "onnxruntime", "pyarrow")
BATCH = 4096  # rows at once of a deployed model
IMAGE_STEPS = 20  # a step on images takes so many times as long: rounds get fewer of them


@dataclass(frozen=True)
class Speed:
    """Measures a full training step against the floor: the same networks on a fixed batch.

    On images it measures against a plain PyTorch loop, and how much of a step is rotation; of
    deployed models the time of one row and of many at once. Run it on an idle machine.

    Example:  cida speed --steps 500

    Example:  cida speed --no-images --no-tables --json
    """

    steps: int = 200
    """Steps in each of the rounds that the medians are taken over; a twentieth for images."""

    images: bool = True
    """Also measure images, beside a plain PyTorch loop; needs pillow."""

    tables: bool = True
    """Also measure cida fit and cida predict on tables of 20,000 to 2,000,000 rows; needs pyarrow,
    and takes minutes."""

    export: bool = True
    """Also measure models in torch and as ONNX files; needs pyarrow and onnxruntime."""

    workers: int = 2
    """Processes of each of the plain loop's two data loaders."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Prints two tables; the ratios of each come from interleaved rounds of one run."""
        self._check()
        tables = []
        for table in self._measured():
            console.print(table)
            tables.append(table_words(table))
        if self.json:
            print_json("speed", threads=torch.get_num_threads(), tables=tables)
        return 0

    def _measured(self) -> Iterator[Table]:
        yield self._steps_table()
        if self.images:
            yield self._images_table()
        if self.tables:
            yield _tables_table()
        if self.export:
            yield _export_table()

    def _check(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; it must be at least 1.")
        if self.workers < 0:
            raise ValueError(f"workers is {self.workers}; it must be at least 0.")
        if self.images and find_spec("PIL") is None:
            raise ImportError(
                "the plain loop on images needs pillow, which is not installed; "
                "pip install 'cida[speed]', or add --no-images."
            )
        if self.tables and find_spec("pyarrow") is None:
            raise ImportError(
                "tables need pyarrow, which is not installed; pip install 'cida[tables]', or add "
                "--no-tables."
            )
        lost = [name for name in EXPORT_PACKAGES if find_spec(name) is None]
        if self.export and lost:
            raise ImportError(
                f"models as ONNX files need {lost[0]}, which is not installed; pip install "
                "'cida[onnx,tables]', or add --no-export."
            )

    def _steps_table(self) -> Table:
        table = _table("Training step over its floor", "what", "step ms", "floor ms", "ratio")
        for head in DISCRIMINATORS:
            if head == "flow" and find_spec("zuko") is None:
                table.add_row("flow: pip install 'cida[flow]'", "-", "-", "-")
                continue
            found = step_over_floor(head, self.steps)
            table.add_row(
                found.name, f"{found.step_ms:.2f}", f"{found.floor_ms:.2f}", f"{found.ratio:.2f}"
            )
        return table

    def _images_table(self) -> Table:
        # Imported here: it needs pillow, which is there for those who ask for images.
        speed_images = import_module("cida.benchmarks.speed_images")
        steps = max(2, self.steps // IMAGE_STEPS)
        table = _table("Images of 28 x 28", "what", "ms a batch", "images/s", "compared")
        for found in speed_images.image_times(steps, workers=self.workers):
            rate = f"{found.images_per_second:,.0f}"
            table.add_row(found.name, f"{found.ms:.2f}", rate, found.compared)
        half = speed_images.bfloat16_time(steps)
        if half is None:
            table.add_row(speed_images.BFLOAT16, "-", "-", "crashes on this machine")
        else:
            rate = f"{half.images_per_second:,.0f}"
            table.add_row(half.name, f"{half.ms:.2f}", rate, half.compared)
        return table


def _tables_table() -> Table:
    # Imported here: it needs pyarrow, which is there for those who ask for tables.
    speed_tables = import_module("cida.benchmarks.speed_tables")
    table = _table("Tables of 20 columns", "what", "rows", "seconds", "rows/s", "most memory GB")
    for found in speed_tables.table_times(TABLE_ROWS):
        rate = f"{found.rows / found.seconds:,.0f}"
        seconds, memory = f"{found.seconds:.1f}", f"{found.peak_gb:.2f}"
        table.add_row(f"cida {found.verb}", f"{found.rows:,}", seconds, rate, memory)
    return table


def _export_table() -> Table:
    # Imported here: it needs pyarrow and onnx, which are there for those who ask for files.
    speed_export = import_module("cida.cli.speed_export")
    heads = ("one row ms, p50", "p95", f"rows/s of {BATCH:,}")
    table = _table("Deployed models", "what", *heads)
    for found in speed_export.export_times():
        p50, p95 = f"{found.p50_ms:.3f}", f"{found.p95_ms:.3f}"
        table.add_row(found.name, p50, p95, f"{found.rows_per_second:,.0f}")
    return table


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=f"{title}, {torch.get_num_threads()} threads")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
