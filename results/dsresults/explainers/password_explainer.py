"""How a stored password explains what a bind costs: its scheme, its rounds, reused results.

Where a password is checked without hashing it, few users are cheap and many are not: some libraries
keep the last results of a hash (hashing.yaml of a product). A load whose users fit into this cache
measures a look-up; one whose users do not fit measures the hash.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import permutations

from pydantic import Field

from dsharness.model import DirectoryOperation, Facts, Value
from dsharness.model.stored_password import StoredPassword, stored_in
from dsharness.model.value import Url
from dsharness.products import product_file
from dsharness.products.product import Release, numbers
from dsresults.compare.comparison_table import Column, ComparisonTable, Observed
from dsresults.explainers.explainer import Explainer, FactColumn, FactText
from dsresults.number_text import milliseconds, significant, times, whole
from dsresults.reasons.reason import Confidence, CostChange, Reason, StepPlace

BIND = DirectoryOperation.BIND  # what a stored password is checked by
MUCH_CHEAPER = 2.0
ABOUT_THE_SAME = 1.25


class KeptResults(Value):
    """How many results a library keeps, from a version on."""

    since: Release
    results: int


class Hashing(Value):
    """Whose code computes some stored passwords, and what it keeps of it."""

    title: str = Field(description="the library")
    schemes: tuple[str, ...]
    keeps: tuple[KeptResults, ...] = Field(default=(), description="newest version first")

    def kept(self, version: str) -> int | None:
        """How many results this version keeps; None where that is not known."""
        version_numbers = numbers(version)
        return next(
            (keep.results for keep in self.keeps if version_numbers >= numbers(keep.since)), None
        )


class Least(Value):
    """The least work that is recommended for a hash."""

    hash: str
    schemes: tuple[str, ...]
    rounds: int
    memory_kib: int | None = Field(default=None, description="that each round goes over")
    only: str = Field(default="", description="what it is still recommended for")

    def __str__(self) -> str:
        memory = f" over {whole(self.memory_kib)} KiB" if self.memory_kib else ""
        return f"{whole(self.rounds)} rounds{memory}"

    def held_by(self, stored: StoredPassword) -> bool:
        return (stored.rounds or 0) >= self.rounds and (stored.memory_kib or 0) >= (
            self.memory_kib or 0
        )


class Recommended(Value):
    """What a published recommendation says of a product's schemes."""

    by: str
    title: str
    address: Url
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    least: tuple[Least, ...] = Field(description="for a scheme with several, each is enough")
    fast: tuple[str, ...] = Field(description="schemes that hash fast, which is not accepted")

    def of(self, scheme: str) -> tuple[Least, ...]:
        return tuple(least for least in self.least if scheme in least.schemes)


class HashingLibraries(Value):
    """The whole of hashing.yaml."""

    libraries: dict[str, Hashing] = Field(
        default_factory=dict, description="library, as product.yaml calls it -> what it hashes"
    )
    recommended: Recommended | None = None

    def kept(self, scheme: str, versions: Mapping[str, str]) -> int:
        """How many results of a scheme libraries of these versions keep, as far as is known."""
        kept_results = (
            library.kept(versions[name])
            for name, library in self.libraries.items()
            if scheme in library.schemes and name in versions
        )
        return next(kept_results, None) or 0


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
            with_few, with_many = few.of(candidate), many.of(candidate)
            if with_few is None or with_many is None:
                continue
            stored, ratio = stored_in(with_few.facts), _cost_ratio(with_many, with_few)
            if ratio is None or stored is None or stored != stored_in(with_many.facts):
                continue
            library, hashing = _hashing(comparison.candidate(candidate).product, stored)
            yield Contrast(
                few=few,
                many=many,
                with_few=with_few,
                with_many=with_many,
                stored=stored,
                ratio=ratio,
                library=library,
                hashing=hashing,
            )


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
    found_contrasts = list(contrasts(comparison))
    for contrast in found_contrasts:
        if contrast.reuses:
            yield _cached(comparison, contrast)
    if any(contrast.reuses for contrast in found_contrasts):
        yield from _not_cached(
            [c for c in found_contrasts if c.same and c.hashing and not c.hashing.keeps]
        )


def _hashing(product: str | None, stored: StoredPassword) -> tuple[str, Hashing | None]:
    """Return the library that computes what is stored, and what is known of it."""
    libraries = hashing_of(product).libraries.items() if product else ()
    return next(
        ((name, library) for name, library in libraries if stored.scheme in library.schemes),
        ("", None),
    )


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
    library_text = f"{hashing.title} {version}".rstrip()
    begin = f"This scheme is computed by {library_text}, which keeps the results of earlier hashes"
    if entries is None:
        return f"{begin}: a user who is still in the cache costs a look-up and no hash."
    kept_text = "the last one" if entries == 1 else f"the last {whole(entries)}"
    if _number(few) <= entries < _number(many):
        return (
            f"{begin} ({kept_text}). There is room for {_users(few)}, whose binds cost a look-up, "
            f"and none for {_users(many)}, whose binds cost a hash each."
        )
    return (
        f"{begin} ({kept_text}), and more of {_users(few)} than of {_users(many)} are still there."
    )


def _not_cached(alike_contrasts: list[Contrast]) -> Iterator[Reason]:
    if not alike_contrasts:
        return
    schemes = sorted({contrast.stored.scheme for contrast in alike_contrasts})
    libraries = " or ".join(sorted({c.hashing.title for c in alike_contrasts if c.hashing}))
    candidates = list(dict.fromkeys(contrast.with_few.candidate for contrast in alike_contrasts))
    yield Reason(
        topic=f"No reuse by {libraries}",
        text=f"{', '.join(schemes)} on {', '.join(candidates)} is computed by {libraries}, "
        "which keeps no results: few users and many cost the same there.",
        confidence=Confidence.MEASURED,
        evidence=tuple(contrast.spelled() for contrast in alike_contrasts),
    )


def _cost_ratio(observed: Observed, reference: Observed) -> float | None:
    """Calibrated costs, where both have them: the two loads ran at different times."""
    if observed.calibrated_cost and reference.calibrated_cost:
        return observed.calibrated_cost / reference.calibrated_cost
    if observed.server_cpu_us_per_op and reference.server_cpu_us_per_op:
        return observed.server_cpu_us_per_op / reference.server_cpu_us_per_op
    return None


def _ms(observed: Observed) -> str:
    return milliseconds(observed.server_cpu_us_per_op or 0.0)


def _number(column: Column) -> int:
    """How many different users the load binds as; 0 where it binds as none, or is not known."""
    if column.workload is None or not column.measured(BIND):
        return 0
    return column.workload.distinct_entries or 0


def _users(column: Column) -> str:
    users = _number(column)
    return "1 user" if users == 1 else f"{whole(users)} users"


ALL_OF_IT = 1.25  # a bind costs more than its hash, so the two factors never agree to the digit


def stored_change(place: StepPlace) -> Iterator[Reason]:
    """Say whether scheme and rounds explain the change under each workload."""
    before, after = map(stored_in, place.facts)
    changes = [change for change in place.changes if change.column.measured(BIND)]
    if not changes:
        return
    if before is None or after is None or before == after:
        return
    work = _work(before, after)
    text = f"The stored password changes from {spelled(before)} to {spelled(after)}"
    text += f": {times(work.factor)} the {work.noun}. " if work else ". "
    same_scheme = before.scheme == after.scheme
    yield Reason(
        topic=place.name,
        text=text
        + " ".join(_account(place, change, work, same_scheme=same_scheme) for change in changes),
        confidence=Confidence.MEASURED,
        evidence=tuple(_evidence(place, change) for change in changes),
    )


@dataclass(frozen=True, kw_only=True)
class _Work:
    """How much more there is to compute, as far as the stored values say."""

    factor: float
    noun: str = "rounds"


def _work(before: StoredPassword, after: StoredPassword) -> _Work | None:
    if not before.rounds or not after.rounds:
        return None
    rounds = after.rounds / before.rounds
    if not before.memory_kib or not after.memory_kib:
        return _Work(factor=rounds)
    # Each round goes over all of the memory once.
    return _Work(factor=rounds * after.memory_kib / before.memory_kib, noun="rounds and memory")


def _account(place: StepPlace, change: CostChange, work: _Work | None, *, same_scheme: bool) -> str:
    cost = change.ratio.value
    begin = f"With {change.column.workload_id} it takes {times(cost)} the CPU time"
    free = _free(place, change)
    if free:
        return (
            f"{begin}, but {' and '.join(free)} hardly hashes under this load (see the reuse of "
            "results), so the rounds do not explain it."
        )
    if work is None:
        return f"{begin}."
    if same_scheme:
        return f"{begin}: {_same_scheme(cost, work)}."
    per_round = cost / work.factor
    word = "cheaper" if per_round < 1 else "dearer"
    return f"{begin}: each round is {times(max(per_round, 1 / per_round))} {word}."


def _same_scheme(cost: float, work: _Work) -> str:
    remainder = cost / work.factor
    if 1 / ALL_OF_IT <= remainder <= ALL_OF_IT:
        return f"the {work.noun} explain all of it"
    if math.log(cost) * math.log(work.factor) <= 0:
        return f"the {work.noun} do not explain it"
    more = "more" if abs(math.log(cost)) > abs(math.log(work.factor)) else "less"
    return f"{times(max(remainder, 1 / remainder))} {more} than the {work.noun} explain"


def same_stored(place: StepPlace) -> Iterator[Reason]:
    """Say what becomes of a round's cost, where both sides hash the same stored password."""
    before, after = map(stored_in, place.facts)
    if before is None or before != after or not before.rounds:
        return
    for change in place.changes:
        if change.column.measured(BIND) and not _free(place, change):
            cost = change.ratio.value
            yield Reason(
                topic=place.name,
                text=f"Both verify {spelled(before)}: with {change.column.workload_id} each round "
                f"is {times(max(cost, 1 / cost))} {'cheaper' if cost < 1 else 'dearer'}.",
                confidence=Confidence.MEASURED,
                evidence=(_evidence(place, change),),
            )


def _free(place: StepPlace, change: CostChange) -> list[str]:
    """Those of the two that were seen to check passwords without hashing."""
    return [
        observed.candidate
        for observed in (change.before, change.after)
        if avoids_hashing(place.comparison, change.column, observed.candidate)
    ]


def _evidence(place: StepPlace, change: CostChange) -> str:
    free = _free(place, change)
    costs = [
        f"{observed.candidate} {_cpu(observed, hashes=observed.candidate not in free)}"
        for observed in (change.before, change.after)
        if observed.server_cpu_us_per_op is not None
    ]
    text = f"{change.column.workload_id}: server CPU per operation {', '.join(costs)}"
    text += f"; calibrated, after over before: {times(change.ratio.value)}"
    if change.ratio.interval:
        low, high = change.ratio.interval
        level = change.column.boundary.effect_level if change.column.boundary else 0.0
        text += f" ({level:.0%} interval {significant(low)} to {significant(high)})"
    return text


def _cpu(observed: Observed, *, hashes: bool) -> str:
    cpu_us = observed.server_cpu_us_per_op or 0.0
    text = milliseconds(cpu_us)
    stored = stored_in(observed.facts)
    if hashes and stored and stored.rounds:
        text += f" ({significant(cpu_us / stored.rounds)} µs a round)"
    return text


def _read(facts: Facts) -> FactText | None:
    stored = stored_in(facts)
    return None if stored is None else spelled(stored)


STORED_PASSWORD = Explainer(
    columns=(FactColumn(heading="stored password", read=_read, costs=(BIND,)),),
    reuses=avoids_hashing,
    of_loads=reuse,
    of_step=stored_change,
    of_server=same_stored,
)
