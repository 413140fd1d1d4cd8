"""The folder of an answer: page, summary, JSON, JUnit, evidence, packages, signed statement."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dsharness.content_key import file_sha256
from dsharness.errors import PackageError, UsageError
from dsharness.guarded_files import given_file
from dsharness.process.command import atomic_write, writing
from dsresults.page.page_html import html_of
from dsvalidate.attestation import (
    Predicate,
    Result,
    Statement,
    describe,
    described,
    signed,
)
from dsvalidate.check import Check, Gate, ShipAnswer, Status, Validation
from dsvalidate.validation import Validated
from dsvalidate.validation_page import summary_text, validation_page

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
    validation = validated.validation
    with _to(folder):
        _remove_earlier(folder)
        _write_texts(folder, validation)
        packages = _copied(folder, validated)
        if key is not None and validation.answer is not ShipAnswer.INCONCLUSIVE:
            atomic_write(
                folder / ATTESTATION, signed(statement_of(validation, folder, packages), key)
            )


def write_texts(folder: Path, validation: Validation) -> Path:
    """Write an answer of before again, and return its page: of the evidence, what is there."""
    with _to(folder):
        _write_texts(
            folder,
            validation.model_copy(update={"checks": _with_what_is_there(folder, validation)}),
        )
    return folder / PAGE


def _with_what_is_there(folder: Path, validation: Validation) -> tuple[Check, ...]:
    return tuple(
        check.model_copy(
            update={"evidence": tuple(e for e in check.evidence if (folder / e).exists())}
        )
        for check in validation.checks
    )


def _write_texts(folder: Path, validation: Validation) -> None:
    atomic_write(folder / JSON, validation.model_dump_json(indent=2) + "\n")
    atomic_write(folder / PAGE, html_of(validation_page(validation)))
    atomic_write(folder / SUMMARY, summary_text(validation))
    atomic_write(folder / JUNIT, junit_text(validation))


@contextmanager
def _to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"the answer cannot be written to {folder}: {error.strerror or error}",
            hint="name a folder that you may write to: --output; what was found is kept",
        ) from error


def statement_of(validation: Validation, folder: Path, packages: list[Path]) -> Statement:
    """Bind the packages to what was asked, to what was found, and to all that it rests on."""

    def names(*statuses: Status) -> tuple[str, ...]:
        return tuple(f"{c.gate}/{c.name}" for c in validation.checks if c.status in statuses)

    warned = names(Status.WARNED)
    result: Result = "FAILED"
    if validation.answer is ShipAnswer.SHIP:
        result = "WARNED" if warned else "PASSED"
    return Statement(
        subject=describe(packages),
        predicate=Predicate(
            result=result,
            configuration=(
                described(folder, JSON, validation.model_dump(mode="json", exclude=NOT_ASKED)),
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
        document = json.loads(given_file(folder / JSON))
        packages = [str(package_facts["name"]) for package_facts in document["packages"]]
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
    package_hashes = validated.validation.packages
    with writing(folder):
        if validated.evidence is not None and validated.evidence.is_dir():
            shutil.copytree(validated.evidence, folder / EVIDENCE, dirs_exist_ok=True)
        packages = []
        for package, before in zip(validated.packages, package_hashes, strict=True):
            target = folder / "packages" / package.name
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(package, target)
            if (package.name, file_sha256(target)) != (before.name, before.sha256):
                raise PackageError(
                    f"{package} changed while it was validated", hint="validate it again"
                )
            packages.append(target)
    return packages
