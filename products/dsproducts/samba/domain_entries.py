"""What a domain is filled with, as LDIF: users and groups, users of a realm, names of a zone."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from dsharness.errors import WorkloadError
from dsharness.model import Content, DirectoryContent
from dsharness.systems.ldap.directory import Site, group_name
from dsharness.systems.ldap.directory_system import content_ldif, hashed, ldif_entry
from dsproducts.bind.dns_workloads import ZoneContent
from dsproducts.bind.named import address, host
from dsproducts.krb5.kdc import user
from dsproducts.krb5.krbload_workload import RealmContent

DOMAIN, REALM, ZONE = "LAB", "AD.LAB", "ad.lab"
SUFFIX = "dc=ad,dc=lab"
# Flags of an account: a person's, whose password never expires; without one, or without a proof.
PERSON, LASTING, NO_PASSWORD, NO_PROOF = 0x200, 0x10000, 0x20, 0x400000
ADDRESS_RECORD, RECORD_VERSION, OF_ZONE, TTL_S = 1, 5, 0xF0, 3600


@dataclass(frozen=True, kw_only=True)
class DomainSite(Site):
    """Where things are in a domain: users are accounts, whose entries are named by `cn`."""

    def named_dn(self, name: str) -> str:
        return f"cn={name},{self.people}"

    def plain_attributes(self, name: str) -> dict[str, list[str]]:
        return {
            "objectClass": ["top", "person", "organizationalPerson", "user"],
            "sAMAccountName": [name],
            "sn": [name],
            "userAccountControl": [str(PERSON | LASTING | NO_PASSWORD)],
        }

    def group_attributes(self, number: int, content: DirectoryContent) -> dict[str, list[str]]:
        members = super().group_attributes(number, content)["member"]
        name = group_name(number)
        return {"objectClass": ["top", "group"], "sAMAccountName": [name], "member": members}

    def account(
        self, attributes: Mapping[str, list[str]], flags: int = 0
    ) -> dict[str, list[str] | list[bytes]]:
        """An entry with a password, which the server makes all keys of."""
        password = f'"{self.user_password}"'.encode("utf-16-le")
        counts = {"userAccountControl": [str(PERSON | LASTING | flags)]}
        return {**attributes, **counts, "unicodePwd": [password]}


# The policy of a new domain wants three kinds of characters in a password.
SITE = DomainSite(
    suffix=SUFFIX,
    people=f"ou=people,{SUFFIX}",
    port=389,  # no setting moves it
    manager=f"cn=Administrator,cn=Users,{SUFFIX}",
    manager_password="Dsbisect-1-manager",  # noqa: S106 - reaches no network but loopback
    user_password="Dsbisect-1-user",  # noqa: S106 - likewise
)


def entries(content: Content) -> Iterator[str]:
    """All that is added to a new domain."""
    yield ldif_entry(SITE.people, {"objectClass": ["top", "organizationalUnit"]})
    match content:
        case DirectoryContent():
            for number in range(hashed(content)):
                account = SITE.account(SITE.user_attributes(number))
                yield ldif_entry(SITE.user_dn(number), account)
            yield from content_ldif(SITE, content, hashed(content))
        case RealmContent():
            for guarded in (False, True):
                for number in range(content.number):
                    name = user(number, guarded=guarded)
                    flags = 0 if guarded else NO_PROOF
                    account = SITE.account(SITE.plain_attributes(name), flags)
                    yield ldif_entry(SITE.named_dn(name), account)
        case ZoneContent():
            for number in range(content.number):
                yield _name(number)
        case _:
            raise WorkloadError(f"a domain cannot be filled with {content.kind}")


def _name(number: int) -> str:
    """A name of the zone with its address, as a domain controller stores it ([MS-DNSP] 2.3.2.2)."""
    value = IPv4Address(address(number)).packed
    head = struct.pack("<HHBBHI", len(value), ADDRESS_RECORD, RECORD_VERSION, OF_ZONE, 0, 1)
    record = head + struct.pack(">I", TTL_S) + bytes(8) + value
    dn = f"DC={host(number)},DC={ZONE},CN=MicrosoftDNS,DC=DomainDnsZones,{SUFFIX}"
    return ldif_entry(dn, {"objectClass": ["top", "dnsNode"], "dnsRecord": [record]})


def proofs(content: Content) -> Iterator[str]:
    """What a filled domain must answer, first and last, in the words of `domain-work`."""
    for number in dict.fromkeys((0, content.number - 1)):
        match content:
            case DirectoryContent() if number < hashed(content):
                yield f"bind {SITE.user_dn(number)}"
            case RealmContent():
                yield from (f"ticket {user(number, guarded=guarded)}" for guarded in (False, True))
            case ZoneContent():
                yield f"address {host(number)}.{ZONE} {address(number)}"
