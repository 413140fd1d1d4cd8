"""dnsperf: how to call it for exactly this load, and how to read its output.

Pure text in, values out. What this module knows of dnsperf is in docs/workloads.md.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from dsharness.loads.load_driver import (
    CUT,
    LOST,
    Extent,
    LoadReport,
    Operations,
    Schedule,
    children_s,
    unfit,
)
from dsharness.model import Latencies, Workload
from dsharness.systems.system import Endpoint
from dsproducts.bind.dns_workloads import DnsperfWorkload
from dsproducts.bind.named import DnsEndpoint

QUERIES_FILE = "queries.txt"
QUERY = "query"  # the only kind of its operations
END_S = 5  # to end by itself once its time is up, before it is ended

# dnsperf reads whole files only, so the names of the turn are repeated into a file of exactly so
# many queries. ``times`` tells what finished children used: the difference is the load's own.
_RUN = """\
queries=$(mktemp) || exit 1
while cat "$1" 2>/dev/null; do :; done | head -n "$2" >"$queries"
shift 2
times
"$@" -d "$queries"
status=$?
echo "load ended with status $status"
times
rm -f "$queries"
exit $status
"""

_NUMBER = {
    "completed": re.compile(r"^ +Queries completed: +(\d+) ", re.MULTILINE),
    "lost": re.compile(r"^ +Queries lost: +(\d+) ", re.MULTILINE),
    "seconds": re.compile(r"^ +Run time \(s\): +([\d.]+)$", re.MULTILINE),
    "status": re.compile(r"^load ended with status (\d+)$", re.MULTILINE),
}
# A connection's own latencies stand further down, under a heading of their own.
_LATENCIES = re.compile(
    r"^ +Latency bucket \(s\):.*\n((?: +[\d.]+ - [\d.]+: +\d+\n)*)", re.MULTILINE
)
_LATENCY = re.compile(r"([\d.]+) - ([\d.]+): +(\d+)")
_CODES = re.compile(r"^ +Response codes: +(.*)$", re.MULTILINE)
_CODE = re.compile(r"(\S+) (\d+) \([\d.]+%\)")
_COMPLAINT = re.compile(r"^(?:Warning|Error): (.*)$", re.MULTILINE)


class Dnsperf:
    """DNS queries over UDP or TCP."""

    grace_s: ClassVar[float] = 30.0
    speech: ClassVar[Path | None] = None

    def files(self, workload: Workload, endpoint: Endpoint, turn: int) -> Mapping[str, str]:
        """The names of one turn, in their own order; both members of a pair get the same."""
        load, server = _dns(workload, endpoint)
        numbers = list(range(load.names))
        random.Random(f"{load.id}/{turn}").shuffle(numbers)  # noqa: S311 - fairness, not secrecy
        return {QUERIES_FILE: "".join(f"{server.name(number)} A\n" for number in numbers)}

    def argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, extent: Extent
    ) -> list[str]:
        load, _ = _dns(workload, endpoint)
        # An extent in seconds reads the names again and again; operations are read once.
        queries, once = load.names, list[str]()
        if isinstance(extent, Operations):
            queries, once = extent.per_thread * load.threads, ["-n", "1"]
        pace, limit_s = list[str](), float(math.ceil(extent.limit_s))
        if isinstance(extent, Schedule):
            pace, limit_s = ["-Q", f"{extent.per_second:g}"], extent.seconds
        dnsperf = [
            "dnsperf",
            "-f",
            "inet",
            "-m",
            load.transport,
            "-s",
            endpoint.host,
            "-p",
            str(endpoint.port),
            "-T",
            str(load.threads),
            "-c",
            str(load.clients),
            "-q",
            str(load.outstanding),
            "-t",
            str(load.timeout_s),
            "-b",
            str(load.buffer_kb),
            "-l",
            f"{limit_s:g}",
            *once,
            *pace,
            "-W",
            "-O",
            "suppress=timeouts",
            "-O",
            "latency-histogram",
        ]
        bound_s = math.ceil(limit_s) + load.timeout_s + END_S
        run = ["sh", "-c", _RUN, "sh", f"{folder}/{QUERIES_FILE}", str(queries)]
        return ["timeout", "--kill-after=5", str(bound_s), *run, *dnsperf]

    def parse(self, text: str) -> LoadReport:
        """Read what dnsperf printed; what it did not print stays None and fails the gate."""
        matches = {name: pattern.search(text) for name, pattern in _NUMBER.items()}
        number = {name: float(match.group(1)) for name, match in matches.items() if match}
        answered = number.get("completed")
        return LoadReport(
            active_s=number.get("seconds"),
            total=_whole(answered),
            errors={**_wrong_answers(text), **_lost(number), **_complaints(text)},
            exit_status=_whole(number.get("status")),
            client_cpu_us=_client_cpu_us(text),
            latencies=_latencies(text),
        )

    def objections(self, report: LoadReport) -> Iterator[str]:
        if report.total and not report.latencies:
            yield "the load does not report how long queries took"
        elif (
            report.total
            and sum(latencies.count for latencies in report.latencies.values()) != report.total
        ):
            yield CUT


def _dns(workload: Workload, endpoint: Endpoint) -> tuple[DnsperfWorkload, DnsEndpoint]:
    if isinstance(workload, DnsperfWorkload) and isinstance(endpoint, DnsEndpoint):
        return workload, endpoint
    raise unfit(workload, "asks for names of a zone, which this server does not serve")


def _latencies(text: str) -> dict[str, Latencies]:
    """Each of its buckets counts as its middle: it is at most 3 % wide."""
    match = _LATENCIES.search(text)
    counts = {
        (float(low) + float(high)) / 2 * 1e6: int(count)
        for low, high, count in _LATENCY.findall(match.group(1) if match else "")
    }
    return {QUERY: Latencies.of(counts)} if counts else {}


def _wrong_answers(text: str) -> dict[str, int]:
    codes = _CODES.search(text)
    codes_found = _CODE.findall(codes.group(1)) if codes else []
    return {code: int(times) for code, times in codes_found if code != "NOERROR"}


def _lost(number: Mapping[str, float]) -> dict[str, int]:
    return {LOST: int(number["lost"])} if number.get("lost") else {}


def _complaints(text: str) -> dict[str, int]:
    """Warnings that differ only in their numbers count as one."""
    kinds = [re.sub(r"\d+", "N", complaint).strip() for complaint in _COMPLAINT.findall(text)]
    return {kind: kinds.count(kind) for kind in kinds}


def _client_cpu_us(text: str) -> float | None:
    """Asked before the run and after it: what made the queries' file is no part of the load."""
    cpu_s = children_s(text)
    return (cpu_s[1] - cpu_s[0]) * 1e6 if len(cpu_s) == 2 else None


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
