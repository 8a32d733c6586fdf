"""Reports: one self-contained HTML file to open, send and keep, made from the folders of runs."""

from cida.report.render import Page, render_report
from cida.report.report_files import write_report
from cida.report.runs import Run, RunCollection, read_runs
from cida.runs.records import Manifest

__all__ = ["Manifest", "Page", "Run", "RunCollection", "read_runs", "render_report", "write_report"]
