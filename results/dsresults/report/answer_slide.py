"""An answer as one slide of a talk: what, since when, how much, the versions, and why in a line."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from dsharness.errors import UsageError
from dsharness.measure.metric import Metric
from dsharness.measure.metrics import COST, CPU
from dsharness.plain_text import plain, without_folders
from dsresults.commits_result import SHORT
from dsresults.number_text import capital, counted, figure, from_to, interval_text, significant
from dsresults.page.chart import Chart, box, label
from dsresults.report.found_step import FoundStep, answers_of
from dsresults.report.report_data import ReportData

WIDTH, HEIGHT = 1260.0, 708.0  # of 1280 by 720: there is a margin
LEFT = 50.0
BAR_LEFT, BAR_WIDTH, BAR_HEIGHT = 340.0, 640.0, 46.0
LETTER, BOLD_LETTER = 0.63, 0.72  # the width of one, of its height, in a wide font
FACTOR_SIZE = 120  # as in page.css
# The height of each kind of text; page.css has the same.
SIZES = {
    "slide-foot": 20,
    "slide-text": 28,
    "slide-text quiet": 28,
    "slide-words": 32,
    "slide-load": 36,
    "slide-none": 72,
}


def answer_slide(data: ReportData) -> Chart:
    """Return the slide of the first step, one to the worse before others; else of no difference."""
    step = next(answers_of(data.addressed), None)
    if step is None:
        raise UsageError(
            "there is nothing for a slide: no search has an answer",
            hint="`dsbisect show` says what is known",
        )
    shapes = [
        *_question(step),
        *(_found(step) if step.boundary.found else _none(step)),
        *_foot(step),
    ]
    texts = [part.text for part in shapes if part.text]
    return Chart(
        title=f"{step.project}: {step.column.load_name}",
        description="; ".join(texts),
        width=WIDTH,
        height=HEIGHT,
        workload=step.column.workload_id,
        kind="slide",
        shapes=shapes,
    )


def _lines(
    text: str, y: float, kind: str, *, most: int = 1, left: float = LEFT
) -> Iterator[Element]:
    """A text in so many lines at most, none wider than the slide."""
    size = SIZES[kind]
    letter = LETTER if size < SIZES["slide-words"] else BOLD_LETTER
    words = " ".join(plain(without_folders(text)).split())
    rows = textwrap.wrap(
        words,
        int((WIDTH - LEFT - left) / (letter * size)),
        max_lines=most,
        placeholder=" …",
        break_on_hyphens=False,
    )
    for number, row in enumerate(rows):
        yield label(left, y + 1.25 * size * number, row, kind)


def _question(step: FoundStep) -> Iterator[Element]:
    title = f"{step.column.load_name}: {step.column.title}".removesuffix(": ")
    yield from _lines(f"{step.project} {' to '.join(step.versions)}", 52, "slide-text quiet")
    yield from _lines(title, 104, "slide-load", most=2)


def _found(step: FoundStep) -> Iterator[Element]:
    boundary, decider, left = step.boundary, step.comparison.decider, LEFT
    said = decider.words.said(boundary.direction)
    if boundary.counts is not None:
        said = f"{capital(said)}, {from_to(boundary.counts)}"
    else:
        factor = f"{significant(boundary.effect or 1.0)}×"  # noqa: RUF001
        yield label(LEFT, 290, factor, f"slide-size {boundary.direction}")
        left += BOLD_LETTER * FACTOR_SIZE * len(factor) + 24
        if decider in {COST, CPU}:
            more = "less" if boundary.direction == "faster" else "more"
            said = f"{more} CPU time per {step.operation}"
        elif decider.words.verb:
            said = f"{decider.label}: {said}"
    yield from _lines(said, 240, "slide-words", left=left)
    yield from _lines(interval_text(boundary).strip(" ()"), 288, "slide-text quiet", left=left)
    yield from _since(step)
    yield from _bars(step)
    yield from _lines(step.why.partition(". ")[0], 610, "slide-text", most=2)


def _since(step: FoundStep) -> Iterator[Element]:
    culprit = step.culprit
    if culprit is None:
        text = f"since {_side(step, 1)}, not yet in {_side(step, 0)}"
    else:
        suspect = culprit.suspects[-1]
        count = len(culprit.suspects)
        which = f"one of {count} commits up to" if count > 1 else "commit"
        text = f"since {which} {suspect.hash[:SHORT]} of {suspect.day}: {suspect.subject}"
    yield from _lines(text, 370, "slide-words", most=2)


def _side(step: FoundStep, number: int) -> str:
    """``3.1.2 (debian-13)``: the version where there is one, and the row."""
    version, name = step.versions[number], step.names[number]
    return name if version == name else f"{version} ({name})"


def _bars(step: FoundStep) -> Iterator[Element]:
    """Both sides as bars, each with its name and its median."""
    metric = CPU if step.comparison.decider is COST else step.comparison.decider
    medians = [_median(step, name, metric) for name in step.names]
    if None in medians:
        return
    values = [value for value in medians if value is not None]
    longest = max(values) or 1.0
    names = ("before it", "with it") if step.culprit else (_short(step, 0), _short(step, 1))
    kinds = ("before", f"after {step.boundary.direction}")
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        y = 452 + number * (BAR_HEIGHT + 14)
        width = max(2.0, BAR_WIDTH * value / longest)
        yield label(BAR_LEFT - 16, y + 32, name, "slide-text", "end")
        yield box(BAR_LEFT, y, width, BAR_HEIGHT, f"slide-bar {kinds[number]}")
        yield label(BAR_LEFT + width + 14, y + 32, figure(metric, value), "slide-text")


def _short(step: FoundStep, number: int) -> str:
    name = step.versions[number]
    return name if len(name) <= 17 else f"{name[:16]}…"


def _median(step: FoundStep, name: str, metric: Metric) -> float | None:
    values = [s.value(metric.name) for s in step.samples if s.valid and s.candidate_id == name]
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None


def _none(step: FoundStep) -> Iterator[Element]:
    boundary = step.boundary
    said = "No difference found" if boundary.direction == "none" else "No answer can be given"
    yield from _lines(said, 290, "slide-none")
    if boundary.smallest_visible_pct is not None:
        smallest = f"{significant(boundary.smallest_visible_pct)} %"
        text = f"a difference of {smallest} would have been seen"
    else:
        text = boundary.summary
    yield from _lines(text, 360, "slide-words", most=2)


def _foot(step: FoundStep) -> Iterator[Element]:
    valid = sum(sample.valid for sample in step.samples)
    models = {setup.facts.get("cpu_model", "") for setup in step.data.setups} - {""}
    where = f" on {', '.join(sorted(models))}" if models else ""
    day = step.column.started_at.partition("T")[0]
    yield from _lines(f"{counted(valid, 'run')}{where}, {day}; dsbisect", 690, "slide-foot")
