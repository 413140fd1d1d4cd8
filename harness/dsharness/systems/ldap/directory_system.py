"""What all directory servers share: users, binds, and what is read back over LDAP.

For servers that import it while they are stopped, their content is written as LDIF (RFC 2849).
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container
from dsharness.errors import InstanceError, MatrixError, PartRefusedError
from dsharness.model import (
    Content,
    DirectoryContent,
    DirectoryOperation,
    Facts,
    LdapTransport,
    Settings,
    UserEntries,
)
from dsharness.model.stored_password import parse_stored, stored_in
from dsharness.progress import Progress
from dsharness.systems.boxed_server import BoxedServer
from dsharness.systems.ldap.directory import Directory, Site, Users, add_entries, connect, photo
from dsharness.systems.system import Endpoint, Look, OfferedScheme, Part, Seed, TakenPart

SOCKET_NAME = "ldapi"
PASSWORD_SCHEME = "password-scheme"  # noqa: S105 - an option's name
EVERY_OTHER = "every-other-password"  # the scheme of every other user, from the second one on
DESCRIPTORS = "descriptors"  # files that it may have open, and with them connections
LEAST_DESCRIPTORS, MOST_DESCRIPTORS = 256, 1 << 20
SPARE = 64  # of them are for its other files
VERSION = "version"
STORED = Part(
    name="stored",
    title="the stored user passwords",
    operations=frozenset({DirectoryOperation.BIND}),
)
WORKERS = 4
IMPORT_S, IMPORT_BYTES_PER_S = 120.0, 50_000.0  # a tenth of what it reads on a busy machine
MANY = 10_000  # users: from so many on an import takes less time than adding them


@dataclass(frozen=True, kw_only=True)
class LdapEndpoint(Endpoint):
    """A directory, and who may bind there."""

    users: Users


@dataclass(frozen=True, kw_only=True)
class ImportTask:
    """How a running server is asked to import a file into a suffix of its own."""

    parent: str  # of the entry that asks for it
    attributes: Mapping[str, Sequence[str]]
    file_attribute: str
    files: Mapping[str, str]  # by what a request imports: "users", "suffix"
    ended: str  # a filter that finds the entry once it has ended ...
    succeeded: str  # ... and one that finds it if all is imported


@dataclass(frozen=True, kw_only=True)
class OwnDirectory(LdapEndpoint):
    """One that the lab made: asked over a socket that no load uses, if it has one."""

    users: Site
    socket: Path | None = None
    secure_port: int | None = None  # where it encrypts from the first byte, if it has keys
    import_task: ImportTask | None = None


class DirectorySystem(BoxedServer):
    """The part of a driver that is the same for all directory servers."""

    protocols: ClassVar[frozenset[str]] = frozenset({"ldap"})
    options: ClassVar[frozenset[str]] = frozenset({PASSWORD_SCHEME, DESCRIPTORS})
    own_descriptors: ClassVar[int | None] = None  # that settings leave it; None: all it may have
    offers: ClassVar[frozenset[str]] = frozenset({LdapTransport.LDAPI, UserEntries.PEOPLE})
    content: ClassVar[type[Content]] = DirectoryContent
    parts: ClassVar[tuple[Part, ...]] = (STORED,)
    site: ClassVar[Site]
    imports_from: ClassVar[float] = math.inf  # so many users: it is stopped to import them

    def descriptors(self, settings: Settings) -> int | None:
        """How many files it may have open; MatrixError for what is no such number."""
        asked = asked_number(settings, DESCRIPTORS, LEAST_DESCRIPTORS, MOST_DESCRIPTORS)
        return self.own_descriptors if asked is None else asked

    def most_connections(self, settings: Settings) -> int | None:
        files = self.descriptors(settings)
        return None if files is None else files - SPARE

    def settle(self, directory: Directory, settings: Settings) -> None:
        """Apply the lab's settings and those asked for."""
        raise NotImplementedError

    def equip(self, directory: Directory, content: DirectoryContent) -> None:
        """Give the server what such a content asks of it; of most that is nothing."""

    def offered(self, box: Container, directory: Directory) -> Iterator[OfferedScheme]:
        """Each scheme of this server that ``PASSWORD_SCHEME`` may name, and those it refuses."""
        raise NotImplementedError

    def schemes(self, box: Container, endpoint: Endpoint) -> tuple[OfferedScheme, ...]:
        with connect(socket_of(endpoint), self.site) as directory:
            return tuple(self.offered(box, directory))

    def version(self, directory: Directory) -> str:
        raise NotImplementedError

    def facts(self, directory: Directory) -> Facts:
        """What the server says of itself, apart from how it stores passwords."""
        return {VERSION: self.version(directory)}

    def counts(self, directory: Directory) -> dict[str, int]:
        """The server's own counts since its start: simple binds, entries found, entries changed."""
        raise NotImplementedError

    def add_user(self, directory: Directory, number: int) -> None:
        """Add a user whose password the server hashes."""
        directory.add_user(number)

    def import_ldif(self, box: Container, text: str, limit_s: float) -> None:
        """Import entries into the stopped server, in addition to those that it has."""
        raise NotImplementedError

    def import_command(self, *files: str) -> tuple[str, ...]:
        """What replaces all that the stopped server holds by the entries of these files."""
        raise NotImplementedError

    @property
    def imports(self) -> bool:
        """Whether it can be stopped to import users."""
        return self.imports_from < math.inf

    def bring(self, box: Container, users: int, file: str) -> float:
        """Put a file with so many users into the container; how long its import may take."""
        text = "".join(whole_ldif(self.site, users))
        box.must("sh", "-c", 'cat >"$1"', "sh", file, what="bring the entries", stdin=text)
        return _import_limit_s(text)

    def count_users(self, endpoint: Endpoint) -> int:
        with connect(socket_of(endpoint), self.site) as directory:
            return directory.count_users()

    def endpoint(self, box: Container, shared: Path) -> OwnDirectory:
        del box
        return OwnDirectory(port=self.site.port, users=self.site, socket=shared / SOCKET_NAME)

    def ready(self, endpoint: Endpoint) -> bool:
        """Whether its manager can bind."""
        try:
            with connect(socket_of(endpoint), self.site):
                return True
        except InstanceError:
            return False

    def fill(self, endpoint: Endpoint, seed: Seed, progress: Progress) -> None:
        socket = socket_of(endpoint)
        with connect(socket, self.site) as directory:
            self.settle(directory, seed.settings)
            self.equip(directory, seed.holds(DirectoryContent))
        content = seed.holds(DirectoryContent)
        if self._imports(content):
            content = content.model_copy(update={"number": hashed(content), "groups": 0})
        self.add_content(socket, content, progress, _taken(seed))

    def fill_stopped(self, box: Container, seed: Seed, progress: Progress) -> None:
        """Import all that needs no hashing, where it is much."""
        content = seed.holds(DirectoryContent)
        if self._imports(content):
            progress(f"importing {content.number - hashed(content):,} users without a password")
            text = "".join(content_ldif(self.site, content, hashed(content)))
            self.import_ldif(box, text, limit_s=_import_limit_s(text))

    def _imports(self, content: DirectoryContent) -> bool:
        return content.number >= self.imports_from

    def add_content(
        self,
        socket: Path,
        content: DirectoryContent,
        progress: Progress,
        taken: TakenPart | None = None,
    ) -> None:
        """Add users with and without passwords, then their photos and groups."""
        number = hashed(content)
        if taken is None:
            self.add_users(socket, number, progress)
        else:
            self.add_users_of(taken, socket, number, progress)
        add = partial(add_entries, socket, self.site, workers=WORKERS)
        if number < content.number:
            progress(f"adding {content.number - number} users without a password")
            add(range(number, content.number), add=Directory.add_plain_user)
        if content.photo_bytes:
            progress(f"adding photos of {content.photo_bytes:,} bytes")
            value = photo(content.photo_bytes)
            add(
                range(content.number),
                add=lambda directory, number: directory.add_photo(number, value),
            )
        if content.groups:
            progress(f"adding {content.groups} groups of {content.members:,} users")
            add(
                range(content.groups),
                add=lambda directory, number: directory.add_group(number, content),
            )

    def add_users(self, socket: Path, number: int, progress: Progress) -> None:
        """Add so many users, each with a salt of its own."""
        progress(f"adding {number} users; this version hashes their passwords")
        add_entries(socket, self.site, range(number), workers=WORKERS, add=self.add_user)

    def add_users_of(self, taken: TakenPart, socket: Path, number: int, progress: Progress) -> None:
        """Add so many users with the passwords that another directory stores for them.

        The first one must bind before the others are added.
        """
        values = taken.values
        with connect(socket, self.site) as directory:
            directory.add_hashed_user(0, values[0])
            _check_user(directory, 0, taken)
        progress(f"adding {number} users with {taken.part.title} of {taken.giver}")
        add_entries(
            socket,
            self.site,
            range(1, number),
            workers=WORKERS,
            add=lambda directory, each: directory.add_hashed_user(each, values[each]),
        )

    def give(self, endpoint: Endpoint, seed: Seed, part: Part) -> tuple[str, ...]:
        """The stored value of each user with a password."""
        if part.name != STORED.name:
            raise InstanceError(f"a directory has no {part.name!r} that others could take")
        with connect(socket_of(endpoint), self.site) as directory:
            users = range(hashed(seed.holds(DirectoryContent)))
            return tuple(directory.stored_value(number) for number in users)

    def check(self, endpoint: Endpoint, seed: Seed) -> Facts:
        """The first and last user with a password must bind, and be stored in the same way.

        The last user and the last group must be there.
        """
        content = seed.holds(DirectoryContent)
        with connect(socket_of(endpoint), self.site) as directory:
            directory.read(self.site.user_dn(content.number - 1), "uid")
            if content.groups:
                directory.read(self.site.group_dn(content.groups - 1), "cn")
            for users in alike(hashed(content), seed.settings):
                for number in (users[0], users[-1]):
                    _check_user(directory, number, _taken(seed))
                first, last = (directory.stored_password(users[at]) for at in (0, -1))
                if first != last:
                    raise InstanceError(f"users are stored in two ways: {first}; {last}")
            return {**self.facts(directory), **directory.stored_password(0).facts}

    def look(self, endpoint: Endpoint) -> Look:
        with connect(socket_of(endpoint), self.site) as directory:
            facts = {**self.facts(directory), **directory.stored_password(0).facts}
            return Look(facts=facts, operations=self.counts(directory))

    def objections(self, expected: Facts, seen: Facts) -> Iterator[str]:
        made, now = stored_in(expected), stored_in(seen)
        if now is None:
            yield "the stored password could not be read back"
        elif now != made:
            yield f"users are stored as {now}, not {made}"


def _import_limit_s(text: str) -> float:
    return IMPORT_S + len(text) / IMPORT_BYTES_PER_S


def _taken(seed: Seed) -> TakenPart | None:
    return next((each for each in seed.taken if each.part.name == STORED.name), None)


def _check_user(directory: Directory, number: int, taken: TakenPart | None) -> None:
    """Bind once; PartRefusedError where what another directory stores is of no use to this one."""
    if taken is None:
        directory.check_user(number)
        return
    given, now = taken.values[number], directory.stored_value(number)
    what = f"{taken.part.title} of {taken.giver} ({parse_stored(given)})"
    if now != given:
        raise PartRefusedError(
            f"this server does not keep {what}: it stores them as {parse_stored(now)}"
        )
    try:
        directory.check_user(number)
    except InstanceError as error:
        directory.stored_value(number)  # a server that ended would refuse every bind
        raise PartRefusedError(f"this server does not know {what}: {error.message}") from error


def asked_number(settings: Settings, option: str, least: int, most: int) -> int | None:
    """What an option says, if it is there; MatrixError for what is no such number."""
    asked = settings.options.get(option)
    number = int(asked) if asked and asked.isascii() and asked.isdecimal() else None
    if asked is None or (number is not None and least <= number <= most):
        return number
    raise MatrixError(
        f"settings {settings.id}: {option} is {asked!r}",
        hint=f"give a number from {least} to {most}",
    )


def alike(number: int, settings: Settings) -> tuple[range, ...]:
    """Of so many users those whose passwords are stored in one way."""
    step = min(number, 2) if EVERY_OTHER in settings.options else 1
    return tuple(range(first, number, step) for first in range(step))


def hashed(content: DirectoryContent) -> int:
    return min(content.number, content.passwords)


def socket_of(endpoint: Endpoint) -> Path:
    """The socket that the lab asks its own directory over."""
    if not isinstance(endpoint, OwnDirectory) or endpoint.socket is None:
        raise InstanceError(f"what answers on port {endpoint.port} has no socket that the lab asks")
    return endpoint.socket


Attributes = Mapping[str, Sequence[str] | Sequence[bytes]]

# Values that stand as they are; all others are written in base64.
SAFE = re.compile(r"(?![ :<])[\x01-\x09\x0b\x0c\x0e-\x7f]*(?<! )")


def whole_ldif(site: Site, users: int) -> Iterator[str]:
    """All that a directory needs to hold so many users without a password."""
    suffix, people = (dn.partition(",")[0].partition("=") for dn in (site.suffix, site.people))
    yield ldif_entry(site.suffix, {"objectClass": ["top", "domain"], "dc": [suffix[2]]})
    yield ldif_entry(site.people, {"objectClass": ["top", "organizationalUnit"], "ou": [people[2]]})
    yield from content_ldif(site, DirectoryContent(number=users), first=0)


def content_ldif(site: Site, content: DirectoryContent, first: int) -> Iterator[str]:
    """Users without a password from this number on, with their photos, then all groups."""
    photos = [photo(content.photo_bytes)] if content.photo_bytes else []
    for number in range(first, content.number):
        attributes: Attributes = {**site.user_attributes(number), "jpegPhoto": photos}
        yield ldif_entry(site.user_dn(number), attributes)
    for number in range(content.groups):
        yield ldif_entry(site.group_dn(number), site.group_attributes(number, content))


def ldif_entry(dn: str, attributes: Attributes) -> str:
    """One entry, and the empty line that ends it."""
    lines = [_line("dn", dn)]
    lines += [_line(name, value) for name, values in attributes.items() for value in values]
    return "\n".join([*lines, "", ""])


def _line(name: str, value: str | bytes) -> str:
    if isinstance(value, str) and SAFE.fullmatch(value):
        return f"{name}: {value}"
    raw = value if isinstance(value, bytes) else value.encode()
    return f"{name}:: {base64.b64encode(raw).decode()}"
