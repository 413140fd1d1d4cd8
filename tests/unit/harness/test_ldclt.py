"""The input of ldclt, and how its output is read. The texts are real runs' output."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.errors import WorkloadError
from dsharness.loads import ldclt
from dsharness.loads.load_driver import LoadReport, Operations, Seconds
from dsharness.model import DirectoryOperation, LdcltWorkload, UserOrder
from dsharness.systems.ldap.directory import Site
from dsharness.systems.ldap.directory_system import LdapEndpoint, OwnDirectory

RUNS = Path(__file__).parents[2] / "golden" / "ldclt"
LDCLT = ldclt.Ldclt()
SITE = Site(suffix="dc=lab", people="ou=people,dc=lab", port=3389)
FEW = Operations(per_thread=12, limit_s=10)
NOBODY = LoadReport(errors={})


def endpoint(site: Site) -> LdapEndpoint:
    return LdapEndpoint(port=site.port, users=site)


def workload(**changes: object) -> LdcltWorkload:
    return LdcltWorkload.model_validate({"id": "w", "title": "a load", **changes})


def run(name: str) -> str:
    return (RUNS / f"{name}.txt").read_text(encoding="utf-8")


BAD_PASSWORD = "49 (Invalid credentials)"
NO_SERVER = "-1 (Can't contact LDAP server)"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "good",
            LoadReport(
                per_second=(9223, 9441, 8524, 8298), total=35486, errors={},
                exit_status=0, client_cpu_us=1_700_000,
            ),
        ),
        (
            "quick-to-stop",  # ldclt says "dead threads: 2" of a run in which none died
            LoadReport(
                per_second=(
                    7443, 7553, 8058, 7770, 7913, 7654, 7615, 7071, 7805, 7266, 6740,
                ),
                total=82888, errors={}, exit_status=0, client_cpu_us=4_360_000,
            ),
        ),
        (
            "wrong-password",
            LoadReport(
                per_second=(0,), total=0, errors={BAD_PASSWORD: 4},
                exit_status=4, client_cpu_us=0,
            ),
        ),
        (
            "ignored-errors",  # exit status 0, as if nothing had been wrong
            LoadReport(
                per_second=(0,), total=0, errors={BAD_PASSWORD: 26773},
                exit_status=0, client_cpu_us=1_520_000,
            ),
        ),
        (
            "max-errors",  # sums up three times; the last one counts
            LoadReport(
                per_second=(0, 0, 0, 0), total=0, errors={BAD_PASSWORD: 4},
                exit_status=4, client_cpu_us=0,
            ),
        ),
        (
            "server-killed",
            LoadReport(
                per_second=(9365, 6899, 2064, 0), total=18328, errors={NO_SERVER: 4},
                exit_status=4, client_cpu_us=910_000,
            ),
        ),
        (
            "stopped-3s",  # SIGSTOP for three seconds: exit status 0, no error
            LoadReport(
                per_second=(5830, 5196, 2574, 0, 0, 5219, 8838), total=27657, errors={},
                exit_status=0, client_cpu_us=1_490_000,
            ),
        ),
        (
            "nobody-listens",
            LoadReport(
                per_second=(0,), total=0, errors={NO_SERVER: 4},
                exit_status=4, client_cpu_us=0,
            ),
        ),
        (
            "bindonly-alone",  # 37 million "operations" a second and exit status 0
            LoadReport(
                per_second=(37177536, 37318192, 36434680, 36528036), total=147458446, errors={},
                exit_status=0, client_cpu_us=4_030_000,
            ),
        ),
    ],
)  # fmt: skip
def test_a_real_run_is_read(name: str, expected: LoadReport) -> None:
    report = LDCLT.parse(run(name))
    assert report.client_cpu_us == pytest.approx(expected.client_cpu_us)
    same = {field: getattr(report, field) for field in vars(expected) if field != "client_cpu_us"}
    wanted = {field: value for field, value in vars(expected).items() if field in same}
    assert same == wanted


def test_errors_outside_ldclt_s_table_are_errors() -> None:
    line = "ldclt[7]: Global illegal errors (codes not in [-100, 99]) occurs     3 times\n"
    assert LDCLT.parse(line).errors == {"(codes not in [-100, 99])": 3}


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert LDCLT.parse(text).total in {None, 0} or "total" in text


@given(st.integers(min_value=0, max_value=len(run("good")) - 60))
def test_a_run_cut_short_never_looks_finished(end: int) -> None:
    report = LDCLT.parse(run("good")[:end])
    assert None in {report.total, report.exit_status, report.client_cpu_us}


def test_what_was_not_said_stays_unknown() -> None:
    assert LDCLT.parse("") == NOBODY
    assert (NOBODY.total, NOBODY.exit_status, NOBODY.client_cpu_us) == (None, None, None)


def options(argv: list[str], flag: str) -> list[str]:
    return [value for name, value in pairwise(argv) if name == flag]


@pytest.mark.parametrize("order", UserOrder)
def test_each_bind_gets_a_connection_of_its_own_and_each_second_a_reading(order: UserOrder) -> None:
    argv = LDCLT.argv(workload(order=order), endpoint(SITE), "/load", FEW)
    switches = ",".join(options(argv, "-e")).split(",")
    assert {"bindeach", "bindonly", "sampinterval=1", "timestamp"} <= set(switches)
    assert "-I" not in argv, "an ignored error would look like a slow server"


@pytest.mark.parametrize("server_port", [389, 3389])
def test_the_load_is_what_the_workload_says(server_port: int) -> None:
    site = Site(suffix="dc=lab", people="ou=people,dc=lab", port=server_port)
    argv = LDCLT.argv(workload(threads=7), endpoint(site), "/load", FEW)
    assert options(argv, "-p") == [str(server_port)]
    assert options(argv, "-n") == ["7"]
    assert options(argv, "-T") == ["12"], "so many operations of each thread, and not one more"
    assert not options(argv, "-N")


def test_a_probe_takes_whole_seconds() -> None:
    argv = LDCLT.argv(workload(), endpoint(SITE), "/load", Seconds(seconds=2))
    assert (options(argv, "-N"), options(argv, "-T")) == (["2"], [])


def test_one_user_again_and_again() -> None:
    argv = LDCLT.argv(workload(order=UserOrder.REPEAT), endpoint(SITE), "/load", FEW)
    assert options(argv, "-D") == [SITE.user_dn(0)]
    assert options(argv, "-w") == [SITE.user_password]
    assert not any("randombinddn" in word for word in argv)


def test_many_users_come_from_the_file() -> None:
    argv = LDCLT.argv(workload(order=UserOrder.RANDOM), endpoint(SITE), "/load", FEW)
    assert f"randombinddnfromfile=/load/{ldclt.USERS_FILE}" in argv
    assert "-D" not in argv


OWN = OwnDirectory(port=SITE.port, users=SITE, socket=Path("/nowhere"))


@pytest.mark.parametrize(
    ("operation", "asked", "name"),
    [
        (DirectoryOperation.SEARCH, "esearch", "(uid={})"),
        (DirectoryOperation.MODIFY, "attreplace=description:randomXXXXXXXXXXXX", "uid={}"),
    ],
)
def test_searches_and_changes_are_made_by_the_manager(
    operation: DirectoryOperation, asked: str, name: str
) -> None:
    many = LDCLT.argv(workload(operation=operation, distinct_users=300), OWN, "/load", FEW)
    switches = options(many, "-e")
    assert {asked, "random"} <= set(switches)
    assert not any("bindeach" in each for each in switches)
    assert options(many, "-f") == [name.format("userXXXXXXX")]
    assert options(many, "-r") + options(many, "-R") == ["0", "299"]
    assert options(many, "-D") == [SITE.manager]
    assert options(many, "-b") == [SITE.people]
    one = workload(operation=operation, order=UserOrder.REPEAT)
    single = LDCLT.argv(one, OWN, "/load", FEW)
    assert options(single, "-f") == [name.format("user0000000")]
    assert "random" not in options(single, "-e")
    assert LDCLT.files(one, OWN, 0) == {}


def test_only_binds_go_to_someone_else_s_directory() -> None:
    with pytest.raises(WorkloadError, match="only for directories that the lab made"):
        LDCLT.argv(workload(operation="search"), endpoint(SITE), "/load", FEW)


def test_what_is_said_of_someone_else_s_users_loses_their_passwords() -> None:
    assert LDCLT.argv(workload(), OWN, "/load", FEW)[0] == "timeout"
    others = LDCLT.argv(workload(), endpoint(SITE), "/load", FEW)
    assert others[:3] == ["sh", "-c", ldclt.HIDE]


def test_a_load_that_hangs_is_ended() -> None:
    argv = LDCLT.argv(workload(), endpoint(SITE), "/load", Operations(per_thread=9, limit_s=3.2))
    assert argv[argv.index("timeout") + 2] == str(4 + int(LDCLT.grace_s))


def watched(script: str) -> subprocess.CompletedProcess[str]:
    argv = ["sh", "-c", ldclt._WATCHED, "sh", sys.executable, "-c", script]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_client_time_and_status_come_through_the_shell() -> None:
    done = watched("import sys\nfor _ in range(10**6): pass\nsys.exit(3)")
    assert done.returncode == 3
    used_us = LDCLT.parse(done.stdout).client_cpu_us
    assert used_us is not None
    assert used_us > 0


def test_a_load_that_sleeps_after_its_threads_have_finished_is_woken() -> None:
    """Like ldclt, it would look at its threads only after a long sleep."""
    done = watched(
        "import os, signal, threading, time\n"
        # at once: a Python that ends slowly has no handler any more, and is woken again
        "signal.signal(signal.SIGQUIT, lambda *_: os._exit(0))\n"
        "thread = threading.Thread(target=time.sleep, args=(0.5,))\n"
        "thread.start(); thread.join(); time.sleep(300)"
    )
    assert done.returncode == 0
    report = LDCLT.parse(done.stdout)
    assert report.active_s is not None
    assert 0.3 < report.active_s < 5


LOADS = st.builds(workload, users=st.just(1000), distinct_users=st.integers(1, 300))
TURNS = st.integers(0, 50)


@given(LOADS, TURNS)
def test_the_users_file_has_each_distinct_user_once(load: LdcltWorkload, turn: int) -> None:
    rows = [line.split("\t") for line in ldclt.users_file(load, SITE, turn).splitlines()]
    assert sorted(dn for dn, _ in rows) == [SITE.user_dn(n) for n in range(load.distinct_users)]
    assert {password for _, password in rows} == {SITE.user_password}


@given(LOADS, TURNS)
def test_the_same_turn_has_the_same_order(load: LdcltWorkload, turn: int) -> None:
    assert ldclt.users_file(load, SITE, turn) == ldclt.users_file(load, SITE, turn)


@given(st.integers(50, 300), TURNS, TURNS)
def test_another_turn_has_another_order(users: int, turn: int, other: int) -> None:
    load = workload(distinct_users=users)
    same = ldclt.users_file(load, SITE, turn) == ldclt.users_file(load, SITE, other)
    assert same == (turn == other)
