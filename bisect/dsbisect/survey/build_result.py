"""The result of one source in one toolchain, and all results on disk by what decides them."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from dsbuilds.build_cache import builds_home
from dsbuilds.drivers import tree
from dsharness.content_key import content_key
from dsharness.model import Facts, SystemName
from dsharness.model.value import Value
from dsharness.process.command import atomic_write
from dsharness.systems import SYSTEMS

ALIKE, BUILDS = "fails alike with every file", "builds with every file"


class BuildResult(Value):
    """How far it got, and why not further; equal sources share it, whatever their names."""

    built: bool = False
    starts: bool = False  # its server gave a first answer
    answers: bool = False  # and served what it was filled with
    why_not: str = ""
    every_file: str = ""  # what came of it in a plain checkout; empty: not tried
    facts: Facts = Field(default_factory=dict)  # what its server says of itself
    seconds: float = 0.0
    log: str = ""

    @model_validator(mode="before")
    @classmethod
    def _as_kept_before(cls, data: object) -> object:
        """Read a result of when every server was asked for binds."""
        if not isinstance(data, dict) or "binds" not in data:
            return data
        return {"answers" if name == "binds" else name: value for name, value in data.items()}

    @property
    def reached(self) -> tuple[bool, bool, bool]:
        return self.built, self.starts, self.answers


class Attempt(Value):
    """What came of a source in one toolchain."""

    toolchain: str
    outcome: BuildResult


class SourceResult(Value):
    """A line of the table."""

    place: int = Field(default=0, exclude=True)  # in the table
    source: str  # a tag, or what the user called it
    commit: str
    product: str = ""  # whose source it is
    version: str = ""  # as its own files say
    shows: tuple[str, ...] = ()  # what tells its era
    toolchain: str  # empty: none of the matrix fits
    outcome: BuildResult
    before: tuple[Attempt, ...] = ()  # in toolchains that were tried, too
    known: bool = False  # from an earlier survey

    @property
    def broken(self) -> bool:
        """Whether the failure is its own: it fails alike in a plain checkout."""
        return self.outcome.every_file == ALIKE


REVISION = 3  # raise this when the same source may now get a different result


def outcome_key(identity: str, system: SystemName) -> str:
    """``identity`` names the source and its toolchain; the rest is the lab's own part."""
    lab = [REVISION, tree.REVISION, tree.scripts(), SYSTEMS[system].revision]
    return content_key([identity, lab])


def recall(key: str) -> BuildResult | None:
    """The outcome; None when there is none, or none that can be read."""
    try:
        return BuildResult.model_validate_json(_path(key).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep(key: str, outcome: BuildResult) -> None:
    atomic_write(_path(key), outcome.model_dump_json(indent=2) + "\n")


def _path(key: str) -> Path:
    return builds_home() / ".surveys" / f"{key}.json"
