"""What became of published claims, where along an axis one stops to hold, their page. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Self

from pydantic import Field

from dsharness.model import Value
from dsresults.compare.bind_lines import BindFigures, rate_table, users_chart
from dsresults.number_text import utc, whole
from dsresults.page.page import (
    Bullets,
    Card,
    Content,
    Facts,
    Grid,
    Listing,
    Page,
    Paragraph,
    Section,
    badge,
    code,
    note,
)


class ClaimVerdict(StrEnum):
    """What our figures say of a claim; a failure of the lab says nothing of it."""

    REPRODUCED = "reproduced"
    REFUTED = "not reproduced"
    DEPENDS = "depends on"
    UNTESTABLE = "not testable here"
    INCONCLUSIVE = "inconclusive"


class ClaimOutcome(Value):
    """One claim's verdict, the sentence that says it, and our figure."""

    verdict: ClaimVerdict
    answer: str
    ours: str = Field(default="-", description="our figure, in a few words")
    axis: str = Field(default="", description="that it depends on")
    flips: tuple[str, ...] = Field(default=(), description="where along it the answer changes")
    details: tuple[str, ...] = ()


class ClaimAnswer(ClaimOutcome):
    """The same with what was published."""

    id: str
    source: str = Field(description="title of the publication")
    text: str
    theirs: str
    command: str = Field(description="repeats it")
    elsewhere: str = Field(default="", description="tests it, or more of it, on other machines")


class UnreachedRow(Value):
    """A published row that could not be made here."""

    row: str
    why: str


class ClaimsAnswer(Value):
    """All of one run of the command."""

    product: str
    title: str
    command: str
    found_at: str = Field(description="UTC, ISO 8601")
    claims: tuple[ClaimAnswer, ...]
    users: BindFigures | None = Field(default=None, description="rate over distinct users")
    reached: tuple[str, ...] = Field(default=(), description="published rows that were measured")
    unreached: tuple[UnreachedRow, ...] = ()

    def count(self, verdict: ClaimVerdict) -> int:
        return sum(claim.verdict is verdict for claim in self.claims)

    @property
    def inconclusive(self) -> bool:
        """Whether a claim has no verdict that counts."""
        return self.count(ClaimVerdict.INCONCLUSIVE) > 0

    @property
    def summary(self) -> str:
        """`6 reproduced, 1 not reproduced, 7 depends on`: how many of each."""
        counts = ((self.count(verdict), verdict) for verdict in ClaimVerdict)
        return ", ".join(f"{number} {verdict}" for number, verdict in counts if number)

    def page(self) -> Page:
        return Page(
            title=self.title,
            heading=f"{self.title}, tested",
            about=(f"Tested on {utc(self.found_at)}",),
            parts=(
                Paragraph(words=self.summary, kind="headline"),
                *(
                    Section(title=source, parts=(Grid(parts=[*cards], kind="claims"),))
                    for source, cards in (
                        (source, map(_card, group))
                        for source, group in groupby(self.claims, key=lambda claim: claim.source)
                    )
                ),
                *self._figures(),
                *self._rows(),
                Section(title="Again", parts=(Listing(lines=(self.command,)),)),
                note(
                    "An answer that was measured is one of this machine; times and rates are not "
                    "those of another one, ratios are nearer to it. Inconclusive says that the lab "
                    "failed, and nothing of the claim."
                ),
            ),
        )

    def _figures(self) -> tuple[Content, ...]:
        if self.users is None:
            return ()
        chart = users_chart(self.users)
        return (
            Section(
                title="Binds a second", parts=[*([chart] if chart else []), rate_table(self.users)]
            ),
        )

    def _rows(self) -> tuple[Content, ...]:
        """The published rows: those that were measured, and why others could not be had."""
        unreached = [(code(row.row), f": {row.why}") for row in self.unreached]
        parts: list[Content] = []
        if self.reached:
            parts.append(f"Measured: {', '.join(self.reached)}")
        if unreached:
            parts += ["Could not be had here:", Bullets(items=unreached, kind="unmeasured")]
        return (Section(title="Published rows", parts=parts),) if parts else ()


def _card(claim: ClaimAnswer) -> Card:
    facts: dict[str, Content] = {
        "published": f"{claim.text} ({claim.theirs})",
        "here": claim.ours if claim.ours != "-" else "",
        "changes": "; ".join(claim.flips),
        "again": code(claim.command) if claim.command else "",
        "elsewhere": code(claim.elsewhere) if claim.elsewhere else "",
    }
    return Card(
        id=claim.id,
        kind=claim.verdict.value.replace(" ", "-"),
        title=(code(claim.id), ": ", badge(claim.verdict.value)),
        parts=(
            Paragraph(words=claim.answer, kind="answer-text"),
            Facts(facts={name: text for name, text in facts.items() if text}),
            *([Bullets(items=claim.details, kind="unmeasured")] if claim.details else []),
        ),
    )


class Span(Value):
    """Neighbouring numbers of users with the same answer, and the range of what was measured."""

    first: int
    last: int
    holds: bool
    low: float
    high: float

    @classmethod
    def along(
        cls, values: Sequence[tuple[int, float]], holds: Callable[[float], bool]
    ) -> tuple[Self, ...]:
        """From few users to many."""
        spans = []
        for answer, group in groupby(sorted(values), key=lambda pair: holds(pair[1])):
            part = list(group)
            part_values = [value for _, value in part]
            spans.append(
                cls(
                    first=part[0][0],
                    last=part[-1][0],
                    holds=answer,
                    low=min(part_values),
                    high=max(part_values),
                )
            )
        return tuple(spans)

    @property
    def users(self) -> str:
        """`1 user`, `5 to 1,000 users`."""
        if self.first != self.last:
            return f"{whole(self.first)} to {whole(self.last)} users"
        return user_count(self.first)


def user_count(number: int) -> str:
    """`1 user`, `1,000 users`."""
    return f"{whole(number)} user{'' if number == 1 else 's'}"


def flips_of(spans: Sequence[Span]) -> tuple[str, ...]:
    """`between 3 and 5 users`, for each change of the answer."""
    return tuple(
        f"between {whole(span.last)} and {whole(next_span.first)} users"
        for span, next_span in pairwise(spans)
    )


def verdict_of(holds: Sequence[bool]) -> ClaimVerdict:
    """Everywhere, nowhere, or it depends."""
    if not holds:
        return ClaimVerdict.INCONCLUSIVE
    if all(holds):
        return ClaimVerdict.REPRODUCED
    return ClaimVerdict.DEPENDS if any(holds) else ClaimVerdict.REFUTED


def inconclusive(why: str) -> ClaimOutcome:
    """What was asked could not be measured: no finding about the claim."""
    return ClaimOutcome(verdict=ClaimVerdict.INCONCLUSIVE, answer=f"not known: {why}")
