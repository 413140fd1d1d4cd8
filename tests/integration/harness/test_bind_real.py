"""BIND's named of three Debian releases, driven by one dnsperf and by the lab's own load."""

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
from dsharness.loads import LOADS, LoadReport, Operations
from dsharness.loads.own_load import REQUESTS_FILE
from dsharness.measure.sample import Bench, take_sample
from dsharness.model import Settings, Transport
from dsproducts.bind.dns_workloads import DnsloadWorkload, DnsperfWorkload
from dsproducts.bind.named import FOLDER, PORT, ZONE
from dsresults.compare.driven_load import DrivenLoad

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


def own_load(transport: Transport = Transport.UDP, **changes: object) -> DnsloadWorkload:
    name = f"own-{transport.value}"  # a server is warmed up once for each load
    shape = {"id": name, "title": "queries", "names": NAMES, "duration_s": 0.5, "operations": 500}
    return DnsloadWorkload.model_validate({**shape, "transport": transport, **changes})


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=[] if row == "debian-13-bind" else pytest.mark.whole)
        for row in VERSIONS
    ],
)
def test_the_labs_own_load_is_answered_counted_and_timed(engine: Engine, row: str) -> None:
    with benched(engine, golden_of(engine, row, users=NAMES), "dnsload") as at:
        for transport in Transport:
            before = at.instance.system.look(at.instance.endpoint).operations["query"]
            sample = take_sample(at, turn_of(own_load(transport)))
            after = at.instance.system.look(at.instance.endpoint).operations["query"]
            assert sample.valid, sample.invalid  # the gate has compared both counts
            assert 0 < sample.operations < after - before, "the warm-up's queries come on top"
            for metric in ("cost", "rate", "cpu", "client-cpu", "latency"):
                assert (sample.value(metric) or 0) > 0, metric
        paced = take_sample(at, turn_of(own_load(scheduled=200.0, duration_s=1)))
        assert paced.valid, paced.invalid
        assert paced.operations == 200
        whole = own_load(threads=100)  # as many as it may have
        assert take_sample(at, turn_of(whole)).valid
        strangers = asked(at, own_load(names=2 * NAMES), 2 * NAMES)
        assert strangers.errors == {"query: result 3 instead of 0": NAMES}
        assert strangers.total == NAMES


def asked(at: Bench, workload: DnsloadWorkload, queries: int) -> LoadReport:
    """What comes of so many queries, whether the zone has such names or not."""
    driver, endpoint = LOADS["dnsload"], at.instance.endpoint
    text = driver.files(workload, endpoint, 0)[REQUESTS_FILE]
    at.load.must("sh", "-c", f"cat >/tmp/{REQUESTS_FILE}", what="write requests", stdin=text)
    extent = Operations(per_thread=queries // workload.threads, limit_s=10)
    return driver.parse(at.load.execute(*driver.argv(workload, endpoint, "/tmp", extent)).stdout)


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
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path)
    with edited(tmp_path / "matrix.yaml") as document:
        for workload in document["workloads"]:
            if workload["tool"] in {"dnsperf", "dnsload"}:
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


def test_several_workers_drive_it_without_being_told_a_workload(folder: Path) -> None:
    done = dsbisect(
        folder, "measure", "load", "debian-13-bind", "--workers", "2", "--rate", "100",
        "--minutes", "0.06", "--json",
    )  # fmt: skip
    assert done.returncode in {ExitCode.OK, ExitCode.INCONCLUSIVE}, done.stderr
    found = DrivenLoad.model_validate_json(done.stdout)
    assert len(found.workers) == 2
    assert not any(each.errors for each in found.workers)
    assert sum(each.operations for each in found.workers) > 200


@pytest.mark.whole
def test_a_workload_for_directories_is_refused_before_anything_is_built(folder: Path) -> None:
    done = dsbisect(folder, "measure", "debian-12-bind", "--workload", "bind-one")
    assert done.returncode == ExitCode.USAGE
    assert "uses ldap" in done.stderr
    assert "choose one that fits with --workload: dns-udp, dns-tcp, dns-schedule" in done.stderr
