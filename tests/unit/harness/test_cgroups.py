"""Which cgroup is a container's own, and reading its CPU time, on trees made for the test."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from dsharness.machine.cgroups import (
    UsageMeter,
    cgroup_mount,
    meter_for,
    own_cgroup,
    parse_wait_ns,
    waited_s,
)

ID = "0123456789abcdef" * 4
V1 = f"4:memory:/libpod_parent/libpod-{ID}\n2:cpuacct,cpu:/libpod_parent/libpod-{ID}\n0::/\n"
V2 = f"0::/user.slice/libpod-{ID}.scope/container\n"
SHARED = "2:cpuacct:/\n0::/\n"
MOUNTS = (
    "25 1 0:22 / {root} rw - tmpfs tmpfs rw\n"
    "26 25 0:23 / {root}/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "27 25 0:24 / {root}/unified rw - cgroup2 cgroup2 rw\n"
)


@pytest.mark.parametrize(
    ("membership", "controller", "expected"),
    [
        (V1, "cpuacct", f"libpod_parent/libpod-{ID}"),
        (V1, "cpu", f"libpod_parent/libpod-{ID}"),
        (V1, "pids", None),
        (V1, "", None),  # v2's is the root: not the container's own
        (V2, "", f"user.slice/libpod-{ID}.scope/container"),
        (V2, "cpuacct", None),
        (SHARED, "cpuacct", None),
        ("", "", None),
    ],
)
def test_own_cgroup(membership: str, controller: str, expected: str | None) -> None:
    assert own_cgroup(membership, controller, ID) == expected


@pytest.mark.parametrize(
    ("controller", "expected"),
    [("cpuacct", Path("/c/cpu,cpuacct")), ("", Path("/c/unified")), ("pids", None)],
)
def test_cgroup_mount(controller: str, expected: Path | None) -> None:
    found = cgroup_mount(MOUNTS.format(root="/c"), controller)
    assert (found.point if found else None) == expected


def fake_proc(folder: Path, membership: str) -> Path:
    proc = folder / "proc"
    for pid, text in (("7", membership), ("self", "")):
        (proc / pid).mkdir(parents=True)
        (proc / pid / "cgroup").write_text(text)
    (proc / "self" / "mountinfo").write_text(MOUNTS.format(root=folder))
    return proc


@pytest.mark.parametrize(
    ("membership", "file", "content", "source", "used"),
    [
        (V1, f"cpu,cpuacct/libpod_parent/libpod-{ID}/cpuacct.usage", "5000000\n", "cgroup-v1", 5e3),
        (
            V2,
            f"unified/user.slice/libpod-{ID}.scope/container/cpu.stat",
            "usage_usec 4200\nuser_usec 4000\nsystem_usec 200\n",
            "cgroup-v2",
            4200.0,
        ),
    ],
)
def test_a_containers_own_cgroup_is_read(
    tmp_path: Path, membership: str, file: str, content: str, source: str, used: float
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(content)
    meter = meter_for(7, ID, fake_proc(tmp_path, membership))
    assert meter.source == source
    assert meter.used_us() == used
    (tmp_path / file).unlink()
    with pytest.raises(FileNotFoundError):
        meter.used_us()


def test_a_part_of_the_tree_is_mounted_in_a_container(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, f"0::/outer/libpod-{ID}/container\n")
    mounts = f"27 25 0:24 /outer {tmp_path}/unified rw - cgroup2 cgroup2 rw\n"
    (proc / "self" / "mountinfo").write_text(mounts)
    folder = tmp_path / "unified" / f"libpod-{ID}" / "container"
    folder.mkdir(parents=True)
    (folder / "cpu.stat").write_text("usage_usec 7\n")
    meter = meter_for(7, ID, proc)
    assert (meter.source, meter.used_us()) == ("cgroup-v2", 7.0)
    assert meter.resident_kib() == 0
    (folder / "init.scope").mkdir()
    for place in (folder, folder / "init.scope"):
        (place / "cgroup.procs").write_text(f"{os.getpid()}\n")
    assert 2_000 < meter.resident_kib() < 20_000_000, "those of cgroups below count, too"
    (proc / "self" / "mountinfo").write_text(mounts.replace("/outer", "/elsewhere"))
    assert meter_for(7, ID, proc).source == "proc"


@pytest.mark.parametrize("membership", [SHARED, V1, V2])
def test_without_a_readable_cgroup_of_its_own_proc_serves(tmp_path: Path, membership: str) -> None:
    assert meter_for(7, ID, fake_proc(tmp_path, membership)).source == "proc"


def test_the_tests_own_process_has_used_some() -> None:
    meter = UsageMeter(source="proc", path=Path("/proc"), pid=os.getpid())
    assert meter.used_us() > 0
    assert meter.resident_kib() > 1_000


def test_the_second_number_is_the_wait() -> None:
    assert parse_wait_ns("120034 2457692 17\n") == 2457692


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        ({}, {}, None),  # a kernel that does not count it
        ({"7": 10}, {}, None),  # it has ended
        ({}, {"7": 10}, None),  # it was not there yet
        ({"7": 10}, {"7": 10}, 0.0),
        ({"7": 1_000_000_000, "8": 5}, {"7": 3_000_000_000, "9": 500_000_000}, 2.5),
        ({"7": 900}, {"7": 5}, 0.0),  # another thread has its number
    ],
)
def test_threads_come_and_go(
    before: dict[str, int], after: dict[str, int], seconds: float | None
) -> None:
    assert waited_s(before, after) == seconds


def test_a_thread_that_shares_its_cpu_waits() -> None:
    """Two loops on one CPU: each waits for about half of the time."""
    meter = UsageMeter(source="proc", path=Path("/proc"), pid=os.getpid())
    cpu = min(os.sched_getaffinity(0))
    loops = [
        subprocess.Popen(["taskset", "--cpu-list", str(cpu), "sh", "-c", "while :; do :; done"])
        for _ in range(2)
    ]
    try:
        time.sleep(0.3)
        before = meter.waits_ns()
        time.sleep(0.6)
        waited = waited_s(before, meter.waits_ns())
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert waited is None or waited > 0.3
