"""Binds: every scheme, right and wrong passwords, no password, and both ways to encrypt."""

from __future__ import annotations

import socket
import ssl
from dataclasses import replace
from typing import Any

import ldap3
from ldap3.core.exceptions import LDAPException

from .job import HOST, LIMIT_S, Attempt, Job, UnexpectedError, User, described, expect, opened

WRONG = "invalidCredentials"


def every_scheme(job: Job) -> str:
    """All users with their own passwords."""
    results = {user.scheme: job.result_of_bind(user) for user in job.users}
    refused = [f"{name}: {result}" for name, result in results.items() if result != "success"]
    count = len(results)
    expect(not refused, f"{len(refused)} of {count} users were refused: {'; '.join(refused)}")
    return f"{count} users bound, each stored under another scheme: {', '.join(results)}"


def wrong_passwords(job: Job) -> str:
    """All users with a password that is not theirs, in two ways."""
    # Different from the first character on: the oldest scheme, CRYPT with DES, reads 8 of them.
    guesses = [replace(user, password=f"x{user.password}") for user in job.users]
    guesses += [replace(user, password=user.password.swapcase()) for user in job.users]
    results = [(user.scheme, job.result_of_bind(user)) for user in guesses]
    let_in = [name for name, result in results if result == "success"]
    expect(not let_in, f"a wrong password was ACCEPTED for {', '.join(let_in)}")
    odd = [f"{name}: {result}" for name, result in results if result != WRONG]
    expect(not odd, f"a wrong password was not answered with {WRONG}: {'; '.join(odd)}")
    return f"{len(results)} binds with wrong passwords were refused"


def nobody(job: Job) -> str:
    """Without a name: the server says who it is, and shows no password."""
    with opened(job.server()) as connection:
        expect(connection.bind(), f"an anonymous bind was refused: {described(connection.result)}")
        connection.search("", "(objectClass=*)", ldap3.BASE, attributes=["vendorVersion"])
        expect(connection.response, "the root entry cannot be read")
        version = _first(connection, "vendorVersion")
        connection.search(job.people, "(userPassword=*)", attributes=["userPassword"])
        shown = [entry for entry in connection.response if entry.get("raw_attributes")]
        expect(not shown, f"anyone can read the stored passwords of {len(shown)} users")
    return f"anyone may ask for the version ({version}), and sees no password"


def empty_password(job: Job) -> str:
    """A name with an empty password is no proof of anything. ldap3 refuses to send one."""
    name = job.users[0].dn.encode()
    bind = _encoded(0x60, b"\x02\x01\x03" + _encoded(0x04, name) + b"\x80\x00")
    with socket.create_connection((HOST, job.port), LIMIT_S) as stream:
        stream.sendall(_encoded(0x30, b"\x02\x01\x01" + bind))
        answer = stream.recv(4096)
    # The first enumerated value is the result's code: 0 is success.
    _, found, rest = answer.partition(b"\x0a\x01")
    expect(found and rest, "a name with an empty password got no answer")
    expect(rest[0] != 0, "a name with an empty password was ACCEPTED")
    return f"a name with an empty password is refused (result {rest[0]})"


def start_tls(job: Job) -> str:
    """Encrypted after the first request, with the server's certificate verified."""
    with opened(job.server()) as connection:
        expect(connection.start_tls(), f"StartTLS was refused: {described(connection.result)}")
        return f"StartTLS works: {_bound_over(connection, job.users[0])}"


def ldaps(job: Job) -> str:
    """Encrypted from the first byte, with the server's certificate verified."""
    with opened(job.server(encrypted=True)) as connection:
        return f"LDAPS works: {_bound_over(connection, job.users[0])}"


def unknown_issuer(job: Job) -> str:
    """The verification is real: without the CA's certificate the server is not trusted."""
    try:
        with opened(job.server(encrypted=True, trust=False)):
            pass
    except LDAPException as error:
        expect("certificate" in str(error).lower(), f"LDAPS failed in another way: {error}")
        return "a client that does not know the issuer of the certificate refuses the server"
    raise UnexpectedError("the certificate was accepted by a client that does not know its issuer")


def _bound_over(connection: Any, user: User) -> str:
    connection.user, connection.password = user.dn, user.password
    connection.authentication = ldap3.SIMPLE
    expect(connection.bind(), f"the encrypted bind was refused: {described(connection.result)}")
    channel: ssl.SSLSocket = connection.socket
    cipher = channel.cipher()
    return f"{channel.version()}, {cipher[0] if cipher else 'no cipher'}, certificate verified"


def _encoded(tag: int, content: bytes) -> bytes:
    """One value as LDAP encodes it."""
    size = len(content)
    return bytes([tag, size] if size < 0x80 else [tag, 0x81, size]) + content


def _first(connection: Any, name: str) -> str:
    values = connection.response[0]["raw_attributes"].get(name) or [b"?"]
    return str(values[0].decode())


TLS: dict[str, Attempt] = {
    "starttls": start_tls, "ldaps": ldaps, "certificate-verified": unknown_issuer,
}  # fmt: skip
BINDS: dict[str, Attempt] = {
    "bind-every-scheme": every_scheme, "bind-wrong-password": wrong_passwords,
    "bind-anonymous": nobody, "bind-empty-password": empty_password, **TLS,
}  # fmt: skip
