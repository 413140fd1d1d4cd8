"""The answer as one self-contained page: no script, no request, every text escaped."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment

from dsresults.number_text import capital
from dsresults.report.html_page import page_environment, utc
from dsvalidate.check import Check, Gate, Status, worst
from dsvalidate.validation_result import ShipAnswer, Validation

HEADLINES = {
    ShipAnswer.SHIP: "Ship it",
    ShipAnswer.DO_NOT_SHIP: "Do not ship it",
    ShipAnswer.INCONCLUSIVE: "No answer yet",
}
QUESTIONS = {
    Gate.BUILDS: "Does it build, cleanly and the same way twice?",
    Gate.INSTALLS: "Does it install, upgrade, and go back?",
    Gate.WORKS: "Does it work?",
    Gate.PERFORMS: "How fast is it?",
    Gate.SAFE: "Is it safe?",
}
COLOURS = {
    Status.PASSED: "fast",
    Status.FAILED: "slow",
    Status.WARNED: "warned",
}


def page_text(validation: Validation) -> str:
    """The whole page as one HTML document."""
    return (
        _environment()
        .get_template("validation.html.jinja")
        .render(
            v=validation,
            headline=HEADLINES[validation.answer],
            why=_why(validation),
            speed=_named(validation, Gate.PERFORMS, "speed-"),
            security=_named(validation, Gate.SAFE, "new-passwords"),
            gates=[(gate, QUESTIONS[gate], validation.of(gate)) for gate in Gate],
        )
    )


def _why(validation: Validation) -> str:
    counts = {status: [c for c in validation.checks if c.status is status] for status in Status}
    words = [f"{len(found)} {status}" for status, found in counts.items() if found]
    return f"{len(validation.checks)} checks: {', '.join(words)}"


def _named(validation: Validation, gate: Gate, prefix: str) -> list[Check]:
    return [check for check in validation.of(gate) if check.name.startswith(prefix)]


@cache
def _environment() -> Environment:
    environment = page_environment("dsvalidate")
    environment.filters.update(capital=capital, utc=utc)
    environment.globals.update(colour=lambda status: COLOURS.get(status, ""), worst=worst)
    return environment
