"""What was stored, read again: another version wrote it, or someone changed it since."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dsharness.errors import UnreadableError
from dsharness.model import Finding

MOST_NAMED = 80  # characters of an id in a message
OTHER = (
    "another version of dsbisect wrote it: use that version, or a newer one; or it was changed by "
    "someone else"
)

V = TypeVar("V", bound=BaseModel)


def stored(kind: type[V], document: object, what: str) -> V:
    """A value that was stored before; UnreadableError for anything else."""
    try:
        return kind.model_validate(document)
    except (ValidationError, RecursionError) as error:
        why = explain(error) if isinstance(error, ValidationError) else "it is too deep"
        raise UnreadableError(f"the stored {what} cannot be read: {why}", hint=OTHER) from error


def value_of(kind: type[V], finding: Finding) -> V:
    """What a finding holds; UnreadableError where this version cannot read it."""
    return stored(kind, finding.value, f"finding {finding.id!r} ({finding.kind})")


def values_of(kind: type[V], findings: Iterable[Finding]) -> Iterator[V]:
    """What findings hold; what cannot be read is left out, and told."""
    for finding in findings:
        try:
            yield value_of(kind, finding)
        except UnreadableError as error:
            warn(f"left out: {error.message}")


@cache  # once
def warn(message: str) -> None:
    """Tell whoever started this program."""
    print(f"warning: {message}", file=sys.stderr)  # noqa: T201


def explain(error: ValidationError) -> str:
    """Every complaint with its field and value on one line."""
    return "; ".join(
        f"{'.'.join(str(part) for part in fault['loc']) or 'value'}: "
        f"{_complaint(fault)}, got {repr(fault.get('input'))[:80]}"
        for fault in error.errors(include_url=False)
    )


def _complaint(fault: ErrorDetails) -> str:
    context = fault.get("ctx", {})
    match fault["type"]:
        case "union_tag_not_found":
            return f"the key {context['discriminator']} is missing"
        case "union_tag_invalid":
            return f"{context['discriminator']} may be {context['expected_tags']}"
        case "model_attributes_type":
            return "a mapping is needed"
    return fault["msg"]
