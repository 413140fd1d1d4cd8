"""Passwords at work: binds in every scheme, right, wrong and empty ones, TLS, changes, policies."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import ldap3
from ldap3.core.exceptions import LDAPException

from dsharness.systems.ldap.ldap_connection import reading_answers

from . import BY_MODIFY, BY_REQUEST, EARLIER, FIRST, LONG, LONG_ENOUGH
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
        entries = [entry for entry in connection.response if entry.get("raw_attributes")]
        expect(not entries, f"anyone can read the stored passwords of {len(entries)} users")
    return f"anyone may ask for the version ({version}), and sees no password"


def empty_password(job: Job) -> str:
    """A name with an empty password is no proof of anything. ldap3 refuses to send one."""
    name = job.users[0].dn.encode()
    bind = _encoded(0x60, b"\x02\x01\x03" + _encoded(0x04, name) + b"\x80\x00")
    with socket.create_connection((HOST, job.port), LIMIT_S) as stream:
        stream.sendall(_encoded(0x30, b"\x02\x01\x01" + bind))
        answer = stream.recv(4096)
    # The first enumerated value is the result's code: 0 is success.
    _, separator, rest = answer.partition(b"\x0a\x01")
    expect(separator and rest, "a name with an empty password got no answer")
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
    "starttls": start_tls,
    "ldaps": ldaps,
    "certificate-verified": unknown_issuer,
}
BINDS: dict[str, Attempt] = {
    "bind-every-scheme": every_scheme,
    "bind-wrong-password": wrong_passwords,
    "bind-anonymous": nobody,
    "bind-empty-password": empty_password,
    **TLS,
}


CONFIG = "cn=config"
FAILURES, LOCKED_S = 3, 3
CLASSES = ["top", "person", "organizationalPerson", "inetOrgPerson"]
LENGTH = {"passwordCheckSyntax": "on", "passwordMinLength": "12"}
HISTORY = {"passwordHistory": "on", "passwordInHistory": "2"}
LOCKOUT = {
    "passwordLockout": "on",
    "passwordMaxFailure": str(FAILURES),
    "passwordUnlock": "on",
    "passwordLockoutDuration": str(LOCKED_S),
    "passwordResetFailureCount": str(LOCKED_S),
}


def change_by_modify(job: Job) -> str:
    """A user replaces the own password."""
    with _someone(job, "modify") as user:
        new = replace(user, password=BY_MODIFY)
        expect(_change(job, user, new.password) == "success", "the user may not change it")
        return _changed(job, user, new)


def change_by_extended_operation(job: Job) -> str:
    """The same by the password modify request, which proves the old password."""
    with _someone(job, "extended") as user:
        new = replace(user, password=BY_REQUEST)
        with _encrypted(job, user) as connection:
            with reading_answers():
                connection.extend.standard.modify_password(user.dn, "not the old one", new.password)
            result = connection.result["description"]
            expect(result != "success", "a wrong old password was ACCEPTED")
            with reading_answers():
                connection.extend.standard.modify_password(user.dn, user.password, new.password)
            expect(connection.result["result"] == 0, described(connection.result))
        return _changed(job, user, new)


def minimum_length(job: Job) -> str:
    """Too short a password is refused."""
    with _policy(job, LENGTH), _someone(job, "length") as user:
        short = _change(job, user, "Kw7-zQ")
        expect(short == "constraintViolation", f"6 of 12 characters got {short}")
        long = _change(job, user, LONG_ENOUGH)
        expect(long == "success", f"17 characters got {long}")
    return "with a minimum of 12 characters, 6 were refused and 17 accepted"


def history(job: Job) -> str:
    """An earlier password is refused as long as it is remembered."""
    first, second, third = EARLIER
    with _policy(job, HISTORY), _someone(job, "history") as user:
        now = user
        for password in (first, second):
            result = _change(job, now, password)
            expect(result == "success", f"a new password got {result}")
            now = replace(now, password=password)
        again = _change(job, now, first)
        expect(again == "constraintViolation", f"the password before this one got {again}")
        second_result = _change(job, now, third)
        expect(second_result == "success", f"a new password got {second_result}")
    return "with a history of 2, the password before this one was refused"


def lockout(job: Job) -> str:
    """After some failures even the right password is refused, until the time is over."""
    with _policy(job, LOCKOUT), _someone(job, "lockout") as user:
        wrong = replace(user, password="not it")
        for _ in range(FAILURES + 1):  # one more: by default the server counts so
            job.result_of_bind(wrong)
        locked = job.result_of_bind(user)
        expect(locked == "constraintViolation", f"after {FAILURES + 1} failures it got {locked}")
        time.sleep(LOCKED_S + 1)
        after = job.result_of_bind(user)
        expect(after == "success", f"after the lockout the right password got {after}")
    return (
        f"locked after {FAILURES + 1} wrong passwords, open again after {LOCKED_S} seconds "
        "with the right one"
    )


def whole_password(job: Job) -> str:
    """Every character of a long password counts: without the last ones it is refused."""
    with _someone(job, "long") as user:
        result = _change(job, user, LONG)
        expect(result == "success", f"{len(LONG)} characters got {result}")
        expect(job.result_of_bind(replace(user, password=LONG)) == "success", "it does not bind")
        for length in (len(LONG) - 1, 72, 64):
            result = job.result_of_bind(replace(user, password=LONG[:length]))
            expect(result != "success", f"the first {length} characters of it were ACCEPTED")
        result = job.result_of_bind(replace(user, password=f"{LONG}-more"))
        expect(result != "success", "the password with something after it was ACCEPTED")
    return f"all of {len(LONG)} characters are needed, and nothing may follow"


def salts(job: Job) -> str:
    """The same password is stored differently for each user, or one guess would try them all."""
    with (
        _someone(job, "salt-a") as first_connection,
        _someone(job, "salt-b") as two,
        job.bound(job.manager) as connection,
    ):
        values = [_stored(connection, user.dn) for user in (first_connection, two)]
    expect(values[0] != values[1], "two users with the same password have the same stored value")
    return "two users with the same password have different stored values"


def _stored(connection: Any, dn: str) -> bytes:
    connection.search(dn, "(objectClass=*)", ldap3.BASE, attributes=["userPassword"])
    return bytes(connection.response[0]["raw_attributes"]["userPassword"][0])


def _changed(job: Job, old: User, new: User) -> str:
    expect(job.result_of_bind(new) == "success", "the new password is refused")
    expect(job.result_of_bind(old) == "invalidCredentials", "the old password still binds")
    return "the new password binds, the old one no longer does"


def _change(job: Job, user: User, password: str) -> str:
    with job.bound(user) as connection:
        change = {"userPassword": [(ldap3.MODIFY_REPLACE, [password])]}
        connection.modify(user.dn, change)
        return str(connection.result["description"])


@contextmanager
def _encrypted(job: Job, user: User) -> Iterator[Any]:
    """The password modify request is accepted over an encrypted connection only."""
    with opened(job.server(encrypted=True), user) as connection:
        if not connection.bind():
            raise UnexpectedError(f"{user.dn} cannot bind: {described(connection.result)}")
        yield connection


@contextmanager
def _someone(job: Job, name: str) -> Iterator[User]:
    user = User(dn=f"uid=changes-{name},{job.people}", password=FIRST)
    with job.bound(job.manager) as connection:
        attributes = {"uid": f"changes-{name}", "cn": "a", "sn": "b", "userPassword": user.password}
        if not connection.add(user.dn, CLASSES, attributes):
            raise UnexpectedError(f"no user could be added: {described(connection.result)}")
    try:
        yield user
    finally:
        with job.bound(job.manager) as connection:
            connection.delete(user.dn)


@contextmanager
def _policy(job: Job, settings: Mapping[str, str]) -> Iterator[None]:
    """The server's own policy, as it was again afterwards."""
    with job.bound(job.manager) as connection:
        connection.search(CONFIG, "(objectClass=*)", ldap3.BASE, attributes=[*settings])
        raw = connection.response[0]["raw_attributes"]
        before = {name: raw[name][0].decode() for name in settings if raw.get(name)}
        _set(connection, settings)
    try:
        yield
    finally:
        with job.bound(job.manager) as connection:
            _set(connection, before)


def _set(connection: Any, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        succeeded = connection.modify(CONFIG, {name: [(ldap3.MODIFY_REPLACE, [value])]})
        expect(succeeded, f"{name}: {value} was refused: {described(connection.result)}")


PASSWORDS: dict[str, Attempt] = {
    "password-by-modify": change_by_modify,
    "password-by-extended-operation": change_by_extended_operation,
    "policy-minimum-length": minimum_length,
    "policy-history": history,
    "policy-lockout": lockout,
    "password-whole": whole_password,
    "password-salts": salts,
}
