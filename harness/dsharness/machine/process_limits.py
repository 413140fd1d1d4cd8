"""Limits that this process was started with, and hands down to every container that it starts."""

from __future__ import annotations

import resource
from dataclasses import dataclass

from dsharness.errors import EngineError

MIB, GIB = 1 << 20, 1 << 30
FILES, PROCESSES = 20_000, 4096  # that a container may have, where this process may give so many


@dataclass(frozen=True, kw_only=True)
class ProcessLimit:
    """One of ``ulimit``, and the least with which a server can be measured."""

    kind: int
    flag: str
    what: str
    least: int
    unit: tuple[int, str] = (1, "")

    def in_words(self, value: int) -> str:
        size, name = self.unit
        return f"{value // size:,}{name}"


LIMITS = (
    # A server may have a table of 1,024; the lab itself needs some for each container.
    ProcessLimit(kind=resource.RLIMIT_NOFILE, flag="-n", what="open files", least=1024),
    ProcessLimit(kind=resource.RLIMIT_NPROC, flag="-u", what="processes", least=512),
    ProcessLimit(
        kind=resource.RLIMIT_FSIZE,
        flag="-f",
        what="bytes of a file",
        least=4 * GIB,
        unit=(MIB, " MiB"),
    ),
    ProcessLimit(
        kind=resource.RLIMIT_AS,
        flag="-v",
        what="memory of a process",
        least=4 * GIB,
        unit=(MIB, " MiB"),
    ),
    ProcessLimit(
        kind=resource.RLIMIT_CPU, flag="-t", what="CPU time", least=24 * 3600, unit=(1, " s")
    ),
)


def hard_limits() -> tuple[int, int]:
    """Files and processes that this process may hand down: no more than its own hard limits."""
    bounds = ((resource.RLIMIT_NOFILE, FILES), (resource.RLIMIT_NPROC, PROCESSES))
    hard = [(resource.getrlimit(kind)[1], most) for kind, most in bounds]
    files, processes = (
        most if limit == resource.RLIM_INFINITY else min(limit, most) for limit, most in hard
    )
    return files, processes


def refuse_low_limits() -> None:
    """Raise EngineError for a limit that would be blamed on every server that is started."""
    for limit in LIMITS:
        soft, _ = resource.getrlimit(limit.kind)
        if soft != resource.RLIM_INFINITY and soft < limit.least:
            raise EngineError(
                f"this shell allows {limit.in_words(soft)} for {limit.what} "
                f"(`ulimit {limit.flag}`): no server can be measured with less than "
                f"{limit.in_words(limit.least)}",
                hint=f"start it where `ulimit {limit.flag}` is higher: a new login, "
                "/etc/security/limits.conf, or the Limit... lines of a service",
            )
