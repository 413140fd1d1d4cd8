"""Meshes of three peers: what they carry, that they outlive a peer, and what ends a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benches import DEFAULT, MATRIX, benched, golden_of
from turns import turn_of

from dsharness.containers.engine import Engine
from dsharness.machine.cgroups import process_tree
from dsharness.matrix import find_workload
from dsharness.measure.golden_state import Golden
from dsharness.measure.sample import take_sample
from dsharness.model import Settings, Workload
from dsharness.process.deadline import Deadline, wait_until
from dsproducts.mesh.mesh_workloads import PeersContent

ALWAYS = ("mesh-fastd-debian-12", "mesh-tinc-debian-12")
ROWS = {
    "mesh-fastd-debian-11": "fastd v21",
    "mesh-fastd-debian-12": "fastd v22",
    "mesh-fastd-debian-13": "fastd v23",
    "mesh-fastd-debian-sid": "fastd v",
    "mesh-tinc-debian-11": "tinc version 1.0.36",
    "mesh-tinc-debian-12": "tinc version 1.0.36",
    "mesh-tinc-debian-13": "tinc version 1.0.36",
    "mesh-vpncloud-debian-12": "VpnCloud v2.3.0",
}
FEW = {"duration_s": 0.5, "most_s": 2.0, "operations": 60}
SETTINGS = Settings(id="small", options={"mtu": "1280"})


def small(name: str, **changes: Any) -> Workload:
    load = find_workload(MATRIX, name)
    return type(load).model_validate(load.model_dump() | FEW | changes)


def golden(engine: Engine, row: str, settings: Settings = DEFAULT) -> Golden:
    return golden_of(engine, row, settings, content=PeersContent())


# With tinc the kernel counts some echoes more than the load made, on some machines: not known why.
CASES = [
    pytest.param(row, marks=[] if row == ALWAYS[0] else pytest.mark.whole, id=row) for row in ROWS
]


@pytest.mark.parametrize("row", CASES)
def test_bytes_and_echoes_go_through_its_peers(engine: Engine, row: str) -> None:
    state = golden(engine, row)
    assert str(state.facts["version"]).startswith(ROWS[row])
    assert (state.facts["peers"], state.facts["mtu"]) == (3, 1434)
    tcp, echo = small("mesh-tcp"), small("mesh-echo")
    with benched(engine, state, tcp.tool) as at:
        peers = process_tree(at.instance.container.state().pid)
        names = [Path(f"/proc/{pid}/comm").read_text("utf-8").strip() for pid in peers.pids]
        carried, answered = (take_sample(at, turn_of(load)) for load in (tcp, echo))
    assert sum(name in {"fastd", "tincd", "vpncloud"} for name in names) == 3
    assert "iperf3" not in names, "the load's CPU time is its own"
    assert carried.valid, carried.invalid  # the gate has compared the kernel's count
    assert answered.valid, answered.invalid
    assert answered.latencies["echo"].count == answered.operations
    assert (carried.value("cpu") or 0) > 10 * (answered.value("cpu") or 0)


@pytest.mark.parametrize("row", ALWAYS)
def test_the_others_have_traffic_while_a_peer_is_restarted(engine: Engine, row: str) -> None:
    load = small("mesh-restart", operations=1)
    with benched(engine, golden(engine, row), load.tool) as at:
        sample = take_sample(at, turn_of(load))
    assert sample.valid, sample.invalid
    assert 0 < (sample.value("latency") or 0) < 60e6


def test_an_mtu_is_a_setting_and_echoes_may_meet_traffic(engine: Engine) -> None:
    load = small("mesh-echo-loaded", operations=30)
    state = golden(engine, ALWAYS[0], SETTINGS)
    assert state.facts["mtu"] == 1280
    with benched(engine, state, load.tool) as at:
        sample = take_sample(at, turn_of(load))
    assert sample.valid, sample.invalid
    assert sample.value("latency")


def test_a_peer_that_dies_ends_the_run(engine: Engine) -> None:
    load = small("mesh-tcp")
    with benched(engine, golden(engine, ALWAYS[0]), load.tool) as at:
        box = at.instance.container
        box.must("sh", "-c", "kill -9 $(cat /var/tmp/mesh/2/pid)", what="end a peer")
        wait_until(lambda: not box.running or None, Deadline.after(30), what="the mesh's end")
        words = box.output()
        sample = take_sample(at, turn_of(load))
    assert "peer 2 ended with status 137" in words
    assert "the server died during the load" in sample.invalid
