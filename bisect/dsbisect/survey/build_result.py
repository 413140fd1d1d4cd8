"""The result of one tag in one toolchain, and all results on disk by what decides them."""

from __future__ import annotations

from pathlib import Path

from dsbuilds.build_cache import builds_home
from dsbuilds.drivers import tree
from dsharness.content_key import content_key
from dsharness.model import SystemName
from dsharness.model.value import Value
from dsharness.process.command import atomic_write
from dsharness.systems import SYSTEMS


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


REVISION = 1  # raise this when the same source may now get a different result


def outcome_key(identity: str) -> str:
    """``identity`` names the source and its toolchain; the rest is the lab's own part."""
    lab = [REVISION, tree.REVISION, tree.scripts(), SYSTEMS[SystemName.TREE].revision]
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
