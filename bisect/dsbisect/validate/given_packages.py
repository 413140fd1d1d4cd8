"""Packages that a user gives (--package) as a build of the lab."""

from __future__ import annotations

from pathlib import Path

from dsharness.model import Build, Row


def given_build(packages: tuple[Path, ...], row: Row) -> Build:
    """A repository of them with its index; UsageError for what is none of the family's packages."""
    raise NotImplementedError
