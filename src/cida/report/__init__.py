"""Reports: one self-contained HTML file to open, send and keep, made from the folders of runs."""

from cida.report.files import write_report
from cida.report.page import Page, report_page
from cida.report.runs import Run, Runs, read_runs
from cida.report.story import Story

__all__ = ["Page", "Run", "Runs", "Story", "read_runs", "report_page", "write_report"]
