"""The answer in one screen of Markdown: for a pull request, or next to a patch. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from dsbisect.validate.check import Check, Gate, Status, worst
from dsbisect.validate.validation_page import HEADLINES, QUESTIONS
from dsbisect.validate.validation_result import Answer, Validation
from dsresults.number_text import capital

MOST_REASONS = 12
MARKS = "\\`*[]<>"  # of Markdown and of HTML, inside a line
# The words of a comparison that an answer is asked for first.
SPEED, SECURITY = ("speed-",), ("new-passwords", "existing-passwords")


def summary_text(validation: Validation) -> str:
    """Answer, reasons, speed, security, the gates, the versions, and the command."""
    return "\n".join(_lines(validation)) + "\n"


def _lines(v: Validation) -> Iterator[str]:
    yield f"# {_plain(HEADLINES[v.answer])}: {_plain(v.change)} on {_plain(v.row)}"
    yield ""
    yield f"{_plain(v.stock)} became {_plain(v.patched)}."
    place = f" on {_plain(v.machine)}" if v.machine else ""
    yield f"{_count(len(v.checks), 'check')} in {v.seconds:.0f} s{place}; begun {v.started_at}."
    yield from _section(_reasons_title(v), v.reasons[:MOST_REASONS], say_status=True)
    left = len(v.reasons) - MOST_REASONS
    if left > 0:
        yield f"- … and {left} more in the report"
    yield from _section("Speed", _named(v, Gate.PERFORMS, SPEED))
    yield from _section("Security", _named(v, Gate.SAFE, SECURITY))
    yield from (
        "",
        "## The gates",
        "",
        "| gate | question | result | checks |",
        "|---|---|---|---|",
    )
    for gate in Gate:
        checks = v.of(gate)
        yield f"| {gate} | {QUESTIONS[gate]} | {worst(checks)} | {_counts(checks)} |"
    yield from ("", "## Again", "", "```", v.command.replace("```", ""), "```")


def _reasons_title(v: Validation) -> str:
    return "Worth reading" if v.answer is Answer.SHIP else "Why"


def _section(title: str, checks: Iterable[Check], *, say_status: bool = False) -> Iterator[str]:
    known = list(checks)
    if not known:
        return
    yield from ("", f"## {title}", "")
    for check in known:
        status = f"{check.status}: " if say_status else ""
        yield f"- {status}{check.gate} {_plain(check.name)}: {_plain(check.found)}"
        if say_status and check.advice:
            yield f"  Next: {_plain(capital(check.advice))}"


def _named(v: Validation, gate: Gate, prefixes: tuple[str, ...]) -> list[Check]:
    return [check for check in v.of(gate) if check.name.startswith(prefixes)]


def _counts(checks: Iterable[Check]) -> str:
    counts = Counter(check.status for check in checks)
    return ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _plain(text: str) -> str:
    """On one line, and no character of it means anything to Markdown."""
    line = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in MARKS else letter for letter in line)
