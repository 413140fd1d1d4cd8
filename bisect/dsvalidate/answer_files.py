"""The folder of an answer: page, summary, JSON, JUnit, evidence, packages, the signed statement.

The page is self-contained: no script, no request, every text escaped.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jinja2 import Environment

from dsharness.content_key import file_sha256
from dsharness.errors import PackageError, UsageError
from dsharness.guarded_files import given_file
from dsharness.process.command import atomic_write, writing
from dsresults.number_text import capital, counted, utc
from dsresults.page.page_files import page_environment
from dsvalidate.attestation import (
    Predicate,
    Result,
    Statement,
    describe,
    described,
    signed,
)
from dsvalidate.check import Check, Gate, ShipAnswer, Status, Validation, worst
from dsvalidate.validation import Validated

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
            why=f"{len(validation.checks)} checks: {_counted(validation.checks)}",
            speed=_named(validation, Gate.PERFORMS, SPEED),
            security=_named(validation, Gate.SAFE, ("new-passwords",)),
            gates=[(gate, QUESTIONS[gate], validation.of(gate)) for gate in Gate],
        )
    )


@cache
def _environment() -> Environment:
    environment = page_environment("dsvalidate")
    environment.filters.update(capital=capital, utc=utc)
    environment.globals.update(colour=lambda status: COLOURS.get(status, ""), worst=worst)
    return environment


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
        yield f"| {gate} | {QUESTIONS[gate]} | {worst(checks)} | {_counted(checks)} |"
    yield from ("", "## Again", "", "```", v.command.replace("```", ""), "```")


def _reasons_title(v: Validation) -> str:
    return "Worth reading" if v.answer is ShipAnswer.SHIP else "Why"


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


def _counted(checks: Iterable[Check]) -> str:
    counts = Counter(check.status for check in checks)
    return ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])


def _plain(text: str) -> str:
    """Write a text on one line, so that no character means anything to Markdown."""
    line = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in MARKS else letter for letter in line)


ELEMENTS = {
    Status.FAILED: "failure",
    Status.INCONCLUSIVE: "error",
    Status.NOT_RUN: "skipped",
}


def junit_text(validation: Validation) -> str:
    """One suite for each gate; a warning passes, and is told in its output."""
    root = ET.Element("testsuites", _counts(validation.checks) | {"name": "dsbisect validate"})
    for gate in Gate:
        checks = validation.of(gate)
        suite = ET.SubElement(root, "testsuite", _counts(checks) | {"name": gate.value})
        for check in checks:
            _add_case(suite, check)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: ET.Element, check: Check) -> None:
    case = ET.SubElement(suite, "testcase", name=check.name, classname=f"validate.{check.gate}")
    element = ELEMENTS.get(check.status)
    text = "\n".join((check.found, *([check.advice] if check.advice else []), *check.details))
    if element is None:
        ET.SubElement(case, "system-out").text = _clean(text)
    else:
        ET.SubElement(case, element, message=_clean(check.found)).text = _clean(text)


def _counts(checks: tuple[Check, ...]) -> dict[str, str]:
    statuses = [check.status for check in checks]
    return {
        "tests": str(len(statuses)),
        "failures": str(statuses.count(Status.FAILED)),
        "errors": str(statuses.count(Status.INCONCLUSIVE)),
        "skipped": str(statuses.count(Status.NOT_RUN)),
    }


def _clean(text: str) -> str:
    """The text without what XML cannot hold."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


JSON, PAGE, SUMMARY = "report.json", "report.html", "summary.md"
JUNIT, ATTESTATION = "junit.xml", "attestation.json"
EVIDENCE = "evidence"
NOT_ASKED = {"packages", "checks", "answer"}  # subjects and results have their own place


def write_answer(folder: Path, validated: Validated, key: Ed25519PrivateKey | None) -> None:
    """Every file, each whole or not at all; UsageError where the folder cannot be written to.

    What an earlier answer left there goes first: its statement is not about this one.
    """
    found = validated.validation
    with _to(folder):
        _remove_earlier(folder)
        _write_texts(folder, found)
        packages = _copied(folder, validated)
        if key is not None and found.answer is not ShipAnswer.INCONCLUSIVE:
            atomic_write(folder / ATTESTATION, signed(statement_of(found, folder, packages), key))


def write_texts(folder: Path, found: Validation) -> Path:
    """Write an answer of before again, and return its page: of the evidence, what is there."""
    with _to(folder):
        _write_texts(
            folder, found.model_copy(update={"checks": _with_what_is_there(folder, found)})
        )
    return folder / PAGE


def _with_what_is_there(folder: Path, found: Validation) -> tuple[Check, ...]:
    return tuple(
        check.model_copy(
            update={"evidence": tuple(e for e in check.evidence if (folder / e).exists())}
        )
        for check in found.checks
    )


def _write_texts(folder: Path, found: Validation) -> None:
    atomic_write(folder / JSON, found.model_dump_json(indent=2) + "\n")
    atomic_write(folder / PAGE, page_text(found))
    atomic_write(folder / SUMMARY, summary_text(found))
    atomic_write(folder / JUNIT, junit_text(found))


@contextmanager
def _to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"the answer cannot be written to {folder}: {error.strerror or error}",
            hint="name a folder that you may write to: --output; what was found is kept",
        ) from error


def answer_text(found: Validation) -> str:
    """The answer for a terminal: its headline, and what it rests on."""
    lines = [f"{HEADLINES[found.answer]}: {found.change} on {found.row} ({found.patched})"]
    for check in found.reasons:
        lines.append(f"  {check.status}: {check.gate} {check.name}: {check.found}")
        if check.advice:
            lines.append(f"    next: {check.advice}")
    return "\n".join(lines)


def statement_of(found: Validation, folder: Path, packages: list[Path]) -> Statement:
    """Bind the packages to what was asked, to what was found, and to all that it rests on."""

    def names(*statuses: Status) -> tuple[str, ...]:
        return tuple(f"{c.gate}/{c.name}" for c in found.checks if c.status in statuses)

    warned = names(Status.WARNED)
    result: Result = "FAILED"
    if found.answer is ShipAnswer.SHIP:
        result = "WARNED" if warned else "PASSED"
    return Statement(
        subject=describe(packages),
        predicate=Predicate(
            result=result,
            configuration=(
                described(folder, JSON, found.model_dump(mode="json", exclude=NOT_ASKED)),
                *(described(folder, name) for name in _further(folder)),
            ),
            passedTests=names(Status.PASSED),
            warnedTests=warned,
            failedTests=names(Status.FAILED),
        ),
    )


def _remove_earlier(folder: Path) -> None:
    """Remove only what an answer of the lab put there, as its own JSON file says."""
    (folder / ATTESTATION).unlink(missing_ok=True)
    try:
        told = json.loads(given_file(folder / JSON))
        packages = [str(each["name"]) for each in told["packages"]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return
    if (folder / EVIDENCE).is_dir() and not (folder / EVIDENCE).is_symlink():
        shutil.rmtree(folder / EVIDENCE)
    for name in packages:
        if Path(name).name == name:
            (folder / "packages" / name).unlink(missing_ok=True)


def _further(folder: Path) -> list[str]:
    """List every other file of the answer but the packages and the statement."""
    evidence = sorted(path for path in (folder / EVIDENCE).rglob("*") if path.is_file())
    names = [PAGE, SUMMARY, JUNIT, *(str(path.relative_to(folder)) for path in evidence)]
    return [name for name in names if (folder / name).is_file()]


def _copied(folder: Path, validated: Validated) -> list[Path]:
    """Copy evidence and packages next to the report; PackageError if those have changed."""
    found = validated.validation.packages
    with writing(folder):
        if validated.evidence is not None and validated.evidence.is_dir():
            shutil.copytree(validated.evidence, folder / EVIDENCE, dirs_exist_ok=True)
        packages = []
        for package, before in zip(validated.packages, found, strict=True):
            target = folder / "packages" / package.name
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(package, target)
            if (package.name, file_sha256(target)) != (before.name, before.sha256):
                raise PackageError(
                    f"{package} changed while it was validated", hint="validate it again"
                )
            packages.append(target)
    return packages
