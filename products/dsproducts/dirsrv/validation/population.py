"""What a validated server is filled with, and its entries at one moment, compared with another.

It holds users of every scheme that the server offers, and other data.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence

import ldap3
from pydantic import Field

from dsharness.errors import InstanceError
from dsharness.model import Value
from dsharness.systems.ldap.directory import Directory
from dsproducts.dirsrv.ns_slapd import fix_caches

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
    """List the schemes under which the server can store passwords, by its configuration."""
    enabled = "(&(nsslapd-pluginType=pwdstoragescheme)(nsslapd-pluginEnabled=on))"
    plugins = directory.children(SCHEMES, "cn", like=enabled)
    return tuple(sorted(plugin.must("cn") for plugin in plugins))


def fill(directory: Directory) -> None:
    """Set fixed sizes and access rules, add people and groups: all but the users that bind."""
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
    """Add one user for each scheme that the server accepts as the one for new passwords.

    The scheme of new passwords is as it was before, but it is set now: `forget_scheme` ends that.
    """
    before = directory.read("cn=config", "passwordStorageScheme").must("passwordStorageScheme")
    users = tuple(_scheme_users(directory, prefix))
    _set_scheme(directory, before)
    return users


def add_default_user(directory: Directory, name: str) -> SchemeUser:
    """Add one user as an administrator does today."""
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
    """Return the password of a user that binds: the lab looks for it in what the server writes."""
    return f"Old-{name}-Pa55word"


def _added(directory: Directory, name: str, scheme: str) -> SchemeUser:
    dn, password = f"uid={name},{directory.site.people}", password_of(name)
    attributes = {
        "objectClass": ["top", "person", "organizationalPerson", "inetOrgPerson"],
        "uid": [name],
        "cn": [name],
        "sn": [name],
        "userPassword": [password],
    }
    directory.add(dn, attributes)
    stored = directory.read(dn, "userPassword").must("userPassword")
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


Entry = Mapping[str, tuple[str, ...]]
Dump = dict[str, Entry]  # DN -> attribute -> values
PASSWORD = "userPassword"  # noqa: S105 - an attribute
SHOWN = 60  # characters of a value


def dump_of(directory: Directory) -> Dump:
    """Read every entry with its user attributes; operational ones may change by themselves."""
    entries = directory.connection.search(
        directory.site.suffix, "(objectClass=*)", attributes=["*", PASSWORD]
    )
    if not entries:
        raise InstanceError(f"{directory.site.suffix}: no entry in the served directory")
    return {
        entry["dn"]: {
            name: tuple(sorted(map(_text, values)))
            for name, values in entry["raw_attributes"].items()
        }
        for entry in directory.connection.response
    }


def differences(before: Dump, after: Dump) -> Iterator[str]:
    """Write one line for each entry or attribute that is not the same."""
    for dn in sorted(before.keys() - after.keys()):
        yield f"{dn}: is gone"
    for dn in sorted(after.keys() - before.keys()):
        yield f"{dn}: was not there before"
    for dn in sorted(before.keys() & after.keys()):
        yield from _changed(dn, _lower(before[dn]), _lower(after[dn]))


def passwords_in(dump: Dump) -> dict[str, str]:
    """DN -> stored password, of those that have one."""
    return {
        dn: values[0]
        for dn, entry in dump.items()
        if len(values := _lower(entry).get(PASSWORD.lower(), ())) == 1
    }


def _changed(dn: str, before: Entry, after: Entry) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, ()), after.get(name, ())
        if old != new:
            yield f"{dn}: {name}: {_shown(old)} became {_shown(new)}"


def _shown(values: tuple[str, ...]) -> str:
    text = ", ".join(values) or "nothing"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _lower(entry: Entry) -> Entry:
    return {name.lower(): values for name, values in entry.items()}


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode()}"
