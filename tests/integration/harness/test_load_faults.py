"""What happens to a load in the middle of a run: it is said, and counts against no candidate."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from benches import MATRIX, benched, cpus_of, golden_of, served, when_loaded
from lab import USERS, small_matrix, start
from turns import turn_of

from dsbuilds.built_row import load_image
from dsharness.containers.container import Options, running
from dsharness.containers.engine import Engine
from dsharness.loads.load_driver import CUT
from dsharness.machine.host import machine_now
from dsharness.matrix import find_workload
from dsharness.measure.sample import PROCEDURE, Bench, bench, take_sample
from dsharness.model import Image, LdcltWorkload, Procedure, Settings
from dsresults.store import Store

ROW = "debian-12"
LOAD = find_workload(MATRIX, "search-equality-100k").model_copy(
    update={"users": 50, "distinct_users": 50, "operations": 20_000, "most_s": 20.0}
)
SHORT = LOAD.model_copy(update={"operations": 200, "most_s": 3.0})
BINDS = LdcltWorkload(id="one", title="one user", users=USERS, distinct_users=1, duration_s=1)
# The program as it is, whose report ends in the middle of a histogram.
CUTTING = """
at=$(command -v ldapload) && mv "$at" "$at-whole"
printf '%s\\n' '#!/bin/sh' "$at-whole \\"\\$@\\" | sed '/^time /q'" >"$at" && chmod 755 "$at"
"""


# A C library's clock, which is set by as many seconds as a file says.
CLOCK = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    const char *name = getenv("SET_CLOCK_BY");
    FILE *file = clock == CLOCK_REALTIME && name ? fopen(name, "r") : NULL;
    long by = 0;
    if (file && fscanf(file, "%ld", &by) == 1) now->tv_sec += by;
    if (file) fclose(file);
    return status;
}
"""


@contextmanager
def loaded_bench(engine: Engine, loader: Image) -> Iterator[Bench]:
    cpus = cpus_of(engine)
    with (
        served(engine, golden_of(engine, ROW, users=LOAD.users)) as instance,
        bench(
            engine, instance, loader, cpus, machine_now(engine, cpus),
            Procedure(version=PROCEDURE),
        ) as at,
    ):  # fmt: skip
        yield at


@pytest.fixture(scope="module")
def loader(engine: Engine) -> Image:
    return load_image(engine, MATRIX, "ldapload", progress=print)


def program_pid(at: Bench) -> int:
    """The host's id of the load's program."""
    for line in at.load.engine.podman("top", at.load.name, "hpid", "comm").stdout.splitlines():
        pid, _, name = line.partition(" ")
        if name.strip() == "ldapload":
            return int(pid)
    raise AssertionError("no ldapload runs")


def kill_program(at: Bench) -> None:
    os.kill(program_pid(at), signal.SIGKILL)


def kill_container(at: Bench) -> None:
    at.load.engine.podman("kill", at.load.name)


@pytest.mark.parametrize("act", [kill_program, kill_container], ids=["program", "container"])
def test_a_load_that_is_killed_is_no_fault_of_the_server(
    engine: Engine, loader: Image, act: Callable[[Bench], None]
) -> None:
    with loaded_bench(engine, loader) as at:
        assert take_sample(at, turn_of(SHORT)).valid, "warmed up: the next load is counted"
        with when_loaded(at, lambda: act(at)):
            found = take_sample(at, turn_of(LOAD))
        assert found.invalid
        assert found.disturbed == ("the load was ended from outside",)
        assert Path(found.log).is_file()
        assert at.instance.alive
        names = (at.instance.container, at.load)
    assert [box.state().id for box in names] == ["", ""]


def test_a_report_that_ends_within_a_histogram_is_not_used(
    engine: Engine, loader: Image, tmp_path: Path
) -> None:
    cut = f"localhost/dsbisect/test-cut:{secrets.token_hex(6)}"
    with running(
        engine, loader.reference, "sleep", "infinity",
        purpose="cut", log=tmp_path / "log", options=Options(user="root"),
    ) as box:  # fmt: skip
        box.must("sh", "-c", CUTTING, what="change the load")
        box.commit(cut, {"dsbisect": "1"})
    try:
        with loaded_bench(engine, loader.model_copy(update={"reference": cut})) as at:
            found = take_sample(at, turn_of(SHORT))
            assert CUT in found.invalid
            assert CUT in found.disturbed, "no candidate is blamed for it"
    finally:
        engine.podman("rmi", "--force", cut, cleanup=True)


def test_a_state_that_is_not_what_its_name_says_is_refused(engine: Engine) -> None:
    golden = golden_of(engine, ROW)
    other = golden_of(engine, ROW, Settings(id="other", options={"password-scheme": "SSHA512"}))
    with benched(engine, replace(golden, reference=other.reference)) as at:
        found = take_sample(at, turn_of(BINDS))
    assert any("users are stored as SSHA512" in why for why in found.invalid)
    assert not found.disturbed
    assert Path(found.log).is_file()


@pytest.mark.parametrize("step_s", [3600, -3600], ids=["ahead", "back"])
def test_a_clock_that_is_set_in_a_run_changes_nothing_but_the_date(
    tmp_path: Path, step_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lab asks a C library whose clock the test sets: the machine's own belongs to others."""
    small_matrix(tmp_path)
    library, offset = tmp_path / "clock.so", tmp_path / "offset"
    (tmp_path / "clock.c").write_text(CLOCK, encoding="utf-8")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, tmp_path / "clock.c"], check=True, timeout=60
    )
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("SET_CLOCK_BY", str(offset))
    lab = start(tmp_path, "measure", ROW, "--workload", "bind-one", "--runs", "3", "--json")
    monkeypatch.delenv("LD_PRELOAD")
    lab.until("(1 of about 3")
    offset.write_text(str(step_s), encoding="utf-8")
    status, out = lab.finish()
    assert status == 0, "".join(lab.lines)
    with Store.open(str(tmp_path / "results.db")) as store:
        samples = sorted(store.samples(), key=lambda each: each.turn)
    assert [each.valid for each in samples] == [True] * 3, out
    begun = [datetime.fromisoformat(each.started_at) for each in samples]
    passed = (begun[-1] - begun[0]).total_seconds()
    assert abs(passed - step_s) < 300, "the lab has seen the other clock"
    assert all(0 < each.duration_s < 30 for each in samples)
