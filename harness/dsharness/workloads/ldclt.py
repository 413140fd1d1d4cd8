"""ldclt: how to call it for exactly the load that is meant, and how to read what it says.

Pure text in, values out. The traps this module knows are listed in docs/workloads.md: above all,
that ldclt's exit status proves nothing.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from dsharness.directory import Site
from dsharness.model import Order, Workload

HOST = "127.0.0.1"
USERS_FILE = "users.tsv"
GRACE_S = 45  # ldclt waits up to 30 s for an answer before it gives up

# ``times`` prints what the finished children used: client CPU without any cgroup.
_TIMED = '"$@"; status=$?; times; exit $status'


@dataclass(frozen=True, kw_only=True)
class Report:
    """What one run of ldclt said."""

    per_second: tuple[float, ...] = ()
    total: int | None = None
    errors: dict[str, int]
    dead_threads: int = 0
    inactive: bool = False
    exit_status: int | None = None
    client_cpu_us: float | None = None


def argv(workload: Workload, site: Site, folder: str) -> list[str]:
    """One bounded run; ``bindeach`` and ``bindonly`` belong together.

    ``bindonly`` alone binds once and then counts an empty loop.
    """
    seconds = workload.warmup_s + workload.duration_s
    load = [
        "ldclt", "-h", HOST, "-p", str(site.port), "-n", str(workload.threads),
        "-N", str(seconds), "-e", "bindeach,bindonly,sampinterval=1,timestamp",
    ]  # fmt: skip
    match workload.order:
        case Order.REPEAT:
            load += ["-D", site.user_dn(0), "-w", site.user_password]
        case Order.RANDOM:
            load += ["-e", f"randombinddnfromfile={folder}/{USERS_FILE}"]
    bounded = ["timeout", "--kill-after=5", str(seconds + GRACE_S), *load]
    return ["sh", "-c", _TIMED, "sh", *bounded]


def users_file(workload: Workload, site: Site, turn: int) -> str:
    """The users of one run, one a line, in an order of this turn's own.

    ldclt never seeds its random numbers: without a fresh order each run would bind as the same
    few users, which any cache of results would have learnt by the second run. Both members of a
    pair share a turn and so get exactly the same load.
    """
    numbers = list(range(workload.distinct_users))
    random.Random(f"{workload.id}/{turn}").shuffle(numbers)  # noqa: S311 - fairness, not secrecy
    return "".join(f"{site.user_dn(number)}\t{site.user_password}\n" for number in numbers)


_SECOND = re.compile(r"^\d+\|.*Average rate:.*\(\s*([\d.]+)/sec\), total:\s*(\d+)", re.MULTILINE)
_GLOBAL = re.compile(r"Global average rate:.*, total:\s*(\d+)")
_ERROR = re.compile(r"Global (?:illegal )?errors?\s+(-?\d*)\s*\((.*)\) occurs\s+(\d+) times")
_DEATH = re.compile(r"T(\d+): thread is dead")
_IDLE = re.compile(r'Global number times "no activity" reports:\s*(\S+)')
_STATUS = re.compile(r"Exit status (\d+) - ")
_TIMES = re.compile(r"^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$", re.MULTILINE)


def parse(text: str) -> Report:
    """Read what ldclt printed; what it did not print stays None and fails the gate."""
    total, idle, status = (_last(pattern, text) for pattern in (_GLOBAL, _IDLE, _STATUS))
    times = _TIMES.findall(text)
    return Report(
        per_second=tuple(float(rate) for rate, _ in _SECOND.findall(text)),
        total=int(total) if total else None,
        errors={
            f"{code} ({words})".lstrip(): int(count) for code, words, count in _ERROR.findall(text)
        },
        dead_threads=_dead_threads(text),
        inactive=idle is not None and idle != "never",
        exit_status=int(status) if status else None,
        client_cpu_us=_seconds(times[-1]) * 1e6 if len(times) >= 2 else None,
    )


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    """The last of several: ldclt sums up anew for each thread that meets its error limit."""
    found: list[str] = pattern.findall(text)
    return found[-1] if found else None


def _dead_threads(text: str) -> int:
    """Threads that died before the last reading.

    ldclt's own "Global number of dead threads" will not do: at the end of a good run it counts
    every thread that was quick to stop.
    """
    readings = list(_SECOND.finditer(text))
    during = text[: readings[-1].start()] if readings else text
    return len(set(_DEATH.findall(during)))


def _seconds(fields: tuple[str, str, str, str]) -> float:
    user_minutes, user_seconds, system_minutes, system_seconds = map(float, fields)
    return 60 * (user_minutes + system_minutes) + user_seconds + system_seconds
