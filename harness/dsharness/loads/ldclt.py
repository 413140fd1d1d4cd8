"""ldclt: how to call it for exactly this load, and how to read its output.

Pure text in, values out. The traps this module knows are listed in docs/workloads.md: above all,
that ldclt's exit status proves nothing.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from dsharness.errors import WorkloadError
from dsharness.loads.load_driver import Extent, LoadReport, Operations, children_s, last_of
from dsharness.model import DirectoryOperation, LdcltWorkload, UserOrder, Workload
from dsharness.systems.ldap.directory import USER_MASK, Users, user_name
from dsharness.systems.ldap.directory_system import LdapEndpoint, OwnDirectory
from dsharness.systems.system import Endpoint

USERS_FILE = "users.tsv"
CHANGED = 12  # characters of a new value

# ldclt sleeps whole seconds between two looks at its threads. A SIGQUIT ends such a sleep (and
# prints the statistics so far), so the script wakes it as soon as its threads have finished. It
# also prints the uptime at which they began and finished, which no change of the clock disturbs;
# ``times`` prints what the finished children used: client CPU without any cgroup.
_WATCHED = """\
"$@" &
load=$!
begun=
while [ -d /proc/$load/task ]; do
    set -- /proc/$load/task/*
    read -r uptime _ </proc/uptime
    if [ $# -gt 1 ]; then
        [ "$begun" ] || echo "load begun at $uptime"
        begun=yes
    elif [ "$begun" ]; then
        [ "$begun" = yes ] && echo "load finished at $uptime"
        begun=done
        kill -QUIT "$load" 2>/dev/null
    fi
    sleep 0.04
done
wait "$load"
status=$?
times
exit $status
"""

# It repeats a refused user's password, and what a load says is kept in a log.
HIDE = '"$@" 2>&1 | sed "s/ldap_simple_bind_s (.*), error=/ldap_simple_bind_s (…), error=/"'


class Ldclt:
    """The driver of ldclt: binds, searches and changes of a directory's users."""

    grace_s: ClassVar[float] = 45.0  # it waits up to 30 s for an answer before it gives up
    speech: ClassVar[Path | None] = None

    def files(self, workload: Workload, endpoint: Endpoint, turn: int) -> Mapping[str, str]:
        directory, users = _directory(endpoint), _users(workload)
        if users.operation is not DirectoryOperation.BIND:
            return {}
        return {USERS_FILE: users_file(users, directory.users, turn)}

    def argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, extent: Extent
    ) -> list[str]:
        directory, users = _directory(endpoint), _users(workload)
        if users.operation is DirectoryOperation.BIND:
            arguments = _binds(users, directory, folder)
        else:
            arguments = _lookups(users, directory)
        load = [
            "ldclt",
            "-h",
            endpoint.host,
            "-p",
            str(endpoint.port),
            "-n",
            str(users.threads),
            *_flags(extent),
            "-e",
            "sampinterval=1,timestamp",
            *arguments,
        ]
        bound_s = math.ceil(extent.limit_s + self.grace_s)
        hidden = [] if isinstance(directory, OwnDirectory) else ["sh", "-c", HIDE, "sh"]
        bound = ["timeout", "--kill-after=5", str(bound_s)]
        return [*hidden, *bound, "sh", "-c", _WATCHED, "sh", *load]

    def parse(self, text: str) -> LoadReport:
        """What ldclt did not print stays None and fails the gate."""
        total, status = last_of(_GLOBAL, text), last_of(_STATUS, text)
        cpu_s = children_s(text)
        active = [float(moment) for moment in _ACTIVE.findall(text)]
        return LoadReport(
            active_s=active[1] - active[0] if len(active) == 2 else None,
            per_second=tuple(float(rate) for rate, _ in _SECOND.findall(text)),
            total=int(total) if total else None,
            errors={
                f"{code} ({words})".lstrip(): int(count)
                for code, words, count in _ERROR.findall(text)
            },
            exit_status=int(status) if status else None,
            client_cpu_us=cpu_s[-1] * 1e6 if cpu_s else None,
        )

    def objections(self, report: LoadReport) -> Iterator[str]:
        """None beyond errors and counts."""
        del report
        yield from ()


def users_file(workload: LdcltWorkload, users: Users, turn: int) -> str:
    """The users of one run, one per line, in this turn's own order.

    ldclt never seeds its random numbers: without a fresh order each run would bind as the same
    few users, which any cache of results would have after the first run. Both members of a
    pair share a turn and so get exactly the same load.
    """
    numbers = list(range(workload.distinct_users))
    random.Random(f"{workload.id}/{turn}").shuffle(numbers)  # noqa: S311 - fairness, not secrecy
    return "".join(f"{user.dn}\t{user.password}\n" for user in map(users.user, numbers))


def _binds(workload: LdcltWorkload, directory: LdapEndpoint, folder: str) -> list[str]:
    """``bindeach`` and ``bindonly`` belong together.

    ``bindonly`` alone binds once and then counts an empty loop.
    """
    mode = ["-e", "bindeach,bindonly"]
    if workload.order is UserOrder.REPEAT:
        user = directory.users.user(0)
        return [*mode, "-D", user.dn, "-w", user.password]
    return [*mode, "-e", f"randombinddnfromfile={folder}/{USERS_FILE}"]


def _lookups(workload: LdcltWorkload, directory: LdapEndpoint) -> list[str]:
    """As the manager, whose bind is cheap in every version: each thread binds once.

    ldclt puts a number of the range in the place of the Xs.
    """
    if not isinstance(directory, OwnDirectory):
        raise WorkloadError(f"workload {workload.id!r} is only for directories that the lab made")
    site = directory.users
    name, walk = f"uid={user_name(0)}", []
    if workload.order is UserOrder.RANDOM:
        name = f"uid={USER_MASK}"
        walk = ["-e", "random", "-r", "0", "-R", str(workload.distinct_users - 1)]
    match workload.operation:
        case DirectoryOperation.MODIFY:
            arguments = ["-e", f"attreplace=description:random{'X' * CHANGED}", "-f", name]
        case _:
            arguments = ["-e", "esearch", "-f", f"({name})"]
    return [*arguments, *walk, "-b", site.people, "-D", site.manager, "-w", site.manager_password]


def _flags(extent: Extent) -> list[str]:
    if isinstance(extent, Operations):
        return ["-T", str(extent.per_thread)]
    return ["-N", str(extent.seconds)]


def _directory(endpoint: Endpoint) -> LdapEndpoint:
    if not isinstance(endpoint, LdapEndpoint):
        raise WorkloadError(
            f"ldclt cannot drive what answers on port {endpoint.port}: it is not a directory server"
        )
    return endpoint


def _users(workload: Workload) -> LdcltWorkload:
    if not isinstance(workload, LdcltWorkload):
        raise WorkloadError(f"workload {workload.id!r} is not ldclt's but {workload.tool}'s")
    return workload


_SECOND = re.compile(r"^\d+\|.*Average rate:.*\(\s*([\d.]+)/sec\), total:\s*(\d+)", re.MULTILINE)
_GLOBAL = re.compile(r"Global average rate:.*, total:\s*(\d+)")
_ERROR = re.compile(r"Global (?:illegal )?errors?\s+(-?\d*)\s*\((.*)\) occurs\s+(\d+) times")
_STATUS = re.compile(r"Exit status (\d+) - ")
_ACTIVE = re.compile(r"^load (?:begun|finished) at ([\d.]+)$", re.MULTILINE)
