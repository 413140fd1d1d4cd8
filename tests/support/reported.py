"""Campaigns as the lab would leave them, for reports: a known truth, the real search."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from observers import RecordingObserver

from dsbisect.rows_study import MEASURE_ALL_UP_TO, ROWS
from dsbisect.search_options import SearchOptions
from dsharness.measure.metrics import CLIENT_CPU, COST, CPU, LATENCY, RATE
from dsharness.model import (
    BenchFacts,
    Campaign,
    Image,
    LdcltWorkload,
    Machine,
    Matrix,
    Procedure,
    Sample,
    Setup,
    Starts,
    Turn,
    UserOrder,
)
from dsharness.model.stored_password import StoredPassword
from dsharness.products import notable_versions
from dslab.campaign_loop import CampaignOrder
from dsresults.report import ReportData, report_data
from dsresults.store import Store
from dssearch.question import Question

C_SCHEME = StoredPassword(scheme="PBKDF2_SHA256", rounds=2048)
RUST_10K = StoredPassword(scheme="PBKDF2-SHA512", rounds=10_000)
RUST_100K = StoredPassword(scheme="PBKDF2-SHA512", rounds=100_000)

# Exactly what `dsharness.machine.host.machine_now` tells of a machine: tests compare the two.
MACHINE = {
    "architecture": "x86_64",
    "cpu_count": 2,
    "cpu_model": "Example CPU @ 2.00GHz",
    "kernel": "6.1.0",
    "server_cpus": (0,),
    "load_cpus": (1,),
    "pinned": True,
    "cgroups": "v2",
    "rootless": False,
    "runtime": "crun",
    "podman": "5.2.0",
}


HERE = Machine(id="0123456789abcdef", facts=MACHINE)

WORKLOADS = (
    LdcltWorkload(id="bind-random", title="binds of 1,000 users at random"),
    LdcltWorkload(
        id="bind-one",
        title="binds of one user again and again",
        distinct_users=1,
        order=UserOrder.REPEAT,
    ),
    LdcltWorkload(id="search", title="searches for 1,000 users", operation="search"),
)


def workload_of(name: str) -> LdcltWorkload:
    return next(each for each in WORKLOADS if each.id == name)


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What one row is: versions, stored password, and milliseconds of CPU for each workload."""

    dirsrv: str
    packages: Mapping[str, str]
    stored: StoredPassword
    cost_ms: Mapping[str, float]
    waiting: float = 1.0  # so many times the CPU time passes for each operation
    failing: str = ""  # why no run of it is usable
    row: Mapping[str, object] = field(default_factory=dict)


def packages(dirsrv: str, nss: str, openssl: str, ldap: str, libc: str) -> dict[str, str]:
    return {
        "389-ds-base": dirsrv,
        "libnss3": nss,
        "libssl3": openssl,
        "libldap-2.5-0": ldap,
        "libc6": libc,
    }


DEBIAN = {
    "debian-11": Truth(
        dirsrv="1.4.4.11",
        packages=packages(
            "1.4.4.11-2", "2:3.61-1+deb11u3", "1.1.1w-0+deb11u1", "2.4.57", "2.31-13"
        ),
        stored=C_SCHEME,
        cost_ms={"bind-random": 34.2, "bind-one": 0.54},
    ),
    "debian-12": Truth(
        dirsrv="2.3.1",
        packages=packages("2.3.1+dfsg1-1", "2:3.87.1-1", "3.0.11-1~deb12u2", "2.5.13", "2.36-9"),
        stored=RUST_10K,
        cost_ms={"bind-random": 15.4, "bind-one": 15.1},
    ),
    "debian-13": Truth(
        dirsrv="3.1.2",
        packages=packages("3.1.2+dfsg1-1", "2:3.110-1", "3.5.0-1", "2.6.9", "2.41-12"),
        stored=RUST_100K,
        cost_ms={"bind-random": 151.0, "bind-one": 150.0},
    ),
    "debian-sid": Truth(
        dirsrv="3.3.1",
        packages=packages("3.3.1+dfsg1-2", "2:3.118-1", "3.5.4-1", "2.6.10", "2.42-5"),
        stored=RUST_100K,
        cost_ms={"bind-random": 148.0, "bind-one": 147.0},
    ),
}


def matrix_of(rows: Mapping[str, Truth], workloads: tuple[str, ...]) -> Matrix:
    """A matrix whose one series holds these rows in order."""
    return Matrix.model_validate(
        {
            "version": 1,
            "defaults": {"series": "debian", "workloads": workloads},
            "tools": {"loads": {"ldclt": next(iter(rows))}},
            "sources": [{"id": "article", "title": "An article with a table"}],
            "rows": [
                {
                    "id": name,
                    "os": {"name": "Debian", "version": name.rpartition("-")[2]},
                    "family": "apt",
                    "base": {"kind": "bootstrap", "tool": "mmdebstrap", "suite": "any"},
                    "packages": {"kind": "apt"},
                    "versions": {"389-ds": truth.dirsrv},
                    **truth.row,
                }
                for name, truth in rows.items()
            ],
            "series": [{"id": "debian", "title": "Debian releases", "rows": tuple(rows)}],
            "workloads": WORKLOADS,
            "settings": [{"id": "default", "title": "what the package sets"}],
        }
    )


def image_of(name: str, truth: Truth) -> Image:
    return Image(
        candidate_id=name,
        reference=f"localhost/{name}",
        key=f"key-{name}",
        product="389-ds",
        packages=dict(truth.packages),
    )


PROCEDURE = Procedure(version=3, settings="key-default", loader="key-loader")


def bench_of(name: str, truth: Truth) -> BenchFacts:
    return BenchFacts(
        procedure=PROCEDURE,
        golden=f"golden-{name}",
        notable=notable_versions(image_of(name, truth)),
        cpu_meter="cgroup-v2",
    )


def sample_of(name: str, truth: Truth, workload: str, turn: int, at: datetime) -> Sample:
    """One run with 2 % of noise, the same at each call."""
    chance = random.Random(f"{name}/{workload}/{turn}")
    speed = chance.lognormvariate(0, 0.08)  # the machine's, which the calibrator sees too
    cost_us = 1000 * truth.cost_ms[workload] * speed * chance.lognormvariate(0, 0.02)
    rate = 1e6 / (cost_us + 110) / truth.waiting
    seconds = tuple(round(rate * chance.lognormvariate(0, 0.03), 2) for _ in range(4))
    return Sample(
        id=f"{workload}/{turn}/{name}",
        campaign_id=f"campaign-{workload}",
        candidate_id=name,
        settings_id="default",
        workload_id=workload,
        image_key=f"key-{name}",
        started_at=at.isoformat(timespec="milliseconds"),
        duration_s=4.2,
        operations=int(4 * rate),
        turn=turn,
        metrics={
            "rate": RATE.measured(sum(seconds[1:]) / 3),
            "latency": LATENCY.measured(4e6 / rate),
            "cpu": CPU.measured(cost_us),
            "cost": COST.measured(cost_us / (2900 * speed)),
            "client-cpu": CLIENT_CPU.measured(110.0),
        },
        machine=HERE,
        calibrator_us=2900 * speed,
        steal_pct=0.1,
        errors=0,
        per_second=seconds,
        invalid=(truth.failing,) if truth.failing else (),
        facts={
            "version": f"389-Directory/{truth.dirsrv} B2026.001.0000",
            **truth.stored.facts,
        },
        workload=workload_of(workload).model_copy(update={"duration_s": 1.5}),
        bench=bench_of(name, truth),
        log=f"/cache/logs/{name}.log",
    )


@dataclass(kw_only=True)
class Benches:
    """A laboratory that answers from a known truth."""

    rows: Mapping[str, Truth]
    unmeasurable: Mapping[str, str]
    begin: datetime
    taken: int = 0

    @property
    def setup(self) -> Setup:
        return Setup(machine=HERE, procedure=PROCEDURE)

    @property
    def identities(self) -> Mapping[str, str]:
        return {name: f"golden-{name}" for name in self.rows}

    def prepare_more(self, candidates: Sequence[str], starts: Starts = "kept") -> None: ...

    def ready(self, candidate: str) -> None:
        """It always is."""

    def take(self, turn: Turn) -> Iterator[Sample]:
        for candidate in turn.candidates:
            at = self.begin + timedelta(seconds=6 * self.taken)
            self.taken += 1
            sample = sample_of(candidate, self.rows[candidate], turn.workload.id, turn.number, at)
            yield sample.model_copy(update={"campaign_id": turn.campaign_id})


SEARCHED: dict[str, tuple[Campaign, list[Sample]]] = {}


def searched(
    rows: Mapping[str, Truth],
    workload: str,
    *,
    unmeasurable: Mapping[str, str] | None = None,
    metric: str = COST.name,
    begin: datetime = datetime(2026, 11, 21, 9, 0, tzinfo=UTC),
) -> tuple[Campaign, list[Sample]]:
    """Let the real campaign ask and keep, and a known truth answer; once for equal questions."""
    asked = repr((rows, workload, unmeasurable, metric, begin))
    if asked not in SEARCHED:
        SEARCHED[asked] = _searched(rows, workload, unmeasurable or {}, metric, begin)
    campaign, samples = SEARCHED[asked]
    return campaign, list(samples)


def _searched(
    rows: Mapping[str, Truth],
    workload: str,
    unmeasurable: Mapping[str, str],
    metric: str,
    begin: datetime,
) -> tuple[Campaign, list[Sample]]:
    """With names and times that are always the same."""
    question = Question(
        series_id="debian",
        line=tuple(rows),
        workload_id=workload,
        settings_id="default",
        metric=metric,
    )
    benches = Benches(rows=rows, unmeasurable=unmeasurable, begin=begin)
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder) / "store.db") as store,
    ):
        kept = CampaignOrder(
            question=question,
            workload=workload_of(workload),
            search=SearchOptions().search(
                workload_of(workload), measure_all_up_to=MEASURE_ALL_UP_TO, belief=ROWS
            ),
            lab=benches,
            store=store,
        ).run(RecordingObserver())
        taken = store.samples(campaign_id=kept.id)
    fixed = f"campaign-{workload}"
    campaign = kept.model_copy(
        update={
            "id": fixed,
            "started_at": begin.isoformat(),
            "finished_at": (begin + timedelta(seconds=6 * len(taken))).isoformat(),
        }
    )
    return campaign, [sample.model_copy(update={"campaign_id": fixed}) for sample in taken]


def reported(
    rows: Mapping[str, Truth],
    workloads: tuple[str, ...] = ("bind-random", "bind-one"),
    *,
    unmeasurable: Mapping[str, str] | None = None,
    metric: str = COST.name,
) -> ReportData:
    """The report on these rows under these loads."""
    campaigns, samples = [], []
    for number, workload in enumerate(workloads):
        begin = datetime(2026, 11, 21, 9 + number, 0, tzinfo=UTC)
        campaign, taken = searched(
            rows, workload, unmeasurable=unmeasurable, metric=metric, begin=begin
        )
        campaigns.append(campaign)
        samples += taken
    images = {name: image_of(name, truth) for name, truth in rows.items()}
    return report_data(matrix_of(rows, workloads), campaigns, samples, images)


def with_gaps() -> ReportData:
    """One row whose runs all fail, one that has no image, and published verdicts."""
    fast = {"published": {"verdict": "fast", "source": "article"}}
    rows = {
        **DEBIAN,
        "debian-11": replace(DEBIAN["debian-11"], row=fast),
        "debian-12": replace(
            DEBIAN["debian-12"], failing="the server died during the load", row=fast
        ),
        "debian-sid": replace(DEBIAN["debian-sid"], waiting=2.5, row=fast),
    }
    return reported(rows, unmeasurable={"debian-13": "its image could not be built"})


def without_difference() -> ReportData:
    """Two rows that store the same thing."""
    return reported({name: DEBIAN[name] for name in ("debian-13", "debian-sid")})


def waits() -> dict[str, Truth]:
    """Two rows that cost the same, but an operation of the second one takes longer."""
    slow = replace(DEBIAN["debian-13"], waiting=1.6)
    return {"debian-13": DEBIAN["debian-13"], "debian-sid": slow}


def decided_by(metric: str) -> ReportData:
    """The report on such rows by this metric."""
    return reported(waits(), ("bind-random",), metric=metric)
