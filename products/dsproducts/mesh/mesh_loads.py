"""How iperf3 and ping are called between peers of a mesh, how peers are restarted, what they say.

All of it runs by ``mesh-load`` in the load's container, which has no privilege: the addresses of
the peers are in its network. So what it uses is its own, and the peers' CPU time is theirs alone.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from dsharness.loads.load_driver import (
    CUT,
    LOST,
    Extent,
    LoadReport,
    Operations,
    Schedule,
    Seconds,
    children_s,
    last_of,
    unfit,
)
from dsharness.model import Latencies, Workload
from dsharness.systems.system import Endpoint
from dsproducts.mesh.mesh_peers import MeshEndpoint
from dsproducts.mesh.mesh_workloads import (
    BLOCK_BYTES,
    EchoWorkload,
    RestartsWorkload,
    ThroughputWorkload,
)

SCRIPT = Path(__file__).with_name("mesh-load")
END_S = 5  # to end by itself once its time is up, before it is ended
CONGESTION = "reno"  # every kernel has it, and lets everybody choose it
STALLED_MS = 10_000  # without a byte: a mesh that does not bring it back is not slow
STOPPING_S = 12.0  # of a restart, until it is seen that the peer is gone and the others are not

_STATUS = re.compile(r"^load ended with status (\d+)$", re.MULTILINE)
_FAILED = re.compile(r"^failed (.{1,200})$", re.MULTILINE)


W = TypeVar("W", bound=Workload)


class MeshLoad(ABC, Generic[W]):
    """The part that is the same for all three."""

    kind: type[W]
    grace_s: ClassVar[float] = 30.0
    speech: ClassVar[Path | None] = None

    def files(self, workload: Workload, endpoint: Endpoint, turn: int) -> Mapping[str, str]:
        del turn
        self._fitting(workload, endpoint)
        return {SCRIPT.name: SCRIPT.read_text(encoding="utf-8")}

    def argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, extent: Extent
    ) -> list[str]:
        limit_s, words = self.words(self._fitting(workload, endpoint), extent)
        bound = ["timeout", "--kill-after=5", str(math.ceil(limit_s) + END_S)]
        return [*bound, "bash", f"{folder}/{SCRIPT.name}", *words]

    def _fitting(self, workload: Workload, endpoint: Endpoint) -> W:
        if isinstance(workload, self.kind) and isinstance(endpoint, MeshEndpoint):
            return workload
        raise unfit(workload, "is for peers of a mesh, which this server is not")

    @abstractmethod
    def words(self, load: W, extent: Extent) -> tuple[float, list[str]]:
        """Within how many seconds it ends, and the words for ``mesh-load``."""

    @abstractmethod
    def parse(self, text: str) -> LoadReport: ...

    def objections(self, report: LoadReport) -> Iterator[str]:
        counts = [latencies.count for latencies in report.latencies.values()]
        if report.total and counts and sum(counts) != report.total:
            yield CUT


def _status(text: str) -> int | None:
    status = last_of(_STATUS, text)
    return None if status is None else int(status)


def _cpu_us(text: str) -> float | None:
    cpu_s = children_s(text)
    return (cpu_s[1] - cpu_s[0]) * 1e6 if len(cpu_s) == 2 else None


_RECEIVED = re.compile(
    r'"sum_received":\s*\{[^{}]{0,400}?"seconds":\s*([\d.]{1,20}),\s*"bytes":\s*(\d{1,18}),'
)
_SECOND = re.compile(
    r'"sum":\s*\{[^{}]{0,400}?"seconds":\s*([\d.]{1,20}),\s*"bytes":\s*(\d{1,18}),'
)
_ERROR = re.compile(r'^\s*"error":\s*"(.{1,200})"$', re.MULTILINE)
WHOLE_S = 0.9  # of an interval of one second: the last one is as long as it comes


class Iperf3(MeshLoad[ThroughputWorkload]):
    """Bytes over TCP. The receiver is the client, which ends when it has all that it asked for."""

    kind = ThroughputWorkload

    def words(self, load: ThroughputWorkload, extent: Extent) -> tuple[float, list[str]]:
        limit_s, pace = extent.limit_s, list[str]()
        if isinstance(extent, Seconds):
            much = ["--time", str(extent.seconds)]
        else:
            much = ["--bytes", str(extent.total(load.threads) * BLOCK_BYTES)]
        if isinstance(extent, Schedule):
            bits = 8 * BLOCK_BYTES * extent.per_second / load.threads
            pace = ["--bitrate", f"{bits:.0f}"]
        iperf3 = ["--reverse", "--json", "--length", str(BLOCK_BYTES)]
        iperf3 += ["--parallel", str(load.threads), "--window", f"{load.window_kb}K"]
        iperf3 += ["--congestion", CONGESTION]
        iperf3 += ["--connect-timeout", str(STALLED_MS), "--rcv-timeout", str(STALLED_MS)]
        return limit_s, ["throughput", "1", str(load.peers), *iperf3, *much, *pace]

    def parse(self, text: str) -> LoadReport:
        received = _RECEIVED.search(text)
        errors = Counter(re.sub(r"\d+", "N", words) for words in _ERROR.findall(text))
        return LoadReport(
            active_s=float(received[1]) if received else None,
            per_second=tuple(
                int(count) / BLOCK_BYTES / float(seconds)
                for seconds, count in _SECOND.findall(text)
                if float(seconds) > WHOLE_S
            ),
            total=int(received[2]) // BLOCK_BYTES if received else None,
            errors=errors,
            exit_status=_status(text),
            client_cpu_us=_cpu_us(text),
        )


_ANSWER = re.compile(
    r"^\d+ bytes from [\d.]+: icmp_seq=\d+ ttl=\d+ time=([\d.]{1,12}) ms", re.MULTILINE
)
_SENT = re.compile(
    r"^(\d{1,12}) packets transmitted, (\d{1,12}) received,.* time (\d{1,12})ms$", re.MULTILINE
)
_WRONG = re.compile(r"^wrong (?:data byte|total length)", re.MULTILINE)


class Ping(MeshLoad[EchoWorkload]):
    """Echoes, the next one as soon as one is answered; by a schedule at fixed times."""

    kind = EchoWorkload

    def words(self, load: EchoWorkload, extent: Extent) -> tuple[float, list[str]]:
        match extent:
            case Operations():
                much = ["-A", "-c", str(extent.total(1))]
            case Schedule():
                much = ["-i", f"{1 / extent.per_second:g}", "-c", str(extent.total(1))]
            case Seconds():
                much = ["-A", "-w", str(extent.seconds)]
        disturbed = "yes" if load.next_to_traffic else "no"
        ping = ["-n", "-s", str(load.payload_bytes), "-W", "5", *much]
        return extent.limit_s + END_S, ["echo", "1", str(load.peers), disturbed, *ping]

    def parse(self, text: str) -> LoadReport:
        sent = _SENT.search(text)
        answered = int(sent[2]) if sent else None
        lost = int(sent[1]) - int(sent[2]) if sent else 0
        times = Counter(1000 * float(time_ms) for time_ms in _ANSWER.findall(text))
        wrong = len(_WRONG.findall(text))
        return LoadReport(
            active_s=int(sent[3]) / 1000 if sent else None,
            total=answered,
            errors={
                **({LOST: lost} if lost else {}),
                **({"wrong answer": wrong} if wrong else {}),
                **Counter(_FAILED.findall(text)),
            },
            exit_status=_status(text),
            client_cpu_us=_cpu_us(text),
            latencies={"echo": Latencies.of(times)} if times else {},
        )

    def objections(self, report: LoadReport) -> Iterator[str]:
        yield from super().objections(report)
        if report.total and not report.latencies:
            yield "the load does not report how long echoes took"


_RESTARTED = re.compile(r"^restarted peer \d+ in (\d{1,12}) us$", re.MULTILINE)


class PeerRestarts(MeshLoad[RestartsWorkload]):
    """Peers are stopped and started in turn."""

    kind = RestartsWorkload

    def words(self, load: RestartsWorkload, extent: Extent) -> tuple[float, list[str]]:
        number = extent.total(1) if isinstance(extent, Operations) else 1
        limit_s = number * (load.back_within_s + STOPPING_S)
        words = [str(load.peers), str(number), str(load.back_within_s)]
        return limit_s, ["restarts", *words]

    def parse(self, text: str) -> LoadReport:
        times_us = [int(time_us) for time_us in _RESTARTED.findall(text)]
        return LoadReport(
            active_s=sum(times_us) / 1e6 or None,
            total=len(times_us),
            errors=Counter(_FAILED.findall(text)),
            exit_status=_status(text),
            client_cpu_us=_cpu_us(text),
            latencies={"restart": Latencies.of(Counter(times_us))} if times_us else {},
        )
