"""What a domain controller is filled with, and what is read of it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from shipped import MATRIX

from dsharness.errors import InstanceError, UsageError
from dsharness.loads import LOADS, Operations
from dsharness.matrix import find_workload
from dsharness.model import Content, DirectoryContent, Settings
from dsharness.systems import SYSTEMS
from dsharness.systems.system import CannotCount
from dslab.lab_conditions import refuse_misfits
from dsproducts.bind.dns_workloads import ZoneContent
from dsproducts.krb5.krbload_workload import RealmContent
from dsproducts.samba.domain_controller import PORTS, SECURE_PORT, DomainEndpoint, read_look
from dsproducts.samba.domain_entries import REALM, SITE, ZONE, entries, proofs

DEFAULT = Settings(id="default")


def ldif(content: Content) -> list[str]:
    return "".join(entries(content)).removesuffix("\n\n").split("\n\n")


def test_users_are_accounts_and_only_some_have_a_password() -> None:
    people, first, second, group = ldif(
        DirectoryContent(number=2, passwords=1, groups=1, members=2)
    )
    password = base64.b64encode('"Dsbisect-1-user"'.encode("utf-16-le")).decode()
    assert people.startswith("dn: ou=people,dc=ad,dc=lab")
    assert "dn: cn=user0000000,ou=people,dc=ad,dc=lab\n" in first
    assert "sAMAccountName: user0000000" in first
    assert f"unicodePwd:: {password}" in first
    assert "userAccountControl: 66048" in first
    assert "unicodePwd" not in second
    assert "userAccountControl: 66080" in second
    assert "objectClass: group\n" in group
    assert group.count("member: cn=user") == 2


def test_of_a_realm_some_need_no_proof() -> None:
    _, free, guarded = ldif(RealmContent(number=1))
    assert "sAMAccountName: user0" in free
    assert "userAccountControl: 4260352" in free
    assert "sAMAccountName: guarded0" in guarded
    assert "userAccountControl: 66048" in guarded


def test_a_name_has_its_address_as_samba_stores_it() -> None:
    *_, last = ldif(ZoneContent(number=3))
    assert last.startswith("dn: DC=n2,DC=ad.lab,CN=MicrosoftDNS,DC=DomainDnsZones,dc=ad,dc=lab")
    record = base64.b64decode(last.partition("dnsRecord:: ")[2])
    assert record.hex() == "0400010005f00000" + "01000000" + "00000e10" + 16 * "0" + "0a000002"


@pytest.mark.parametrize(
    ("content", "asked"),
    [
        (DirectoryContent(number=3, passwords=1), ["bind cn=user0000000,ou=people,dc=ad,dc=lab"]),
        (RealmContent(number=1), ["ticket user0", "ticket guarded0"]),
        (ZoneContent(number=2), ["address n0.ad.lab 10.0.0.0", "address n1.ad.lab 10.0.0.1"]),
    ],
    ids=lambda value: value.kind if isinstance(value, Content) else "",
)
def test_both_ends_must_be_answered(content: Content, asked: list[str]) -> None:
    assert list(proofs(content)) == asked


def test_what_it_says_of_itself_is_read_whole() -> None:
    look = read_look("Version 4.17.12-Debian\nfunctional-level 4\ndatabase tdb\n")
    assert look.facts == {
        "version": "4.17.12-Debian", "functional-level": "4", "database": "tdb"
    }  # fmt: skip
    assert isinstance(look.operations, CannotCount)
    with pytest.raises(InstanceError, match="does not tell its functional-level, database"):
        read_look("Version 4.17.12-Debian\n")


class Idle:
    """A container that nobody asks for anything."""


def test_each_load_goes_to_the_port_of_its_protocol() -> None:
    endpoint = SYSTEMS["samba"].endpoint(Idle(), Path())  # type: ignore[arg-type]
    assert isinstance(endpoint, DomainEndpoint)
    few = Operations(per_thread=1, limit_s=1)
    urls = {
        "samba-search": "tcp://127.0.0.1:389",
        "kerberos-tcp": "tcp://127.0.0.1:88",
        "dns-live": "udp://127.0.0.1:53",
    }
    for name, url in urls.items():
        load = find_workload(MATRIX, name)
        assert url in LOADS[load.tool].argv(load, endpoint, "/load", few)
    assert {*PORTS} == SYSTEMS["samba"].protocols
    assert (endpoint.secure_port, endpoint.realm, endpoint.zone) == (SECURE_PORT, REALM, ZONE)
    assert endpoint.users is SITE


@pytest.mark.parametrize(
    ("row", "workload", "missing"),
    [
        ("samba-debian-12", "search-as-user", "inetOrgPerson"),
        ("samba-debian-12", "bind-random", "inetOrgPerson"),
        ("samba-debian-12", "dns-udp", "a count of queries"),
        ("samba-debian-12", "kerberos-preauth", "tickets that fit into a datagram"),
        ("debian-12", "samba-search", "sAMAccountName"),
    ],
)
def test_a_load_that_takes_its_users_for_others_is_refused(
    row: str, workload: str, missing: str
) -> None:
    load = find_workload(MATRIX, workload)
    with pytest.raises(UsageError, match=f"needs {missing}"):
        refuse_misfits(row, MATRIX.row(row).system, (load,), DEFAULT, MATRIX)
