"""The gate that every sample passes, or it is INCONCLUSIVE with these reasons. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsharness.model import StoredPassword, Workload
from dsharness.workloads.ldclt import Report

COUNT_TOLERANCE = 0.01
SHARED_CLIENT_SHARE = 0.30  # of the server's CPU time, where both share the CPUs
OWN_CLIENT_SHARE = 0.90  # of the load's own CPUs, where each side has its own
STEAL_LIMIT_PCT = 3.0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything the gate looks at."""

    workload: Workload
    report: Report
    duration_s: float
    server_alive: bool
    server_binds: int | None
    server_cpu_us: float | None
    load_cpus: int
    pinned: bool
    steal_pct: float
    expected: StoredPassword
    stored: StoredPassword | None


def objections(evidence: Evidence) -> tuple[str, ...]:
    """Why a run may not be used; empty when it may."""
    return tuple(
        reason
        for check in (_load, _seconds, _server, _counts, _client, _machine)
        for reason in check(evidence)
    )


def _load(evidence: Evidence) -> Iterator[str]:
    report = evidence.report
    for error, times in report.errors.items():
        yield f"the load met error {error} {times} times"
    if report.dead_threads:
        yield f"{report.dead_threads} of {evidence.workload.threads} load threads died"
    if report.inactive:
        yield "the load saw no activity for a while"
    if report.exit_status is None:
        yield "the load did not finish"
    elif report.exit_status != 0:
        yield f"the load ended with status {report.exit_status}"


def _seconds(evidence: Evidence) -> Iterator[str]:
    expected = evidence.workload.warmup_s + evidence.workload.duration_s
    seconds = evidence.report.per_second
    if len(seconds) != expected:
        yield f"{len(seconds)} one-second readings, expected {expected}"
    if any(rate <= 0 for rate in seconds[evidence.workload.warmup_s :]):
        yield "a second without a single operation"


def _server(evidence: Evidence) -> Iterator[str]:
    if not evidence.server_alive:
        yield "the server died during the load"
        return
    if evidence.server_cpu_us is None:
        yield "the server's CPU time could not be read"
    elif evidence.server_cpu_us <= 0:
        yield "the server used no CPU time"
    if evidence.stored is None:
        yield "the stored password could not be read back"
    elif evidence.stored != evidence.expected:
        yield f"users are stored as {spell(evidence.stored)}, not {spell(evidence.expected)}"


def _counts(evidence: Evidence) -> Iterator[str]:
    total, counted = evidence.report.total, evidence.server_binds
    if not total:
        yield "the load reports no operation"
    elif counted is not None:
        # A thread may have a bind under way that only one side counts, at either end of the run.
        allowed = max(COUNT_TOLERANCE * total, 2 * evidence.workload.threads)
        if abs(counted - total) > allowed:
            yield f"the server counted {counted} binds, the load {total}"
    elif evidence.server_alive:
        yield "the server's own count of binds could not be read"


def _client(evidence: Evidence) -> Iterator[str]:
    client, server = evidence.report.client_cpu_us, evidence.server_cpu_us
    if client is None:
        yield "the load's CPU time could not be read"
    elif evidence.pinned:
        share = client / (evidence.duration_s * 1e6 * max(1, evidence.load_cpus))
        if share > OWN_CLIENT_SHARE:
            yield f"the load used {share:.0%} of its CPUs: it was the bottleneck"
    elif server and client / server > SHARED_CLIENT_SHARE:
        yield f"the load used {client / server:.0%} of the server's CPU time on the same CPUs"


def _machine(evidence: Evidence) -> Iterator[str]:
    if evidence.steal_pct > STEAL_LIMIT_PCT:
        yield f"the hypervisor took {evidence.steal_pct:.1f} % of the server's CPUs away"


def spell(stored: StoredPassword) -> str:
    return stored.scheme + (f" with {stored.rounds} rounds" if stored.rounds else "")
