"""The result of one tag in one toolchain."""

from __future__ import annotations

from dsharness.model.value import Value


class BuildResult(Value):
    """How far it got, and why not further; equal sources share it, whatever their tags."""

    built: bool = False
    starts: bool = False  # its server answered its manager
    binds: bool = False  # and its users
    why_not: str = ""
    seconds: float = 0.0
    log: str = ""


class TagResult(Value):
    """A line of the table."""

    tag: str
    commit: str
    toolchain: str  # empty: none of the matrix fits
    outcome: BuildResult
    known: bool = False  # from an earlier survey
