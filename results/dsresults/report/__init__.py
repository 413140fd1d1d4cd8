"""The report: what was found, how sure it is, why, and all its evidence."""

from dsresults.report.report_data import ReportData, render_text, same_loads
from dsresults.report.report_page import render_html, render_markdown
from dsresults.report.report_source import default_folder, report_data, write_report

__all__ = [
    "ReportData",
    "default_folder",
    "render_html",
    "render_markdown",
    "render_text",
    "report_data",
    "same_loads",
    "write_report",
]
