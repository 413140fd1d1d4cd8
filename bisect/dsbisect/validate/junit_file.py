"""The checks as JUnit XML, which every continuous integration shows. Pure."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from dsbisect.validate.check import Check, Gate, Status
from dsbisect.validate.validation_result import Validation

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
    """Without what XML cannot hold."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)
