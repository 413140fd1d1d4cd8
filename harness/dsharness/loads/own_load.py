"""The lab's own load: what its programs have in common, whatever they speak.

Open loops, answers that are checked one by one, and how long each took. A program (in
``own_load/``) sends what a product has encoded; it is compiled by the lab together with the
product's ``speech``, which knows how the protocol's messages are framed.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from dsharness.loads.load_driver import (
    CUT,
    OVER_TIME,
    Extent,
    LoadReport,
    Operations,
    Schedule,
    SourcePorts,
    Worker,
    last_of,
)
from dsharness.model import Latencies, Workload
from dsharness.systems.system import Endpoint

PROGRAM = Path(__file__).with_suffix("")
SPEECH = "speech.rs"  # what a product's file is called where the program is compiled
REQUESTS_FILE = "requests.txt"
MOST_REQUESTS, MOST_BYTES = 20_000, 32 << 20  # of one file; it is read again from its beginning
ADDRESSES = 12  # of each of several workers
LAST_S = 10.0  # for the last answers, once the time is over in which operations begin
LATE_US = 1000.0  # half of the operations begun later than this: the load did not keep its schedule
CONNECT = "0 - - connect"  # in place of a step's bytes: it takes a new connection

_RUN = """\
"$@"
status=$?
echo "load ended with status $status"
exit $status
"""


def program_files(speech: Path) -> dict[str, str]:
    """The sources of the program that speaks so, by name."""
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(PROGRAM.glob("*.rs"))}
    return files | {SPEECH: speech.read_text(encoding="utf-8")}


class OwnLoad(ABC):
    """A load of the lab's own; a product says what is sent, and in which protocol."""

    name: ClassVar[str]  # of the program
    usual: ClassVar[str]  # the workload of the matrix that `dsbisect measure load` takes by itself
    most_workers: ClassVar[int] = 20
    # It waits up to 30 s until a connection is bound, and for the end of an import.
    grace_s: ClassVar[float] = 65.0
    speech: ClassVar[Path | None]

    @abstractmethod
    def lines(self, workload: Workload, endpoint: Endpoint, turn: int) -> Iterable[str]:
        """The requests of one turn, in their own order; both members of a pair get the same.

        What ``own_load/plan.rs`` reads: KIND, and for each step RESULT ENTRIES PAGE HEX. With
        KIND/NAME,NAME... the steps are timed one by one, too.
        WorkloadError when this workload is not for such a system.
        """

    @abstractmethod
    def server(self, workload: Workload, endpoint: Endpoint) -> tuple[str, list[str]]:
        """Where connections go, and what options those have that are not the load's own."""

    def files(self, workload: Workload, endpoint: Endpoint, turn: int) -> Mapping[str, str]:
        lines = self.lines(workload, endpoint, turn)
        return {REQUESTS_FILE: "".join(f"{line}\n" for line in lines)}

    def argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, extent: Extent
    ) -> list[str]:
        match extent:
            case Operations():
                much = ["--operations", str(extent.total(workload.threads))]
            case Schedule():
                count = str(extent.total(workload.threads))
                much = ["--rate", f"{extent.per_second:g}", "--operations", count]
            case _:
                much = ["--seconds", str(extent.seconds)]
        return self._run(workload, endpoint, folder, 2 * extent.limit_s + 1, much)

    def live_argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, worker: Worker
    ) -> list[str]:
        """A block of source addresses is the worker's own."""
        first = 1 + (worker.number - 1) * ADDRESSES
        much = ["--seconds", f"{worker.seconds:g}", "--tells", "1"]
        much += ["--first", str(first), "--addresses", str(ADDRESSES)]
        if worker.per_second is not None:
            much += ["--rate", f"{worker.per_second:g}"]
        return self._run(workload, endpoint, folder, worker.seconds + LAST_S, much)

    def _run(
        self, workload: Workload, endpoint: Endpoint, folder: str, limit_s: float, much: list[str]
    ) -> list[str]:
        url, server_words = self.server(workload, endpoint)
        patience = ["timeout", "--kill-after=5", f"{limit_s + self.grace_s:.0f}"]
        load = [self.name, url, f"{folder}/{REQUESTS_FILE}", "--connections", str(workload.threads)]
        return [
            *patience,
            "sh",
            "-c",
            _RUN,
            "sh",
            *load,
            *server_words,
            "--limit",
            f"{limit_s:g}",
            *much,
        ]

    def parse(self, text: str) -> LoadReport:
        total, seconds, cpu_us, starved_us, disturbances, status = (
            last_of(pattern, text)
            for pattern in (_TOTAL, _SECONDS, _CPU, _STARVED, _DISTURBANCES, _STATUS)
        )
        failed = dict.fromkeys(_FAILED.findall(text), 1)
        return LoadReport(
            active_s=float(seconds) if seconds else None,
            total=int(total) if total else None,
            errors={words: int(count) for count, words in _ERROR.findall(text)} | failed,
            exit_status=int(status) if status else None,
            client_cpu_us=float(cpu_us) if cpu_us else None,
            starved_us=float(starved_us or 0),
            latencies=_times(_TIME, text),
            sent=_times(_SENT, text),
            steps=_times(_STEP, text),
            disturbances=int(disturbances) if disturbances else None,
            ports=_ports(text),
            late=Latencies.of(late) if (late := _late(text)) else None,
            verified="\nfinished\n" in text,
            expired=OVER_TIME in text,
        )

    def objections(self, report: LoadReport) -> Iterator[str]:
        yield from (words for words in report.errors if words.startswith(_SHORT))
        if report.total and not report.verified:
            yield CUT
        if report.disturbances == 0:
            yield "what should disturb the load had no answer"
        late_us = report.late.at_us(50) if report.late else 0.0
        if late_us > LATE_US:
            yield f"the load began half of its operations more than {late_us / 1000:.1f} ms late"


_TOTAL = re.compile(r"^operations (\d+)$", re.MULTILINE)
_SECONDS = re.compile(r"^seconds ([\d.]+)$", re.MULTILINE)
_CPU = re.compile(r"^cpu (\d+)$", re.MULTILINE)
_STARVED = re.compile(r"^starved (\d+)$", re.MULTILINE)
_DISTURBANCES = re.compile(r"^disturbances (\d+)$", re.MULTILINE)
_STATUS = re.compile(r"^load ended with status (\d+)$", re.MULTILINE)
_ERROR = re.compile(r"^error (\d+) (.*)$", re.MULTILINE)
_FAILED = re.compile(r"^failed (.*)$", re.MULTILINE)
_TIME = re.compile(r"^time (\S+) (\d+) (\d+)$", re.MULTILINE)
_SENT = re.compile(r"^sent (\S+) (\d+) (\d+)$", re.MULTILINE)
_STEP = re.compile(r"^step (\S+) (\d+) (\d+)$", re.MULTILINE)
_PORTS = re.compile(r"^ports (\d+) addresses (\d+) waiting (\d+) (\d+)$", re.MULTILINE)
_SHORT = "too few ports"
_LATE = re.compile(r"^late (\d+) (\d+)$", re.MULTILINE)


def _ports(text: str) -> SourcePorts | None:
    match = _PORTS.search(text)
    if match is None:
        return None
    per_address, addresses, before, after = map(int, match.groups())
    return SourcePorts(
        of_address=per_address, addresses=addresses, waiting_before=before, waiting_after=after
    )


def _times(line: re.Pattern[str], text: str) -> dict[str, Latencies]:
    """For each kind how many operations took so long."""
    counts_by_kind: dict[str, dict[float, int]] = {}
    for kind, time_us, count in line.findall(text):
        counts_by_kind.setdefault(kind, {})[float(time_us)] = int(count)
    return {kind: Latencies.of(counts) for kind, counts in counts_by_kind.items()}


def _late(text: str) -> dict[float, int]:
    return {float(late_us): int(count) for late_us, count in _LATE.findall(text)}
