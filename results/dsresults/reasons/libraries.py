"""Versions that changed at the same place: possible causes, or changes that hide the cause."""

from __future__ import annotations

from collections.abc import Iterator

from dsharness.products import known_changes
from dsresults.reasons.cost_steps import StepPlace
from dsresults.reasons.reason import Confidence, Reason


def library_changes(place: StepPlace) -> Iterator[Reason]:
    """At a boundary: what else differs, and how seriously to take it."""
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
    names = ", ".join(libraries)
    if place.stored is not None and place.stored[0] != place.stored[1]:
        also = f"In addition to the stored password, {names} changed; this run cannot tell which "
        return f"{also}of them is the cause." if libraries else ""
    begin = _of_passwords(place)
    if libraries:
        return f"{begin}The cause may be what changed: {names}, or {place.product_title} itself."
    if server:
        return f"{begin}No library changed: look in {place.product_title} itself."
    return f"{begin}No recorded version differs: compare the images' full manifests."


def _of_passwords(place: StepPlace) -> str:
    """Nothing for a product that stores none."""
    if place.stored:
        return "The stored password is the same on both sides. "
    stores = place.product is not None and known_changes(place.product).hashing
    return "The stored passwords could not be read back. " if stores else ""
