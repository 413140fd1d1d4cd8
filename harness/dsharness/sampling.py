"""One sample: a bounded load on a ready instance, and everything needed to trust it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from dsharness.calibrator import Calibrator
from dsharness.commands import writing
from dsharness.containers import Container, Options, running
from dsharness.directory import connect
from dsharness.engine import Engine
from dsharness.errors import InstanceError
from dsharness.host import CpuPlan, read_ticks
from dsharness.instance import Instance
from dsharness.model import Image, Sample, StoredPassword, Workload
from dsharness.paths import logs_home
from dsharness.readiness import shared_folder
from dsharness.validity import Evidence, objections
from dsharness.workloads import ldclt

LOAD_FOLDER = "/load"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """An instance with a load generator beside it in the same network namespace."""

    instance: Instance
    load: Container
    folder: Path
    cpus: CpuPlan
    environment: dict[str, Any]


@contextmanager
def bench(
    engine: Engine,
    instance: Instance,
    loader: Image,
    cpus: CpuPlan,
    environment: dict[str, Any],
    *,
    keep: bool = False,
) -> Iterator[Bench]:
    """Put the pinned load generator next to a server; it reaches nothing but its loopback."""
    golden = instance.golden
    with shared_folder() as folder:
        options = Options(
            network=f"container:{instance.container.name}",
            cpus=cpus.load if cpus.pinned else (),
            volumes=((folder, LOAD_FOLDER, "ro"),),
        )
        with running(
            engine,
            loader.reference,
            "sleep",
            "infinity",
            purpose=f"load-{golden.image.row_id}",
            log=logs_home() / "load" / f"{golden.image.row_id}-{golden.key}.log",
            options=options,
            keep=keep,
        ) as load:
            versions = {
                "image": golden.image.key,
                "golden": golden.key,
                "loader": loader.key,
                "notable": golden.image.notable,
                "server_says": _version(instance),
                "cpu_meter": instance.meter.source,
            }
            yield Bench(
                instance=instance,
                load=load,
                folder=folder,
                cpus=cpus,
                environment={**environment, **versions},
            )


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """What the server says of itself at one moment; None where it no longer answers."""

    binds: int | None
    cpu_us: float | None
    stored: StoredPassword | None


def take_sample(at: Bench, workload: Workload, *, campaign_id: str, turn: int) -> Sample:
    """Run the load once. Never raises for a run that went wrong: the sample says why."""
    instance = at.instance
    users = at.folder / ldclt.USERS_FILE
    with writing(users):
        users.write_text(ldclt.users_file(workload, instance.site, turn), encoding="utf-8")
    argv = ldclt.argv(workload, instance.site, LOAD_FOLDER)
    limit_s = workload.warmup_s + workload.duration_s + ldclt.GRACE_S + 15
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    before, ticks = _read(instance, count_own=1), read_ticks(at.cpus.server)
    begin = time.monotonic()
    with Calibrator(at.cpus.server) as calibrator:
        done = at.load.execute(*argv, limit_s=limit_s)
    elapsed_s = time.monotonic() - begin
    steal_pct = ticks.steal_pct_until(read_ticks(at.cpus.server))
    alive = instance.alive
    after = (
        _read(instance, count_own=0) if alive else _Reading(binds=None, cpu_us=None, stored=None)
    )
    report = ldclt.parse(done.stdout)
    server_cpu_us = _difference(after.cpu_us, before.cpu_us)
    evidence = Evidence(
        workload=workload,
        report=report,
        duration_s=elapsed_s,
        server_alive=alive,
        server_binds=_difference(after.binds, before.binds),
        server_cpu_us=server_cpu_us,
        load_cpus=len(at.cpus.load),
        pinned=at.cpus.pinned,
        steal_pct=steal_pct,
        expected=instance.golden.stored,
        stored=after.stored,
    )
    if not alive:
        instance.last_words()
    counted = report.per_second[workload.warmup_s :]
    operations = report.total or 0
    return Sample(
        id=str(uuid.uuid4()),
        campaign_id=campaign_id,
        row_id=instance.golden.image.row_id,
        arm_id=instance.golden.seed.arm.id,
        workload_id=workload.id,
        image_key=instance.golden.image.key,
        started_at=started_at,
        duration_s=elapsed_s,
        operations=operations,
        rate_per_s=sum(counted) / len(counted) if counted else 0.0,
        server_cpu_us_per_op=_per(server_cpu_us, operations),
        client_cpu_us_per_op=_per(report.client_cpu_us, operations),
        calibrator_us=calibrator.cpu_us,
        steal_pct=steal_pct,
        errors=sum(report.errors.values()),
        per_second=report.per_second,
        invalid=objections(evidence),
        stored=after.stored,
        workload={**workload.model_dump(mode="json"), "turn": turn},
        environment=at.environment,
        log=str(at.load.log if alive else instance.container.log),
    )


def _read(instance: Instance, *, count_own: int) -> _Reading:
    """Count, CPU time and stored password; ``count_own`` leaves out our next own bind."""
    try:
        with connect(instance.socket, instance.site) as directory:
            binds = directory.simple_binds() + count_own
            stored = directory.stored_password(0)
        return _Reading(binds=binds, cpu_us=instance.meter.used_us(), stored=stored)
    except (InstanceError, OSError):
        return _Reading(binds=None, cpu_us=None, stored=None)


def _version(instance: Instance) -> str:
    with connect(instance.socket, instance.site) as directory:
        return directory.version()


Number = TypeVar("Number", int, float)


def _difference(later: Number | None, earlier: Number | None) -> Number | None:
    return None if later is None or earlier is None else later - earlier


def _per(amount: float | None, operations: int) -> float | None:
    return amount / operations if amount is not None and operations else None
