"""One self-contained page: no script, no request, every text escaped."""

from __future__ import annotations

from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined

from dsresults import figures
from dsresults.report.charts import WIDTH, charts
from dsresults.report.commands import repeat_command
from dsresults.report.data import ReportData
from dsresults.report.sparks import SPARK_HEIGHT, SPARK_WIDTH, spark


def render_html(data: ReportData) -> str:
    """The whole report as one HTML document."""
    return _environment().get_template("report.html.jinja").render(data=data)


def utc(moment: str | None) -> str:
    """A stored moment as UTC to the second; what is no moment is shown as it is."""
    if not moment:
        return ""
    try:
        parsed = datetime.fromisoformat(moment)
        aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        shown = aware.astimezone(UTC)  # no UTC for a first or last hour of all time
    except (ValueError, OverflowError):
        return moment
    return f"{shown.replace(tzinfo=None).isoformat(sep=' ', timespec='seconds')} UTC"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dsresults", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        significant=figures.significant,
        whole=figures.whole,
        ms=figures.milliseconds,
        spell=figures.spell,
        utc=utc,
    )
    environment.globals.update(
        charts=charts,
        spark=spark,
        repeat_command=repeat_command,
        chart_width=WIDTH,
        spark_width=SPARK_WIDTH,
        spark_height=SPARK_HEIGHT,
    )
    return environment
