"""slapd: what it is configured with, what it says, and how its users come by their passwords."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import ldap3
import pytest

from dsharness.errors import InstanceError, MatrixError
from dsharness.model import DirectoryContent, Settings
from dsharness.model.stored_password import StoredPassword
from dsharness.products import known_changes
from dsharness.systems import Seed
from dsharness.systems.ldap.directory import Directory
from dsharness.systems.ldap.directory_system import SPARE
from dsharness.systems.readiness import telling_line
from dsproducts.openldap.slapd import OpenLdap, configuration

SITE = OpenLdap.site
DEBIAN_11 = "pw-apr1.so pw-argon2.so pw-netscape.so pw-pbkdf2.so pw-sha2.so ppolicy.so"
DEBIAN_13 = "argon2.so pw-apr1.so pw-netscape.so pw-pbkdf2.so pw-sha2.so ppolicy.so"


class Box:
    """A container that has some of slapd's modules and takes a file."""

    def __init__(self, modules: str) -> None:
        self.modules, self.written, self.asked = modules, "", ()

    def must(self, *command: str, what: str, stdin: str | None = None) -> str:
        del what
        if command[0] == "ls":
            return "\n".join(self.modules.split())
        if command[0] == "sed":
            lines = self.written.splitlines()
            return "\n".join(line.split()[1] for line in lines if line.startswith("moduleload"))
        self.written, self.asked = stdin or "", command
        return ""


def configured(modules: str, **options: str) -> list[str]:
    box: Any = Box(modules)
    OpenLdap().create(
        box, Seed(content=DirectoryContent(), settings=Settings(id="x", options=options))
    )
    return str(box.written).splitlines()


@pytest.mark.parametrize(("modules", "argon2"), [(DEBIAN_11, "pw-argon2"), (DEBIAN_13, "argon2")])
def test_the_modules_that_hash_are_loaded_under_the_names_that_they_have(
    modules: str, argon2: str
) -> None:
    loaded = [line.split()[1] for line in configured(modules) if line.startswith("moduleload")]
    assert loaded == ["back_mdb", "back_monitor", "pw-sha2", "pw-pbkdf2", argon2]


def test_a_scheme_is_set_after_the_module_that_knows_it() -> None:
    lines = configured(DEBIAN_13, **{"password-scheme": "PBKDF2-SHA512"})
    assert lines.index("password-hash {PBKDF2-SHA512}") > lines.index("moduleload pw-pbkdf2")


@pytest.mark.parametrize("modules", [DEBIAN_11, DEBIAN_13])
def test_its_schemes_are_its_own_and_those_of_the_modules_that_it_loads(modules: str) -> None:
    box: Any = Box(modules)
    OpenLdap().create(box, Seed(content=DirectoryContent(), settings=Settings(id="x")))
    directory: Any = None
    found = {each.name: each for each in OpenLdap().offered(box, directory)}
    assert {"SSHA", "SSHA512", "PBKDF2-SHA512", "ARGON2"} <= set(found)
    assert [name for name, each in found.items() if each.readable] == ["CLEARTEXT"]
    assert found["ARGON2"].options == {"password-scheme": "ARGON2"}


def test_without_a_scheme_it_hashes_by_its_own_default() -> None:
    assert not [line for line in configured(DEBIAN_13) if line.startswith("password-hash")]


@pytest.mark.parametrize("scheme", ["", "{SSHA}", "SSHA\nrootpw x", "a b"])
def test_what_is_no_scheme_s_name_gets_into_no_file(scheme: str) -> None:
    with pytest.raises(InstanceError, match="not the name of a password scheme"):
        configuration(SITE, (), scheme)


def test_its_sizes_are_fixed_and_it_logs_nothing() -> None:
    lines = configured(DEBIAN_13)
    assert {"threads 16", "maxsize 1073741824", "loglevel 0"} <= set(lines)


@pytest.mark.parametrize(("options", "files"), [({}, "1024"), ({"descriptors": "4096"}, "4096")])
def test_it_may_open_as_many_files_as_settings_say(options: dict[str, str], files: str) -> None:
    box: Any = Box(DEBIAN_13)
    settings = Settings(id="x", options=options)
    OpenLdap().create(box, Seed(content=DirectoryContent(), settings=settings))
    assert files in box.asked
    assert OpenLdap().most_connections(settings) == int(files) - SPARE


@pytest.mark.parametrize("wrong", ["many", "-1", "12", "٣٣٣", "99999999999"])
def test_what_is_no_number_of_files_is_told(wrong: str) -> None:
    settings = Settings(id="mine", options={"descriptors": wrong})
    with pytest.raises(MatrixError, match="settings mine: descriptors is") as caught:
        OpenLdap().descriptors(settings)
    assert "from 256 to 1048576" in caught.value.hint


def test_a_manager_s_password_counts_only_below_its_database_s_suffix() -> None:
    assert SITE.manager.endswith(SITE.suffix)


# As the three Debian releases say it.
SAID = """\
6b024f94.071e8b94 0x7fcd2c4ad200 @(#) $OpenLDAP: slapd 2.5.13+dfsg-5 (Feb  8 2023 01:56:12) $
6b024f94.0747f247 0x7fcd2c4ad200 slapd.conf: line 9: <password-hash> scheme not available ({X})
6b024f94.0748448c 0x7fcd2c4ad200 slapd.conf: line 9: <password-hash> no valid hashes found
6b024f94.074bb0ab 0x7fcd2c4ad200 slapd stopped.
6b024f94.074bcfc2 0x7fcd2c4ad200 connections_destroy: nothing to destroy.
"""
NO_MODULE = """\
6b024f95.1622cac3 0x7f598981b140 lt_dlopenext failed: (pw-sha3) file not found
6b024f95.16232c01 0x7f598981b140 slapd.conf: line 7: <moduleload> handler exited with 1!
6b024f95.1628a0c6 0x7f598981b140 slapd stopped.
"""


@pytest.mark.parametrize(
    ("said", "why"), [(SAID, "scheme not available ({X})"), (NO_MODULE, "(pw-sha3) file not found")]
)
def test_why_it_did_not_start_is_found_in_what_it_said(said: str, why: str) -> None:
    assert telling_line(said, OpenLdap().reason).endswith(why)


@pytest.fixture
def server() -> Directory:
    """ldap3's own server with the entries of slapd's monitor, as they were read from it."""
    connection = ldap3.Connection(
        ldap3.Server("memory"), SITE.manager, SITE.manager_password,
        client_strategy=ldap3.MOCK_SYNC, raise_exceptions=False,
    )  # fmt: skip
    said = "OpenLDAP: slapd 2.4.57+dfsg-3+deb11u1 (May 14 2022 18:32:57)"
    entries = {
        SITE.manager: {"userPassword": SITE.manager_password, "sn": "manager"},
        "cn=Monitor": {"monitoredInfo": said, "objectClass": "top"},
        "cn=Bind,cn=Operations,cn=Monitor": {
            "monitorOpInitiated": "406", "monitorOpCompleted": "405", "objectClass": "top",
        },
        "cn=Modify,cn=Operations,cn=Monitor": {
            "monitorOpInitiated": "3", "monitorOpCompleted": "3", "objectClass": "top",
        },
        "cn=Entries,cn=Statistics,cn=Monitor": {"monitorCounter": "12", "objectClass": "top"},
    }  # fmt: skip
    for dn, attributes in entries.items():
        connection.strategy.add_entry(dn, attributes)
    assert connection.bind()
    return Directory(site=SITE, socket=Path("/nowhere"), connection=connection)


def test_it_tells_its_version_and_how_many_operations_it_began(server: Directory) -> None:
    assert OpenLdap().version(server) == "2.4.57+dfsg-3+deb11u1"
    assert OpenLdap().counts(server) == {"bind": 406, "search": 12, "modify": 3}


def test_a_password_is_set_by_the_request_that_makes_it_hash() -> None:
    asked: list[tuple[str, str]] = []

    class Speaking:
        """A connection that notes what it was asked for, in order."""

        result: ClassVar[dict[str, Any]] = {"result": 0, "description": "", "message": ""}

        class extend:  # noqa: N801 - ldap3's own name
            class standard:  # noqa: N801 - likewise
                @staticmethod
                def modify_password(dn: str, *, new_password: str) -> None:
                    asked.append((dn, new_password))

        def add(self, dn: str, attributes: dict[str, list[str]]) -> None:
            assert "userPassword" not in attributes
            asked.append((dn, "added"))

    directory = Directory(site=SITE, socket=Path("/nowhere"), connection=Speaking())
    OpenLdap().add_user(directory, 3)
    assert asked == [(SITE.user_dn(3), "added"), (SITE.user_dn(3), SITE.user_password)]
    Speaking.result = {"result": 53, "description": "unwilling", "message": "no such scheme"}
    with pytest.raises(InstanceError, match=r"a password for uid=user0000003.* no such scheme"):
        directory.set_password(3)


@pytest.mark.parametrize(("after", "issues"), [("2.6.10+dfsg-1", [9827]), ("2.6.8+dfsg-1", [])])
def test_the_step_of_argon2_s_defaults_has_a_known_cause(after: str, issues: list[int]) -> None:
    before = StoredPassword(scheme="ARGON2", rounds=3, memory_kib=4096)
    later = StoredPassword(scheme="ARGON2", rounds=5, memory_kib=7168)
    known = known_changes("openldap").between(("2.5.13+dfsg-5", before.facts), (after, later.facts))
    assert [change.issue for change in known] == issues
