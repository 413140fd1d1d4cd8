"""The folder of an answer: page, summary, JSON, JUnit, evidence, packages, the signed statement."""

from __future__ import annotations

import shutil
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dsbisect.validate.attestation import Predicate, Result, Statement, describe, signed
from dsbisect.validate.check import Status
from dsbisect.validate.junit_file import junit_text
from dsbisect.validate.trial import Trial
from dsbisect.validate.validation import package_files
from dsbisect.validate.validation_page import page_text
from dsbisect.validate.validation_result import Answer, Validation
from dsbisect.validate.validation_summary import summary_text
from dsharness.errors import UsageError
from dsharness.process.command import atomic_write, writing

JSON, PAGE, SUMMARY = "report.json", "report.html", "summary.md"
JUNIT, ATTESTATION = "junit.xml", "attestation.json"


def write_answer(
    folder: Path, found: Validation, trial: Trial, key: Ed25519PrivateKey | None
) -> None:
    """Every file, each whole or not at all; UsageError where the folder cannot be written to."""
    try:
        atomic_write(folder / JSON, found.model_dump_json(indent=2) + "\n")
        atomic_write(folder / PAGE, page_text(found))
        atomic_write(folder / SUMMARY, summary_text(found))
        atomic_write(folder / JUNIT, junit_text(found))
        packages = _copied(folder, trial)
        if key is not None and found.answer is not Answer.INCONCLUSIVE:
            atomic_write(folder / ATTESTATION, signed(statement_of(found, folder, packages), key))
    except OSError as error:
        raise UsageError(
            f"the answer cannot be written to {folder}: {error.strerror or error}",
            hint="name a folder that you may write to: --output; what was found is kept",
        ) from error


def statement_of(found: Validation, folder: Path, packages: list[Path]) -> Statement:
    """Binds the packages' hashes to the report's."""

    def names(*statuses: Status) -> tuple[str, ...]:
        return tuple(f"{c.gate}/{c.name}" for c in found.checks if c.status in statuses)

    warned = names(Status.WARNED)
    result: Result = "FAILED"
    if found.answer is Answer.SHIP:
        result = "WARNED" if warned else "PASSED"
    return Statement(
        subject=describe(packages),
        predicate=Predicate(
            result=result,
            configuration=describe([folder / JSON]),
            passedTests=names(Status.PASSED),
            warnedTests=warned,
            failedTests=names(Status.FAILED),
        ),
    )


def _copied(folder: Path, trial: Trial) -> list[Path]:
    """Evidence and packages, next to the report."""
    with writing(folder):
        if (trial.folder / "evidence").is_dir():
            shutil.copytree(trial.folder / "evidence", folder / "evidence", dirs_exist_ok=True)
        packages = []
        for package in package_files(trial):
            target = folder / "packages" / package.name
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(package, target)
            packages.append(target)
    return packages
