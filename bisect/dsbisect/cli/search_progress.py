"""Progress on standard error: a live bar or plain lines, both with an ETA; or JSON for programs.

A validation has lines of its own: each step with an ETA, each check as it is found.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Self, TextIO

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from dsbisect.cli.shown_output import shown_console
from dsbuilds.drivers.build_stage import Stage
from dsharness.measure.metrics import CPU, INSTRUCTIONS, METRICS, RATE
from dsharness.model import DECIDER, Boundary, Campaign, Sample
from dssearch.question import Measure, Outlook, Question, Share
from dsvalidate.check import Check, Gate, Status, answer_of

TYPICAL_PREPARATION_S = 60.0  # a row on two cores when nothing is cached; used until one is ready


class SearchProgress:
    """A ``Observer`` for people."""

    def __init__(self) -> None:
        self._console = shown_console(stderr=True, highlight=False)
        self._begin = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[left]}"),
            TimeElapsedColumn(),
            console=self._console,
        )
        self._outlook: Outlook | None = None
        self._stages: dict[str, Stage] = {}  # of what is being built
        self._live = Live(
            get_renderable=self._shown, console=self._console, transient=True, refresh_per_second=4
        )
        self._task: TaskID | None = None
        self._prepared = 0
        self._rows = 0
        self._questions = 0
        self._begun = 0
        self._answered = 0
        self._taken = 0
        self._expected = 0
        self._measuring_since = 0.0
        self._question: Question | None = None
        self._known: set[str] = set()  # campaigns that were measured or told of
        self._answers: list[Boundary] = []

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._live.stop()
        if kind is KeyboardInterrupt:
            self._say_known()

    def _say_known(self) -> None:
        """Say what is known of a search that ends before its time."""
        for boundary in self._answers:
            self._say(f"known: {boundary.workload_id}: {escape(boundary.summary)}")
        if self._outlook and self._question:
            self._say(f"{self._question.workload_id}, {escape(in_words(self._outlook))}")

    def begin(self, rows: Sequence[str], questions: int) -> None:
        self._rows, self._questions = len(rows), questions
        self._task = self._bar.add_task("prepare", total=len(rows), left="")
        cold = spell_left(len(rows) * TYPICAL_PREPARATION_S)
        noun = "row" if len(rows) == 1 else "rows"
        self._say(f"preparing {len(rows)} {noun}: {', '.join(rows)} ({cold} if nothing is cached)")

    def preparing(self, row: str, news: str) -> None:
        self._stages.pop(row, None)
        if isinstance(news, Stage) and self._console.is_terminal:
            self._stages[row] = news
            return
        self._say(f"[bold]{escape(row)}[/]: {escape(news)}")

    def prepared(self, row: str) -> None:
        self._ended(row, "ready", "")

    def failed(self, row: str, why: str) -> None:
        self._ended(row, "[bold yellow]failed[/]", f": {escape(why)}")

    def _ended(self, row: str, how: str, why: str) -> None:
        self._stages.pop(row, None)
        self._prepared += 1
        self._rows = max(self._rows, self._prepared)  # some are prepared only after all others
        row_s = self._elapsed / self._prepared
        left_text = spell_left((self._rows - self._prepared) * row_s)
        self._advance("prepare", self._prepared, self._rows, left_text)
        counted = f"({self._prepared} of {self._rows}, {left_text})"
        self._say(f"[bold]{escape(row)}[/]: {how} {counted}{why}")

    def resumed(self, campaign: Campaign, samples: int) -> None:
        if campaign.id in self._known:  # of several that take turns
            return
        self._known.add(campaign.id)
        self._say(f"resuming {campaign.workload_id}: {samples} samples are already in the store")

    def note(self, text: str) -> None:
        self._say(escape(text))

    def step(self, question: Question, step: Measure) -> None:
        if not self._measuring_since:
            self._measuring_since = time.monotonic()
        if question != self._question:
            self._question = question
            self._outlook = None
            self._begun += 1
            self._say(f"workload [bold]{question.workload_id}[/] on {_line_of(question.line)}")
        self._expected = self._taken + len(step.candidates) + step.remaining
        self._outlook = step.outlook or self._outlook
        if step.why:
            self._say(f"turn {step.turn}: {escape(step.why)}")
        if step.outlook and not self._console.is_terminal:
            self._say(f"  {escape(in_words(step.outlook))}")

    def sampled(self, sample: Sample) -> None:
        self._known.add(sample.campaign_id)
        self._taken += 1
        sample_s = (time.monotonic() - self._measuring_since) / self._taken
        later = max(0, self._questions - self._answered - 1) * self._expected / self._begun
        left_text = spell_left((self._expected - self._taken + later) * sample_s)
        self._advance("measure", self._taken, self._expected + later, left_text)
        line = sample_line(sample, self._metric)
        self._say(f"  {line} ({self._taken} of about {self._expected + later:.0f}, {left_text})")

    @property
    def _metric(self) -> str:
        return self._question.metric if self._question else DECIDER

    def unmeasurable(self, row: str, why: str) -> None:
        self._say(f"[bold yellow]{escape(row)} cannot be measured[/]: {escape(why)}")

    def answered(self, boundary: Boundary) -> None:
        self._answered += 1
        self._outlook = None
        self._answers.append(boundary)
        self._say(f"[bold green]{boundary.workload_id}[/]: {escape(boundary.summary)}")

    def _shown(self) -> RenderableType:
        """What is shown below the lines: the probabilities, what is built, and the bar."""
        parts: list[RenderableType] = [as_table(self._outlook)] if self._outlook else []
        parts += [
            Text(f"{row}: {stage.now() or stage}", overflow="ellipsis", no_wrap=True)
            for row, stage in tuple(self._stages.items())
        ]
        return Group(*parts, self._bar)

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._begin

    def _advance(self, title: str, progress_made: float, total: float, left_text: str) -> None:
        if self._task is not None:
            self._bar.update(
                self._task, description=title, completed=progress_made, total=total, left=left_text
            )

    def _say(self, text: str) -> None:
        self._console.print(f"[dim]{self._elapsed:5.0f} s[/] {text}", soft_wrap=True)


class LabsProgress(SearchProgress):
    """A ``Watch`` of several labs: what all of them prepare is named once, before the first."""

    def begin(self, rows: Sequence[str], questions: int) -> None:
        if not self._rows:
            super().begin(rows, questions)


def _line_of(line: Sequence[str]) -> str:
    """A line of candidates; the middle of a long one is only counted."""
    if len(line) > 8:
        return f"{line[0]} → … {len(line) - 2} more … → {line[-1]}"
    return " → ".join(line)


def sample_line(sample: Sample, metric: str = DECIDER) -> str:
    """The rate and CPU time of a sample, and its value of the metric if that is another."""
    if not sample.valid:
        return f"{sample.candidate_id}: [yellow]not usable[/]: {escape('; '.join(sample.invalid))}"
    counted, rate = sample.value(INSTRUCTIONS.name), sample.value(RATE.name)
    if counted and rate is None:
        return f"{sample.candidate_id}: {counted:,.0f} instructions each"
    cpu = sample.value(CPU.name)
    spent = f", {cpu / 1000:.3g} ms CPU each" if cpu else ""
    decides, value = METRICS[metric], sample.value(metric)
    also = ""
    if metric not in {DECIDER, CPU.name, RATE.name} and value is not None:
        value_text = f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
        also = f", {decides.heading} {value_text} {decides.unit}"
    return f"{sample.candidate_id}: {rate or 0:.0f}/s{spent}{also}"


def spell_left(seconds: float) -> str:
    if seconds < 1:
        return "almost done"
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min left"
    return f"about {seconds / 3600:.1f} h left"


def in_words(outlook: Outlook) -> str:
    """The outlook on one line, where there is no room for a table."""
    shares = (f"{_place(share)} {share.chance:.0%}" for share in outlook.shares[:3])
    parts = [*shares, f"no step {outlook.none:.0%}"]
    if outlook.ramp >= 0.005:
        parts.append(f"a ramp {outlook.ramp:.0%}")
    return f"so far: {', '.join(parts)}; a run varies by {outlook.noise_pct:.1f} %"


def as_table(outlook: Outlook) -> Table:
    """Every share that is large enough, with a bar."""
    table = Table(
        "the step is", "candidates", "chance", "", title="probability so far", expand=False
    )
    for share in outlook.shares:
        table.add_row(_place(share), str(share.candidates), *_chance(share.chance))
    table.add_row("nowhere", "", *_chance(outlook.none))
    if outlook.ramp >= 0.005:
        table.add_row("a ramp, no step", "", *_chance(outlook.ramp))
    return table


def _chance(chance: float) -> tuple[str, str]:
    return f"{chance:.1%}", "█" * round(20 * chance)


def _place(share: Share) -> str:
    return share.last if share.candidates == 1 else f"after {share.after}, up to {share.last}"


class Events:
    """A ``Observer`` for programs: one JSON object per line, without an ETA.

    {"at": 12.3, "event": "step", "turn": 4, "candidates": ["…"], "why": "…", "outlook": {…}, …}
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._begin = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def begin(self, rows: Sequence[str], questions: int) -> None:
        self._tell("begin", candidates=list(rows), questions=questions)

    def preparing(self, row: str, news: str) -> None:
        self._tell("preparing", candidate=row, what=news)

    def prepared(self, row: str) -> None:
        self._tell("prepared", candidate=row)

    def failed(self, row: str, why: str) -> None:
        self._tell("failed", candidate=row, why=why)

    def resumed(self, campaign: Campaign, samples: int) -> None:
        self._tell("resumed", campaign=campaign.id, samples=samples)

    def note(self, text: str) -> None:
        self._tell("note", text=text)

    def step(self, question: Question, step: Measure) -> None:
        self._tell(
            "step",
            series=question.series_id,
            workload=question.workload_id,
            turn=step.turn,
            candidates=list(step.candidates),
            why=step.why,
            remaining=step.remaining,
            outlook=asdict(step.outlook) if step.outlook else None,
        )

    def sampled(self, sample: Sample) -> None:
        self._tell("sampled", sample=sample.model_dump(mode="json", exclude={"per_second"}))

    def unmeasurable(self, row: str, why: str) -> None:
        self._tell("unmeasurable", candidate=row, why=why)

    def answered(self, boundary: Boundary) -> None:
        self._tell("answered", answer=boundary.model_dump(mode="json", exclude={"line"}))

    def _tell(self, event: str, **facts: object) -> None:
        seconds = round(time.monotonic() - self._begin, 2)
        print(json.dumps({"at": seconds, "event": event, **facts}), file=self._stream, flush=True)


COLOURS = {
    Status.PASSED: "green",
    Status.WARNED: "yellow",
    Status.FAILED: "bold red",
    Status.INCONCLUSIVE: "yellow",
    Status.NOT_RUN: "dim",
}


class ValidationProgress(SearchProgress):
    """A ``ValidationListener`` for people; labs inside a step say less than in a search."""

    def began(self, title: str, left_s: float) -> None:
        self._say(f"[bold]{escape(title)}[/] ({spell_left(left_s)})")

    def recalled(self, title: str) -> None:
        self._say(f"{escape(title)}: known from before")

    def found(self, check: Check) -> None:
        status = f"[{COLOURS[check.status]}]{check.status}[/]"
        self._say(f"  {check.gate} {escape(check.name)}: {status}: {escape(check.found)}")

    def skipped(self, gates: Sequence[Gate], why: str) -> None:
        status = f"[{COLOURS[Status.NOT_RUN]}]{Status.NOT_RUN}[/]"
        self._say(f"  {', '.join(gates)}: {status}: {escape(why)}")

    def known(self, checks: Sequence[Check], title: str) -> None:
        from dsvalidate.validation_page import HEADLINES  # signs: searches need not wait for it

        headline = HEADLINES[answer_of(checks)]
        self._say(f"[bold]{headline}[/], as far as is known; still open: {escape(title)}")

    def begin(self, rows: Sequence[str], questions: int) -> None:
        del rows, questions

    def prepared(self, row: str) -> None:
        del row

    def sampled(self, sample: Sample) -> None:
        self._say(f"  {sample_line(sample)}")
