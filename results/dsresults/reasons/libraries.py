"""Versions that changed at the same place: candidates for a cause, or not told apart from it."""

from __future__ import annotations

from collections.abc import Iterator

from dsresults.reasons.finding import Confidence, Finding
from dsresults.reasons.steps import Change


def library_changes(change: Change) -> Iterator[Finding]:
    """At a boundary: what else differs, and how seriously to take it."""
    if not change.boundary:
        return
    old, new = (
        change.comparison.candidate(observed.candidate).versions
        for observed in (change.before, change.after)
    )
    differ = {noun for noun in old.keys() & new.keys() if old[noun] != new[noun]}
    libraries = [noun for noun in old if noun in differ and noun != "389-ds"]
    evidence = tuple(f"{noun}: {old[noun]} to {new[noun]}" for noun in old if noun in differ)
    yield from _finding(change, libraries, evidence)


def _finding(change: Change, libraries: list[str], evidence: tuple[str, ...]) -> Iterator[Finding]:
    before, after = change.before.stored, change.after.stored
    names = ", ".join(libraries)
    if before and after and before != after:
        if not libraries:
            return
        text = f"besides the stored password, {names} changed; this run does not tell them apart."
    elif libraries:
        begin = "the stored password is the same" if before and after else "none could be read back"
        text = f"{begin}, and {names} changed: they and 389-ds itself are the candidates."
    elif evidence:
        text = "neither the stored password nor a library changed: look in 389-ds itself."
    else:
        text = "nothing that is recorded differs between the two; compare their full manifests."
    yield Finding(
        topic=change.place,
        text=f"With {change.column.workload_id}: {text}",
        confidence=Confidence.POSSIBLE,
        evidence=evidence,
    )
