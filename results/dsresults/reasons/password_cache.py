"""Where a password is checked without hashing it: few users are cheap, many are not.

Some libraries keep the last results of a hash (known_changes.yaml of a product). A load whose users
fit into this cache measures a look-up; one whose users do not fit measures the hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from dsharness.model import Value
from dsharness.products import known_changes
from dsharness.products.known_changes import Hashing
from dsresults.compare.comparison_table import Candidate, Column, ComparisonTable, Observed
from dsresults.number_text import milliseconds, spell, times, whole
from dsresults.reasons.reason import Confidence, Reason

MUCH_CHEAPER = 2.0
ABOUT_THE_SAME = 1.25


class Contrast(Value):
    """One candidate under a load of few users and under one of many; the same stored password."""

    few: Column
    many: Column
    with_few: Observed
    with_many: Observed
    ratio: float
    library: str = ""  # that computes this scheme
    hashing: Hashing | None = None  # what is known of it; None: nothing

    @property
    def reuses(self) -> bool:
        return self.ratio >= MUCH_CHEAPER

    @property
    def same(self) -> bool:
        return 1 / ABOUT_THE_SAME <= self.ratio <= ABOUT_THE_SAME

    def spelled(self) -> str:
        return (
            f"{self.with_few.candidate}: {_ms(self.with_few)} with {self.few.workload_id}, "
            f"{_ms(self.with_many)} with {self.many.workload_id}"
        )


def contrasts(comparison: ComparisonTable) -> Iterator[Contrast]:
    """Every candidate under each two loads that differ in their number of users."""
    for few, many in permutations(comparison.columns, 2):
        if few.users is None or many.users is None or few.users >= many.users:
            continue
        for candidate in comparison.line:
            one, other = few.of(candidate), many.of(candidate)
            if one and other and one.stored and one.stored == other.stored:
                ratio = _cost_ratio(other, one)
                if ratio is not None:
                    library, hashing = _hashing(comparison.candidate(candidate), one)
                    yield Contrast(
                        few=few, many=many, with_few=one, with_many=other, ratio=ratio,
                        library=library, hashing=hashing,
                    )  # fmt: skip


def avoids_hashing(comparison: ComparisonTable, column: Column, candidate: str) -> bool:
    """Whether another load showed that this one does not pay for a hash here."""
    return any(
        contrast.reuses
        and contrast.few.campaign_id == column.campaign_id
        and contrast.with_few.candidate == candidate
        for contrast in contrasts(comparison)
    )


def reuse(comparison: ComparisonTable) -> Iterator[Reason]:
    """What is cheaper with few users, and what is not: the second explains the first."""
    found = list(contrasts(comparison))
    for contrast in found:
        if contrast.reuses:
            yield _cached(comparison, contrast)
    if any(contrast.reuses for contrast in found):
        yield from _not_cached([c for c in found if c.same and c.hashing and not c.hashing.keeps])


def _hashing(candidate: Candidate, observed: Observed) -> tuple[str, Hashing | None]:
    """The library that computes what is stored, and what is known of it."""
    if candidate.product is None or observed.stored is None:
        return "", None
    known = known_changes(candidate.product)
    library = known.library_of(observed.stored.scheme)
    return ("", None) if library is None else (library, known.hashing[library])


def _cached(comparison: ComparisonTable, contrast: Contrast) -> Reason:
    few, many = contrast.few, contrast.many
    candidate = comparison.candidate(contrast.with_few.candidate)
    stored = spell(contrast.with_few.stored) if contrast.with_few.stored else ""
    text = (
        f"{candidate.id} serves {few.workload_id} ({_users(few)}) {times(contrast.ratio)} cheaper "
        f"than {many.workload_id} ({_users(many)}), with the same stored password ({stored}). "
    )
    if contrast.hashing is not None and contrast.hashing.keeps:
        version = candidate.versions.get(contrast.library, "")
        cause, confidence = _kept(contrast.hashing, version, few, many), Confidence.LIKELY
    else:
        cause = "Something keeps results for a few users; no known cache does that for this scheme."
        confidence = Confidence.POSSIBLE
    return Reason(
        topic=f"Reuse on {candidate.id}",
        text=text + cause,
        confidence=confidence,
        evidence=(f"server CPU per operation, {contrast.spelled()}",),
    )


def _kept(hashing: Hashing, version: str, few: Column, many: Column) -> str:
    entries = hashing.kept(version)
    known = f"{hashing.title} {version}".rstrip()
    begin = f"This scheme is computed by {known}, which keeps the results of earlier hashes"
    if entries is None or few.users is None or many.users is None:
        return f"{begin}: a user who is still in the cache costs a look-up and no hash."
    kept = "the last one" if entries == 1 else f"the last {whole(entries)}"
    if few.users <= entries < many.users:
        return (
            f"{begin} ({kept}). There is room for {_users(few)}, whose binds cost a look-up, and "
            f"none for {_users(many)}, whose binds cost a hash each."
        )
    return f"{begin} ({kept}), and more of {_users(few)} than of {_users(many)} are still there."


def _not_cached(same: list[Contrast]) -> Iterator[Reason]:
    if not same:
        return
    schemes = sorted({c.with_few.stored.scheme for c in same if c.with_few.stored})
    libraries = " or ".join(sorted({c.hashing.title for c in same if c.hashing}))
    candidates = list(dict.fromkeys(contrast.with_few.candidate for contrast in same))
    yield Reason(
        topic=f"No reuse by {libraries}",
        text=f"{', '.join(schemes)} on {', '.join(candidates)} is computed by {libraries}, "
        "which keeps no results: few users and many cost the same there.",
        confidence=Confidence.MEASURED,
        evidence=tuple(contrast.spelled() for contrast in same),
    )


def _cost_ratio(one: Observed, other: Observed) -> float | None:
    """By the calibrator where both have it: the two loads ran at different times."""
    if one.calibrated_cost and other.calibrated_cost:
        return one.calibrated_cost / other.calibrated_cost
    if one.server_cpu_us_per_op and other.server_cpu_us_per_op:
        return one.server_cpu_us_per_op / other.server_cpu_us_per_op
    return None


def _ms(observed: Observed) -> str:
    return milliseconds(observed.server_cpu_us_per_op or 0.0)


def _users(column: Column) -> str:
    users = column.users or 0
    return "1 user" if users == 1 else f"{whole(users)} users"
