"""Where a password is checked without hashing it: few users are cheap, many are not.

Some libraries keep the last results of a hash (hashing.yaml of a product). A load whose users fit
into this cache measures a look-up; one whose users do not fit measures the hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import permutations

from pydantic import Field

from dsharness.model import Value
from dsharness.products import product_file
from dsharness.products.product import Release, numbers
from dsharness.systems.ldap.stored_password import StoredPassword, stored_in
from dsresults.compare.comparison_table import Column, ComparisonTable, Observed
from dsresults.explainers.explainer import FactText
from dsresults.number_text import milliseconds, times, whole
from dsresults.reasons.reason import Confidence, Reason

MUCH_CHEAPER = 2.0
ABOUT_THE_SAME = 1.25


class KeptResults(Value):
    """From a version of a library on: how many results it keeps."""

    since: Release
    results: int


class Hashing(Value):
    """Whose code computes some stored passwords, and what it keeps of it."""

    title: str = Field(description="the library")
    schemes: tuple[str, ...]
    keeps: tuple[KeptResults, ...] = Field(default=(), description="newest version first")

    def kept(self, version: str) -> int | None:
        """How many results this version keeps; None where that is not known."""
        found = numbers(version)
        return next((each.results for each in self.keeps if found >= numbers(each.since)), None)


class HashingLibraries(Value):
    """The whole of hashing.yaml."""

    libraries: dict[str, Hashing] = Field(
        default_factory=dict, description="library, as product.yaml calls it -> what it hashes"
    )


@cache
def hashing_of(product: str) -> HashingLibraries:
    """Return which libraries hash for a product; nothing, where that is not known."""
    return product_file(product, "hashing.yaml", HashingLibraries) or HashingLibraries()


def spelled(stored: StoredPassword) -> FactText:
    """Spell a stored password's scheme and rounds, and the memory that each goes over."""
    rounds = f"{whole(stored.rounds)} rounds" if stored.rounds else ""
    memory = f" over {whole(stored.memory_kib)} KiB" if stored.memory_kib else ""
    return FactText(main=stored.scheme, more=rounds + memory)


class Contrast(Value):
    """One candidate under a load of few users and under one of many; the same stored password."""

    few: Column
    many: Column
    with_few: Observed
    with_many: Observed
    stored: StoredPassword
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
        if not 0 < _number(few) < _number(many):
            continue
        for candidate in comparison.line:
            one, other = few.of(candidate), many.of(candidate)
            if one is None or other is None:
                continue
            stored, ratio = stored_in(one.facts), _cost_ratio(other, one)
            if ratio is None or stored is None or stored != stored_in(other.facts):
                continue
            library, hashing = _hashing(comparison.candidate(candidate).product, stored)
            yield Contrast(
                few=few, many=many, with_few=one, with_many=other, stored=stored, ratio=ratio,
                library=library, hashing=hashing,
            )  # fmt: skip


def avoids_hashing(comparison: ComparisonTable, column: Column, candidate: str) -> bool:
    """True if another load showed that this one does not pay for a hash here."""
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


def _hashing(product: str | None, stored: StoredPassword) -> tuple[str, Hashing | None]:
    """Return the library that computes what is stored, and what is known of it."""
    known = hashing_of(product).libraries.items() if product else ()
    return next(((name, one) for name, one in known if stored.scheme in one.schemes), ("", None))


def _cached(comparison: ComparisonTable, contrast: Contrast) -> Reason:
    few, many = contrast.few, contrast.many
    candidate = comparison.candidate(contrast.with_few.candidate)
    text = (
        f"{candidate.id} serves {few.workload_id} ({_users(few)}) {times(contrast.ratio)} cheaper "
        f"than {many.workload_id} ({_users(many)}), with the same stored password "
        f"({spelled(contrast.stored)}). "
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
    if entries is None:
        return f"{begin}: a user who is still in the cache costs a look-up and no hash."
    kept = "the last one" if entries == 1 else f"the last {whole(entries)}"
    if _number(few) <= entries < _number(many):
        return (
            f"{begin} ({kept}). There is room for {_users(few)}, whose binds cost a look-up, and "
            f"none for {_users(many)}, whose binds cost a hash each."
        )
    return f"{begin} ({kept}), and more of {_users(few)} than of {_users(many)} are still there."


def _not_cached(same: list[Contrast]) -> Iterator[Reason]:
    if not same:
        return
    schemes = sorted({contrast.stored.scheme for contrast in same})
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


def _number(column: Column) -> int:
    """How many different users the load binds as; 0 where that is not known."""
    return (column.workload.distinct_entries if column.workload else None) or 0


def _users(column: Column) -> str:
    users = _number(column)
    return "1 user" if users == 1 else f"{whole(users)} users"
