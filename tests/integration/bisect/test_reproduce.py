"""The answers that are not a boundary, for real: `reproduce` on a row against itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import dsbisect, small_matrix
from matrices import add_twin, edited

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.matrix import load_matrix
from dsharness.model import Image, Matrix
from dsimages.image_set import build_image, image_key, lock_of, reference_of

pytestmark = pytest.mark.whole

ROW, TWIN = "debian-12", "debian-12-again"


def give_another_name(engine: Engine, matrix: Matrix, image: Image) -> str:
    """The row's image under its twin's name too: one and the same image, measured twice."""
    locked = lock_of(matrix).read(matrix.row(ROW))
    assert locked is not None
    twin = matrix.row(TWIN)
    lock_of(matrix).write(twin, locked)
    reference = reference_of(twin, image_key(twin, locked))
    engine.must("tag", image.reference, reference)
    return reference


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A matrix whose default is a series of one row and its twin."""
    path = small_matrix(tmp_path)
    add_twin(path, ROW, TWIN)
    with edited(path) as document:
        document["defaults"].update(series="twins", workloads=["bind-one"])
    engine, matrix = detect(), load_matrix(path)
    image = build_image(engine, matrix, matrix.row(ROW), on_progress=print)
    reference = give_another_name(engine, matrix, image)
    yield tmp_path
    engine.podman("untag", reference, reference, cleanup=True)


def test_ends_that_agree_have_no_culprit(folder: Path) -> None:
    # On a machine with other work "no difference" takes more runs, of more seconds each.
    done = dsbisect(folder, "reproduce", "--output", str(folder / "report"), limit_s=1500)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(folder / "report" / "report.html")
    assert "no difference of " in done.stdout
    report = json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))
    (section,) = report["sections"]
    (column,) = section["comparison"]["columns"]
    boundary = column["boundary"]
    assert (boundary["found"], boundary["direction"]) == (False, "none")
    assert (boundary["before"], boundary["after"], boundary["suspects"]) == (None, None, [])
    assert {verdict["outcome"] for verdict in boundary["verdicts"]} == {"inconclusive"}
    assert 0 < boundary["smallest_visible_pct"] < 50
    # Every line of progress has its time; every sample tells how many there are and what is left.
    lines = done.stderr.splitlines()
    assert all(re.match(r" *\d+ s ", line) for line in lines), done.stderr
    counted = [line for line in lines if "/s, " in line]
    assert len(counted) == len(report["samples"])
    assert all(re.search(r"of about \d+, (about .* left|almost done)\)", line) for line in counted)
