"""Parameters of a workload that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from dsharness.model import DnsperfWorkload, LdcltWorkload, UserOrder, Workload
from dsharness.yaml_files.problems import Problem


def workload_contradictions(index: int, load: Workload) -> Iterator[Problem]:
    """A load that cannot be applied as it says."""
    match load:
        case LdcltWorkload():
            yield from _users(index, load)
        case DnsperfWorkload():
            yield from _sockets(index, load)


def _sockets(index: int, load: DnsperfWorkload) -> Iterator[Problem]:
    """Dnsperf shares the queries that wait out among its sockets: each needs one."""
    if load.outstanding < load.clients:
        yield Problem(
            path=("workloads", index, "outstanding"),
            value=str(load.outstanding),
            allowed=f"at least the {load.clients} sockets that queries are sent from (`clients`)",
        )


def _users(index: int, load: LdcltWorkload) -> Iterator[Problem]:
    """A load that binds as users it does not have, or walks over one user at random."""
    at = ("workloads", index, "distinct_users")
    if load.distinct_users > load.users:
        yield Problem(
            path=at,
            value=str(load.distinct_users),
            allowed=f"at most the {load.users} users that are seeded (`users`)",
        )
    if load.order is UserOrder.REPEAT and load.distinct_users > 1:
        yield Problem(
            path=at,
            value=str(load.distinct_users),
            allowed="1 with `order: repeat`, which binds one user again and again",
        )
