"""What the LDAP client printed, one JSON line for each thing that it tried, as checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from dsharness.model import Value
from dsvalidate.check import Check, Gate, Status


class ClientAnswer(Value):
    """One thing that the client tried."""

    name: str
    ok: bool
    found: str


def answers_in(text: str) -> tuple[ClientAnswer, ...]:
    """Read the answers in the client's output; other lines are left out."""
    return tuple(_answers(text))


def _answers(text: str) -> Iterable[ClientAnswer]:
    for line in text.splitlines():
        try:
            yield ClientAnswer.model_validate_json(line)
        except ValidationError:
            continue


def checks_of(
    answers: Iterable[ClientAnswer], gate: Gate, advice: Mapping[str, str], otherwise: str
) -> tuple[Check, ...]:
    """Make a check of each answer; ``otherwise`` is the advice where it has none of its own."""
    return tuple(
        Check(
            gate=gate,
            name=answer.name,
            status=Status.PASSED if answer.ok else Status.FAILED,
            found=answer.found,
            advice="" if answer.ok else advice.get(answer.name, otherwise),
        )
        for answer in answers
    )
