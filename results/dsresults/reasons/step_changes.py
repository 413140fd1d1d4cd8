"""What else changed where the cost did: known changes of the product, libraries, facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsharness import products
from dsresults.explainers import FactColumn, FactText, columns_of
from dsresults.number_text import capital
from dsresults.reasons.cost_steps import StepPlace
from dsresults.reasons.reason import Confidence, Reason

FactPair = tuple[FactColumn, FactText, FactText]  # before and after


def known_changes(place: StepPlace) -> Iterator[Reason]:
    """Cite the known changes of the product that lie just here."""
    if place.product is None:
        return
    before, after = place.facts
    old, new = place.version(place.before), place.version(place.after)
    data, known_of = products.product(place.product), products.known_changes(place.product)
    for known in known_of.between((old, before), (new, after)):
        if set(known.unless_set) & set(place.comparison.options):
            continue
        yield Reason(
            topic=place.name,
            text=f"This coincides with {data.title} issue {known.issue}: {known.what}, first in "
            f"{known.releases}. {old} on {place.before} does not have it, {new} on "
            f"{place.after} has it.",
            confidence=Confidence.LIKELY,
            evidence=tuple(_read_back(place)),
            links=data.links_of(known.issue),
        )


def _read_back(place: StepPlace) -> Iterator[str]:
    for column, *sides in _facts(place):
        if column.accounted:
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
    accounted = [column.noun for column in changed if column.accounted]
    others = [*libraries, *(column.noun for column in changed if not column.accounted)]
    names = ", ".join(others)
    if accounted:
        also = f"In addition to {' and '.join(accounted)}, {names} changed; this run cannot tell "
        return f"{also}which of them is the cause." if others else ""
    begin = _same([column.noun for column, before, after in facts if before == after])
    if others:
        return f"{begin}The cause may be what changed: {names}, or {place.product_title} itself."
    if server:
        return f"{begin}No library changed: look in {place.product_title} itself."
    return f"{begin}No recorded version differs: compare the images' full manifests."


def _same(nouns: Sequence[str]) -> str:
    verb = "is" if len(nouns) == 1 else "are"
    return f"{capital(' and '.join(nouns))} {verb} the same on both sides. " if nouns else ""


def _facts(place: StepPlace) -> tuple[FactPair, ...]:
    """The facts that both told."""
    sides = [place.comparison.candidate(each).product for each in (place.before, place.after)]
    before, after = place.facts
    read = ((column, column.read(before), column.read(after)) for column in columns_of(sides))
    return tuple((column, old, new) for column, old, new in read if old and new)
