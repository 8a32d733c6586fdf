"""``cida report``: one self-contained HTML file from the folders of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console

from cida.cli.console import print_json, print_lines, progress_bar

if TYPE_CHECKING:
    from cida.report import Page, Run, RunCollection
    from cida.report.sections.trust_section import CertificateScope

REPORT_FILE = "report.html"


@dataclass(frozen=True)
class Report:
    """Makes one HTML file of runs: results, figures along the index, certificates, the doctor.

    Several runs, of several methods, seeds, tasks or tables of your own, are put side by side, in
    the order they are named. The file needs no network; its figures and tables are also written as
    files beside it.

    Example:  cida report runs/patients

    Example:  cida report runs/circle-best runs/circle-paper --out circle.html
    """

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN ...]")]
    """Folders of runs, as cida fit, demo and reproduce write them, or folders that hold such."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The file to write; by default report.html in the folder of the RUN, or with several RUNs in
    the current folder."""

    title: str = ""
    """The title of the page; by default the experiment's."""

    files: bool = True
    """By default the figures are also written as SVG and PNG, and the tables as CSV and LaTeX, into
    report-files beside the report."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Prints what is to be known first of each run and, last, the report's path."""
        from cida.report import read_runs  # it imports torch
        from cida.report.report_files import check_resvg_installed

        if self.files:
            check_resvg_installed()  # before the work
        out = self.out or _default_out(self.runs)
        if out.is_dir():
            raise ValueError(
                f"out is {out}, which is a folder; name a file in it, such as {REPORT_FILE}."
            )
        page = save_report(read_runs(self.runs), out, console, self.title, "every", self.files)
        print_lines(console, *page.verdicts, str(out.resolve()))
        if self.json:
            print_json("report", files=[out.resolve()], verdicts=page.verdicts)
        return 0


def _default_out(runs: Sequence[Path]) -> Path:
    """In the folder of the only one; several have theirs here, where no other is replaced."""
    from cida.report.report_files import is_report
    from cida.runs.records import MANIFEST_FILE
    from cida.runs.run_folder import RECORD_FILE

    folders = list(dict.fromkeys(path.resolve() for path in runs))
    if len(folders) == 1:
        return runs[0] / REPORT_FILE
    working_folder, out = Path().resolve(), Path(REPORT_FILE)
    if working_folder in folders or any(
        (working_folder / name).is_file() for name in (RECORD_FILE, MANIFEST_FILE)
    ):
        raise ValueError(
            f"out is missing, and {REPORT_FILE} in the current folder is that of the runs in it; "
            "name another file with --out."
        )
    if out.is_file() and not is_report(out):
        raise ValueError(
            f"out is missing, and the {REPORT_FILE} in the current folder was not made by cida; "
            "move it or name another file with --out."
        )
    return out


def save_report(
    runs: RunCollection,
    out: Path,
    console: Console,
    title: str = "",
    certificate_scope: CertificateScope = "few",
    with_files: bool = False,
) -> Page:
    """Writes the report of these runs; a bar shows how many certificates are made."""
    from cida.report import render_report, write_report  # they import torch

    with progress_bar(console) as bar:
        bar_task = bar.add_task("certificates", total=None, visible=False)

        def on_start(count: int) -> None:
            bar.update(bar_task, total=count, visible=count > 0)

        def on_certificate(run: Run) -> None:
            bar.update(bar_task, advance=1, description=f"certificate of {run.title}")

        page = render_report(runs, title, certificate_scope, on_start, on_certificate)
    write_report(page, out, with_files)
    return page
