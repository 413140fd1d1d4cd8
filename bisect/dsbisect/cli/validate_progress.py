"""Progress of a validation: each step with an ETA, each check as it is found. Prints to stderr."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape

from dsbisect.cli.search_progress import Watch, sample_line, spell_left
from dsharness.model import Sample
from dsvalidate.answer_files import HEADLINES
from dsvalidate.check import Check, Gate, Status, answer_of

COLOURS = {
    Status.PASSED: "green",
    Status.WARNED: "yellow",
    Status.FAILED: "bold red",
    Status.INCONCLUSIVE: "yellow",
    Status.NOT_RUN: "dim",
}


class ValidationWatch(Watch):
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
        headline = HEADLINES[answer_of(checks)]
        self._say(f"[bold]{headline}[/], as far as is known; still open: {escape(title)}")

    def begin(self, rows: Sequence[str], questions: int) -> None:
        del rows, questions

    def prepared(self, row: str) -> None:
        del row

    def sampled(self, sample: Sample) -> None:
        self._say(f"  {sample_line(sample)}")
