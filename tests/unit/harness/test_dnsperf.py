"""The input of dnsperf, and how its output is read. The texts are real runs' output."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.errors import WorkloadError
from dsharness.loads import LoadReport, Operations, Schedule, Seconds
from dsharness.loads.load_driver import CUT, run_size
from dsharness.model import LdcltWorkload, Transport
from dsharness.systems.system import Endpoint
from dsproducts.bind.dns_workloads import DnsperfWorkload
from dsproducts.bind.dnsperf import QUERIES_FILE, Dnsperf
from dsproducts.bind.named import DnsEndpoint

RUNS = Path(__file__).parents[2] / "golden" / "dnsperf"
SERVER = DnsEndpoint(port=5300)
LOAD = Dnsperf()
FLAGS = ("-m", "-s", "-p", "-T", "-c", "-q", "-t", "-b", "-l", "-n", "-f", "-S")
FEW = Operations(per_thread=12, limit_s=9.5)


def workload(**changes: object) -> DnsperfWorkload:
    return DnsperfWorkload.model_validate({"id": "w", "title": "a load", **changes})


def run(name: str) -> str:
    return (RUNS / f"{name}.txt").read_text(encoding="utf-8")


REPORTS = {
    "udp": LoadReport(
        active_s=0.554605, total=20000, exit_status=0, client_cpu_us=230_000
    ),
    "tcp": LoadReport(
        active_s=1.738806, total=20000, exit_status=0, client_cpu_us=140_000
    ),
    "2.10-udp": LoadReport(
        active_s=0.348572, total=20000, exit_status=0, client_cpu_us=220_000
    ),
    "2.10-tcp": LoadReport(
        active_s=2.482728, total=20000, exit_status=0, client_cpu_us=200_000
    ),
    "warm-up": LoadReport(
        active_s=1.018711, total=23, exit_status=0, client_cpu_us=10_000
    ),
    # Fewer than the 900,000 that were asked for: exit status 0, nothing lost.
    "time-over": LoadReport(
        active_s=1.007555, total=23372, exit_status=0, client_cpu_us=220_000
    ),
    "wrong-answers": LoadReport(
        active_s=0.070633, total=3000, errors={"NXDOMAIN": 60, "REFUSED": 60},
        exit_status=0, client_cpu_us=30_000,
    ),
    "server-ends": LoadReport(
        active_s=4.008298, total=59699, errors={"lost query": 100},
        exit_status=0, client_cpu_us=1_280_000,
    ),
    # Exit status 0, although nothing answered.
    "nobody-listens-udp": LoadReport(
        active_s=1.000099, total=0, errors={"lost query": 100},
        exit_status=0, client_cpu_us=620_000,
    ),
    "nobody-listens-tcp": LoadReport(
        active_s=1.020657, total=0, errors={"lost query": 3},
        exit_status=0, client_cpu_us=1_520_000,
    ),
    "latencies": LoadReport(
        active_s=0.343081, total=20000, exit_status=0, client_cpu_us=150_000
    ),
    "schedule": LoadReport(active_s=1.518621, total=5990, exit_status=0, client_cpu_us=640_000),
    "killed": LoadReport(exit_status=137, client_cpu_us=490_000),
}  # fmt: skip


def test_every_recorded_run_is_read() -> None:
    assert {file.stem for file in RUNS.glob("*.txt")} == {*REPORTS}


@pytest.mark.parametrize("name", REPORTS)
def test_a_real_run_is_read(name: str) -> None:
    report, expected = LOAD.parse(run(name)), REPORTS[name]
    assert report.client_cpu_us == pytest.approx(expected.client_cpu_us)
    same = {"client_cpu_us": None, "latencies": {}}
    assert {**vars(report), **same} == {**vars(expected), **same}


def test_a_complaint_is_an_error_and_its_numbers_do_not_tell_it_apart() -> None:
    text = (
        "Warning: received a response with an unexpected (maybe timed out) id: 12\n"
        "Warning: received a response with an unexpected (maybe timed out) id: 7\n"
        "Error: failed to receive packet: Bad file descriptor\n"
    )
    assert LOAD.parse(text).errors == {
        "received a response with an unexpected (maybe timed out) id: N": 2,
        "failed to receive packet: Bad file descriptor": 1,
    }


@pytest.mark.parametrize(
    ("name", "mean_us", "longest_us"), [("latencies", 1124, 15_773), ("schedule", 437, 23_637)]
)
def test_how_long_queries_took_is_read_as_a_histogram(
    name: str, mean_us: float, longest_us: float
) -> None:
    (took,) = LOAD.parse(run(name)).latencies.values()
    assert took.count == REPORTS[name].total
    assert took.mean_us == pytest.approx(mean_us, rel=0.01), "dnsperf's own mean"
    assert took.at_us(100) == pytest.approx(longest_us, rel=0.02)


def test_a_histogram_that_was_cut_off_makes_no_run() -> None:
    lines = run("latencies").splitlines(keepends=True)
    buckets = [number for number, line in enumerate(lines) if re.match(r"\s*[\d.]+ - ", line)]
    cut = "".join(line for number, line in enumerate(lines) if number not in buckets[-2:])
    assert [*LOAD.objections(LOAD.parse(cut))] == [CUT]


def test_only_a_run_that_tells_its_latencies_is_free_of_objections() -> None:
    assert not [*LOAD.objections(LOAD.parse(run("latencies")))]
    assert not [*LOAD.objections(REPORTS["killed"])], "that it did not end well is said elsewhere"
    assert [*LOAD.objections(LOAD.parse(run("2.10-udp")))] == [
        "the load does not report how long queries took"
    ]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert LOAD.parse(text).total is None


@given(st.integers(min_value=0, max_value=len(run("tcp")) - 20))
def test_a_run_cut_short_never_looks_finished(end: int) -> None:
    report = LOAD.parse(run("tcp")[:end])
    assert None in {report.total, report.exit_status, report.client_cpu_us}


def options(argv: list[str], flag: str) -> list[str]:
    return [value for name, value in pairwise(argv) if name == flag]


@pytest.mark.parametrize("transport", Transport)
def test_every_parameter_is_given_and_nothing_is_left_to_dnsperf_s_default(
    transport: Transport,
) -> None:
    load = workload(
        transport=transport, threads=2, clients=8, outstanding=30, timeout_s=3, buffer_kb=100
    )
    whole = LOAD.argv(load, SERVER, "/load", FEW)
    argv = whole[whole.index("dnsperf") :]
    told = {flag: options(argv, flag) for flag in FLAGS}
    assert told == {
        "-m": [transport.value], "-s": ["127.0.0.1"], "-p": ["5300"], "-T": ["2"], "-c": ["8"],
        "-q": ["30"], "-t": ["3"], "-b": ["100"], "-l": ["10"], "-n": ["1"], "-f": ["inet"],
        "-S": [],  # one more thread that takes locks
    }  # fmt: skip
    assert "-W" in argv, "warnings belong in the output that is read"
    assert whole[:3] == ["timeout", "--kill-after=5", "18"], "10 s, the last answer's 3, and 5"


def test_a_probe_takes_whole_seconds_and_no_number_of_queries() -> None:
    argv = LOAD.argv(workload(), SERVER, "/load", Seconds(seconds=2))
    assert (options(argv, "-l"), options(argv, "-n")) == (["2"], [])


def test_a_schedule_is_a_rate_for_as_long_as_it_says() -> None:
    load = workload(scheduled=2500, duration_s=1.5)
    whole = run_size(load, 80_000)
    assert whole == Schedule(per_second=2500, seconds=1.5)
    assert whole.total(load.threads) == 3750
    argv = LOAD.argv(load, SERVER, "/load", whole)
    told = [options(argv, flag) for flag in ("-Q", "-l", "-n")]
    assert told == [["2500"], ["1.5"], []]
    assert run_size(load, None, 0.5) == Schedule(per_second=2500, seconds=0.75)


def queries(turn: int, **changes: object) -> list[str]:
    return LOAD.files(workload(**changes), SERVER, turn)[QUERIES_FILE].splitlines()


@given(st.integers(1, 200), st.integers(0, 50))
def test_each_turn_asks_for_every_name_once_in_an_order_of_its_own(names: int, turn: int) -> None:
    asked = queries(turn, names=names)
    assert asked == queries(turn, names=names), "both members of a pair get the same"
    assert sorted(asked) == sorted(f"n{number}.lab. A" for number in range(names))
    if names > 20:
        assert asked != queries(turn + 1, names=names)


@pytest.mark.skipif(shutil.which("timeout") is None, reason="no coreutils")
@pytest.mark.parametrize("per_thread", [1, 5, 7, 23])
def test_the_shell_part_gives_dnsperf_exactly_so_many_queries(
    tmp_path: Path, per_thread: int
) -> None:
    load = workload(names=5, threads=2)
    for name, text in LOAD.files(load, SERVER, 0).items():
        (tmp_path / name).write_text(text)
    stand_in = tmp_path / "dnsperf"  # what it is given, in place of an answer
    stand_in.write_text('#!/bin/sh\nfor last; do :; done\ncat "$last"\nexit 3\n')
    stand_in.chmod(0o755)
    extent = Operations(per_thread=per_thread, limit_s=5)
    done = subprocess.run(
        LOAD.argv(load, SERVER, str(tmp_path), extent), check=False, text=True,
        capture_output=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    asked = [line for line in done.stdout.splitlines() if line.endswith(" A")]
    assert (len(asked), done.returncode) == (2 * per_thread, 3)
    assert asked[:5] == queries(0, names=5)[: len(asked)][:5]
    report = LOAD.parse(done.stdout)
    assert report.exit_status == 3
    assert report.client_cpu_us is not None
    assert [file.name for file in tmp_path.glob("tmp.*")] == []


@pytest.mark.parametrize(
    ("load", "server"),
    [(workload(), Endpoint(port=389)), (LdcltWorkload(id="w", title="binds"), SERVER)],
)
def test_a_load_that_does_not_fit_its_server_is_refused(
    load: DnsperfWorkload | LdcltWorkload, server: Endpoint
) -> None:
    with pytest.raises(WorkloadError):
        LOAD.argv(load, server, "/load", FEW)
    with pytest.raises(WorkloadError):
        LOAD.files(load, server, 0)
