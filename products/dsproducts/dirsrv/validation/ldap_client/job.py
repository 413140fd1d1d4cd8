"""Where the server is, whom it knows, and one try of it.

A try says what it found, or why the server did not do what it has to.
"""

from __future__ import annotations

import json
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ldap3
from ldap3.core import tls
from ldap3.core.exceptions import LDAPException

from dsharness.systems.ldap.ldap_connection import connection_to

HOST = "localhost"  # the name that the server's certificate is for
LIMIT_S = 20


def as_other_clients(*args: Any, **more: Any) -> ssl.SSLContext:
    """Verify as clients in C do: Python asks for an extension of the CA that servers leave out.

    Issuer, signature, time and host name are verified.
    """
    context = ssl.create_default_context(*args, **more)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


tls.__dict__["create_default_context"] = as_other_clients


@dataclass(frozen=True, kw_only=True)
class User:
    """Someone who binds."""

    dn: str
    password: str = field(repr=False)
    scheme: str = ""


@dataclass(frozen=True, kw_only=True)
class Job:
    """The server as the client is to reach it."""

    port: int
    secure_port: int
    ca_file: str
    suffix: str
    people: str
    manager: User
    users: tuple[User, ...] = ()

    def server(self, *, encrypted: bool = False, trust: bool = True) -> ldap3.Server:
        """The server over TCP, ``encrypted`` from the first byte or not.

        Without trust its certificate is unknown.
        """
        ca_file = self.ca_file if trust else None
        return ldap3.Server(
            HOST,
            self.secure_port if encrypted else self.port,
            use_ssl=encrypted,
            tls=ldap3.Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=ca_file),
            get_info=ldap3.NONE,
            connect_timeout=LIMIT_S,
        )

    @contextmanager
    def bound(self, user: User) -> Iterator[Any]:
        """A connection over plain TCP, bound as a user."""
        with opened(self.server(), user) as connection:
            if not connection.bind():
                raise NotDoneError(user.dn, connection.result)
            yield connection

    def result_of_bind(self, user: User) -> str:
        """What the server answers: `success`, `invalidCredentials`, ..."""
        with opened(self.server(), user) as connection:
            connection.bind()
            return str(connection.result["description"])


class NotDoneError(Exception):
    """The server refused a bind that it has to accept."""

    def __init__(self, dn: str, result: dict[str, Any]) -> None:
        super().__init__(f"the bind as {dn} was refused: {described(result)}")


@contextmanager
def opened(server: ldap3.Server, user: User | None = None) -> Iterator[Any]:
    """A connection that is not bound yet; closed at the end."""
    dn, password = (user.dn, user.password) if user else (None, None)
    connection = connection_to(server, dn, password, limit_s=LIMIT_S)
    try:
        connection.open()
        yield connection
    finally:
        with suppress(LDAPException, OSError):  # it may be gone already
            connection.unbind()
        if connection.socket is not None:
            connection.socket.close()


def described(result: dict[str, Any]) -> str:
    """An answer of the server in words."""
    return f"{result['description']} {result.get('message', '')}".rstrip()


def read_job(path: str) -> Job:
    """The job as the lab wrote it."""
    raw = json.loads(Path(path).read_text(encoding="utf-8"))
    users = tuple(
        User(dn=user["dn"], password=user["password"], scheme=user["scheme"])
        for user in raw.get("users", ())
    )
    return Job(
        port=raw["port"],
        secure_port=raw["secure_port"],
        ca_file=raw["ca_file"],
        suffix=raw["suffix"],
        people=raw["people"],
        manager=User(dn=raw["manager"], password=raw["manager_password"]),
        users=users,
    )


Attempt = Callable[[Job], str]


class UnexpectedError(Exception):
    """The server answered, but not as it has to."""


def expect(condition: object, otherwise: str) -> None:
    """UnexpectedError unless it is so."""
    if not condition:
        raise UnexpectedError(otherwise)


def report(name: str, attempt: Attempt, job: Job) -> None:
    """Print what came of it as one line of JSON."""
    try:
        outcome, ok = attempt(job), True
    except (UnexpectedError, NotDoneError) as error:
        outcome, ok = str(error), False
    except (LDAPException, OSError, LookupError, TypeError, ValueError) as error:  # or no answer
        outcome, ok = f"the client could not go on: {type(error).__name__}: {error}", False
    sys.stdout.write(json.dumps({"name": name, "ok": ok, "found": outcome}) + "\n")
    sys.stdout.flush()
