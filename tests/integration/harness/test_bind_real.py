"""BIND's named of three Debian releases, driven by one dnsperf over UDP and TCP."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import benched, golden_of, image_of
from lab import ROOT, dsbisect
from matrices import edited
from turns import turn_of

from dsharness.containers.container import Container
from dsharness.containers.engine import Engine
from dsharness.errors import ExitCode
from dsharness.measure.sample import Bench, take_sample
from dsharness.model import DnsperfWorkload, Settings, Transport
from dsharness.systems.bind import FOLDER, PORT, ZONE

NAMES = 300
VERSIONS = {"debian-11-bind": "9.16.", "debian-12-bind": "9.18.", "debian-13-bind": "9.20."}
CONTROL = f"rndc -k {FOLDER}/control.key -s 127.0.0.1 -p 9530"


def load(transport: Transport = Transport.UDP, **changes: object) -> DnsperfWorkload:
    shape: dict[str, object] = {
        "id": f"dns-{transport}",
        "title": "queries",
        "names": NAMES,
        "duration_s": 0.5,
    }
    shape["warmup_s"] = 3 if transport is Transport.TCP else 1  # the first one may go by connecting
    return DnsperfWorkload.model_validate({**shape, "transport": transport, **changes})


@pytest.mark.whole
@pytest.mark.parametrize("row", VERSIONS)
def test_every_version_is_made_confined_measured_and_read_back(engine: Engine, row: str) -> None:
    golden = golden_of(engine, row, users=NAMES)
    assert str(golden.facts["version"]).startswith(VERSIONS[row])
    assert golden.facts["zone-nodes"] == NAMES + 1
    assert golden.facts["worker-threads"] == 1
    with benched(engine, golden, "dnsperf") as at:
        look(at.instance.container)
        for transport in Transport:
            before = at.instance.system.look(at.instance.endpoint).operations["query"]
            sample = take_sample(at, turn_of(load(transport)))
            after = at.instance.system.look(at.instance.endpoint).operations["query"]
            assert sample.valid, sample.invalid  # the gate has compared both counts
            assert sample.facts == golden.facts
            assert 0 < sample.operations < after - before, "the warm-up's queries come on top"
            for metric in ("cost", "rate", "cpu", "client-cpu", "latency"):
                assert (sample.value(metric) or 0) > 0, metric


def look(box: Container) -> None:
    """The server has no privilege, and no way out but loopback."""
    status = box.must("cat", "/proc/self/status", what="look at the capabilities")
    assert "CapEff:\t0000000000000000" in status
    assert "Uid:\t0\t" not in status
    devices = box.must("cat", "/proc/net/dev", what="look at the network").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]
    refused = box.execute("dig", "@127.0.0.1", "-p", str(PORT), "example.org.", "A").stdout
    assert "status: REFUSED" in refused, "it asks nobody"


@pytest.mark.whole
def test_worker_threads_are_set_and_read_back(engine: Engine) -> None:
    settings = Settings(id="two", options={"worker-threads": "2"})
    golden = golden_of(engine, "debian-13-bind", settings, users=NAMES)
    assert golden.facts["worker-threads"] == 2


@pytest.fixture
def at(engine: Engine) -> Iterator[Bench]:
    golden = golden_of(engine, "debian-12-bind", users=NAMES)
    with benched(engine, golden, "dnsperf") as found:
        yield found


@pytest.mark.whole
def test_a_zone_that_changed_makes_a_run_invalid(at: Bench) -> None:
    box = at.instance.container
    more = f"echo 'late A 10.9.9.9' >>{FOLDER}/{ZONE}.zone"
    raise_serial = f"sed -i '2s/ root [0-9]* / root 4294967295 /' {FOLDER}/{ZONE}.zone"
    box.must("sh", "-c", f"{more} && {raise_serial} && {CONTROL} reload {ZONE}", what="change it")
    time.sleep(1)
    sample = take_sample(at, turn_of(load()))
    assert f"zone-nodes is {NAMES + 2}, not {NAMES + 1}" in sample.invalid
    assert any("zone-serial is 4294967295" in why for why in sample.invalid)


@pytest.fixture
def folder(engine: Engine, tmp_path: Path) -> Path:
    """With a matrix of small zones and short runs, and the lock of the images that are here."""
    for row in VERSIONS:
        image_of(engine, row)
    for name in ("matrix.yaml", "matrix.lock"):
        shutil.copy(ROOT / name, tmp_path)
    with edited(tmp_path / "matrix.yaml") as document:
        for workload in document["workloads"]:
            if workload["tool"] == "dnsperf":
                workload.update(names=NAMES, duration_s=0.5, warmup_s=1)
    return tmp_path


@pytest.mark.whole
def test_the_series_is_searched_and_answered(folder: Path) -> None:
    done = dsbisect(
        folder, "bisect", "rows", "--series", "bind", "--workload", "dns-udp", "--max-runs", "24",
        "--json",
    )  # fmt: skip
    assert done.returncode in {ExitCode.OK, ExitCode.INCONCLUSIVE}, done.stderr
    (section,) = json.loads(done.stdout)["sections"]
    (column,) = section["comparison"]["columns"]
    boundary = column["boundary"]
    assert boundary["workload_id"] == "dns-udp"
    if boundary["found"]:  # a step, or what may hold it
        assert {*boundary["suspects"], boundary["after"]} & {*VERSIONS}
    else:
        assert boundary["smallest_visible_pct"] > 0
    assert not boundary["unmeasured"], boundary
    assert {one["candidate"] for one in column["observed"] if one["valid"]} >= {
        "debian-11-bind", "debian-13-bind",
    }  # fmt: skip


@pytest.mark.whole
def test_a_workload_for_directories_is_refused_before_anything_is_built(folder: Path) -> None:
    done = dsbisect(folder, "measure", "debian-12-bind", "--workload", "bind-one")
    assert done.returncode == ExitCode.USAGE
    assert "uses ldap" in done.stderr
    assert "choose one that fits with --workload: dns-udp, dns-tcp, dns-schedule" in done.stderr
