"""How each metric follows from what is read, and says that something is worse or better."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

import pytest
from shipped import MATRIX
from worlds import sample_of

from dsharness.errors import UsageError
from dsharness.matrix import find_workload
from dsharness.measure.metric import Metric, Readings
from dsharness.measure.metrics import (
    METRICS,
    RATE,
    START_TIME,
    SWITCHES,
    measured,
    probed,
    refuse_unfit,
)
from dsharness.model import Latencies

SAID = {
    "cost": ("5.40 times slower", "faster", "times slower", "slower one"),
    "cpu": ("5.40 times slower", "faster", "times slower", "slower one"),
    "rate": (
        "answers 5.40 times fewer operations a second", "answers more operations a second",
        "times fewer", "that answers fewer operations a second",
    ),
    "latency": ("takes 5.40 times longer", "takes less time", "times longer", "that takes longer"),
    "latency-p99": (
        "lets the slowest hundredth take 5.40 times longer",
        "lets the slowest hundredth take less time", "times longer",
        "that lets the slowest hundredth take longer",
    ),
    "client-cpu": (
        "costs the load 5.40 times more CPU time", "costs the load less CPU time", "times more",
        "that costs the load more CPU time",
    ),
    "memory": (
        "uses 5.40 times more memory", "uses less memory", "times more", "that uses more memory",
    ),
    "memory-at-rest": (
        "uses 5.40 times more memory at rest", "uses less memory at rest", "times more",
        "that uses more memory at rest",
    ),
    "start-cpu": (
        "costs 5.40 times more CPU time to start", "costs less CPU time to start", "times more",
        "that costs more CPU time to start",
    ),
    "growth": ("grows 5.40 times more", "grows less", "times more", "that grows more"),
    "faults": (
        "has 5.40 times more page faults", "has fewer page faults", "times more",
        "that has more page faults",
    ),
    "context-switches": (
        "has 5.40 times more context switches", "has fewer context switches", "times more",
        "that has more context switches",
    ),
    "wake-ups": ("wakes up 5.40 times more", "wakes up less", "times more", "that wakes up more"),
    "written": (
        "writes 5.40 times more bytes", "writes fewer bytes", "times more",
        "that writes more bytes",
    ),
    "disturber-rate": (
        "gives disturbers 5.40 times fewer answers a second",
        "gives disturbers more answers a second", "times fewer",
        "that gives disturbers fewer answers a second",
    ),
    "instructions": (
        "executes 5.40 times more instructions", "executes fewer instructions", "times more",
        "that executes more instructions",
    ),
    "read": (
        "reads 5.40 times more bytes", "reads fewer bytes", "times more", "that reads more bytes",
    ),
    "syscalls": (
        "makes 5.40 times more system calls", "makes fewer system calls", "times more",
        "that makes more system calls",
    ),
    "fsyncs": (
        "flushes 5.40 times more to disk", "flushes less to disk", "times more",
        "that flushes more to disk",
    ),
    "futexes": (
        "makes 5.40 times more calls of futex", "makes fewer calls of futex", "times more",
        "that makes more calls of futex",
    ),
    "start-time": (
        "takes 5.40 times longer to start", "takes less time to start", "times longer",
        "that takes longer to start",
    ),
    "open-files": (
        "has 5.40 times more files open", "has fewer files open", "times more",
        "that has more files open",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_words_of_its_own(name: str) -> None:
    words = METRICS[name].words
    said = (
        words.said("slower", "5.40 times"),
        words.said("faster"),
        words.ratio,
        words.one("slower"),
    )
    assert said == SAID[name]


WRITTEN, ASKED = "write_bytes", "rchar"
COUNTED_APART = {"syscalls", "fsyncs", "futexes"}  # by a way of their own
PAGES, FAULTS, WAITED, PUSHED = 24, 10, "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"


@dataclass(frozen=True)
class Server:
    """What the kernel says of a server's processes."""

    stats: dict[int, int]
    lines: dict[str, int] = field(default_factory=dict)
    files: int = 0

    def stat(self, number: int, /) -> int:
        return self.stats[number]

    def line(self, name: str, files: str, /) -> int:
        if name not in self.lines or files != (
            "io" if name in {WRITTEN, ASKED} else "task/*/status"
        ):
            raise FileNotFoundError(name)
        return self.lines[name]

    def count(self, files: str, /) -> int:
        if files != "fd/*" or not self.files:
            raise FileNotFoundError(files)
        return self.files


TOOK = Latencies.of({200.0: 99, 1200.0: 1})
REST = Server({PAGES: 256, FAULTS: 0, 14: 30, 15: 20}, {WAITED: 0, PUSHED: 0})
BEFORE = Server(
    {PAGES: 512, FAULTS: 50, 14: 40, 15: 20}, {WAITED: 1000, PUSHED: 100, WRITTEN: 4096, ASKED: 0}
)
AFTER = Server(
    {PAGES: 768, FAULTS: 150, 14: 40, 15: 30},
    {WAITED: 1300, PUSHED: 150, WRITTEN: 12288, ASKED: 51200},
    files=70,
)


def gained(before: Server, after: Server) -> Readings:
    first, last = probed(before), probed(after)
    return Readings(
        operations=100, active_s=2.0, unit_us=50.0, server_us=10_000.0, client_us=1_000.0,
        latencies=TOOK, instructions=3e6, start_s=1.5, at_rest=probed(REST), after=last,
        start_step_s=0.03, start_cpu_s=0.5, server_step_us=20_000.0,
        gained={probe: last[probe] - first[probe] for probe in first.keys() & last.keys()},
    )  # fmt: skip


def test_each_metric_follows_from_what_was_read() -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    values = {name: each.value for name, each in measured(gained(BEFORE, AFTER)).items()}
    assert values == {
        "cost": 2.0, "rate": 50.0, "latency": 210.0, "latency-p99": 200.0, "cpu": 100.0,
        "client-cpu": 10.0,
        "memory": 768 * page / 2**20, "memory-at-rest": 256 * page / 2**20,
        "start-cpu": 0.5, "start-time": 1.5, "open-files": 70.0,
        "growth": 256 * page / 100, "faults": 1.0, "context-switches": 3.5, "wake-ups": 3.0,
        "written": 81.92, "read": 512.0,
        "instructions": 3e4,
    }  # fmt: skip


def test_each_metric_knows_the_step_in_which_it_was_read() -> None:
    """Two runs that read the same need not be the same: ties were taken for modes."""
    page = os.sysconf("SC_PAGE_SIZE")
    steps = {name: each.quantum for name, each in measured(gained(BEFORE, AFTER)).items()}
    assert {name: step for name, step in steps.items() if step} == {
        "start-time": 0.03, "cost": 4.0, "cpu": 200.0, "latency-p99": 1.0,
        "open-files": 1.0, "memory": page / 2**20, "memory-at-rest": page / 2**20,
        "growth": page / 100, "faults": 0.01, "context-switches": 0.01, "wake-ups": 0.01,
        "written": 0.01, "read": 0.01,
    }  # fmt: skip
    cgroup = measured(replace(gained(BEFORE, AFTER), server_step_us=0.0))
    assert cgroup["cost"].quantum == cgroup["start-cpu"].quantum == 0
    assert "quantum" not in cgroup["cost"].model_dump(mode="json")


@pytest.mark.parametrize(
    ("metric", "value", "quantum", "ends"),
    [
        (START_TIME, 1.5, 0.1, (1.45, 1.55)),
        (RATE, 50.0, 0.0, (1 / 50, 1 / 50)),
        (RATE, 50.0, 20.0, (1 / 60, 1 / 40)),
        (SWITCHES, 0.0, 0.01, (0.01, 0.015)),  # less than none is none
        (START_TIME, 0.1, 0.4, (0.1, 0.3)),  # of less than nothing there is no slowness
    ],
)
def test_a_value_lies_within_its_step(
    metric: Metric, value: float, quantum: float, ends: tuple[float, float]
) -> None:
    read = metric.measured(value, quantum)
    sample = sample_of("a", 1.0, 0).model_copy(update={"metrics": {metric.name: read}})
    assert metric.slowness_range(sample) == pytest.approx(ends)
    assert metric.slowness_range(sample_of("a", 1.0, 0, metrics={})) is None


def test_what_could_not_be_read_is_absent_and_not_zero() -> None:
    known = measured(gained(BEFORE, replace(AFTER, lines={WAITED: 1}, files=0)))
    elsewhere = {"context-switches", "written", "read", "open-files", "disturber-rate"}
    assert METRICS.keys() - known.keys() == elsewhere | COUNTED_APART
    nothing = Readings(
        operations=100, active_s=2.0, unit_us=None, server_us=None, client_us=None,
        latencies=None, instructions=None,
    )  # fmt: skip
    assert measured(nothing).keys() == {"rate"}


def test_what_a_server_did_for_others_too_says_nothing_of_the_load() -> None:
    known = measured(replace(gained(BEFORE, AFTER), disturbances=60))
    assert known["disturber-rate"].value == 30.0
    assert known.keys() == {
        "rate", "latency", "latency-p99", "memory", "memory-at-rest", "start-cpu",
        "start-time", "open-files", "disturber-rate",
    }  # fmt: skip
    calm, loud = (find_workload(MATRIX, name) for name in ("search-paged", "disturbed-paged"))
    for name, metric in METRICS.items():
        refuse_unfit(metric, [calm])
        if metric.of_pace:
            with pytest.raises(UsageError, match="its operations begin by a schedule"):
                refuse_unfit(metric, [calm, loud])
            continue
        if name in known:
            refuse_unfit(metric, [calm, loud])
            continue
        with pytest.raises(UsageError, match=f"{name} says nothing of workload 'disturbed-paged'"):
            refuse_unfit(metric, [calm, loud])


def test_only_what_an_import_has_is_asked_of_one() -> None:
    load = find_workload(MATRIX, "import@30")
    for name, metric in METRICS.items():
        if name in {"cost", "rate", "cpu"}:
            refuse_unfit(metric, [load])
            continue
        with pytest.raises(UsageError, match=f"{name} says nothing of workload 'import@30'") as no:
            refuse_unfit(metric, [load])
        assert no.value.hint == "one of cost, rate, cpu"
