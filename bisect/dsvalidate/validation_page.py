"""A validation as a page, and in the words of its summary and of the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from dsresults.number_text import capital, counted, utc
from dsresults.page.page import (
    Bullets,
    Card,
    Content,
    Facts,
    Fold,
    Listing,
    Page,
    Paragraph,
    Section,
    Span,
    Table,
    badge,
    code,
    link,
    note,
    quiet,
)
from dsvalidate.check import Check, Gate, ShipAnswer, Status, Validation, worst

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


def validation_page(v: Validation) -> Page:
    """Return the answer, then each gate with its checks and their evidence."""
    headline = HEADLINES[v.answer]
    return Page(
        title=f"{headline}: {v.change} on {v.row}",
        heading=f"May {v.change} be shipped on {v.row}?",
        about=[
            (
                f"{v.stock} became {v.patched}; validated by dsbisect at {utc(v.started_at)} in "
                f"{v.seconds / 60:.0f} min"
            )
        ],
        parts=(_answer(v, headline), _gates(v), *(_gate(v, gate) for gate in Gate)),
    )


def _answer(v: Validation, headline: str) -> Card:
    kinds = {ShipAnswer.SHIP: "faster", ShipAnswer.DO_NOT_SHIP: "slower"}
    reasons = [
        (
            _badge(check.status),
            " ",
            Span(words=str(check.gate), kind="b"),
            f": {check.found}",
            *_advice(check),
        )
        for check in v.reasons
    ]
    facts: dict[str, Content] = {
        "Speed": _sentences(_named(v, Gate.PERFORMS, SPEED)) or "not measured",
        "Security": _sentences(_named(v, Gate.SAFE, ("new-passwords",))) or "not looked at",
        "Packages": tuple(
            Paragraph(words=(code(file.name), quiet(f" sha256 {file.sha256[:16]}…")))
            for file in v.packages
        )
        or "none",
        "Again": Listing(lines=[v.command]),
    }
    return Card(
        headline=headline,
        kind=f"validation {kinds.get(v.answer, '')}".strip(),
        parts=(
            note(f"{len(v.checks)} checks: {_counted(v.checks)}"),
            *([Bullets(items=reasons, kind="reasons")] if reasons else []),
            Facts(facts=facts),
        ),
    )


def _badge(status: Status) -> Span:
    return badge(status.value, COLOURS.get(status, ""))


def _advice(check: Check) -> tuple[Content, ...]:
    return (" ", Span(words=f"Next: {check.advice}", kind="next")) if check.advice else ()


def _sentences(checks: Iterable[Check]) -> tuple[Content, ...]:
    return tuple(Paragraph(words=capital(check.found)) for check in checks)


def _gates(v: Validation) -> Table:
    return Table(
        kind="gates",
        caption="The five gates",
        columns=("gate", "question", "result"),
        rows=[
            (link(gate.value, f"#{gate}"), QUESTIONS[gate], _badge(worst(v.of(gate))))
            for gate in Gate
        ],
    )


def _gate(v: Validation, gate: Gate) -> Section:
    rows = [(check.name, _badge(check.status), tuple(_look(check))) for check in v.of(gate)]
    table = Table(kind="checks", columns=("check", "result", "found"), rows=rows)
    return Section(title=f"{capital(gate.value)}: {QUESTIONS[gate]}", id=gate.value, parts=[table])


def _look(check: Check) -> Iterator[Content]:
    """What a check found, with its figures and its evidence."""
    yield Paragraph(words=(capital(check.found), *_advice(check)))
    if check.figures:
        figures: dict[str, Content] = {name: str(value) for name, value in check.figures.items()}
        yield Facts(facts=figures, kind="figures")
    if check.details:
        lines = Listing(lines=check.details)
        yield Fold(title=f"{len(check.details)} lines", parts=[lines])
    for file in check.evidence:
        here = file.startswith("evidence/")
        yield note("Evidence: ", link(file, file) if here else code(file))


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
    yield f"{counted(len(v.checks), 'check')} in {v.seconds:.0f} s{place}; begun {v.started_at}."
    yield from _section(_reasons_title(v), v.reasons[:MOST_REASONS], say_status=True)
    reasons_left = len(v.reasons) - MOST_REASONS
    if reasons_left > 0:
        yield f"- … and {reasons_left} more in the report"
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
        yield f"| {gate} | {QUESTIONS[gate]} | {worst(checks)} | {_counted(checks)} |"
    yield from ("", "## Again", "", "```", v.command.replace("```", ""), "```")


def _reasons_title(v: Validation) -> str:
    return "Worth reading" if v.answer is ShipAnswer.SHIP else "Why"


def _section(title: str, checks: Iterable[Check], *, say_status: bool = False) -> Iterator[str]:
    known_checks = list(checks)
    if not known_checks:
        return
    yield from ("", f"## {title}", "")
    for check in known_checks:
        status = f"{check.status}: " if say_status else ""
        yield f"- {status}{check.gate} {_plain(check.name)}: {_plain(check.found)}"
        if say_status and check.advice:
            yield f"  Next: {_plain(capital(check.advice))}"


def _named(v: Validation, gate: Gate, prefixes: tuple[str, ...]) -> list[Check]:
    return [check for check in v.of(gate) if check.name.startswith(prefixes)]


def _counted(checks: Iterable[Check]) -> str:
    counts = Counter(check.status for check in checks)
    return ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])


def _plain(text: str) -> str:
    """Write a text on one line, so that no character means anything to Markdown."""
    line = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in MARKS else letter for letter in line)


def answer_text(validation: Validation) -> str:
    """The answer for a terminal: its headline, and what it rests on."""
    change = f"{validation.change} on {validation.row} ({validation.patched})"
    lines = [f"{HEADLINES[validation.answer]}: {change}"]
    for check in validation.reasons:
        lines.append(f"  {check.status}: {check.gate} {check.name}: {check.found}")
        if check.advice:
            lines.append(f"    next: {check.advice}")
    return "\n".join(lines)
