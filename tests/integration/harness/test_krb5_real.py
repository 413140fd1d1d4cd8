"""MIT Kerberos' KDC of Debian releases, asked for tickets in every way that the load knows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import benched, golden_of, image_of
from lab import ROOT, dsbisect
from turns import turn_of

from dsharness.containers.engine import Engine
from dsharness.errors import ExitCode
from dsharness.loads import LOADS, LoadReport, Operations
from dsharness.loads.own_load import REQUESTS_FILE
from dsharness.measure.sample import Bench, take_sample
from dsharness.model import Sample, Transport
from dsproducts.krb5.krbload import MASK
from dsproducts.krb5.krbload_workload import KrbloadWorkload, Proof
from dsresults.compare.driven_load import DrivenLoad

USERS = 40
VERSIONS = {
    "debian-11-krb5": "1.18.", "debian-12-krb5": "1.20.", "debian-13-krb5": "1.21.",
    "debian-sid-krb5": "1.",
}  # fmt: skip
LOAD = LOADS["krbload"]
FEW = Operations(per_thread=50, limit_s=10)


def load(transport: str = "udp", proof: str = "none", **changes: object) -> KrbloadWorkload:
    shape: dict[str, object] = {
        "id": f"{transport}-{proof}", "title": "tickets", "users": USERS,
        "transport": transport, "proof": proof, "duration_s": 0.5, "operations": 100,
    }  # fmt: skip
    return KrbloadWorkload.model_validate(shape | changes)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            row, marks=[] if row in {"debian-12-krb5", "debian-13-krb5"} else pytest.mark.whole
        )
        for row in VERSIONS
    ],
)
def at(engine: Engine, request: pytest.FixtureRequest) -> Iterator[Bench]:
    golden = golden_of(engine, request.param, users=USERS)
    assert str(golden.facts["version"]).startswith(VERSIONS[request.param])
    assert "aes256-cts-hmac-sha1-96" in str(golden.facts["user-keys"])
    with benched(engine, golden, "krbload") as made:
        yield made


def issued(at: Bench) -> int:
    counts = at.instance.system.look(at.instance.endpoint).operations
    assert isinstance(counts, dict)
    return int(counts["ticket"])


@pytest.mark.parametrize("proof", Proof)
@pytest.mark.parametrize("transport", Transport)
def test_tickets_are_issued_counted_and_timed(at: Bench, transport: str, proof: str) -> None:
    before = issued(at)
    sample = take_sample(at, turn_of(load(transport, proof)))
    assert sample.valid, sample.invalid
    assert sample.facts == at.instance.own.golden.facts
    assert 0 < sample.operations < issued(at) - before, "the warm-up's tickets come on top"
    for metric in ("cost", "rate", "cpu", "client-cpu", "latency"):
        assert (sample.value(metric) or 0) > 0, metric


def test_at_a_rate_as_many_are_issued_as_were_asked_for(at: Bench) -> None:
    asked_for = turn_of(load(proof="at-once", scheduled=100.0, duration_s=1))
    for _ in range(5):  # a machine with other work may make each late
        sample: Sample = take_sample(at, asked_for)
        if sample.valid:
            break
        assert sample.disturbed, sample.invalid
    assert sample.valid, sample.invalid
    assert sample.operations == 100
    assert sample.value("rate") == pytest.approx(100, rel=0.2)


def asked(at: Bench, text: str) -> LoadReport:
    """What comes of 200 of these requests."""
    at.load.must("sh", "-c", f"cat >/tmp/{REQUESTS_FILE}", what="write requests", stdin=text)
    argv = LOAD.argv(load(), at.instance.endpoint, "/tmp", FEW)
    return LOAD.parse(at.load.execute(*argv).stdout)


def requests(at: Bench, proof: str = "none") -> str:
    return LOAD.files(load(proof=proof), at.instance.endpoint, 0)[REQUESTS_FILE]


def test_what_a_kdc_refuses_is_counted_by_its_code_and_never_as_a_ticket(at: Bench) -> None:
    before = issued(at)
    strangers = asked(at, requests(at).replace(b"user".hex(), b"uses".hex()))
    assert (strangers.total, strangers.errors) == (0, {"ticket: result 6 instead of 0": 200})
    proofs = requests(at, "at-once")
    wrong = asked(
        at, proofs.replace(b"guarded1".hex(), b"guarded2".hex())
    )  # with the first's proof
    assert "ticket: result 24 instead of 0" in wrong.errors
    assert issued(at) - before == wrong.total


def test_the_same_bytes_are_answered_from_memory_and_that_is_told(at: Bench) -> None:
    """A KDC takes them for a request that was sent again: it does nothing for them."""
    before = issued(at)
    same = asked(at, requests(at).replace(MASK, "40000001"))
    look = at.instance.system.look(at.instance.endpoint)
    assert (same.total, same.errors) == (200, {})
    assert look.facts["answers-again"] == 200 - USERS
    assert issued(at) - before == USERS
    told = [*at.instance.system.objections(at.instance.own.golden.facts, look.facts)]
    assert told == [f"answers-again is {200 - USERS}, not 0"]


@pytest.fixture
def folder(engine: Engine, tmp_path: Path) -> Path:
    """With a small realm and short runs, and the lock of the images that are here."""
    for row in VERSIONS:
        image_of(engine, row)
    for name in ("matrix.yaml", "matrix.lock"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path)
    small = load(proof="when-asked", duration_s=0.5, warmup_s=1, operations=200)
    whole = {"workloads": [small.model_dump(mode="json", exclude_none=True)]}
    (tmp_path / "small.yaml").write_text(json.dumps(whole))
    return tmp_path


def test_several_workers_drive_a_kdc(folder: Path) -> None:
    done = dsbisect(
        folder, "measure", "load", "debian-12-krb5", "--workload", "small.yaml", "--workers", "2",
        "--rate", "50", "--minutes", "0.06", "--json",
    )  # fmt: skip
    assert done.returncode in {ExitCode.OK, ExitCode.INCONCLUSIVE}, done.stderr
    found = DrivenLoad.model_validate_json(done.stdout)
    assert len(found.workers) == 2
    assert not any(each.errors for each in found.workers)
    assert sum(each.operations for each in found.workers) > 100


@pytest.mark.whole
def test_the_series_is_searched_and_answered(folder: Path) -> None:
    done = dsbisect(
        folder, "bisect", "rows", "--series", "krb5", "--workload", "kerberos-as", "--max-runs",
        "24", "--json",
    )  # fmt: skip
    assert done.returncode in {ExitCode.OK, ExitCode.INCONCLUSIVE}, done.stderr
    (section,) = json.loads(done.stdout)["sections"]
    (column,) = section["comparison"]["columns"]
    boundary = column["boundary"]
    assert boundary["workload_id"] == "kerberos-as"
    if boundary["found"]:  # a step, or what may hold it
        assert {*boundary["suspects"], boundary["after"]} & {*VERSIONS}
    else:
        assert boundary["smallest_visible_pct"] > 0
    assert not boundary["unmeasured"], boundary
    measured = {one["candidate"] for one in column["observed"] if one["valid"]}
    assert measured >= {"debian-11-krb5", "debian-sid-krb5"}
