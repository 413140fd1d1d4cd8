"""All samples of a report, with the machines and the set-up, as its last section."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import CLIENT_CPU, CPU, RATE
from dsharness.model import Sample
from dsresults.compare.comparison_table import Column, ComparisonTable
from dsresults.number_text import capital, figure, significant, utc, whole
from dsresults.page import page
from dsresults.page.chart import path, shape
from dsresults.page.page import Content, Facts, Fold, Row, Section, Table, code, note, strong
from dsresults.report.report_data import ReportData

SPARK_WIDTH, SPARK_HEIGHT = 90, 22
SPARK_POINTS = 180  # two for each unit of width
PROCEDURE = (
    "A candidate is judged by its samples. The calibrator is a fixed piece of work that ran on the "
    "same CPUs at the same time. {judged} If the machine has enough CPUs, two candidates are "
    "measured at the same time and swap their CPUs (a duet). A sample that fails the validity gate "
    "is not used; one that was disturbed from outside is repeated. The whole procedure: "
)


def evidence_section(data: ReportData) -> Section:
    judged = " ".join(
        f"By {decider.label}: {decider.title}"
        f"{f'; the {decider.witness} is a second measure' if decider.witness else ''}."
        for decider in data.deciders
    )
    return Section(
        title="Evidence",
        id="evidence",
        parts=(
            (PROCEDURE.format(judged=judged), code("docs/verdicts.md"), "."),
            *_setups(data),
            *(
                _samples(data, section.comparison, column)
                for section in data.sections
                for column in section.comparison.columns
            ),
        ),
    )


def _setups(data: ReportData) -> Iterator[Content]:
    several = len(data.setups)
    for number, setup in enumerate(data.setups, start=1):
        mixed = f" {number} of {several}: figures of different machines are mixed here"
        yield Fold(
            title=f"Machine and set-up{mixed if several > 1 else ''}",
            open=several > 1,
            parts=[Facts(facts=setup.facts, kind="environment")],
        )


def sample_metrics(comparison: ComparisonTable) -> tuple[Metric, ...]:
    """Return what is shown of each sample: what decided, and what most readers ask for."""
    decider = filter(None, (comparison.value_shown,))
    return tuple(dict.fromkeys((RATE, *decider, CPU, CLIENT_CPU)))


def _samples(data: ReportData, comparison: ComparisonTable, column: Column) -> Fold:
    metrics = sample_metrics(comparison)
    ours = [sample for sample in data.samples if sample.campaign_id == column.campaign_id]
    bad = sum(not sample.valid for sample in ours)
    ended = f", ended {utc(column.finished_at)}" if column.finished_at else ""
    table = Table(
        kind="samples",
        headed=0,
        columns=(
            "Begun, UTC",
            "Turn",
            "Candidate",
            "Operations",
            "Each second",
            *(page.Column(title=capital(metric.heading), hint=metric.title) for metric in metrics),
            "Calibrator, ms",
            "Taken by others, %",
            "Valid",
        ),
        rows=[_row(sample, metrics) for sample in ours],
    )
    return Fold(
        workload=column.workload_id,
        title=f"{len(ours)} samples of {column.workload_id}, settings {comparison.settings_id}"
        f"{f', {bad} of them not valid' if bad else ''}",
        parts=(
            note(f"Campaign {column.campaign_id}, begun {utc(column.started_at)}{ended}."),
            table,
        ),
    )


def _row(sample: Sample, metrics: Sequence[Metric]) -> Row:
    values = ((metric, sample.value(metric.name)) for metric in metrics)
    calibrator = sample.calibrator_us
    return Row(
        kind="" if sample.valid else "invalid",
        cells=(
            utc(sample.started_at)[:19],
            str(sample.turn),
            sample.candidate_id,
            whole(sample.operations),
            _or_nothing(spark(sample)),
            *("" if value is None else figure(metric, value) for metric, value in values),
            "" if calibrator is None else significant(calibrator / 1000),
            significant(sample.others_pct),
            _validity(sample),
        ),
    )


def _or_nothing(drawn: Element | None) -> Content:
    return "" if drawn is None else drawn


def _validity(sample: Sample) -> Content:
    if sample.valid:
        return "yes"
    if sample.disturbed:
        return f"disturbed, repeated: {'; '.join(sample.disturbed)}"
    log = (" ", code(sample.log)) if sample.log else ()
    return (strong("no"), f": {'; '.join(sample.invalid)}", *log)


def spark(sample: Sample) -> Element | None:
    """Return the one-second rates as a line, from zero up; None where that says nothing."""
    rates, seconds = _thinned(sample.per_second)
    if len(rates) < 2 or max(rates) <= 0:
        return None
    step, highest = SPARK_WIDTH / (len(rates) - 1), max(rates)
    points = [
        (round(number * step, 1), round(SPARK_HEIGHT - 2 - (SPARK_HEIGHT - 4) * rate / highest, 1))
        for number, rate in enumerate(rates)
    ]
    each = "each second" if seconds == 1 else f"each second, means of {seconds} s"
    words = f"operations {each}: " + ", ".join(map(significant, rates))
    return shape(
        "svg",
        path("polyline", points, ""),
        kind="spark",
        title=words,
        viewBox=f"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}",
        width=SPARK_WIDTH,
        height=SPARK_HEIGHT,
        role="img",
        aria_label=words,
    )


def _thinned(rates: Sequence[float]) -> tuple[Sequence[float], int]:
    """No more of them than a line shows, and of how many seconds each is the mean."""
    seconds = max(1, math.ceil(len(rates) / SPARK_POINTS))
    parts = (rates[begin : begin + seconds] for begin in range(0, len(rates), seconds))
    return (rates if seconds == 1 else [sum(part) / len(part) for part in parts]), seconds
