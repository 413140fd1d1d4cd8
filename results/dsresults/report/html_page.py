"""One self-contained page: one script of its own, no request, every text escaped.

Pictures are positions, by pure geometry; the templates draw them.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import CLIENT_CPU, CPU, LATENCY, LATENCY_P99, RATE
from dsharness.model import NO_DIFFERENCE, Sample, Value
from dsresults import number_text
from dsresults.compare.comparison_table import ComparisonTable
from dsresults.compare.latency_curves import (
    FEWEST_SLOWER,
    IN_TABLE,
    drawn_curves,
    percentile_chart,
)
from dsresults.compare.self_checks import told
from dsresults.compare.usage_courses import usage_charts
from dsresults.explainers import read_back, shown_columns
from dsresults.number_text import significant, utc
from dsresults.page.chart import Chart
from dsresults.page.page_files import page_environment
from dsresults.page.page_html import element, text_of_element
from dsresults.profile_pair import FLAME_WIDTH, changed_functions, flame_graphs, heap_changes
from dsresults.report.answer_picture import AREA, Picture, pictures, sentences
from dsresults.report.report_data import ReportData, repeat_command
from dsresults.times_table import notes_text, times_cells

SPARK_WIDTH, SPARK_HEIGHT = 90, 22
SPARK_POINTS = 180  # two for each unit of width


def render_html(data: ReportData) -> str:
    """The whole report as one HTML document."""
    script = _script()
    page = report_environment().get_template("report.html.jinja")
    return page.render(data=data, script=script, script_hash=_hash(script))


@cache
def _script() -> Markup:
    """The page's one script, as it stands between its tags."""
    loader = PackageLoader("dsresults")
    return Markup(loader.get_source(report_environment(), "page.js")[0])  # noqa: S704 - our own file


def _hash(text: str) -> str:
    """By which a content security policy allows a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def figure_of(chart: Chart, name: str) -> Markup:
    """A chart with its caption."""
    caption = [element("figcaption", chart.caption)]
    return text_of_element(element("figure", *caption, chart.drawn(name)))


def figure_text(picture: Picture) -> str:
    """A picture as a file of its own, with its style."""
    return report_environment().get_template("figure.svg.jinja").render(picture=picture)


class Spark(Value):
    """The one-second rates of a sample."""

    points: str
    description: str


def spark(sample: Sample) -> Spark | None:
    """A line from the first second to the last, from zero up."""
    rates, seconds = _thinned(sample.per_second)
    if len(rates) < 2 or max(rates) <= 0:
        return None
    step, highest = SPARK_WIDTH / (len(rates) - 1), max(rates)
    points = [
        f"{i * step:.1f},{SPARK_HEIGHT - 2 - (SPARK_HEIGHT - 4) * rate / highest:.1f}"
        for i, rate in enumerate(rates)
    ]
    each = "each second" if seconds == 1 else f"each second, means of {seconds} s"
    return Spark(
        points=" ".join(points),
        description=f"operations {each}: " + ", ".join(significant(rate) for rate in rates),
    )


def _thinned(rates: Sequence[float]) -> tuple[Sequence[float], int]:
    """No more of them than a line shows, and of how many seconds each is the mean."""
    seconds = max(1, math.ceil(len(rates) / SPARK_POINTS))
    parts = (rates[begin : begin + seconds] for begin in range(0, len(rates), seconds))
    return (rates if seconds == 1 else [sum(part) / len(part) for part in parts]), seconds


def sample_metrics(comparison: ComparisonTable) -> tuple[Metric, ...]:
    """Return what is shown of each sample: what decided, and what most readers ask for."""
    decider = filter(None, (comparison.value_shown,))
    return tuple(dict.fromkeys((RATE, *decider, CPU, CLIENT_CPU)))


@cache
def report_environment() -> Environment:
    """Renders the report's own templates."""
    environment = page_environment()
    environment.filters.update(
        significant=number_text.significant,
        whole=number_text.whole,
        counted=number_text.counted,
        capital=number_text.capital,
        figure=number_text.figure,
        ms=number_text.milliseconds,
        utc=utc,
        percent=number_text.chance_text,
        duration=number_text.duration,
    )
    environment.globals.update(
        area=AREA,
        changed_functions=changed_functions,
        checks_told=told,
        fewest_slower=FEWEST_SLOWER,
        flame_graphs=flame_graphs,
        flame_width=FLAME_WIDTH,
        heap_changes=heap_changes,
        interval_text=number_text.interval_text,
        latency_metrics=(LATENCY.name, LATENCY_P99.name),
        no_difference=NO_DIFFERENCE,
        notes_text=notes_text,
        pictures=pictures,
        sentences=sentences,
        percentile_chart=percentile_chart,
        drawn_curves=drawn_curves,
        figure_of=figure_of,
        sized=number_text.sized,
        times_cells=times_cells,
        usage_charts=usage_charts,
        percentiles_shown=IN_TABLE,
        read_back=read_back,
        sample_metrics=sample_metrics,
        shown_columns=shown_columns,
        spark=spark,
        repeat_command=repeat_command,
        spark_width=SPARK_WIDTH,
        spark_height=SPARK_HEIGHT,
    )
    return environment
