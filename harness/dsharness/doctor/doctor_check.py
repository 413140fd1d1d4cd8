"""One check: its level, what was found, and how to fix it."""

from __future__ import annotations

from enum import StrEnum

from dsharness.errors import ExitCode
from dsharness.model import Value


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"  # the lab works, with less precision or more slowly
    FAIL = "fail"  # the lab cannot work


class DoctorCheck(Value):
    """A finding; ``code`` is how doctor ends when this one fails."""

    name: str
    level: Level
    seen: str
    fix: str = ""
    code: ExitCode = ExitCode.OK


def ok(name: str, seen: str) -> DoctorCheck:
    return DoctorCheck(name=name, level=Level.OK, seen=seen)


def warn(name: str, seen: str, fix: str) -> DoctorCheck:
    return DoctorCheck(name=name, level=Level.WARN, seen=seen, fix=fix)


def fail(name: str, seen: str, fix: str, code: ExitCode = ExitCode.ENGINE) -> DoctorCheck:
    return DoctorCheck(name=name, level=Level.FAIL, seen=seen, fix=fix, code=code)
