"""A step as others are told of it: what was compared, where it lies, how large it is, what it fits.

The texts for others are made of it: an issue, a slide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dsharness.errors import UsageError
from dsharness.measure.metrics import COST, CPU
from dsharness.model import Boundary, Sample
from dsharness.products import known_changes, product
from dsresults.commits_result import SHORT, Culprit
from dsresults.compare.comparison_table import Candidate, Column, ComparisonTable
from dsresults.number_text import sized
from dsresults.reasons import explanation
from dsresults.reasons.reason import Reason, places
from dsresults.report.report_data import ReportData

NAMED_ISSUE = re.compile(r"(?:\b(?:issue|ticket|bug)\s*|#)#?(\d{2,7})\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class FoundStep:
    """Where one load's answer lies, and all that is known of it."""

    data: ReportData
    comparison: ComparisonTable
    column: Column
    boundary: Boundary
    findings: tuple[Reason, ...] = ()

    @property
    def names(self) -> tuple[str, str]:
        return self.boundary.before or "", self.boundary.after or ""

    @property
    def sides(self) -> tuple[Candidate, Candidate]:
        before, after = map(self.comparison.candidate, self.names)
        return before, after

    @property
    def culprit(self) -> Culprit | None:
        culprits = self.data.commits.culprits if self.data.commits else ()
        after = self.boundary.after
        return next((culprit for culprit in culprits if culprit.boundary.after == after), None)

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All of this load's, valid or not."""
        return tuple(s for s in self.data.samples if s.campaign_id == self.column.campaign_id)

    @property
    def versions(self) -> tuple[str, str]:
        """Releases: of rows as installed, of commits the ends of the range."""
        if self.data.commits:
            return self.data.commits.ends
        before, after = (side.release for side in self.sides)
        distinct = before and after and before != after
        return (before, after) if distinct else self.names

    @property
    def project(self) -> str:
        """What the versions are of: its releases' name, or the product's title."""
        title = self.sides[1].product_title
        return (self.data.commits.project or title) if self.data.commits else title

    @property
    def where(self) -> str:
        """``between SERVER 2.3.1 and 3.1.2``, ``since SERVER 3.2.1, commit 3938942a5418``."""
        first, last = self.versions
        if self.culprit is None:
            rows = self.versions == self.names  # which are called so, and not by a version
            title, later = (side.product_title for side in self.sides)
            before = first if rows else f"{title} {first}"
            after = last if rows or later == title else f"{later} {last}"
            return f"between {before} and {after}"
        suspect, count = self.culprit.suspects[-1], len(self.culprit.suspects)
        which = f"one of {count} commits up to" if count > 1 else "commit"
        return f"since {self.project} {suspect.release or last}, {which} {suspect.hash[:SHORT]}"

    @property
    def size(self) -> str:
        """``costs 1.4 times more CPU``: no sign, no percent; of counts, from where to where."""
        decider, boundary = self.comparison.decider, self.boundary
        if boundary.counts is not None:
            return sized(decider.words, boundary).rstrip(",")
        effect = boundary.effect or 1.0
        factor = f"{effect:.1f} times" if effect < 10 else f"{effect:.0f} times"
        if decider in {COST, CPU}:
            return f"costs {factor} {'less' if boundary.direction == 'faster' else 'more'} CPU"
        words = decider.words
        return f"{'' if words.verb else 'is '}{words.said(boundary.direction, factor)}"

    @property
    def operation(self) -> str:
        return self.column.workload.operation if self.column.workload else "an operation"

    @property
    def fitting_changes(self) -> tuple[Reason, ...]:
        """Known changes of CPU time that fit at this place, and issues that the commit names."""
        reasons = (
            reason
            for place in places(self.comparison)
            if (place.before, place.after) == self.names
            and self.comparison.metric in explanation.BY_CPU_TIME
            for reason in explanation.known_changes(place)
        )
        return (*reasons, *self._named())

    def _named(self) -> Iterator[Reason]:
        """What the suspects' subjects call their issues."""
        products = (candidate.product for candidate in self.comparison.candidates)
        name = next(filter(None, products), None)
        if name is None or self.culprit is None:
            return
        facts = product(name)
        changes = {str(change.issue): change for change in known_changes(name).changes}
        subjects = "; ".join(suspect.subject for suspect in self.culprit.suspects)
        for number in dict.fromkeys(NAMED_ISSUE.findall(subjects)):
            change = changes.get(number)
            what = f": {change.what}, first in {change.releases}" if change else ""
            yield Reason(
                topic="The commit's own issue",
                text=f"The commit is part of {facts.title} issue {number}{what}.",
                confidence=explanation.Confidence.LIKELY,
                links=facts.links_of(number),
            )

    @property
    def why(self) -> str:
        """The surest reason of this step, or what its commit changes; empty where none is known."""
        place = " to ".join(self.names)
        reasons = [reason for reason in self.findings if reason.topic.startswith(place)]
        sure = [r.text for r in reasons if r.confidence is not explanation.Confidence.POSSIBLE]
        suspects = self.culprit.suspects if self.culprit else ()
        files = ", ".join(path for suspect in suspects for path in suspect.counting)
        changed = [f"It changes {files}"] if files else []
        return next(iter([*sure, *changed, *(reason.text for reason in reasons)]), "")

    @property
    def others(self) -> tuple[Column, ...]:
        """Loads of the same report that have answers of their own."""
        columns = (c for section in self.data.sections for c in section.comparison.columns)
        return tuple(column for column in columns if column.campaign_id != self.column.campaign_id)


def answers_of(data: ReportData) -> Iterator[FoundStep]:
    """Yield each load's answer: a step to the worse first, no step last."""
    answers = [
        FoundStep(
            data=data,
            comparison=section.comparison,
            column=column,
            boundary=column.boundary,
            findings=section.findings,
        )
        for section in data.sections
        for column in section.comparison.columns
        if column.boundary
    ]
    order = ("slower", "faster", "none", "unknown")
    yield from sorted(answers, key=lambda answer: order.index(answer.boundary.direction))


def worse(data: ReportData) -> FoundStep:
    """Return the first change to the worse; UsageError where there is none."""
    step = next(answers_of(data), None)
    boundary = step.boundary if step else None
    if step is None or not (boundary and boundary.found and boundary.direction == "slower"):
        raise UsageError(
            "there is nothing to tell upstream: no change to the worse was found",
            hint="`dsbisect show` says what was found; --issue needs a boundary",
        )
    return step
