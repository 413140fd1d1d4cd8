"""The report: what was found, how sure it is, why, and everything it rests on."""

from dsresults.report.data import ReportData
from dsresults.report.gathering import report_data
from dsresults.report.html import render_html
from dsresults.report.text import render_text
from dsresults.report.writing import default_folder, write_report

__all__ = [
    "ReportData",
    "default_folder",
    "render_html",
    "render_text",
    "report_data",
    "write_report",
]
