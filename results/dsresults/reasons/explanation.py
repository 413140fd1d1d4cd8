"""Why the answer is what it is, from the figures and the known changes. Pure.

Where the cost changes, a reason names what else does: known changes of the product, libraries,
facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dsharness import products
from dsharness.measure.metrics import COST, CPU, LATENCY_P99, RATE, find_metric
from dsharness.model import NO_DIFFERENCE, LdaploadWorkload, Outcome
from dsresults.compare.comparison_table import Column, ComparisonTable, Observed
from dsresults.explainers import Explainer, FactColumn, FactText, columns_of, explainers_of
from dsresults.number_text import capital, counted, figure, percent, significant, times
from dsresults.reasons.reason import Confidence, Reason, StepPlace, places

FactPair = tuple[FactColumn, FactText, FactText]  # before and after


def known_changes(place: StepPlace) -> Iterator[Reason]:
    """Cite the known changes of the product that lie just here."""
    if place.product is None:
        return
    before, after = place.facts
    old, new = place.version(place.before), place.version(place.after)
    data, known_of = products.product(place.product), products.known_changes(place.product)
    for change in known_of.between((old, before), (new, after)):
        applies = not change.operations or any(
            cost_change.column.measured(*change.operations) for cost_change in place.changes
        )
        if not applies or set(change.unless_set) & set(place.comparison.options):
            continue
        yield Reason(
            topic=place.name,
            text=f"This coincides with {data.title} issue {change.issue}: {change.what}, first in "
            f"{change.releases}. {old} on {place.before} does not have it, {new} on "
            f"{place.after} has it.",
            confidence=Confidence.LIKELY,
            evidence=tuple(_read_back(place)),
            links=data.links_of(change.issue),
        )


def _read_back(place: StepPlace) -> Iterator[str]:
    for column, *sides in _facts(place):
        if column.costs:
            for name, text in zip((place.before, place.after), sides, strict=True):
                yield f"read back on {name}: {text}"


def library_changes(place: StepPlace) -> Iterator[Reason]:
    """Name what else differs at a boundary, and how seriously to take it."""
    if not place.boundary_of:
        return
    old = place.comparison.candidate(place.before).versions
    new = place.comparison.candidate(place.after).versions
    differ = [noun for noun in old if noun in new and old[noun] != new[noun]]
    libraries = [noun for noun in differ if noun != place.product]
    text = _text(place, libraries, server=bool(differ))
    if text:
        yield Reason(
            topic=place.name,
            text=text,
            confidence=Confidence.POSSIBLE,
            evidence=tuple(f"{noun}: {old[noun]} to {new[noun]}" for noun in differ),
        )


def _text(place: StepPlace, libraries: list[str], *, server: bool) -> str:
    facts = _facts(place)
    changed = [column for column, before, after in facts if before != after]
    accounted = [column.noun for column in changed if column.costs]
    other_nouns = [*libraries, *(column.noun for column in changed if not column.costs)]
    names = ", ".join(other_nouns)
    if accounted:
        addition = (
            f"In addition to {' and '.join(accounted)}, {names} changed; this run cannot tell "
        )
        return f"{addition}which of them is the cause." if other_nouns else ""
    begin = _same([column.noun for column, before, after in facts if before == after])
    if other_nouns:
        return f"{begin}The cause may be what changed: {names}, or {place.product_title} itself."
    if server:
        return f"{begin}No library changed: look in {place.product_title} itself."
    return f"{begin}No recorded version differs: compare the images' full manifests."


def _same(nouns: Sequence[str]) -> str:
    verb = "is" if len(nouns) == 1 else "are"
    return f"{capital(' and '.join(nouns))} {verb} the same on both sides. " if nouns else ""


def _facts(place: StepPlace) -> tuple[FactPair, ...]:
    """The facts that both told, of those that can concern these loads."""
    loads = tuple(change.column for change in place.changes)
    sides = [
        place.comparison.candidate(candidate).product for candidate in (place.before, place.after)
    ]
    before, after = place.facts
    columns = (column for column in columns_of(sides) if column.concerns(loads))
    read = ((column, column.read(before), column.read(after)) for column in columns)
    return tuple((column, old, new) for column, old, new in read if old and new)


TOO_FAR_APART = 1.5


def witnesses(comparison: ComparisonTable) -> Iterator[Reason]:
    """Candidates whose rate fell by another factor than their CPU time rose."""
    for column in comparison.columns:
        reference = column.of(column.reference) if column.reference else None
        if reference is None:
            continue
        for observed in column.observed:
            if observed.cost_ratio and observed.slowness_ratio:
                yield from _compare(column, observed, reference)


def _compare(column: Column, observed: Observed, reference: Observed) -> Iterator[Reason]:
    cost, slowness = observed.cost_ratio, observed.slowness_ratio
    if cost is None or slowness is None or not cost.interval or not slowness.interval:
        return
    apart = slowness.value / cost.value
    overlap = cost.interval[0] <= slowness.interval[1] and slowness.interval[0] <= cost.interval[1]
    if overlap or 1 / TOO_FAR_APART < apart < TOO_FAR_APART:
        return
    begin = (
        f"With {column.workload_id}, {observed.candidate} takes {times(cost.value)} the CPU time "
        f"of {reference.candidate}, and {times(slowness.value)} as long per operation. "
    )
    idle = observed if apart > 1 else reference
    why = (
        f"{idle.candidate} waits instead of computing: locks or queues, in the server or in the "
        "load, are suspected there."
    )
    yield Reason(
        topic="CPU time and rate disagree",
        text=begin + why,
        confidence=Confidence.POSSIBLE,
        evidence=tuple(_busy(column, observed_side) for observed_side in (reference, observed)),
    )


def _busy(column: Column, observed: Observed) -> str:
    text = f"{observed.candidate}: server busy on {significant(observed.busy_cpus or 0)} CPUs"
    if column.server_cpus:
        text += f" of {column.server_cpus}"
    if observed.client_cpu_us_per_op and observed.server_cpu_us_per_op:
        share = 100 * observed.client_cpu_us_per_op / observed.server_cpu_us_per_op
        text += f", the load took {percent(share)} of the server's CPU time"
    return text


def published(comparison: ComparisonTable) -> Iterator[Reason]:
    """Candidates whose published verdict is the opposite of the measured one."""
    for candidate in comparison.candidates:
        if candidate.published is None:
            continue
        verdict = Outcome(candidate.published.verdict)
        against = [
            column.workload_id
            for column in comparison.columns
            if column.measured(candidate.published.operation)
            and (observed := column.of(candidate.id))
            and observed.outcome not in {verdict, Outcome.INCONCLUSIVE}
        ]
        if against:
            yield Reason(
                topic="Not as published",
                text=f"{candidate.id} is published as {verdict.value} and was measured as the "
                f"opposite with {', '.join(against)}.",
                confidence=Confidence.MEASURED,
                evidence=tuple(
                    filter(None, (candidate.published_source, candidate.published.note))
                ),
            )


def changed_images(comparison: ComparisonTable) -> Iterator[Reason]:
    """Candidates that were measured with more than one image."""
    for candidate in comparison.candidates:
        if len(candidate.images) > 1:
            yield Reason(
                topic="More than one image",
                text=f"{candidate.id} was measured with {len(candidate.images)} different images; "
                "its figures mix them.",
                confidence=Confidence.MEASURED,
                evidence=tuple(f"image {key}" for key in candidate.images),
            )


def controls(comparison: ComparisonTable) -> Iterator[Reason]:
    """How much longer the slowest hundredth takes with a disturber than with a harmless one."""
    by_name = {column.workload_id: column for column in comparison.columns}
    for column in comparison.columns:
        load = column.workload
        name = load.control if isinstance(load, LdaploadWorkload) else None
        if name is None:
            continue
        if (calm := by_name.get(name)) is None:
            yield Reason(
                topic="Without its control",
                text=f"How much of {column.workload_id} is its disturber's is not known: its "
                f"control `--workload {name}` was not measured with it.",
                confidence=Confidence.POSSIBLE,
            )
        elif pairs := [*_next_to_control(column, calm)]:
            ratios = ", ".join(
                f"{times(loud / quiet)} on {candidate}" for candidate, loud, quiet, _ in pairs
            )
            yield Reason(
                topic="Next to its control",
                text=f"With {column.workload_id} the slowest hundredth takes so much longer than "
                f"with {name}, whose disturber is harmless: {ratios}.",
                confidence=Confidence.MEASURED,
                evidence=tuple(words for *_, words in pairs),
            )


def _next_to_control(column: Column, calm: Column) -> Iterator[tuple[str, float, float, str]]:
    """Each candidate that has both, its two medians, and these with its rates in words."""
    for loud in column.observed:
        quiet = calm.observed_of(loud.candidate)
        p99, quiet_p99 = (observed.metrics.get(LATENCY_P99.name) for observed in (loud, quiet))
        if p99 and quiet_p99:
            words = "; ".join(
                f"{name}: {figure(LATENCY_P99, value)}, {figure(RATE, observed.rate_per_s or 0)}, "
                f"{counted(observed.valid, 'run')}"
                for name, value, observed in (
                    (column.workload_id, p99, loud),
                    (calm.workload_id, quiet_p99, quiet),
                )
            )
            yield loud.candidate, p99, quiet_p99, f"{loud.candidate}: {words}"


CLEARLY = 1.25


def disagreement(
    comparison: ComparisonTable, explainers: tuple[Explainer, ...]
) -> Iterator[Reason]:
    """A verdict belongs to its workload: two workloads have different answers."""
    answered = [column for column in comparison.columns if _answer(column)]
    if len({_answer(column) for column in answered}) < 2:
        return
    places = "; ".join(f"{column.workload_id}: {_answer(column)}" for column in answered)
    text = f"The answer depends on the load ({places}). Each verdict belongs to its workload."
    cheap = [
        f"{candidate} with {column.workload_id}"
        for column in answered
        for candidate in comparison.line
        if any(explainer.reuses(comparison, column, candidate) for explainer in explainers)
    ]
    if cheap:
        text += f" They differ where earlier results are reused: {', '.join(cheap)}."
    yield Reason(
        topic="The workloads disagree",
        text=text,
        confidence=Confidence.MEASURED,
        evidence=tuple(_opposites(comparison, answered)),
    )


def _answer(column: Column) -> str:
    boundary = column.boundary
    if boundary is None or boundary.direction == "unknown":
        return ""
    if not boundary.found:
        return NO_DIFFERENCE
    word = find_metric(boundary.metric).words.said(boundary.direction)
    return f"{word} between {boundary.before} and {boundary.after}"


def _opposites(comparison: ComparisonTable, columns: list[Column]) -> Iterator[str]:
    """Neighbours that one load finds slower and another one faster."""
    for before, after in pairwise(comparison.line):
        ratios = [(column.workload_id, _ratio(column, before, after)) for column in columns]
        ratios_known = [(name, ratio) for name, ratio in ratios if ratio is not None]
        moved = any(not 1 / CLEARLY < ratio < CLEARLY for _, ratio in ratios_known)
        if len(ratios_known) > 1 and moved:
            costs = ", ".join(f"{name} costs {_spell(ratio)}" for name, ratio in ratios_known)
            yield f"from {before} to {after}: {costs}"


def _ratio(column: Column, before: str, after: str) -> float | None:
    earlier, later = column.of(before), column.of(after)
    if earlier is None or later is None or earlier.cost_ratio is None or later.cost_ratio is None:
        return None
    return later.cost_ratio.value / earlier.cost_ratio.value


def _spell(ratio: float) -> str:
    if 1 / CLEARLY < ratio < CLEARLY:
        return "about the same"
    return f"{times(ratio)} as much" if ratio > 1 else f"{times(1 / ratio)} less"


BY_CPU_TIME = {COST.name, CPU.name}

__all__ = ["Confidence", "Reason", "explain"]


def explain(comparison: ComparisonTable) -> list[Reason]:
    """Findings, the most important ones first; no finding twice."""
    return list(dict.fromkeys(_all(comparison)))


def _all(comparison: ComparisonTable) -> Iterator[Reason]:
    if comparison.metric in BY_CPU_TIME:
        yield from _of_cost(comparison)
    yield from controls(comparison)
    yield from published(comparison)
    yield from changed_images(comparison)


def _of_cost(comparison: ComparisonTable) -> Iterator[Reason]:
    """What is known about CPU time says nothing of a rate or a latency."""
    explainers = explainers_of(candidate.product for candidate in comparison.candidates)
    yield from disagreement(comparison, explainers)
    for explainer in explainers:
        yield from explainer.of_loads(comparison)
    step_places = places(comparison)
    for place in step_places:
        for explainer in explainers:
            yield from explainer.of_step(place)
        yield from known_changes(place)
    yield from witnesses(comparison)
    for place in step_places:
        yield from library_changes(place)
