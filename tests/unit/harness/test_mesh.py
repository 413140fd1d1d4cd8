"""Meshes: how their loads are called and read, and what is read of their peers.

The texts are real runs' output.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from shipped import MATRIX

from dsharness.containers.container import Options
from dsharness.errors import InstanceError, MatrixError, WorkloadError
from dsharness.loads import LOADS, Extent, Operations, Schedule, Seconds
from dsharness.loads.load_driver import CUT, LOST
from dsharness.matrix import find_workload
from dsharness.model import Settings, Workload
from dsharness.systems import SYSTEMS, Endpoint, Seed
from dsproducts.fastd.fastd_mesh import Fastd
from dsproducts.mesh.mesh_loads import Iperf3, PeerRestarts, Ping
from dsproducts.mesh.mesh_peers import FOLDER, TUNNELS, MeshEndpoint, read_look
from dsproducts.mesh.mesh_workloads import (
    BLOCK_BYTES,
    EchoWorkload,
    PeersContent,
    RestartsWorkload,
    ThroughputWorkload,
)

RUNS = Path(__file__).parents[2] / "golden" / "mesh"
PEERS = MeshEndpoint(port=10_000)
FEW = Operations(per_thread=12, limit_s=9.5)
MESHES = ("fastd", "tinc", "vpncloud")


def run(name: str) -> str:
    return (RUNS / f"{name}.txt").read_text(encoding="utf-8")


def words(name: str, extent: Extent, **changes: object) -> str:
    load = find_workload(MATRIX, name)
    changed = type(load).model_validate(load.model_dump() | changes)
    return " ".join(LOADS[load.tool].argv(changed, PEERS, "/load", extent))


def test_exactly_so_many_blocks_are_received() -> None:
    called = words("mesh-tcp", FEW)
    assert called.startswith("timeout --kill-after=5 15 bash /load/mesh-load throughput 1 3 ")
    assert "--reverse --json --length 131072 --parallel 1 --window 64K" in called
    assert called.endswith(f"--bytes {12 * BLOCK_BYTES}")
    assert "--congestion reno" in called, "it is not left to the machine"
    assert words("mesh-tcp", Seconds(seconds=2)).endswith("--time 2")


def test_a_schedule_is_a_pace_of_all_connections_together() -> None:
    timed = words("mesh-tcp", Schedule(per_second=100, seconds=2), threads=4)
    assert "--parallel 4" in timed
    assert timed.endswith(f"--bytes {200 * BLOCK_BYTES} --bitrate {100 * BLOCK_BYTES * 8 // 4}")


def test_the_last_peer_is_the_other_end() -> None:
    assert "throughput 1 9 " in words("mesh-tcp", FEW, peers=9)
    assert "echo 1 9 no " in words("mesh-echo", FEW, peers=9)
    assert "restarts 9 12 60" in words("mesh-restart", FEW, peers=9)


def test_echoes_follow_each_other_or_a_schedule() -> None:
    assert words("mesh-echo", FEW).endswith("echo 1 3 no -n -s 56 -W 5 -A -c 12")
    assert words("mesh-echo", Seconds(seconds=2)).endswith("-A -w 2")
    assert words("mesh-echo", Schedule(per_second=500, seconds=2)).endswith("-i 0.002 -c 1000")
    assert "echo 1 3 yes " in words("mesh-echo-loaded", FEW)


def test_a_restart_has_all_the_time_that_it_may_take() -> None:
    assert words("mesh-restart", FEW).startswith(f"timeout --kill-after=5 {12 * 72 + 5} ")
    assert words("mesh-restart", Seconds(seconds=1)).endswith("restarts 3 1 60")


@pytest.mark.parametrize("name", ["mesh-tcp", "mesh-echo", "mesh-restart"])
def test_a_load_of_meshes_is_for_meshes(name: str) -> None:
    load = find_workload(MATRIX, name)
    with pytest.raises(WorkloadError, match="peers of a mesh"):
        LOADS[load.tool].files(load, Endpoint(port=1), 1)
    other = find_workload(MATRIX, "dns-udp")
    with pytest.raises(WorkloadError, match="peers of a mesh"):
        LOADS[load.tool].argv(other, PEERS, "/load", FEW)


def test_iperf3_is_read() -> None:
    report = Iperf3().parse(run("iperf3"))
    assert (report.total, report.active_s, report.exit_status) == (81, 0.37536, 0)
    assert report.client_cpu_us == pytest.approx(68_000)
    assert not report.errors
    assert report.per_second == (), "no second was whole"
    assert not report.verified, "the kernel's count is asked for"


def test_an_error_of_iperf3_is_one() -> None:
    text = '{\n\t"end":\t{\n\t},\n\t"error":\t"unable to connect to server: No route to host"\n}\n'
    report = Iperf3().parse(f"{text}load ended with status 1\n")
    assert report.errors == {"unable to connect to server: No route to host": 1}
    assert (report.total, report.exit_status) == (None, 1)


def test_ping_is_read() -> None:
    load = Ping()
    report = load.parse(run("ping"))
    assert (report.total, report.active_s, report.exit_status) == (58, 0.351, 0)
    assert report.latencies["echo"].count == 58
    assert report.latencies["echo"].mean_us == pytest.approx(4773, rel=0.01)
    assert not list(load.objections(report))


def test_what_ping_lost_or_printed_no_more_is_told() -> None:
    load, text = Ping(), run("ping")
    lost = load.parse(text.replace("58 packets transmitted", "60 packets transmitted"))
    assert lost.errors == {LOST: 2}
    line = "64 bytes from 10.9.0.3: icmp_seq=57 ttl=64 time=0.105 ms\n"
    assert list(load.objections(load.parse(text.replace(line, "")))) == [CUT]
    head, _, summary = text.partition("64 bytes")
    bare = load.parse(head + summary[summary.index("\n--- ") :])
    assert list(load.objections(bare)) == ["the load does not report how long echoes took"]
    wrong = load.parse(f"wrong data byte #16 should be 0x10 but was 0x0\n{text}")
    assert wrong.errors == {"wrong answer": 1}


def test_restarts_are_read() -> None:
    report = PeerRestarts().parse(run("restarts"))
    assert (report.total, report.exit_status) == (3, 0)
    assert report.active_s == pytest.approx(31.051531)
    assert report.latencies["restart"].at_us(100) == pytest.approx(15_455_114, rel=0.01)


def test_a_mesh_that_was_not_whole_is_an_error() -> None:
    why = "the others had no traffic while a peer was stopped"
    report = PeerRestarts().parse(f"failed {why}\n{run('restarts')}")
    assert report.errors == {why: 1}
    late = PeerRestarts().parse("failed a peer was not back after 60 s\nload ended with status 1\n")
    assert (late.total, late.exit_status) == (0, 1)


def test_what_came_out_of_the_mesh_is_counted_without_its_heads() -> None:
    look = read_look(run("look"))
    assert look.facts == {"version": "fastd v22", "peers": 3, "mtu": 1434}
    assert look.operations == {"block": 0, "echo": 40, "restart": 4}
    full = f" mesh1: {10 * (BLOCK_BYTES + 66 * 95)} 950 0 0 0 0 0 0 1 1 0 0 0 0 0 0"
    first = next(line for line in run("look").splitlines() if line.startswith(" mesh1:"))
    assert read_look(run("look").replace(first, full)).operations == {
        "block": 10, "echo": 40, "restart": 4
    }  # fmt: skip


@pytest.mark.parametrize("missing", ["version ", "peers ", "mtu ", "restarts ", "Icmp: ", "mesh"])
def test_what_a_mesh_does_not_tell_is_no_number(missing: str) -> None:
    lines = (line for line in run("look").splitlines() if not line.strip().startswith(missing))
    with pytest.raises(InstanceError, match="does not tell"):
        read_look("\n".join(lines))


def test_an_mtu_is_a_number_of_an_ethernet() -> None:
    seed = Seed(content=PeersContent(), settings=Settings(id="odd", options={"mtu": "9000"}))
    with pytest.raises(MatrixError, match="mtu is '9000'"):
        Fastd().create(None, seed)  # type: ignore[arg-type]


def refused(load: Workload) -> list[str]:
    return [name for name, _ in load.contradictions()]


def test_of_two_peers_none_can_be_missed() -> None:
    given = {"id": "w", "title": "a load", "peers": 2}
    assert refused(RestartsWorkload.model_validate(given)) == ["peers"]
    assert refused(RestartsWorkload.model_validate(given | {"peers": 3})) == []
    assert ThroughputWorkload.model_validate(given).content == PeersContent(number=2)


def test_echoes_next_to_traffic_are_no_cost_of_a_mesh() -> None:
    alone = find_workload(MATRIX, "mesh-echo")
    loaded = find_workload(MATRIX, "mesh-echo-loaded")
    assert isinstance(alone, EchoWorkload)
    assert (alone.disturbed, loaded.disturbed) == (False, True)


def confined(system: str) -> Options:
    return SYSTEMS[system].serving(Path("/shared"))


def test_only_meshes_may_make_interfaces() -> None:
    may = {
        name
        for name in SYSTEMS
        if "NET_ADMIN" in confined(name).capabilities or TUNNELS[1] in confined(name).extra
    }
    assert may == {*MESHES}


@pytest.mark.parametrize("name", MESHES)
def test_a_mesh_has_one_privilege_and_no_network(name: str) -> None:
    options = confined(name)
    assert options.capabilities == ("NET_ADMIN",)
    assert (options.network, options.cpus) == ("none", ())
    assert "--privileged" not in options.extra
    assert SYSTEMS[name].serve_command() == ("bash", f"{FOLDER}/mesh-peers", "serve")


class Idle:
    """A container that nobody asks for anything."""


@pytest.mark.parametrize("name", MESHES)
def test_its_endpoint_is_that_of_a_mesh(name: str) -> None:
    assert isinstance(SYSTEMS[name].endpoint(Idle(), Path()), MeshEndpoint)  # type: ignore[arg-type]
