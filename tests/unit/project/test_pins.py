"""What builds and installs this package is pinned, so that two days give one environment."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PINNED = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[0-9][0-9.]*)")


def test_what_builds_the_package_is_pinned_and_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    locked = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    wanted = project["build-system"]["requires"]
    constrained = project["tool"]["uv"]["build-constraint-dependencies"]
    pins = [PINNED.fullmatch(each) for each in (*wanted, *constrained)]
    assert all(pins), "a build requirement without ==VERSION"
    assert set(wanted) <= set(constrained)
    assert {
        f"{each['name']}{each['specifier']}" for each in locked["manifest"]["build-constraints"]
    } == set(constrained)


USES = re.compile(r"^\s*(?:- )?uses: (?P<what>.+)$", re.MULTILINE)
BY_HASH = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def test_actions_are_pinned_by_hash_with_the_release_as_a_comment():
    """A tag can be moved to other code by whoever owns it, or takes it over."""
    files = [*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob("examples/github-actions/*.yml")]
    used = [what for file in files for what in USES.findall(file.read_text(encoding="utf-8"))]
    assert used
    assert [what for what in used if BY_HASH.fullmatch(what) is None] == []
