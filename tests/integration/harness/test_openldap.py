"""OpenLDAP's slapd: made, served, driven by the same ldclt, read back; and measured by address."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import MATRIX, benched, connected, golden_of, served
from free_port import free_port
from lab import ROOT, dsbisect
from turns import turn_of

from dsharness.containers.container import Options, running
from dsharness.containers.engine import Engine
from dsharness.errors import ExitCode, InstanceError
from dsharness.measure.instance import Instance
from dsharness.measure.sample import take_sample
from dsharness.model import LdcltWorkload, Settings, UserOrder
from dsharness.process.deadline import Deadline, wait_until
from dsproducts.openldap.slapd import CONFIG, OpenLdap

USERS = 40
ROWS = next(series.rows for series in MATRIX.series if series.id == "openldap")
ONE = LdcltWorkload(
    id="one", title="one user", users=USERS, distinct_users=1, order=UserOrder.REPEAT, duration_s=1
)
SCHEMES = {
    ("debian-11-openldap", None): {"password-scheme": "SSHA"},
    ("debian-12-openldap", "PBKDF2-SHA512"): {
        "password-scheme": "PBKDF2-SHA512", "password-rounds": 10_000,
    },
    ("debian-12-openldap", "ARGON2"): {
        "password-scheme": "ARGON2", "password-rounds": 3, "password-memory-kib": 4096,
    },
    ("debian-13-openldap", "ARGON2"): {
        "password-scheme": "ARGON2", "password-rounds": 5, "password-memory-kib": 7168,
    },
}  # fmt: skip


def settings_of(scheme: str | None) -> Settings:
    return Settings(id="test", options={} if scheme is None else {"password-scheme": scheme})


@pytest.mark.whole
@pytest.mark.parametrize(("row", "scheme"), SCHEMES)
def test_a_release_is_made_measured_and_read_back(
    engine: Engine, row: str, scheme: str | None
) -> None:
    golden = golden_of(engine, row, settings_of(scheme), USERS)
    version = MATRIX.row(row).versions["openldap"]
    stored = {name: each for name, each in golden.facts.items() if name != "version"}
    assert stored == SCHEMES[row, scheme]
    assert str(golden.facts["version"]).startswith(f"{version}+dfsg")
    with benched(engine, golden) as at:
        look(at.instance)
        before = at.instance.system.look(at.instance.endpoint).operations["bind"]
        sample = take_sample(at, turn_of(ONE))
        after = at.instance.system.look(at.instance.endpoint).operations["bind"]
    assert sample.valid, sample.invalid  # the gate has compared both counts
    assert sample.facts == golden.facts
    looks = 3  # of the run's two sides, and the last one here
    assert after - before - looks >= sample.operations, "the warm-up's binds come on top"
    for metric in ("cost", "rate", "cpu", "client-cpu"):
        assert (sample.value(metric) or 0) > 0


def look(instance: Instance) -> None:
    """Every salt is its own, the server has no privilege, and no way out but loopback."""
    with connected(instance) as directory:
        values = {directory.stored_value(number) for number in range(USERS)}
    assert len(values) == USERS
    box = instance.container
    status = box.must("cat", "/proc/self/status", what="look at the capabilities")
    assert "CapEff:\t0000000000000000" in status
    assert "Uid:\t0\t" not in status
    devices = box.must("cat", "/proc/net/dev", what="look at the network").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]


def test_a_scheme_that_it_does_not_know_is_named(engine: Engine) -> None:
    with pytest.raises(InstanceError, match=r"scheme not available \({PBKDF2_SHA256}\)"):
        golden_of(engine, "debian-13-openldap", settings_of("PBKDF2_SHA256"), USERS)


@pytest.fixture(scope="module")
def directory(engine: Engine) -> Iterator[Instance]:
    """A directory that runs somewhere: only a container in its namespace reaches it."""
    with served(engine, golden_of(engine, "debian-13-openldap", settings_of(None), USERS)) as one:
        yield one


def measured(
    instance: Instance, folder: Path, *words: str, address: str | None = None
) -> subprocess.CompletedProcess[str]:
    network = f"container:{instance.container.name}"
    named = ("--address", address or f"ldap://127.0.0.1:{OpenLdap.port}", "--network", network)
    return dsbisect(folder, "measure", "--matrix", str(ROOT / "matrix.yaml"), *named, *words)


def users_file(folder: Path, password: str = OpenLdap.site.user_password) -> str:
    path = folder / "users.tsv"
    lines = [f"{OpenLdap.site.user_dn(number)}\t{password}\n" for number in range(3)]
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def test_a_directory_by_its_address_is_bound_to_exactly_as_often_as_promised(
    directory: Instance, tmp_path: Path
) -> None:
    before = directory.system.look(directory.endpoint).operations["bind"]
    named = ("--users-file", users_file(tmp_path), "--runs", "2", "--operations", "100", "--json")
    done = measured(directory, tmp_path, *named)
    after = directory.system.look(directory.endpoint).operations["bind"]
    assert done.returncode == 0, done.stderr
    assert "at most 201 binds as 3 users" in done.stderr
    assert after - before == 201 + directory.system.look_operations["bind"]
    result = json.loads(done.stdout)
    assert [run["operations"] for run in result["runs"]] == [100, 100]
    assert result["rate_per_s"] > 0
    assert result["latency_us"] > 0
    assert {"server CPU", "server's count", "password scheme"} <= set(result["unknown"])
    assert list(tmp_path.iterdir()) == [tmp_path / "users.tsv"], "nothing is stored"


@pytest.mark.parametrize(
    ("password", "address", "why"),
    [
        ("a-wrong-one", None, "refused a bind: 49 (Invalid credentials)"),
        (OpenLdap.site.user_password, "ldap://127.0.0.1:1", "does not answer: -1"),
        (OpenLdap.site.user_password, "ldap://no-such-host.invalid", "no such host"),
    ],
)
def test_what_cannot_be_bound_to_gives_one_error(
    directory: Instance, tmp_path: Path, password: str, address: str | None, why: str
) -> None:
    named = ("--users-file", users_file(tmp_path, password))
    done = measured(directory, tmp_path, *named, address=address)
    assert done.returncode == ExitCode.WORKLOAD, done.stderr
    assert why in done.stderr
    assert done.stderr.count("error:") == 1
    assert password not in done.stderr


@pytest.mark.whole
def test_when_its_time_is_over_nothing_is_bound_any_more(
    directory: Instance, tmp_path: Path
) -> None:
    named = ("--users-file", users_file(tmp_path), "--operations", "100000", "--limit", "3")
    done = measured(directory, tmp_path, *named)
    assert done.returncode == ExitCode.DEADLINE, done.stderr
    assert "3 s were over before its binds were" in done.stderr
    first = directory.system.look(directory.endpoint).operations["bind"]
    time.sleep(0.5)
    again = directory.system.look(directory.endpoint).operations["bind"]
    assert again - first == directory.system.look_operations["bind"]


# It lets anyone read everything, and listens on a port of this machine's own loopback.
OPEN = r"""
sed -e 's/by anonymous auth by \* none/by * read/' \
    -e 's/access to \* by users read by \* none/access to * by * read/' "$1" >/tmp/open
exec slapd -f /tmp/open -h "ldap://127.0.0.1:$2/" -d none
"""


@pytest.mark.whole
def test_on_this_machine_s_loopback_it_is_asked_what_it_tells_anyone(
    engine: Engine, tmp_path: Path
) -> None:
    golden = golden_of(engine, "debian-13-openldap", settings_of(None), USERS)
    port = free_port()
    command = ("sh", "-c", OPEN, "sh", CONFIG, str(port))
    options = Options(user="openldap", network="host")
    log = tmp_path / "log"
    with running(engine, golden.reference, *command, purpose="open", log=log, options=options):
        wait_until(lambda: _listens(port), Deadline.after(30), what="slapd")
        named = ("--bind-dn", OpenLdap.site.user_dn(1), "--password-file", password_file(tmp_path))
        address = ("--address", f"ldap://127.0.0.1:{port}", "--matrix", str(ROOT / "matrix.yaml"))
        done = dsbisect(tmp_path, "measure", *address, *named, "--runs", "1", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["network"] == "host"
    assert result["facts"] == {"password-scheme": "SSHA"}
    assert "version" in result["unknown"], "slapd does not tell it"
    assert "password scheme" not in result["unknown"]


def _listens(port: int) -> bool | None:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0 or None


def password_file(folder: Path) -> str:
    path = folder / "password"
    path.write_text(OpenLdap.site.user_password + "\n", encoding="utf-8")
    return str(path)
