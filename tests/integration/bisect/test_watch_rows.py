"""A watched row whose archive moves: a registry's tag that means another 389-ds from then on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import dsbisect, small_matrix
from matrices import edited
from rpm_row import PORT, registry

from dsbisect.watched_rows import OwnStates
from dsharness.containers.engine import Engine
from dsharness.matrix import load_matrix
from dsimages.image_set import image_of
from dsimages.matrix_lock import MatrixLock
from dsresults.store import Store

pytestmark = pytest.mark.whole

ROW = "moving"
WATCH = f"""\
id: moves
rows: [{ROW}]
loads:
  - {{workload: bind-one}}
smallest_pct: 25
"""


def with_moving_row(folder: Path) -> Path:
    matrix = small_matrix(folder)
    with edited(matrix) as document:
        document["rows"].append({
            "id": ROW,
            "os": {"name": "Debian", "version": "testing"},
            "family": "apt",
            "base": {"kind": "registry", "image": f"127.0.0.1:{PORT}/toy:{ROW}"},
            "packages": {"kind": "apt", "install": ["389-ds-base"]},
            "versions": {"389-ds": "1.4.4"},
        })  # fmt: skip
    (folder / "watch.yaml").write_text(WATCH, encoding="utf-8")
    return matrix


def looked(folder: Path) -> tuple[str, dict[str, object]]:
    """What a look says, and what the watch has seen then."""
    done = dsbisect(folder, "watch", "run", "watch.yaml", "--output", "page", "--json")
    assert done.returncode == 0, done.stderr
    return done.stderr, json.loads(done.stdout)


def test_packages_that_make_it_slower_are_an_alarm(tmp_path: Path, engine: Engine) -> None:
    file = with_moving_row(tmp_path)
    matrix, lock = load_matrix(file), MatrixLock.of_matrix(file).text
    old, new = (image_of(engine, matrix, matrix.row(f"debian-{n}")) for n in (11, 12))
    with registry(engine) as archive:
        archive.put(old.reference, ROW)
        _, first = looked(tmp_path)
        said, second = looked(tmp_path)
        assert "is known" in said
        assert second["series"] == first["series"], "nothing was measured"
        archive.put(new.reference, ROW)
        said, state = looked(tmp_path)
    (series,) = state["series"]
    pinned, slow = series["tips"]
    assert [tip["direction"] for tip in (pinned, slow)] == ["none", "slower"], said
    assert slow["reference"] == pinned["tip"]
    name = "389-ds-base"
    moved = f"{name} {old.packages[name]} → {new.packages[name]}"
    assert moved in slow["summary"]
    assert slow["moved"]["changes"][0]["name"] == name
    (alarm,) = state["alarms"]
    assert alarm["state"] == "confirmed"
    assert [event["state"] for event in alarm["events"]] == ["new", "confirmed"]
    assert moved in alarm["title"]
    assert f"| `libnss3` | `{old.packages['libnss3']}` |" in alarm["text"]
    assert MatrixLock.of_matrix(file).text == lock, "the user's lock says what it said"
    sent = dsbisect(tmp_path, "watch", "release", alarm["id"], "--to", "file:issue.md", "--send")
    assert sent.returncode == 0, sent.stderr
    assert moved in (tmp_path / "issue.md").read_text(encoding="utf-8")
    assert len(list((tmp_path / "page").glob("series-moving-*.html"))) == 1
    with Store.open(tmp_path / "results.db") as store:
        states = OwnStates(watch="moves", matrix=matrix, engine=engine, store=store)
        for tip in (pinned, slow):
            image = store.image(tip["tip"])
            assert image is not None
            assert states.here(image)
            states.forget(matrix.row(ROW), image)
            assert not states.here(image)
    for tip in (pinned, slow):
        made = f"label=dsbisect.row={ROW}-{tip['tip'][:12]}"
        assert not engine.images("--filter", made, "--quiet")
