"""A directory by its address: what is refused, what is promised, and what a load's words become."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.containers.container import Container, run_argv
from dsharness.containers.engine import Engine
from dsharness.errors import DeadlineError, UsageError, WorkloadError
from dsharness.loads.ldclt import HIDE
from dsharness.measure.by_address import (
    CANDIDATE,
    AddressRequest,
    FromOutside,
    Visit,
    checked_network,
    network_for,
)
from dsharness.measure.instance import Instance
from dsharness.measure.sample import Bench, load_options
from dsharness.model import BenchFacts, Machine, Procedure
from dsharness.process.command import Completed
from dsharness.systems.ldap.address import LdapAddress, parse_address, read_users
from dsharness.systems.ldap.directory import LdapUser

GOLDEN = Path(__file__).parents[2] / "golden" / "ldclt"
USERS = tuple(LdapUser(dn=f"uid={name},dc=x", password=f"secret-{name}") for name in "abc")
REQUEST = AddressRequest(
    address=LdapAddress(host="127.0.0.1", port=3389),
    users=USERS,
    network="host",
    runs=2,
    operations=200,
    threads=4,
    limit_s=60,
)
ENGINE = Engine(
    podman_version="0", rootless=False, cgroups="v2", runtime="none", pins_cpus=False,
    limits_memory=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("ldap://127.0.0.1:3389", "127.0.0.1", 3389),
        ("ldap://directory.example.org", "directory.example.org", 389),
        ("LDAP://Host:10/", "host", 10),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, host: str, port: int) -> None:
    assert parse_address(text) == LdapAddress(host=host, port=port)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin with ldap://"),
        ("127.0.0.1:389", "does not begin with ldap://"),
        ("http://host", "does not begin with ldap://"),
        ("ldaps://host", "it would measure itself"),
        ("ldapi:///run/socket", "not an address that another container reaches"),
        ("ldap://", "no host name or IPv4 address"),
        ("ldap://-x", "no host name or IPv4 address"),
        ("ldap://a b", "no host name or IPv4 address"),
        ("ldap://[::1]:389", "no host name or IPv4 address"),
        ("ldap://host:0", "port 0"),
        ("ldap://host:99999", "Port out of range"),
        ("ldap://host:x", "Port could not be cast"),
        ("ldap://host/dc=x", "something follows the port"),
        ("ldap://host?x", "something follows the port"),
        ("ldap://user:secret@host", "it names a user"),
    ],
)
def test_a_wrong_address_is_refused_and_says_why(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        parse_address(text)
    assert "secret" not in str(caught.value)
    assert "ldap://HOST:PORT" in caught.value.hint


@pytest.mark.parametrize(
    ("host", "wanted", "network"),
    [
        ("127.0.0.1", None, "host"),
        ("127.8.8.8", None, "host"),
        ("localhost", None, "host"),
        ("127.0.0.1", "container:mine", "container:mine"),
        ("192.0.2.1", None, None),
        ("directory.example.org", None, None),
        ("192.0.2.1", "host", "host"),
    ],
)
def test_what_only_this_machine_reaches_is_asked_from_its_own_network(
    host: str, wanted: str | None, network: str | None
) -> None:
    address = LdapAddress(host=host, port=389)
    assert network_for(address, checked_network(wanted)) == network


@pytest.mark.parametrize("network", ["none", "", "--privileged", "a b", "host,ip=1"])
def test_no_network_and_no_flag_is_a_network(network: str) -> None:
    with pytest.raises(UsageError, match="the load would reach nothing"):
        checked_network(network)


def test_podman_s_own_network_is_asked_for_by_no_flag() -> None:
    own = run_argv("image", "name", load_options(None, Path("/x")), ())
    named = run_argv("image", "name", load_options("host", Path("/x")), ())
    assert "--network" not in own
    assert named[named.index("--network") + 1] == "host"
    assert "/x:/load:ro" in own


def test_users_are_read_with_what_their_passwords_hold(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("uid=a,dc=x\tone two \u00e9#\n\nuid=b,dc=x\tb\r\n")
    assert read_users(file) == (
        LdapUser(dn="uid=a,dc=x", password="one two \u00e9#"),
        LdapUser(dn="uid=b,dc=x", password="b"),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it names no user"),
        ("\n \n", "it names no user"),
        ("uid=a,dc=x hidden", "line 1: 0 tabs, not one"),
        ("uid=a,dc=x\tx\nuid=b\thid\tden", "line 2: 2 tabs, not one"),
        ("a\thidden", "line 1: the DN has no ="),
        ("uid=a,dc=x\t", "a bind without one is anonymous"),
        ("uid=a,dc=x\thid\x07den\n", "printable"),
        ("uid=a,dc=x\t" + "hidden" * 200, "more than 1000 characters"),
    ],
)
def test_wrong_users_are_refused_without_repeating_them(
    tmp_path: Path, text: str, why: str
) -> None:
    file = tmp_path / "users"
    file.write_bytes(text.encode())
    with pytest.raises(UsageError, match=why) as caught:
        read_users(file)
    assert "hid" not in str(caught.value)


def test_a_file_that_is_no_list_of_users(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_users(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not text in UTF-8"):
        read_users(tmp_path / "bytes")


def test_no_password_is_shown_where_a_user_is() -> None:
    assert "secret" not in repr(REQUEST)
    assert "secret" not in str(REQUEST)


@given(runs=st.integers(1, 50), operations=st.integers(1, 5000), threads=st.integers(1, 64))
def test_no_more_binds_are_made_than_were_promised(
    runs: int, operations: int, threads: int
) -> None:
    request = replace(REQUEST, runs=runs, operations=operations, threads=threads)
    assert f"at most {request.binds} binds" in str(request)
    assert request.binds <= 1 + runs * max(operations, threads)
    assert request.binds_of(request.trial) == 1


def test_the_words_of_a_refused_bind_lose_the_password() -> None:
    said = "T1: Cannot ldap_simple_bind_s (uid=a,dc=x, s)(ecret, b), error=49 (Invalid credentials)"
    done = subprocess.run(
        ["sh", "-c", HIDE, "sh", "sh", "-c", 'echo "$1"; echo "$1" >&2', "sh", said],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "ecret" not in done.stdout + done.stderr
    assert done.stdout.count("error=49 (Invalid credentials)") == 2


@dataclass(frozen=True, kw_only=True)
class Speaker(Container):
    """A load's container that says what real runs of ldclt said, one after the other."""

    said: list[str]
    running: ClassVar[bool] = True  # type: ignore[assignment]

    def execute(self, *command: str, limit_s: float, **given: object) -> Completed:
        assert not any("secret" in word for word in command), "in a list of processes"
        assert HIDE in command
        assert limit_s <= REQUEST.limit_s
        text = self.said.pop(0)
        if not text:
            time.sleep(limit_s)
        return Completed(argv=command, status=0, stdout=text, stderr="", timed_out=not text)


def visit(folder: Path, *said: str, request: AddressRequest = REQUEST) -> Visit:
    box = Speaker(engine=ENGINE, name="load", log=folder / "log", said=list(said))
    way = FromOutside(request=request, limit_s=request.limit_s)
    at = Bench(
        instance=Instance(candidate_id=CANDIDATE, endpoint=request.endpoint, network=None),
        load=box, folder=folder, cpus=way.cpus, machine=Machine(id="m"),
        facts=BenchFacts(procedure=Procedure(version=1, way=way.name)),
    )  # fmt: skip
    return Visit(request=request, bench=at, progress=lambda _: None)


def run_of(total: int, error: str = "no error occurs during this session.") -> str:
    return (
        f"load begun at 100.00\nload finished at 102.00\n"
        f"ldclt[7]: Global average rate:   50.00/thr  (  100.00/sec), total:    {total}\n"
        f"ldclt[7]: Global {error}\nldclt[7]: Exit status 0 - No problem during execution.\n"
        "0m0.00s 0m0.00s\n0m0.10s 0m0.10s\n"
    )


def test_a_run_has_a_rate_and_a_mean_latency(tmp_path: Path) -> None:
    runs, stopped = visit(tmp_path, run_of(200), run_of(200)).runs()
    assert stopped is None
    assert [run.rate_per_s for run in runs] == [100.0, 100.0]
    assert runs[0].latency_us == pytest.approx(4 * 2.0 / 200 * 1e6)  # four connections for 2 s
    assert runs[0].load_bound is False
    bound = (tmp_path / "users.tsv").read_text(encoding="utf-8").splitlines()
    assert sorted(bound) == [f"{user.dn}\t{user.password}" for user in USERS]


@pytest.mark.parametrize(
    ("said", "why", "hint"),
    [
        (
            run_of(3, "error 49 (Invalid credentials) occurs     2 times"),
            "refused a bind: 49",
            "check the DNs and passwords",
        ),
        (
            run_of(0, "error -1 (Can't contact LDAP server) occurs     2 times"),
            "does not answer",
            "asked from network host; --network",
        ),
        (run_of(199), "made 199 of 200 binds", ""),
        ("nothing", "made 0 of 200 binds", ""),
    ],
)
def test_a_run_that_is_not_whole_ends_it_with_one_error(
    tmp_path: Path, said: str, why: str, hint: str
) -> None:
    with pytest.raises(WorkloadError, match=why) as caught:
        visit(tmp_path, said, run_of(200)).runs()
    assert "ldap://127.0.0.1:3389" in str(caught.value)
    assert hint in caught.value.hint


def test_when_time_is_up_what_was_measured_is_kept(tmp_path: Path) -> None:
    hurried = replace(REQUEST, limit_s=1)
    runs, stopped = visit(tmp_path, run_of(200), "", request=hurried).runs()
    assert len(runs) == 1
    assert "1 s were over" in str(stopped)
    with pytest.raises(DeadlineError, match="1 s were over"):
        visit(tmp_path, "", request=hurried).runs()


def test_a_sample_says_what_the_load_saw_and_nothing_of_the_server(tmp_path: Path) -> None:
    sample = visit(tmp_path, run_of(1)).take(REQUEST.trial, number=0)
    assert sample.valid
    assert sample.metrics.keys() == {"rate", "client-cpu"}
    assert sample.bench is not None
    assert sample.bench.procedure.way == "from outside"
    assert (sample.image_key, sample.settings_id, sample.facts) == ("", "", {})
