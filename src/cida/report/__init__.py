"""Reports: one file to open, send and keep."""

from cida.report.html import toy_report

__all__ = ["toy_report"]
