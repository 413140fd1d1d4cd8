"""The manager's view of a directory, on ldap3's own in-memory server."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ldap3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ldap3.core.exceptions import LDAPException, LDAPSocketOpenError

from dsharness.errors import InstanceError
from dsharness.model.stored_password import StoredPassword
from dsharness.systems.ldap import directory as module
from dsharness.systems.ldap.directory import (
    Directory,
    Site,
    add_entries,
    close_quietly,
    connect,
    open_connection,
    reached,
)
from dsproducts.dirsrv.dirsrv import Dirsrv
from dsproducts.dirsrv.ns_slapd import SCHEMES

SITE = Site(suffix="dc=lab", people="ou=people,dc=lab", port=3389)
REALM_SITE = Site(suffix="dc=lab", people="cn=users,dc=lab", port=389, realm="LAB.TEST")


@pytest.fixture
def server() -> Directory:
    """A directory that holds its manager's configuration and an empty tree."""
    connection = ldap3.Connection(
        ldap3.Server("memory"), SITE.manager, SITE.manager_password,
        client_strategy=ldap3.MOCK_SYNC, raise_exceptions=False,
    )  # fmt: skip
    entries = {
        SITE.manager: {"userPassword": SITE.manager_password, "sn": "manager"},
        "cn=config": {"nsslapd-port": "389", "objectClass": "top"},
        "cn=snmp,cn=monitor": {
            "simpleauthbinds": "41",
            "entriesreturned": "7",
            "modifyentryops": "2",
            "objectClass": "top",
        },
        SITE.people: {"ou": "people", "objectClass": "organizationalUnit"},
    }
    for dn, attributes in entries.items():
        connection.strategy.add_entry(dn, attributes)
    assert connection.bind()
    return Directory(site=SITE, socket=Path("/nowhere"), connection=connection)


def test_values_are_replaced_and_read_back(server: Directory) -> None:
    server.modify("cn=config", {"nsslapd-port": "3389", "nsslapd-cachememsize": "1"})
    assert server.read("cn=config", "nsslapd-port") == {"nsslapd-port": ["3389"]}
    assert server.read("cn=config")["nsslapd-cachememsize"] == ["1"]


def test_a_refused_setting_names_it_its_value_and_its_place(server: Directory) -> None:
    with pytest.raises(InstanceError, match="refused x: 1 on cn=gone: noSuchObject") as caught:
        server.modify("cn=gone", {"x": "1"})
    assert "other settings" in caught.value.hint


def test_an_optional_setting_may_be_unknown(server: Directory) -> None:
    server.modify("cn=gone", {"x": "1"}, optional=True)


def test_a_missing_entry_is_an_error(server: Directory) -> None:
    with pytest.raises(InstanceError, match="cn=gone: no such entry"):
        server.read("cn=gone")


def test_the_server_s_counts_are_numbers(server: Directory) -> None:
    assert Dirsrv().counts(server) == {"bind": 41, "search": 7, "modify": 2}


def test_a_server_s_schemes_are_those_that_are_switched_on_and_each_is_tried(
    server: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = {"SSHA512": ("on", "pwdstoragescheme"), "AES": ("on", "reverpwdstoragescheme"),
               "MD5": ("off", "pwdstoragescheme"), "OLD": ("on", "pwdstoragescheme")}  # fmt: skip
    for name, (enabled, kind) in plugins.items():
        facts = {"cn": name, "nsslapd-pluginEnabled": enabled, "nsslapd-pluginType": kind}
        entry = {**facts, "objectClass": "top"}
        server.connection.strategy.add_entry(f"cn={name},{SCHEMES}", entry)
    tried: list[int] = []
    real = Directory.modify

    def modify(self: Directory, dn: str, changes: dict[str, str]) -> None:
        if changes == {"passwordStorageScheme": "OLD"}:
            asked = f"the server refused passwordStorageScheme: OLD on {dn}: "
            raise InstanceError(f"{asked}unwillingToPerform it only compares\nValid: SSHA512")
        real(self, dn, changes)

    monkeypatch.setattr(Directory, "modify", modify)
    monkeypatch.setattr(Directory, "check_user", lambda _, number: tried.append(number))
    found = {each.name: each for each in Dirsrv().offered(None, server)}
    assert set(found) == {"SSHA512", "AES", "OLD"}
    assert [found[name].readable for name in ("SSHA512", "AES")] == [False, True]
    assert found["SSHA512"].options == {"password-scheme": "SSHA512"}
    assert found["OLD"].refused == "unwillingToPerform it only compares"
    assert len(set(tried)) == 2, "a user each, who can bind"


def test_people_are_added_once_and_can_be_read(server: Directory) -> None:
    for number in (0, 1, 2, 1, 2, 3):  # again, as after an interruption
        server.add_user(number)
    assert server.stored_password(3) == StoredPassword(scheme="CLEAR")
    assert server.stored_value(0) == SITE.user_password
    assert server.read(SITE.user_dn(2), "uid") == {"uid": ["user0000002"]}


def test_a_refused_user_is_named(server: Directory) -> None:
    class Refusing:
        def __init__(self) -> None:
            self.result = {"result": 0, "description": "", "message": ""}

        def add(self, *args: object, **named: object) -> bool:
            self.result = {
                "result": 19, "description": "constraintViolation", "message": "pre-hashed",
            }  # fmt: skip
            return False

    refusing = Directory(site=SITE, socket=Path("/nowhere"), connection=Refusing())
    with pytest.raises(InstanceError, match=r"user0000007,.*constraintViolation pre-hashed"):
        refusing.add_user(7)


def test_a_user_with_two_passwords_is_not_measured(server: Directory) -> None:
    two = SITE.user_attributes(5) | {"userPassword": ["a", "b"]}
    assert server.connection.add(SITE.user_dn(5), attributes=two)
    with pytest.raises(InstanceError, match="has 2 passwords, not one"):
        server.stored_value(5)


@given(st.integers(0, 9_999_999), st.integers(0, 9_999_999))
def test_each_number_has_a_name_of_its_own(one: int, other: int) -> None:
    assert (SITE.user_dn(one) == SITE.user_dn(other)) == (one == other)


def test_a_realm_makes_users_principals() -> None:
    assert "krbPrincipalName" not in SITE.user_attributes(7)
    attributes = REALM_SITE.user_attributes(7)
    assert attributes["krbPrincipalName"] == ["user0000007@LAB.TEST"]
    assert "krbPrincipalAux" in attributes["objectClass"]


class Served:
    """Counts how its users arrive; each connection is its own, all share the entries."""

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}
        self.connections = 0
        self.lock = threading.Lock()

    @contextmanager
    def connect(self, _: Path, site: Site) -> Iterator[Directory]:
        with self.lock:
            self.connections += 1
        yield Directory(site=site, socket=Path("/nowhere"), connection=_Connection(self))


class _Connection:
    def __init__(self, served: Served) -> None:
        self.result = {"result": 0, "description": "success", "message": ""}
        self.served = served
        self.response: list[dict[str, dict[str, list[bytes]]]] = []

    def add(self, dn: str, attributes: dict[str, list[str]]) -> bool:
        with self.served.lock:
            salt = len(self.served.entries)
            self.served.entries[dn] = f"{{SSHA512}}{salt}/{attributes['userPassword'][0]}"
        return True

    def search(self, dn: str, *args: object, **named: object) -> bool:
        value = self.served.entries.get(dn)
        self.response = [{"raw_attributes": {"userPassword": [str(value).encode()]}}]
        return value is not None


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    served = Served()
    monkeypatch.setattr(module, "connect", served.connect)
    return served


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("numbers", [range(0), range(3, 3), range(1), range(5), range(40, 60)])
def test_those_asked_for_are_added_over_so_many_connections(
    served: Served, numbers: range, workers: int
) -> None:
    add_entries(Path("/nowhere"), SITE, numbers, workers=workers)
    assert set(served.entries) == {SITE.user_dn(number) for number in numbers}
    assert served.connections <= workers


def test_a_server_that_is_too_slow_to_be_filled_ends_the_filling(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILL_S", 0.0)
    monkeypatch.setattr(module, "USER_S", 0.0)
    with pytest.raises(InstanceError, match="5 entries were not added within 0 s"):
        add_entries(Path("/nowhere"), SITE, range(5), workers=2)
    assert not served.entries


def test_a_socket_that_is_not_there(tmp_path: Path) -> None:
    gone = tmp_path / "ldapi"
    with pytest.raises(InstanceError, match="cannot reach the directory at"):
        open_connection(gone, SITE.manager, SITE.manager_password)


def test_a_server_that_hangs_up(tmp_path: Path) -> None:
    path = tmp_path / "ldapi"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def hang_up() -> None:
            with contextlib.suppress(OSError):  # the listener was shut down
                while True:
                    listener.accept()[0].close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        with pytest.raises(InstanceError, match=r"cannot (reach|bind)"):
            open_connection(path, SITE.manager, SITE.manager_password)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=10)


@contextmanager
def answering_with(path: Path, piece: bytes, pause_s: float) -> Iterator[None]:
    """A server that sends this again and again, whatever it is asked."""
    ended = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            with contextlib.suppress(OSError), listener.accept()[0] as client:
                while not ended.wait(pause_s):
                    client.sendall(piece)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        ended.set()
        thread.join(timeout=10)


@pytest.mark.parametrize(
    ("piece", "pause_s"),
    [
        (b"\x30", 0.2),  # the begin of a message, and never more of it
        (b"\x30\x84\x7f\xff\xff\xff" + bytes(1 << 16), 0.0),  # a message without an end
    ],
    ids=["slow", "endless"],
)
def test_an_answer_has_to_be_whole_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: bytes, pause_s: float
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 4 << 20)
    with answering_with(tmp_path / "ldapi", piece, pause_s):
        connection = reached(tmp_path / "ldapi", SITE.manager, "x", limit_s=1)
        begun = time.monotonic()
        with pytest.raises(LDAPException, match=r"no whole answer|timed out"):
            connection.bind()
        assert time.monotonic() - begun < 8
        close_quietly(connection)


def test_a_server_that_dies_while_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, server: Directory
) -> None:
    monkeypatch.setattr(module, "open_connection", lambda *_: server.connection)
    with (
        pytest.raises(InstanceError, match="stopped answering: gone"),
        connect(Path("/nowhere"), SITE),
    ):
        raise LDAPSocketOpenError("gone")
