"""Reports: one self-contained HTML file to open, send and keep."""

from cida.report.rotating import rotating_report
from cida.report.suite import suite_report
from cida.report.toy import toy_report

__all__ = ["rotating_report", "suite_report", "toy_report"]
