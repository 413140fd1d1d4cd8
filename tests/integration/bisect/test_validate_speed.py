"""A package that leaks and is 3 % slower, for real: built, measured, and refused for both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import MATRIX
from changes import leaking
from trials import Told
from watchers import RecordingWatcher

from dsbisect.validate.check import Status
from dsbisect.validate.performs_gate import steps
from dsbisect.validate.step import run_steps
from dsbisect.validate.trial import Trial
from dsharness.containers.engine import Engine
from dsharness.model import BuildSpec, DriverName, LdcltWorkload
from dsresults.store import Store

pytestmark = pytest.mark.whole

ROW = MATRIX.row("debian-13")
FEW = LdcltWorkload(
    id="few", title="binds of 20 users", users=20, distinct_users=20, duration_s=1.0
)


@pytest.fixture
def trial(engine: Engine, tmp_path: Path) -> Iterator[Trial]:
    patch = tmp_path / "leak.patch"
    spec = BuildSpec(
        driver=DriverName.DEB, onto=ROW.id, edits=("rust-rounds=103000",), patches=(str(patch),)
    )
    row = ROW.model_copy(update={"id": "debian-13-leaking", "build": spec, "published": None})
    with Store.open(tmp_path / "store.db") as store:
        made = Trial(
            engine=engine, matrix=MATRIX, row=ROW, patched_row=row, workloads=(FEW,),
            settings=MATRIX.settings[0], margin_pct=2.0, max_pairs=60, accept_weaker=True,
            folder=tmp_path / "validation", store=store, watcher=RecordingWatcher(),
            progress=print,
        )  # fmt: skip
        patch.write_text(leaking(made.maker.source_tree()).text)
        yield made


def test_a_leak_and_three_per_cent_are_each_seen(trial: Trial) -> None:
    found = {check.name: check for check in run_steps(trial, steps(trial.workloads), Told())}
    speed = found["speed-few"]
    assert speed.status is Status.FAILED
    assert "slower by more than 2 %" in speed.found
    assert "--margin" in speed.advice
    leak = found["leak"]
    assert leak.status is Status.FAILED
    assert "more in memory than with stock" in leak.found
    assert "memcheck" in leak.advice
