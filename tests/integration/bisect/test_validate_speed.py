"""A package that leaks and is 3 % slower, for real: built, measured, and refused for both."""

from __future__ import annotations

from pathlib import Path

import pytest
from benches import MATRIX
from changes import leaking
from observers import RecordingObserver
from validations import question_of, tools_of, tried

from dsbisect.speed_gate import speed_steps
from dsharness.containers.engine import Engine
from dsharness.model import BuildSpec, DriverName, LdcltWorkload
from dsresults.store import Store
from dsvalidate.check import Status
from dsvalidate.step_tools import maker_of, stock_image

pytestmark = pytest.mark.whole

ROW = MATRIX.row("debian-13")
FEW = LdcltWorkload(
    id="few", title="binds of 20 users", users=20, distinct_users=20, duration_s=1.0
)


def test_a_leak_and_three_per_cent_are_each_seen(engine: Engine, tmp_path: Path) -> None:
    patch = tmp_path / "leak.patch"
    spec = BuildSpec(
        driver=DriverName.DEB, onto=ROW.id, edits=("rust-rounds=103000",), patches=(str(patch),)
    )
    row = ROW.model_copy(update={"id": "debian-13-leaking", "build": spec, "published": None})
    tools = tools_of(engine, ROW, row.id)
    stock = stock_image(ROW, tools)
    patch.write_text(leaking(maker_of(row, stock, tools).source_tree()).text)
    both = tried(ROW, row, tools, tmp_path, stock=stock)
    with Store.open(tmp_path / "store.db") as store:
        question = question_of(both.sides, tools, workloads=(FEW,), max_pairs=60)
        steps = speed_steps(question, store=store, observer=RecordingObserver())
        found = {check.name: check for step in steps for check in step.run()}
    speed = found["speed-few"]
    assert speed.status is Status.FAILED
    assert "slower by more than 2 %" in speed.found
    assert "--margin" in speed.advice
    leak = found["leak"]
    assert leak.status is Status.FAILED
    assert "more in memory than with stock" in leak.found
    assert "memcheck" in leak.advice
