"""``cida speed``: the speed benchmark."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from rich.console import Console
from rich.table import Table

from cida.benchmarks.speed import Effort, Measurement
from cida.cli.arguments import check_name
from cida.cli.output import print_json, print_lines
from cida.estimators.saving import library_versions
from cida.io.files import write_atomically

__all__ = ["SECTIONS", "Section", "Speed"]

HEADS = ("what", "figure", "unit", "limit", "met", "made of")


@dataclass(frozen=True)
class Section:
    """A part of the table: the function that measures it, and the packages that it needs.

    ``made_by`` is ``module:function`` and imported when it is asked for: it takes an `Effort` and
    yields figures. ``needs`` says which extra brings each package.
    """

    title: str
    made_by: str
    needs: Mapping[str, str] = field(default_factory=dict)

    def figures(self, effort: Effort) -> Iterator[Measurement]:
        module, _, function = self.made_by.partition(":")
        yield from getattr(import_module(module), function)(effort)


BENCHMARKS = "cida.benchmarks.speed"
ONNX = {"pyarrow": "tables", "onnx": "onnx", "onnxscript": "onnx", "onnxruntime": "onnx"}
SECTIONS: Mapping[str, Section] = {
    "steps": Section("Training step over its floor", f"{BENCHMARKS}_steps:step_figures"),
    "images": Section("Images of 28 x 28", f"{BENCHMARKS}_images:image_figures", {"PIL": "speed"}),
    "peak": Section("Share of the machine's peak", f"{BENCHMARKS}_costs:peak_figures"),
    "costs": Section("Loading and evaluation", f"{BENCHMARKS}_costs:cost_figures"),
    "seeds": Section("Seeds", f"{BENCHMARKS}_seeds:seed_figures", {"matplotlib": "plot"}),
    "ranks": Section("Ranks", f"{BENCHMARKS}_ranks:rank_figures", {"PIL": "speed"}),
    "growth": Section("Growth", f"{BENCHMARKS}_growth:growth_figures"),
    "tables": Section(
        "Commands on tables of 20 columns",
        f"{BENCHMARKS}_tables:table_figures",
        {"pyarrow": "tables"},
    ),
    "export": Section(
        "Prediction, 4,096 rows at once", "cida.cli.speed_export:export_figures", ONNX
    ),
}


@dataclass(frozen=True)
class Speed:
    """Measures how fast cida is on this machine: figures of one run, with their limits.

    Training steps over their floor (the same networks on a fixed batch) and against a plain PyTorch
    loop; the share of the machine's peak; what loading, evaluating, seeds and more rows cost;
    prediction. Run it on an idle machine; it takes some twenty minutes there.

    Example:  cida speed --out performance.md

    Example:  cida speed --only steps images --steps 500 --json
    """

    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SECTION ...")] = ()
    """Sections to measure, of steps, images, peak, costs, seeds, ranks, growth, tables, export; all
    where none is named. images and ranks need pillow, seeds matplotlib, tables pyarrow, export
    onnxruntime too."""

    steps: int = 200
    """Steps in each of the rounds that the medians are taken over; fewer where a step is long."""

    workers: int = 2
    """Processes of each of the plain loop's two data loaders."""

    out: Path | None = None
    """Also write the table to this file, as Markdown, with the machine and the command on top."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Prints a table for each section; the ratios come from interleaved rounds of one run."""
        self._check()
        found: dict[str, list[Measurement]] = {}
        for name in self._asked():
            with console.status(f"measuring {name}"):
                found[name] = list(SECTIONS[name].figures(Effort(self.steps, self.workers)))
            console.print(_table(SECTIONS[name].title, found[name]))
        if self.out is not None:
            write_atomically(self.out, _page(self._command(), found).encode())
            print_lines(console, str(self.out.resolve()))
        if self.json:
            print_json("speed", **_machine(), command=self._command(), sections=_words(found))
        return 0

    def _asked(self) -> Sequence[str]:
        return self.only or tuple(SECTIONS)

    def _check(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; it must be at least 1.")
        if self.workers < 0:
            raise ValueError(f"workers is {self.workers}; it must not be negative.")
        for name in self.only:
            check_name("only", name, SECTIONS)
        for name in self._asked():
            for package, extra in SECTIONS[name].needs.items():
                if find_spec(package) is None:
                    raise ImportError(
                        f"section {name} needs {package}, which is not installed; pip install "
                        f"'cida[{extra}]', or name other sections with --only."
                    )

    def _command(self) -> str:
        words = ["cida", "speed"]
        words += ["--only", *self.only] if self.only else []
        words += ["--steps", str(self.steps)] if self.steps != Speed.steps else []
        words += ["--workers", str(self.workers)] if self.workers != Speed.workers else []
        words += ["--out", str(self.out)] if self.out is not None else []
        return shlex.join(words)


def _cells(figure: Measurement) -> tuple[str, ...]:
    limit = (
        "" if figure.limit is None else f"{'>=' if figure.is_minimum else '<='} {figure.limit:g}"
    )
    met = {None: "", True: "yes", False: "NO"}[figure.is_met]
    value = f"{figure.value:.2f}" if abs(figure.value) < 100 else f"{figure.value:,.0f}"
    return (figure.name, value, figure.unit, limit, met, figure.note)


def _table(title: str, figures: Sequence[Measurement]) -> Table:
    table = Table(title=title)
    for head in HEADS:
        table.add_column(head, justify="right" if head in ("figure", "limit") else "left")
    for figure in figures:
        table.add_row(*_cells(figure))
    return table


def _words(found: Mapping[str, Sequence[Measurement]]) -> dict[str, Any]:
    return {
        name: [{**asdict(figure), "met": figure.is_met} for figure in figures]
        for name, figures in found.items()
    }


def _page(command: str, found: Mapping[str, Sequence[Measurement]]) -> str:
    """The tables as a page of Markdown, with what they were measured on."""
    facts = _machine()
    told = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    timed = (
        "steps, peak, costs and growth are timed by the processor's clock, since torch has one "
        "thread, all else by the wall's"
        if facts["threads"] == 1
        else "all are timed by the wall's clock"
    )
    lines = [
        "# Performance",
        "",
        "Written by the command, and not by hand:",
        "",
        "<!-- not run: measures for many minutes -->",
        "```sh",
        command,
        "```",
        "",
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gb']:.0f} GB; "
        f"{facts['threads']} thread{'s' if facts['threads'] > 1 else ''} of torch; {told}. When it "
        f"ended, {facts['load']:.1f} processes wanted a core, its own among them. Figures are "
        f"medians of interleaved rounds; {timed}.",
        "",
    ]
    for name, figures in found.items():
        lines += [f"## {SECTIONS[name].title}", "", f"`cida speed --only {name}`", ""]
        lines += [f"| {' | '.join(HEADS)} |", "|---|---:|---|---:|---|---|"]
        lines += [f"| {' | '.join(_cells(figure))} |" for figure in figures]
        lines.append("")
    return "\n".join(lines)


def _machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": memory,
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        "versions": library_versions(),
    }


def _processor() -> str:
    """Its name where Linux tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
