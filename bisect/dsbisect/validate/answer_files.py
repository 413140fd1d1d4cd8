"""The folder of an answer: page, summary, JSON, JUnit, evidence, packages, the signed statement."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dsbisect.validate.attestation import (
    Predicate,
    Result,
    Statement,
    describe,
    described,
    signed,
)
from dsbisect.validate.check import Status
from dsbisect.validate.junit_file import junit_text
from dsbisect.validate.trial import Trial
from dsbisect.validate.validation import package_files
from dsbisect.validate.validation_page import page_text
from dsbisect.validate.validation_result import Answer, Validation
from dsbisect.validate.validation_summary import summary_text
from dsharness.content_key import file_sha256
from dsharness.errors import PackageError, UsageError
from dsharness.guarded_files import given_file
from dsharness.process.command import atomic_write, writing

JSON, PAGE, SUMMARY = "report.json", "report.html", "summary.md"
JUNIT, ATTESTATION = "junit.xml", "attestation.json"
EVIDENCE = "evidence"
NOT_ASKED = {"packages", "checks", "answer"}  # subjects and results have their own place


def write_answer(
    folder: Path, found: Validation, trial: Trial, key: Ed25519PrivateKey | None
) -> None:
    """Every file, each whole or not at all; UsageError where the folder cannot be written to.

    What an earlier answer left there goes first: its statement is not about this one.
    """
    try:
        _remove_earlier(folder)
        atomic_write(folder / JSON, found.model_dump_json(indent=2) + "\n")
        atomic_write(folder / PAGE, page_text(found))
        atomic_write(folder / SUMMARY, summary_text(found))
        atomic_write(folder / JUNIT, junit_text(found))
        packages = _copied(folder, found, trial)
        if key is not None and found.answer is not Answer.INCONCLUSIVE:
            atomic_write(folder / ATTESTATION, signed(statement_of(found, folder, packages), key))
    except OSError as error:
        raise UsageError(
            f"the answer cannot be written to {folder}: {error.strerror or error}",
            hint="name a folder that you may write to: --output; what was found is kept",
        ) from error


def statement_of(found: Validation, folder: Path, packages: list[Path]) -> Statement:
    """Binds the packages to what was asked, to what was found, and to all that it rests on."""

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
    """Only what an answer of the lab put there, as its own JSON file says."""
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
    """Every other file of the answer but the packages and the statement."""
    evidence = sorted(path for path in (folder / EVIDENCE).rglob("*") if path.is_file())
    names = [PAGE, SUMMARY, JUNIT, *(str(path.relative_to(folder)) for path in evidence)]
    return [name for name in names if (folder / name).is_file()]


def _copied(folder: Path, found: Validation, trial: Trial) -> list[Path]:
    """Evidence and packages, next to the report; PackageError if those are no longer the same."""
    with writing(folder):
        if found.packages and trial.evidence.is_dir():
            shutil.copytree(trial.evidence, folder / EVIDENCE, dirs_exist_ok=True)
        packages = []
        for package, validated in zip(package_files(trial), found.packages, strict=True):
            target = folder / "packages" / package.name
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(package, target)
            if (package.name, file_sha256(target)) != (validated.name, validated.sha256):
                raise PackageError(
                    f"{package} changed while it was validated", hint="validate it again"
                )
            packages.append(target)
    return packages
