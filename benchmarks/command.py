"""The command of the speed suite: sections to measure, their tables, and the page."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from benchmarks.costs import cost_figures, peak_figures
from benchmarks.export import export_figures
from benchmarks.growth import growth_figures
from benchmarks.images import image_figures
from benchmarks.measure import Effort, Measurement
from benchmarks.ranks import rank_figures
from benchmarks.seeds import seed_figures
from benchmarks.steps import step_figures
from benchmarks.tables import table_figures
from cida.errors import did_you_mean
from cida.estimators.model_file import library_versions
from cida.io.files import write_atomically

__all__ = ["SECTIONS", "Section", "SpeedSuite", "main"]

HEADER = ("what", "figure", "unit", "limit", "met", "made of")


@dataclass(frozen=True)
class Section:
    """A table of the suite: its title, and the function that measures its lines."""

    title: str
    measure: Callable[[Effort], Iterator[Measurement]]


SECTIONS: dict[str, Section] = {
    "steps": Section("Training step over its floor", step_figures),
    "images": Section("Images of 28 x 28", image_figures),
    "peak": Section("Share of the machine's peak", peak_figures),
    "costs": Section("Loading and evaluation", cost_figures),
    "seeds": Section("Seeds", seed_figures),
    "ranks": Section("Ranks", rank_figures),
    "growth": Section("Growth", growth_figures),
    "tables": Section("Commands on tables of 20 columns", table_figures),
    "export": Section("Prediction, 4,096 rows at once", export_figures),
}


@dataclass(frozen=True)
class SpeedSuite:
    """Measures how fast cida is on this machine: figures of one run, with their limits.

    Training steps over their floor (the same networks on a fixed batch) and against a plain PyTorch
    loop; the share of the machine's peak; what loading, evaluating, seeds and more rows cost;
    prediction. Run it on an idle machine; it takes some twenty minutes there.
    """

    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SECTION ...")] = ()
    """Sections to measure, of steps, images, peak, costs, seeds, ranks, growth, tables, export; all
    where none is named."""

    steps: int = 200
    """Steps in each of the rounds that the medians are taken over; fewer where a step is long."""

    workers: int = 2
    """Processes of each of the plain loop's two data loaders."""

    out: Path | None = None
    """Also write the tables to this file, as Markdown, with the machine and the command on top."""

    json: bool = False
    """Print one JSON object in place of the tables."""

    def run(self) -> None:
        """Measures section by section; the ratios come from interleaved rounds of one run."""
        self._validate()
        measurements: dict[str, list[Measurement]] = {}
        for name in self.only or tuple(SECTIONS):
            effort = Effort(self.steps, self.workers)
            measurements[name] = list(SECTIONS[name].measure(effort))
            if not self.json:
                _print("\n".join([SECTIONS[name].title, "", *_table_lines(measurements[name])]))
        if self.out is not None:
            write_atomically(self.out, _render_page(self.command, measurements).encode())
        if self.json:
            _print(json.dumps(self._to_dict(measurements), indent=2))
        elif self.out is not None:
            _print(str(self.out.resolve()))

    @property
    def command(self) -> str:
        """The command line that measures the same."""
        words = ["python", "-m", "benchmarks"]
        words += ["--only", *self.only] if self.only else []
        words += ["--steps", str(self.steps)] if self.steps != SpeedSuite.steps else []
        words += ["--workers", str(self.workers)] if self.workers != SpeedSuite.workers else []
        words += ["--out", str(self.out)] if self.out is not None else []
        return shlex.join(words)

    def _validate(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; it must be at least 1.")
        if self.workers < 0:
            raise ValueError(f"workers is {self.workers}; it must not be negative.")
        for name in self.only:
            if name not in SECTIONS:
                hint = did_you_mean(name, SECTIONS)
                raise ValueError(f"only is {name!r}; {hint}known: {', '.join(SECTIONS)}.")

    def _to_dict(self, measurements: Mapping[str, Sequence[Measurement]]) -> dict[str, Any]:
        sections = {
            name: [{**asdict(one), "met": one.is_met} for one in lines]
            for name, lines in measurements.items()
        }
        return {**_describe_machine(), "command": self.command, "sections": sections}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the suite; exit code 2 and one sentence where an argument is wrong."""
    suite = tyro.cli(SpeedSuite, prog="python -m benchmarks", args=arguments)
    try:
        suite.run()
    except ValueError as error:
        sys.stderr.write(f"benchmarks: {error}\n")
        return 2
    return 0


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n\n")
    sys.stdout.flush()


def _table_lines(measurements: Sequence[Measurement]) -> list[str]:
    rows = [HEADER, *map(_cells, measurements)]
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return [lines[0], "|---|---:|---|---:|---|---|", *lines[1:]]


def _cells(one: Measurement) -> tuple[str, ...]:
    limit = "" if one.limit is None else f"{'>=' if one.is_minimum else '<='} {one.limit:g}"
    met = {None: "", True: "yes", False: "NO"}[one.is_met]
    value = f"{one.value:.2f}" if abs(one.value) < 100 else f"{one.value:,.0f}"
    return (one.name, value, one.unit, limit, met, one.note)


def _render_page(command: str, measurements: Mapping[str, Sequence[Measurement]]) -> str:
    """The tables as a page of Markdown, with what they were measured on."""
    machine = _describe_machine()
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    clock = (
        "steps, peak, costs and growth are timed by the processor's clock, since torch has one "
        "thread, all else by the wall's"
        if machine["threads"] == 1
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
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']:.0f} GB; "
        f"{machine['threads']} thread{'s' if machine['threads'] > 1 else ''} of torch; {versions}. "
        f"When it ended, {machine['load']:.1f} processes wanted a core, its own among them. "
        f"Figures are medians of interleaved rounds; {clock}.",
        "",
    ]
    for name, one_section in measurements.items():
        lines += [f"## {SECTIONS[name].title}", "", f"`python -m benchmarks --only {name}`", ""]
        lines += [*_table_lines(one_section), ""]
    return "\n".join(lines)


def _describe_machine() -> dict[str, Any]:
    return {
        "processor": _processor_name(),
        "cores": os.cpu_count(),
        "memory_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        "versions": library_versions(),
    }


def _processor_name() -> str:
    """Its name where Linux tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
