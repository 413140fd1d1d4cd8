"""A patch that does not apply, and one that does not build: refused at the first gate, for real."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benches import MATRIX, image_of
from changes import broken, misfit
from lab import dsbisect, small_matrix

from dsbuilds.built_row import BuiltRowMaker
from dsbuilds.edits.edit import Patch
from dsbuilds.sources.source_tree import Tree
from dsharness.containers.engine import Engine
from dsharness.model import BuildSpec, DriverName

pytestmark = pytest.mark.whole

DO_NOT_SHIP = 1
GATES = ("installs", "works", "performs", "safe")


@pytest.fixture(scope="module")
def tree(engine: Engine) -> Tree:
    row = MATRIX.row("debian-13")
    return BuiltRowMaker(
        engine=engine, matrix=MATRIX, row=row, spec=BuildSpec(driver=DriverName.DEB),
        base=image_of(engine, row.id), progress=print,
    ).source_tree()  # fmt: skip


@pytest.mark.parametrize(
    ("make", "found", "next_step"),
    [
        (misfit, "misfit.patch does not fit", ""),
        (broken, "getsocketpeer.c", "log"),
    ],
)
def test_it_is_refused_with_what_a_packager_can_act_on(
    tree: Tree, tmp_path: Path, make: Callable[[Tree], Patch], found: str, next_step: str
) -> None:
    small_matrix(tmp_path)
    patch = make(tree)
    (tmp_path / patch.name).write_text(patch.text)
    done = dsbisect(
        tmp_path, "validate", "--row", "debian-13", "--patch", patch.name,
        "--output", str(tmp_path / "answer"), "--json",
    )  # fmt: skip
    assert done.returncode == DO_NOT_SHIP, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    failed, *rest = answer["checks"]
    assert (failed["gate"], failed["name"], failed["status"]) == ("builds", "package", "failed")
    assert found in failed["found"]
    assert next_step in failed["advice"]
    assert all(Path(log).exists() for log in failed["evidence"])
    assert {check["gate"]: check["status"] for check in rest} == dict.fromkeys(GATES, "not run")
    assert "Do not ship it" in (tmp_path / "answer" / "report.html").read_text()
    assert 'failures="1"' in (tmp_path / "answer" / "junit.xml").read_text()
    assert "not run" in done.stderr
