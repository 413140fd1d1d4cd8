"""Progress of claims on standard error: the experiment, the time left of all, each verdict."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape

from dsbisect.cli.search_progress import SearchProgress, sample_line, spell_left
from dsharness.model import Boundary, Sample
from dsresults.compare.claim_outcomes import ClaimAnswer


class ClaimsProgress(SearchProgress):
    """Labs inside an experiment say less than in a search: the time left is of all of them."""

    def began(self, what: str, left_s: float) -> None:
        self._say(f"[bold]{escape(what)}[/] ({spell_left(left_s)} if nothing is cached or stored)")

    def judged(self, claim: ClaimAnswer) -> None:
        self._say(f"  [bold]{escape(claim.id)}: {claim.verdict}[/]: {escape(claim.answer)}")

    def begin(self, rows: Sequence[str], questions: int) -> None:
        del questions
        self._say(f"  preparing {', '.join(rows)}")

    def prepared(self, row: str) -> None:
        self._say(f"  [bold]{escape(row)}[/]: ready")

    def failed(self, row: str, why: str) -> None:
        self._say(f"  [bold yellow]{escape(row)}: failed[/]: {escape(why)}")

    def sampled(self, sample: Sample) -> None:
        self._say(f"  {sample_line(sample)}")

    def answered(self, boundary: Boundary) -> None:
        self._say(f"  {boundary.workload_id}: {escape(boundary.summary)}")
