"""A directory by its address, the users that someone named for it, and what it tells anyone."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dsharness.errors import UsageError
from dsharness.guarded_files import given_input
from dsharness.model import Facts
from dsharness.model.stored_password import parse_stored
from dsharness.systems.ldap.directory import LdapUser, read_anonymously
from dsharness.systems.ldap.directory_system import VERSION

HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
DEFAULT_PORT = 389
LINE_CHARACTERS = 1000  # the load reads no longer ones
MOST_USERS, MOST_USERS_BYTES = 100_000, 64 << 20
INSTEAD = {
    "ldaps": "ldclt makes a TLS context for each connection, so it would measure itself",
    "ldapi": "a Unix socket is not an address that another container reaches",
}


@dataclass(frozen=True, kw_only=True)
class LdapAddress:
    """Where a directory answers that the lab did not make."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"ldap://{self.host}:{self.port}"

    def is_named(self, text: str) -> bool:
        """Whether somebody typed this address."""
        return parse_address(text) == self

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, kw_only=True)
class NamedUsers:
    """Those that someone named, in that order."""

    users: tuple[LdapUser, ...]

    def user(self, number: int) -> LdapUser:
        return self.users[number]


def shown_to_anyone(address: LdapAddress, dn: str) -> Facts:
    """Its version and how it stores a password, as far as it tells that without one."""
    answer = read_anonymously(address.host, address.port, dn)
    facts: Facts = {VERSION: answer["vendorVersion"][0]} if "vendorVersion" in answer else {}
    if "userPassword" in answer:
        facts |= parse_stored(answer["userPassword"][0]).facts
    return facts


def parse_address(text: str) -> LdapAddress:
    """ldap://HOST or ldap://HOST:PORT and nothing else; UsageError says what is wrong."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        raise _wrong(text, str(error)) from error
    if url.scheme in INSTEAD:
        raise _wrong(text, INSTEAD[url.scheme])
    if url.scheme != "ldap":
        raise _wrong(text, "it does not begin with ldap://")
    if url.username is not None or url.password is not None:
        raise _wrong(text, "it names a user; --users-file or --bind-dn do that")
    if url.path not in {"", "/"} or url.query or url.fragment:
        raise _wrong(text, "something follows the port")
    if not HOST.fullmatch(url.hostname or ""):
        raise _wrong(text, "no host name or IPv4 address is in it")
    if port == 0:
        raise _wrong(text, "no server listens on port 0")
    return LdapAddress(host=url.hostname or "", port=port or DEFAULT_PORT)


def _wrong(text: str, why: str) -> UsageError:
    return UsageError(
        f"--address {text}: {why}", hint="give it as ldap://HOST:PORT, e.g. ldap://127.0.0.1:3389"
    )


def read_users(path: Path) -> tuple[LdapUser, ...]:
    """DN, tab, password on each line; no message repeats what a line holds."""
    try:
        given = given_input(str(path.absolute()), most_bytes=MOST_USERS_BYTES)
        lines = given.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"--users-file {path}: it is not text in UTF-8") from error
    except OSError as error:
        raise UsageError(f"--users-file {path}: {error.strerror}") from error
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not numbered:
        raise UsageError(
            f"--users-file {path}: it names no user", hint="one a line: DN, a tab, the password"
        )
    if len(numbered) > MOST_USERS:
        raise UsageError(
            f"--users-file {path}: {len(numbered)} users; at most {MOST_USERS} are read"
        )
    return tuple(_user(line, f"--users-file {path}, line {number}") for number, line in numbered)


def _user(line: str, where: str) -> LdapUser:
    parts = line.split("\t")
    if len(parts) != 2:
        raise UsageError(
            f"{where}: {len(parts) - 1} tabs, not one", hint="one a line: DN, a tab, the password"
        )
    return checked_user(parts[0].strip(), parts[1], where)


def checked_user(dn: str, password: str, where: str) -> LdapUser:
    """A user that a load can bind as."""
    why = None
    if "=" not in dn:
        why = "the DN has no ="
    elif not password:
        why = "the password is empty, and a bind without one is anonymous"
    elif not (dn + password).isprintable():
        why = "a DN and a password are one line of printable characters"
    elif len(dn) + len(password) > LINE_CHARACTERS:
        why = f"more than {LINE_CHARACTERS} characters"
    if why is not None:
        raise UsageError(f"{where}: {why}")
    return LdapUser(dn=dn, password=password)
