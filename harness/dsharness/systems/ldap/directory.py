"""The served directory, seen through ldap3 over the instance's own Unix socket."""

from __future__ import annotations

import contextlib
import itertools
import random
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import ldap3
from ldap3.core.exceptions import LDAPException
from ldap3.core.results import RESULT_ENTRY_ALREADY_EXISTS

from dsharness.errors import InstanceError
from dsharness.guarded_files import shared_socket
from dsharness.model import SHARERS, DirectoryContent
from dsharness.model.stored_password import StoredPassword, parse_stored
from dsharness.plain_text import plain
from dsharness.process.deadline import Deadline
from dsharness.systems.ldap.ldap_connection import connection_to, reading_answers
from dsharness.systems.system import count_in

LIMIT_S = 30
ASK_S = 5  # for facts that are only shown
ANY = "(objectClass=*)"
MOST_BYTES = 16 << 20  # of one answer
PAGE, PAGES_S = 1000, 600.0  # to count users
WORD_CHARACTERS = 1000  # of what is told in one word, as a version
FILL_S, USER_S = 120.0, 2.0  # to add users: ten times what 100,000 rounds take on a busy machine


@dataclass(frozen=True, kw_only=True)
class LdapUser:
    """A user that a load binds as."""

    dn: str
    password: str = field(repr=False)


class Users(Protocol):
    """The users that a load may bind as, by number."""

    def user(self, number: int) -> LdapUser: ...


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where things are in one kind of served directory."""

    suffix: str
    people: str
    port: int
    manager: str = "cn=Directory Manager"
    manager_password: str = "dsbisect-manager"  # noqa: S105 - reaches no network but loopback
    user_password: str = "dsbisect-user"  # noqa: S105 - likewise
    realm: str | None = None  # users are principals of this realm

    def named_dn(self, name: str) -> str:
        """The entry of a user of that name."""
        return f"uid={name},{self.people}"

    def user_dn(self, number: int) -> str:
        return self.named_dn(user_name(number))

    def user(self, number: int) -> LdapUser:
        return LdapUser(dn=self.user_dn(number), password=self.user_password)

    def user_attributes(self, number: int) -> dict[str, list[str]]:
        """All of a user's entry but the password."""
        names = shared_names(number)
        return self.plain_attributes(user_name(number)) | {
            "sn": [names["surname"]],
            "givenName": [names["given_name"]],
            "telephoneNumber": [names["phone"]],
            "employeeType": [EMPLOYEE],
        }

    def plain_attributes(self, name: str) -> dict[str, list[str]]:
        """An entry of that name that nobody can bind as."""
        classes = ["top", "person", "organizationalPerson", "inetOrgPerson"]
        attributes = {"uid": [name], "cn": [name], "sn": [name]}
        if self.realm is not None:
            classes.append("krbPrincipalAux")
            attributes["krbPrincipalName"] = [f"{name}@{self.realm}"]
        return {"objectClass": classes} | attributes

    def group_dn(self, number: int) -> str:
        return f"cn={group_name(number)},{self.people}"

    def group_attributes(self, number: int, content: DirectoryContent) -> dict[str, list[str]]:
        """A group's entry; the next one begins with the user after this one's last."""
        first = number * content.members
        members = [
            self.user_dn((first + offset) % content.number) for offset in range(content.members)
        ]
        name = group_name(number)
        return {"objectClass": ["top", "groupOfNames"], "cn": [name], "member": members}


EMPLOYEE = "employee"  # the `employeeType` of all users, without an index
DIGITS = 7
USER_MASK = "user" + DIGITS * "X"  # for loads that put a number there


def user_name(number: int) -> str:
    return f"user{number:0{DIGITS}d}"


_SHARED = {"surname": "sur", "given_name": "given", "phone": "555"}
SHARED_MASKS = {place: text + DIGITS * "X" for place, text in _SHARED.items()}


def shared_names(number: int) -> dict[str, str]:
    """What a user shares with as many others as ``SHARERS`` says: their numbers follow."""
    return {
        place: f"{text}{number // SHARERS[place]:0{DIGITS}d}" for place, text in _SHARED.items()
    }


def group_name(number: int) -> str:
    return f"group{number:0{DIGITS}d}"


def photo(size_bytes: int) -> bytes:
    """A large value, the same in every entry."""
    return random.Random(1).randbytes(size_bytes)  # noqa: S311 - no secret


class Entry(dict[str, list[str]]):
    """The values of one entry by name: the server may have left out any, or tell something else."""

    def __init__(self, dn: str, raw: Mapping[str, Sequence[bytes]]) -> None:
        super().__init__({name: _texts(values) for name, values in raw.items()})
        self.dn = dn

    def word(self, name: str) -> str | None:
        """The first value, as it can be shown; None where it has none, however it is spelled."""
        for spelling, values in self.items():
            if spelling.lower() == name.lower() and values:
                return plain(values[0])[:WORD_CHARACTERS]
        return None

    def must(self, name: str) -> str:
        """The same; InstanceError where it has none."""
        word = self.word(name)
        if word is None:
            raise InstanceError(
                f"{self.dn} has no {name} in the served directory",
                hint="this version may have renamed or dropped it",
            )
        return word

    def count(self, name: str) -> int:
        """A number of the server's own; InstanceError for what is none."""
        return count_in(self.must(name), f"{name} of {self.dn}")


@dataclass(frozen=True, kw_only=True)
class Directory:
    """An open connection as the directory's manager."""

    site: Site
    socket: Path
    connection: Any

    def modify(self, dn: str, changes: Mapping[str, str], *, optional: bool = False) -> None:
        """Replace values one by one; ``optional`` ones may be unknown to an older server."""
        for name, value in changes.items():
            self.connection.modify(dn, {name: [(ldap3.MODIFY_REPLACE, [value])]})
            result = self.connection.result
            if result["result"] != 0 and not optional:
                raise InstanceError(
                    f"the server refused {name}: {value} on {dn}: "
                    f"{result['description']} {result['message']}".rstrip(),
                    hint="this version may not know the setting; try other settings",
                )

    def read(self, dn: str, *names: str) -> Entry:
        """The values of one entry, as text; InstanceError when there is no such entry."""
        attributes = list(names) or [ldap3.ALL_ATTRIBUTES]
        if not self.connection.search(dn, ANY, ldap3.BASE, attributes=attributes):
            raise InstanceError(f"{dn}: no such entry in the served directory")
        return Entry(dn, self.connection.response[0]["raw_attributes"])

    def children(self, dn: str, *names: str, like: str = ANY) -> Iterator[Entry]:
        """The entries right below one."""
        self.connection.search(dn, like, ldap3.LEVEL, attributes=list(names))
        return self._entries()

    def below(self, dn: str) -> Iterator[Entry]:
        """All entries from one on down."""
        self.connection.search(dn, ANY, ldap3.SUBTREE, attributes=[ldap3.ALL_ATTRIBUTES])
        return self._entries()

    def _entries(self) -> Iterator[Entry]:
        answers = self.connection.response
        return (Entry(answer["dn"], answer["raw_attributes"]) for answer in answers)

    def count_users(self) -> int:
        """How many it finds, asked for in pages; InstanceError when they do not end."""
        pages = self.connection.extend.standard.paged_search(
            self.site.people, "(uid=*)", attributes=[ldap3.NO_ATTRIBUTES], paged_size=PAGE
        )
        deadline = Deadline.after(PAGES_S)
        with reading_answers():
            number = sum(1 for _ in itertools.takewhile(lambda _: not deadline.passed, pages))
        if deadline.passed:
            raise InstanceError(f"its users were not counted within {PAGES_S:.0f} s")
        return number

    def stored_password(self, number: int) -> StoredPassword:
        return parse_stored(self.stored_value(number))

    def stored_value(self, number: int) -> str:
        dn = self.site.user_dn(number)
        values = self.read(dn, "userPassword").get("userPassword", [])
        if len(values) != 1:
            raise InstanceError(f"{dn} has {len(values)} passwords, not one")
        return values[0]

    def check_user(self, number: int) -> None:
        """Bind as a user once; InstanceError when the directory refuses."""
        dn = self.site.user_dn(number)
        close_quietly(open_connection(self.socket, dn, self.site.user_password))

    def add(self, dn: str, attributes: Mapping[str, Sequence[str | bytes]]) -> None:
        """Add an entry unless it is there."""
        self.connection.add(dn, attributes=attributes)
        result = self.connection.result
        if result["result"] not in {0, RESULT_ENTRY_ALREADY_EXISTS}:
            raise _refusal(f"to add {dn}", result)

    def add_user(self, number: int) -> None:
        """Add a user with a clear-text password, which the server hashes in its own way."""
        password = {"userPassword": [self.site.user_password]}
        self.add(self.site.user_dn(number), self.site.user_attributes(number) | password)

    def add_plain_user(self, number: int) -> None:
        """Add a user who cannot bind."""
        self.add(self.site.user_dn(number), self.site.user_attributes(number))

    def add_photo(self, number: int, value: bytes) -> None:
        """Give a user's entry a large value."""
        dn = self.site.user_dn(number)
        self.connection.modify(dn, {"jpegPhoto": [(ldap3.MODIFY_REPLACE, [value])]})
        if self.connection.result["result"] != 0:
            raise _refusal(f"a photo of {len(value)} bytes for {dn}", self.connection.result)

    def add_hashed_user(self, number: int, value: str) -> None:
        """Add a user with a password that was hashed before; the manager may store it as it is."""
        password = {"userPassword": [value]}
        self.add(self.site.user_dn(number), self.site.user_attributes(number) | password)

    def add_group(self, number: int, content: DirectoryContent) -> None:
        """Add a group of users, where these are."""
        self.add(self.site.group_dn(number), self.site.group_attributes(number, content))

    def set_password(self, number: int) -> None:
        """Change a password by the password modify request: every server hashes such a password."""
        user = self.site.user(number)
        with reading_answers():
            self.connection.extend.standard.modify_password(user.dn, new_password=user.password)
        if self.connection.result["result"] != 0:
            raise _refusal(f"a password for {user.dn}", self.connection.result)


def _refusal(task: str, result: Mapping[str, Any]) -> InstanceError:
    words = f"{result['description']} {result['message']}".rstrip()
    return InstanceError(f"the server refused {task}: {words}")


@contextmanager
def connect(socket: Path, site: Site) -> Iterator[Directory]:
    """Bind as the manager over the socket; InstanceError when that fails."""
    connection = open_connection(socket, site.manager, site.manager_password)
    try:
        yield Directory(site=site, socket=socket, connection=connection)
    except LDAPException as error:
        raise InstanceError(f"the directory stopped answering: {error}") from error
    finally:
        close_quietly(connection)


def open_connection(socket: Path, dn: str, password: str) -> Any:  # noqa: ANN401 - ldap3 is untyped
    """A connection bound as someone; InstanceError says whether the bind was refused."""
    connection = reached(socket, dn, password)
    try:
        bound = connection.bind()
    except (LDAPException, OSError) as error:
        close_quietly(connection)
        raise InstanceError(f"cannot reach the directory at {socket}: {error}") from error
    if not bound:
        answer = connection.result["description"]
        close_quietly(connection)
        raise InstanceError(f"cannot bind as {dn}: {answer}")
    return connection


class BoundedSocket:
    """A connection's socket on which each answer has to be whole in time, and of some size.

    ldap3 bounds each read alone: a server that sends a byte now and then could hold it endlessly.
    """

    def __init__(self, real: socket.socket, limit_s: float) -> None:
        self._real, self._limit_s = real, limit_s
        self._whole, self._left_bytes = Deadline.after(2 * limit_s), MOST_BYTES

    def sendall(self, data: bytes) -> None:
        """A request; the time for its answer begins now."""
        self._whole, self._left_bytes = Deadline.after(2 * self._limit_s), MOST_BYTES
        self._real.settimeout(self._limit_s)
        self._real.sendall(data)

    def recv(self, size: int) -> bytes:
        """A part of the answer; OSError when that takes too long, or does not end."""
        left_s = min(self._limit_s, self._whole.left_s)
        if not left_s or self._left_bytes <= 0:
            limit_text = "in time" if not left_s else f"within {MOST_BYTES >> 20} MiB"
            raise TimeoutError(f"no whole answer {limit_text}")
        self._real.settimeout(left_s)
        data = self._real.recv(size)
        self._left_bytes -= len(data)
        return data

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - all else is the socket's own
        return getattr(self._real, name)


def reached(
    path: Path, dn: str | None = None, password: str | None = None, *, limit_s: int = LIMIT_S
) -> Any:  # noqa: ANN401 - ldap3 is untyped
    """An open connection that nobody is bound on yet; InstanceError when nothing listens there."""
    connection: Any = None
    try:
        with shared_socket(path) as socket_path:
            server = ldap3.Server(
                f"ldapi://{socket_path}", get_info=ldap3.NONE, connect_timeout=limit_s
            )
            connection = connection_to(server, dn, password, limit_s=limit_s)
            connection.open()
            connection.socket = BoundedSocket(connection.socket, limit_s)
    except (LDAPException, OSError) as error:
        if connection is not None:
            close_quietly(connection)
        raise InstanceError(f"cannot reach the directory at {path}: {error}") from error
    return connection


def read_anonymously(host: str, port: int, dn: str) -> dict[str, list[str]]:
    """What anyone may read of a server and of one entry; empty when that is nothing."""
    server = ldap3.Server(host, port, get_info=ldap3.NONE, connect_timeout=ASK_S)
    connection = connection_to(server, limit_s=ASK_S)
    texts: dict[str, list[str]] = {}
    try:
        connection.open()
        connection.socket = BoundedSocket(connection.socket, ASK_S)
        for entry, name in (("", "vendorVersion"), (dn, "userPassword")):
            if connection.search(entry, ANY, ldap3.BASE, attributes=[name]):
                raw = connection.response[0]["raw_attributes"]
                texts |= {name: _texts(raw[name]) for name in raw if raw[name]}
    except (LDAPException, OSError):
        return texts
    finally:
        close_quietly(connection)
    return texts


def _texts(values: Sequence[bytes]) -> list[str]:
    return [value.decode(errors="replace") for value in values]


def close_quietly(connection: Any) -> None:  # noqa: ANN401
    with contextlib.suppress(LDAPException, OSError):  # it may be gone already
        connection.unbind()
    if connection.socket is not None:  # ldap3 leaves the socket of a failed attempt open
        connection.socket.close()


def add_entries(
    socket: Path,
    site: Site,
    numbers: range,
    *,
    workers: int,
    add: Callable[[Directory, int], None] = Directory.add_user,
) -> None:
    """Add users, or what is said, over several connections: hashing takes most of the time.

    Each user gets its own salt. NSS remembers PBKDF2 results by password, salt and rounds,
    so users who shared one stored value would all be the same user to that cache.
    """
    step = max(1, -(-len(numbers) // workers))
    shares = [numbers[begin : begin + step] for begin in range(0, len(numbers), step)]

    limit_s = FILL_S + USER_S * len(numbers)
    deadline = Deadline.after(limit_s)

    def add_share(share: range) -> None:
        with connect(socket, site) as directory:
            for number in share:
                if deadline.passed:
                    raise InstanceError(
                        f"{len(numbers)} entries were not added within {limit_s:.0f} s",
                        hint="fewer `users` in the workload, or settings with fewer rounds",
                    )
                add(directory, number)

    with ThreadPoolExecutor(max_workers=workers) as pool:
        list(pool.map(add_share, shares))
