"""What a validated server is filled with: users of every scheme that it offers, and other data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ldap3
from pydantic import Field

from dsharness.model import Value
from dsharness.systems.ldap.directory import Directory
from dsharness.systems.ldap.ns_slapd import fix_caches
from dsvalidate.dirsrv.directory_dump import Dump

SCHEMES = "cn=Password Storage Schemes,cn=plugins,cn=config"
# An own password may be changed; names may be read by anyone.
OWN = 'acl "own password"; allow (write) userdn="ldap:///self";'
NAMES = 'acl "names"; allow (read, search, compare) userdn="ldap:///anyone";'
ACCESS = (
    f'(targetattr="userPassword")(version 3.0; {OWN})',
    f'(targetattr="cn || sn || uid || description || objectClass")(version 3.0; {NAMES})',
)
PEOPLE = 30
GROUPS = 3
BINARY = bytes(range(256)) * 8


class SchemeUser(Value):
    """A user whose password the server stored under one scheme."""

    dn: str
    password: str
    scheme: str = Field(description="that the server was asked for")
    stored: str = Field(description="what it wrote")


def client_users(users: Sequence[SchemeUser]) -> list[dict[str, str]]:
    """Users as the LDAP client takes them."""
    return [user.model_dump(include={"dn", "password", "scheme"}) for user in users]


class Population(Value):
    """What is in the directory, as it was after it was filled."""

    users: tuple[SchemeUser, ...]
    dump: Dump


def schemes_of(directory: Directory) -> tuple[str, ...]:
    """Those under which the server can store passwords, as its configuration names them."""
    directory.connection.search(
        SCHEMES,
        "(&(nsslapd-pluginType=pwdstoragescheme)(nsslapd-pluginEnabled=on))",
        ldap3.LEVEL,
        attributes=["cn"],
    )
    found = [
        entry["raw_attributes"]["cn"][0].decode()
        for entry in directory.connection.response
        if "raw_attributes" in entry
    ]
    return tuple(sorted(found))


def fill(directory: Directory) -> None:
    """Fixed sizes, access rules, people and groups: all but the users that bind."""
    fix_caches(directory)
    site = directory.site
    directory.connection.modify(site.suffix, {"aci": [(ldap3.MODIFY_ADD, list(ACCESS))]})
    for name in ("people", "groups"):
        directory.add(f"ou={name},{site.suffix}", {"objectClass": ["top", "organizationalUnit"]})
    people = [f"uid=person{number:03d},{site.people}" for number in range(PEOPLE)]
    for number, dn in enumerate(people):
        directory.add(dn, _person(number))
    photo = {"jpegPhoto": [(ldap3.MODIFY_ADD, [BINARY])]}
    directory.connection.modify(people[0], photo)
    for number in range(GROUPS):
        directory.add(
            f"cn=group{number},ou=groups,{site.suffix}",
            {"objectClass": ["top", "groupOfNames"], "member": people[number::GROUPS]},
        )


def add_scheme_users(directory: Directory, prefix: str) -> tuple[SchemeUser, ...]:
    """One user for each scheme that the server accepts as the one for new passwords.

    The scheme of new passwords is as it was before, but it is set now: `forget_scheme` ends that.
    """
    before = directory.read("cn=config", "passwordStorageScheme")["passwordStorageScheme"]
    made = tuple(_scheme_users(directory, prefix))
    _set_scheme(directory, before[0])
    return made


def add_default_user(directory: Directory, name: str) -> SchemeUser:
    """One user as an administrator adds one today."""
    return _added(directory, name, "default")


def _scheme_users(directory: Directory, prefix: str) -> Iterator[SchemeUser]:
    for scheme in schemes_of(directory):
        if _set_scheme(directory, scheme):
            user = _added(directory, f"{prefix}{scheme.lower()}", scheme)
            if stores(user.stored, scheme):
                yield user
            else:  # a scheme that only reads old values
                directory.connection.delete(user.dn)


def stores(stored: str, scheme: str) -> bool:
    """Whether a stored value is of that scheme: `{crypt}` is of each of CRYPT's kinds."""
    if scheme.upper() == "CLEAR":
        return not stored.startswith("{") or stored.upper().startswith("{CLEAR}")
    prefix = stored.removeprefix("{").partition("}")[0].upper()
    return scheme.upper() == prefix or (prefix == "CRYPT" and scheme.upper().startswith("CRYPT"))


def _set_scheme(directory: Directory, scheme: str) -> bool:
    change = {"passwordStorageScheme": [(ldap3.MODIFY_REPLACE, [scheme])]}
    return bool(directory.connection.modify("cn=config", change))


def password_of(name: str) -> str:
    """Of each user that binds: the lab also looks for it in what the server writes."""
    return f"Old-{name}-Pa55word"


def _added(directory: Directory, name: str, scheme: str) -> SchemeUser:
    dn, password = f"uid={name},{directory.site.people}", password_of(name)
    attributes = {
        "objectClass": ["top", "person", "organizationalPerson", "inetOrgPerson"],
        "uid": [name], "cn": [name], "sn": [name], "userPassword": [password],
    }  # fmt: skip
    directory.add(dn, attributes)
    stored = directory.read(dn, "userPassword").get("userPassword", [""])[0]
    return SchemeUser(dn=dn, password=password, scheme=scheme, stored=stored)


def _person(number: int) -> dict[str, list[str]]:
    name = f"person{number:03d}"
    return {
        "objectClass": ["top", "person", "organizationalPerson", "inetOrgPerson"],
        "uid": [name],
        "cn": [name, f"Zoë Пример {number}"],
        "sn": ["Пример"],
        "description": ["x" * 4000 if number % 10 == 0 else f"number {number}"],
        "mail": [f"{name}@example.org", f"{number}@example.org"],
    }
