"""Results on disk, by everything that decides them; `dsbisect clean --builds` forgets them."""

from __future__ import annotations

from pathlib import Path

from dsbisect.survey.build_result import BuildResult
from dsbuilds.build_cache import builds_home
from dsbuilds.drivers import tree
from dsharness.content_key import content_key
from dsharness.model import SystemName
from dsharness.process.command import atomic_write
from dsharness.systems import SYSTEMS

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
