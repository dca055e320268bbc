"""The report of a run: one HTML file that needs nothing else."""

from __future__ import annotations

from gencaps.report.content import Hard, ReportContent
from gencaps.report.page import write_report

__all__ = ["Hard", "ReportContent", "write_report"]
