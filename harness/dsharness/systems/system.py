"""What the lab asks of a kind of server, and where a load reaches one.

A driver is a class that satisfies ``System``, one of its product's ``PRODUCT``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import Field

from dsharness.containers.container import Container, Options
from dsharness.errors import InstanceError, WorkloadError
from dsharness.model import Content, Facts, ServerTimes, Settings, Value
from dsharness.progress import Progress

SHARED_FOLDER = "/run/dsbisect"  # inside the container: what the lab and the server share
# What a server that is started next to another main command says, and its status once it ended.
OUTPUT_NAME, ENDED_NAME = "server.output", "server.ended"
COUNT, SHOWN_CHARACTERS = re.compile(r"[0-9]{1,18}"), 60

C = TypeVar("C", bound=Content)


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a system holds in its own form, and another of its kind may hold in its place."""

    name: str
    title: str  # in a sentence: "the ..."
    operations: frozenset[str]  # whose cost it can change


@dataclass(frozen=True, kw_only=True)
class TakenPart:
    """A part as another system holds it."""

    part: Part
    giver: str  # whose it is
    key: str  # of the state that it is read from
    read: Callable[[], tuple[str, ...]] = field(repr=False)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Read once, when a state is really made with it."""
        return self.read()


@dataclass(frozen=True, kw_only=True)
class Seed:
    """What a system is made with; part of its golden state's name."""

    content: Content
    settings: Settings
    taken: tuple[TakenPart, ...] = ()

    def holds(self, kind: type[C]) -> C:
        """Its content, which must be of the kind that this system can be filled with."""
        if not isinstance(self.content, kind):
            raise WorkloadError(f"it cannot be filled with {self.content.kind}")
        return self.content


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where a load reaches a system. A kind of server adds what its loads must know."""

    host: str = "127.0.0.1"
    port: int
    ports: Mapping[str, int] = field(default_factory=dict)  # of protocols that have their own

    def port_of(self, protocol: str) -> int:
        """Where it answers a protocol."""
        return self.ports.get(protocol, self.port)


@dataclass(frozen=True, kw_only=True)
class CannotCount:
    """A kind of server that does not tell how many operations it answered."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Look:
    """What a server says of itself at one moment."""

    facts: Facts = field(default_factory=dict)
    # That it has counted so far, by kind ("bind", "query"); without, the load proves its answers.
    operations: Mapping[str, int] | CannotCount


def count_in(text: str, what: str) -> int:
    """A server's own count, which fits into 8 bytes; InstanceError for anything else."""
    if not COUNT.fullmatch(text):
        raise InstanceError(
            f"{what} is no count: {text[:SHOWN_CHARACTERS]!r}",
            hint="this version may count in another way; what it answered cannot be compared",
        )
    return int(text)


class System(Protocol):
    """How one kind of server is made, filled, served and asked.

    What goes wrong is raised as an InstanceError that says what and why.
    """

    protocols: ClassVar[frozenset[str]]  # a load must speak one of them: "ldap", "dns"
    content: ClassVar[type[Content]]  # that it is filled with where nobody says with what
    port: ClassVar[int]  # inside the container
    revision: ClassVar[int]  # of how its state is made; a new one makes all golden states again
    creating: ClassVar[str]  # progress to those who wait while ``create`` works
    options: ClassVar[frozenset[str]]  # that settings may set
    offers: ClassVar[frozenset[str]]  # of what workloads may need
    look_operations: ClassVar[Mapping[str, int]]  # that a look adds to its own counts

    def making(self, shared: Path) -> Options:
        """How the container in which a state is made is confined."""
        ...

    def serving(self, shared: Path) -> Options:
        """How the container in which it is measured is confined."""
        ...

    def idle_command(self) -> tuple[str, ...]:
        """The main command while a state is made."""
        ...

    def serve_command(self) -> tuple[str, ...]:
        """The main command while it is measured."""
        ...

    def create(self, box: Container, seed: Seed) -> None:
        """Make what is there before the server's first start."""
        ...

    def start(self, box: Container) -> None:
        """Start it next to the main command; its words and its end go to the shared folder."""
        ...

    def stop(self, box: Container) -> None:
        """End it cleanly: its data is whole afterwards."""
        ...

    def endpoint(self, box: Container, shared: Path) -> Endpoint: ...

    def ready(self, endpoint: Endpoint) -> bool:
        """Whether it answers what a load would ask; False while it does not yet."""
        ...

    def fill(self, endpoint: Endpoint, seed: Seed, progress: Progress) -> None:
        """Set and fill the running server."""
        ...

    def fill_stopped(self, box: Container, seed: Seed, progress: Progress) -> None:
        """Add to the stopped server what would take too long while it runs."""
        ...

    def check(self, endpoint: Endpoint, seed: Seed) -> Facts:
        """What it says of itself, once the first and the last entry were seen to be served."""
        ...

    def look(self, endpoint: Endpoint) -> Look:
        """What it says now, on either side of a run."""
        ...

    def objections(self, expected: Facts, seen: Facts) -> Iterator[str]:
        """Why a run does not measure what was made: what it says now differs."""
        ...

    def reason(self, lines: Sequence[str]) -> str | None:
        """The line that says why it ended, of what it said before; None where none does."""
        ...

    def error_log(self) -> str:
        """Path inside the container of the server's own log."""
        ...


@runtime_checkable
class CreatedOnce(Protocol):
    """What a system also has if ``create`` takes minutes, and looks at nothing of its seed.

    What it made is kept, and states of any content and settings begin with that.
    """

    created_once: ClassVar[Literal[True]]


@runtime_checkable
class Importer(Protocol):
    """What a system also has if users can be imported while it is stopped."""

    @property
    def imports(self) -> bool:
        """Whether its own kind can do it."""
        ...

    def bring(self, box: Container, users: int, file: str) -> float:
        """Put a file with so many users into the container; how long its import may take."""
        ...

    def import_command(self, *files: str) -> tuple[str, ...]:
        """What replaces all that the stopped server holds by the entries of these files."""
        ...

    def count_users(self, endpoint: Endpoint) -> int:
        """How many the running server finds."""
        ...


@runtime_checkable
class ConnectionHolder(Protocol):
    """What a system also has if settings can bound how many connections it holds."""

    def most_connections(self, settings: Settings) -> int | None:
        """None: as many as its container may have files open."""
        ...


@runtime_checkable
class Giver(Protocol):
    """What a system also has if another of its kind can hold a part of it in its place."""

    parts: ClassVar[tuple[Part, ...]]

    def give(self, endpoint: Endpoint, seed: Seed, part: Part) -> tuple[str, ...]:
        """The part as the running server holds it."""
        ...


def parts_of(system: System) -> tuple[Part, ...]:
    """What others of its kind can take over; none where it is no ``Giver``."""
    return system.parts if isinstance(system, Giver) else ()


def importer(system: System) -> Importer | None:
    """The same system, if users can be imported while it is stopped."""
    return system if isinstance(system, Importer) and system.imports else None


@runtime_checkable
class Configured(Protocol):
    """What a system also has if it tells how it is set."""

    def configuration(self, endpoint: Endpoint) -> Mapping[str, str]:
        """All settings in force by name, without secrets and what differs with each start."""
        ...


@runtime_checkable
class TimesLogger(Protocol):
    """What a system also has if it can write down how long each operation took.

    Its log costs time, so what is measured meanwhile is no sample.
    """

    def start_log(self, endpoint: Endpoint) -> None:
        """From now on the running server writes it."""
        ...

    def end_log(self, box: Container, endpoint: Endpoint, into: Path) -> None:
        """Stop that, and put what was written into a file."""
        ...

    def read_log(self, written: Path, *, candidate_id: str, workload_id: str) -> ServerTimes:
        """The times by kind of operation."""
        ...


@runtime_checkable
class SeveralPrograms(Protocol):
    """What a system also has if it consists of several programs, each read by itself, too."""

    programs: ClassVar[Mapping[str, str]]  # by what each is for: the name of its process


@dataclass(frozen=True, kw_only=True)
class OfferedScheme:
    """One way to store passwords that a running server has."""

    name: str
    options: Mapping[str, str]  # settings by which it becomes the default
    readable: bool = False  # the password can be read from what is stored
    refused: str = ""  # why no new password is stored by it, in the server's own words


@runtime_checkable
class PasswordKeeper(Protocol):
    """What a system also has if it stores passwords."""

    def schemes(self, box: Container, endpoint: Endpoint) -> tuple[OfferedScheme, ...]:
        """All that the running server offers. Each may be tried, so it is not measured after."""
        ...


class SchemeChange(Value):
    """What a server stores for two users around a change of its default scheme."""

    before: str
    after_bind: str = Field(description="of a user who only bound after the change")
    set_again: str = Field(description="of one whose password was set after it; both can bind")
    upgrades: str = Field(description="its own setting of upgrades at a bind; empty: none")
    upgraded: str | None = Field(description="of the first user, bound with upgrades on")


@runtime_checkable
class PasswordTrier(Protocol):
    """What a system also has if its stored passwords can be tried out; it is not measured after."""

    def change_scheme(self, endpoint: Endpoint, scheme: str) -> SchemeChange:
        """Change the running server's default, and look what becomes of two users."""
        ...

    def set_rounds(self, endpoint: Endpoint, scheme: str, rounds: int) -> None:
        """Ask for so many rounds of a scheme, which count from the next start on."""
        ...

    def rounds_stored(self, endpoint: Endpoint, scheme: str) -> int | None:
        """How many rounds a password has that is set now."""
        ...

    def hashed_before(self, scheme: str, rounds: int, users: int) -> tuple[str, ...]:
        """Passwords of so many users as this kind stores them, each with a salt of its own."""
        ...
