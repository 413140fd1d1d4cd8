"""Workloads: one class for each load tool, every parameter pinned.

A workload says what a system is filled with, so that its load has something to ask for.
"""

# Every value is frozen, which pyright does not read off the model's configuration.
# pyright: reportIncompatibleVariableOverride=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.json_schema import SkipJsonSchema

from dsharness.model.content import Content, DirectoryContent, DirectoryPlugin
from dsharness.model.ldap_requests import (
    SHARERS,
    WRITES,
    Disturber,
    LdapRequest,
    LdapStep,
    LdapTransport,
    RequestKind,
)
from dsharness.model.of_products import OneOf
from dsharness.model.value import Identifier, Value

# More than any machine does: what is typed wrongly is refused where it stands, not hours later.
Connections = Annotated[PositiveInt, Field(le=10_000)]
Number = Annotated[PositiveInt, Field(le=10_000_000)]
NumberOrZero = Annotated[NonNegativeInt, Field(le=10_000_000)]
PerSecond = Annotated[PositiveFloat, Field(le=10_000_000)]
Duration = Annotated[PositiveFloat, Field(le=86_400)]


class WorkloadBase(Value):
    """What every tool's workload says; none of its parameters is left to the tool's default."""

    if TYPE_CHECKING:  # fields or properties of each tool's workload

        @property
        def tool(self) -> str: ...

        @property
        def operation(self) -> str: ...

    protocol: ClassVar[str]  # that a system must answer: "ldap", "dns"
    # Whether its servers get faster for a while: then a warm-up ends when an operation's CPU time
    # stands still, or after `warmup_s`.
    settles: ClassVar[bool] = False
    id: Identifier
    title: str
    file: SkipJsonSchema[str | None] = Field(
        default=None,
        exclude_if=lambda file: file is None,
        description="what `--workload` takes, if it is no part of a matrix; set by the loader",
    )
    threads: Connections = 4
    warmup_s: PositiveInt = Field(
        default=1,
        le=3600,
        description="seconds before a server's first run, which also tell its speed",
    )
    duration_s: Duration = Field(
        default=2.0, description="seconds that a run should last; it has as many operations"
    )
    operations: Number = Field(default=200, description="the fewest operations of a run ...")
    most_s: Duration = Field(
        default=4.0, description="... unless they take longer than so many seconds"
    )

    @property
    def named(self) -> str:
        """What ``--workload`` takes."""
        return self.file or self.id

    def shown(self, name: str) -> object:
        """A parameter for readers: several values are one text."""
        value = getattr(self, name)
        return "; ".join(map(str, value)) if isinstance(value, tuple) else value

    @property
    def request_lines(self) -> tuple[str, ...]:
        """Each request in full, for who makes the load by other means; () where none is known."""
        return ()

    @property
    def at_once(self) -> int:
        """The most operations that wait for an answer at the same time."""
        return self.threads

    @property
    def connections(self) -> int:
        """How many it holds open at the same time."""
        return self.threads

    @property
    def content(self) -> Content:
        """What the system must hold."""
        raise NotImplementedError

    @property
    def rate(self) -> float | None:
        """The operations a second that it begins by a schedule; None: as answers come."""
        return None

    @property
    def paced(self) -> bool:
        """Whether the load says when operations begin, whatever the server does."""
        return self.rate is not None or self.share_pct is not None

    @property
    def can_be_scheduled(self) -> bool:
        """Whether its operations can begin at a rate that somebody chooses."""
        return "scheduled" in type(self).model_fields

    @property
    def share_pct(self) -> float | None:
        """The share of what servers answer that its rate is to be, while nobody measured that."""
        return None

    @property
    def needs(self) -> frozenset[str]:
        """What not every server that answers its protocol offers."""
        return frozenset()

    @property
    def distinct_entries(self) -> int | None:
        """How many different entries of its content it asks for; None where that is not known."""
        return None

    @property
    def writes(self) -> bool:
        """Whether it changes what the system holds: then each turn begins with a new server."""
        return False

    @property
    def disturbed(self) -> bool:
        """Whether others ask meanwhile: not all that the system does is for its operations."""
        return False

    @property
    def stopped(self) -> bool:
        """Whether the server is stopped meanwhile: a program of its own works on its files."""
        return False

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Name each parameter that cannot be applied as it says, and what is allowed."""
        yield from ()


class ScheduledWorkload(WorkloadBase):
    """A load that may begin its operations by a schedule."""

    scheduled: PerSecond | None = Field(
        default=None,
        description="operations begun in a second, whatever waits; by default as "
        "many as are answered",
    )

    @property
    def rate(self) -> float | None:
        return self.scheduled


class UserOrder(StrEnum):
    """How a load walks over its users."""

    RANDOM = "random"  # all distinct users, at random
    REPEAT = "repeat"  # one user again and again


class UserEntries(StrEnum):
    """What a directory's users are, and so how a load finds them and their groups."""

    PEOPLE = "inetOrgPerson"  # by uid, in groups that are a groupOfNames
    ACCOUNTS = "sAMAccountName"  # by this attribute, in groups that are a group


LEAST_TITLED = 1000  # users: a smaller number in a title may be one of anything


class DirectoryWorkload(WorkloadBase):
    """A load on some of a directory's users."""

    protocol: ClassVar[str] = "ldap"
    users: Number = Field(default=1000, description="users that the directory holds")
    distinct_users: Number = Field(default=1000, description="users that the load is about")

    @property
    def distinct_entries(self) -> int:
        return self.distinct_users

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({UserEntries.PEOPLE})

    def sized(self, users: int) -> Self:
        """The same load on a directory of so many users."""
        fewer = min(self.distinct_users, users)
        known = {"id": f"{self.id}-{users}", "users": users, "distinct_users": fewer}
        return self.model_copy(update={**known, "title": self._sized_title(users)})

    def _sized_title(self, users: int) -> str:
        """The title with the number of users that there are, and of those that it asks for."""
        number = rf"(?<![\d,])(?:{self.users}|{self.users:,})(?![\d,])"
        title, places = re.subn(number, f"{users:,}", self.title)
        if self.users < LEAST_TITLED or not places:
            return f"{self.title}, in a directory of {users:,} users"
        all_were = self.distinct_users == self.users < users
        return f"{title}; it asks for {self.distinct_users:,} of them" if all_were else title

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse users that are not there."""
        if self.distinct_users > self.users:
            yield "distinct_users", f"at most the {self.users} users that are seeded (`users`)"


class DirectoryOperation(StrEnum):
    """One kind of operation, each on one user."""

    BIND = "bind"  # connect, bind as the user, unbind
    SEARCH = "search"  # find the user by an indexed equality in the whole tree
    MODIFY = "modify"  # replace the user's description, which has no index


class LdcltWorkload(DirectoryWorkload):
    """Operations on a directory's users by ldclt."""

    tool: Literal["ldclt"] = "ldclt"
    operation: DirectoryOperation = DirectoryOperation.BIND
    order: UserOrder = UserOrder.RANDOM

    @property
    def distinct_entries(self) -> int:
        return 1 if self.order is UserOrder.REPEAT else self.distinct_users

    @property
    def request_lines(self) -> tuple[str, ...]:
        match self.operation:
            case DirectoryOperation.BIND:
                line = "connect, bind as {user_dn} by its password (simple), unbind"
            case DirectoryOperation.SEARCH:
                line = "search {people}, filter (uid={user}), scope subtree, attributes *"
            case DirectoryOperation.MODIFY:
                line = "modify {user_dn}: replace description {value}"
        return (line,)

    @property
    def content(self) -> DirectoryContent:
        """Only who binds needs a password of the version's own; of others one shows the way."""
        binds = self.operation is DirectoryOperation.BIND
        return DirectoryContent(number=self.users, passwords=self.distinct_users if binds else 1)

    @property
    def writes(self) -> bool:
        return self.operation is DirectoryOperation.MODIFY

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse users that are not there, or to walk over one user at random."""
        yield from super().contradictions()
        if self.order is UserOrder.REPEAT and self.distinct_users > 1:
            yield "distinct_users", "1 with `order: repeat`, which takes one user again and again"


LONGEST_PAUSE_MS = 1000.0


class LdaploadWorkload(DirectoryWorkload):
    """Requests of several kinds to a directory, by the lab's own load."""

    tool: Literal["ldapload"] = "ldapload"
    threads: Connections = Field(default=4, description="connections, each with one request")
    silent: NonNegativeInt = Field(
        default=0, le=20_000, description="more connections, which are bound and ask for nothing"
    )
    bound_as: Literal["manager", "user"] = Field(
        default="manager", description="who its connections are: a user's rights are asked for"
    )
    users_are: UserEntries = Field(
        default=UserEntries.PEOPLE,
        exclude_if=lambda kind: kind is UserEntries.PEOPLE,
        description="what its requests take the directory's users for",
    )
    over: LdapTransport = Field(
        default=LdapTransport.LDAP,
        exclude_if=lambda over: over is LdapTransport.LDAP,
        description="how its connections reach the server",
    )
    plugins: tuple[DirectoryPlugin, ...] = Field(
        default=(),
        exclude_if=lambda plugins: not plugins,
        description="that are switched on before the directory is filled",
    )
    groups: NumberOrZero = Field(default=0, description="that the directory holds too ...")
    members: NumberOrZero = Field(default=0, description="... and of its users in each of them")
    photo_bytes: NonNegativeInt = Field(
        default=0, le=1 << 20, description="of a `jpegPhoto` in each user's entry"
    )
    imported: NonNegativeInt = Field(
        default=0,
        le=1_000_000,
        exclude_if=lambda imported: not imported,
        description="users that each task of `kind: import-task` imports",
    )
    requests: tuple[LdapRequest, ...] = Field(min_length=1)
    scheduled: PerSecond | None = Field(
        default=None,
        description="requests begun in a second, whatever waits; by default as many "
        "as are answered",
    )

    scheduled_pct: PositiveFloat | None = Field(
        default=None,
        le=100,
        exclude_if=lambda pct: pct is None,
        description="a rate as a share of what the slower end of a search answers in a closed "
        "loop, which is measured first; not together with `scheduled`",
    )
    pauses_ms: tuple[NonNegativeFloat, ...] = Field(
        default=(),
        max_length=100,
        exclude_if=lambda pauses: not pauses,
        description="on a connection after an answer; one of them is drawn for each operation",
    )
    disturber: Disturber | None = Field(
        default=None, description="what other connections ask for meanwhile"
    )
    control: Identifier | None = Field(
        default=None,
        exclude_if=lambda control: control is None,
        description="the same load whose disturber is harmless; a report compares both",
    )

    def sized(self, users: int) -> Self:
        """Groups of all users are then groups of so many, and its control is as large."""
        known = {"members": users} if self.members == self.users else {}
        control = {"control": f"{self.control}-{users}"} if self.control else {}
        return super().sized(users).model_copy(update=known | control)

    @property
    def operation(self) -> str:
        """All kinds, as one word."""
        steps = (step for request in self.requests for step in request.steps)
        return "+".join(dict.fromkeys(step.kind for step in steps))

    @property
    def request_lines(self) -> tuple[str, ...]:
        whole = sum(request.share for request in self.requests)
        if len(self.requests) == 1:
            lines = [str(self.requests[0])]
        else:
            lines = [
                f"{request.share} of {whole}: {request.model_copy(update={'share': 1})}"
                for request in self.requests
            ]
        return (*lines, *([f"meanwhile {self.disturber}"] if self.disturber else []))

    @property
    def connections(self) -> int:
        others = self.disturber.connections if self.disturber else 0
        return self.threads + self.silent + others

    @property
    def disturbed(self) -> bool:
        return self.disturber is not None

    @property
    def needs(self) -> frozenset[str]:
        tasks = {RequestKind.IMPORT_TASK} if self.imported else set[str]()
        needed = {self.users_are, *self._ways, *self.plugins, *tasks}
        return frozenset(needed) - {LdapTransport.LDAP}

    @property
    def _ways(self) -> tuple[LdapTransport, ...]:
        """How its connections and those of its disturber reach the server."""
        other = self.disturber.over if self.disturber else None
        return (self.over,) if other is None else (self.over, other)

    @property
    def steps(self) -> tuple[LdapStep, ...]:
        """All that its connections ask for, and those of its disturber."""
        asked = (request for requests in self._queues.values() for request in requests)
        return tuple(step for request in asked for step in request.steps)

    @property
    def rate(self) -> float | None:
        return self.scheduled

    @property
    def share_pct(self) -> float | None:
        return self.scheduled_pct

    @property
    def paced(self) -> bool:
        return super().paced or any(self.pauses_ms)

    @property
    def writes(self) -> bool:
        return any(each.kind in WRITES for each in self.steps)

    @property
    def content(self) -> DirectoryContent:
        """Where nobody binds as its users, one password says how the directory stores them."""
        binds = any(
            step.kind is RequestKind.BIND and step.base != "{manager}" for step in self.steps
        )
        passwords = self.distinct_users if binds else 1
        return DirectoryContent(
            number=self.users,
            passwords=passwords,
            groups=self.groups,
            members=self.members,
            photo_bytes=self.photo_bytes,
            encrypted=any(each.encrypted for each in self._ways),
            plugins=tuple(sorted(set(self.plugins))),
            imported=self.imported,
        )

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse users that are not there, waiting without a clock, and impossible requests."""
        yield from super().contradictions()
        yield from self._contradicted_content()
        yield from self._contradicted_imports()
        yield from self._contradicted_pace()
        for name, asked in self._queues.items():
            over = self._ways[-1 if name == "disturber" else 0]
            external = any(step.mechanism == "external" for each in asked for step in each.steps)
            if external and over is not LdapTransport.LDAPI:
                place = "over" if name == "requests" else name
                yield place, "`over: ldapi` with `mechanism: external`: who opened the socket"
            connecting = {each.kind is RequestKind.CONNECT for each in asked}
            if len(connecting) > 1:
                yield name, "`kind: connect` as the first step of all of them, or of none"
        for allowed in (each for request in self.requests for each in request.contradictions()):
            yield "requests", allowed
        for allowed in self.disturber.contradictions() if self.disturber else ():
            yield "disturber", allowed
        if self.control is not None and (self.disturber is None or self.control == self.id):
            yield "control", "another workload, of one with a `disturber`"

    def _contradicted_pace(self) -> Iterator[tuple[str, str]]:
        if self.scheduled is not None and self.scheduled_pct is not None:
            yield "scheduled_pct", "left out with `scheduled`, which is a rate already"
        if (self.scheduled or self.scheduled_pct) and self.pauses_ms:
            yield "pauses_ms", "left out with `scheduled`, which says when operations begin"
        if max(self.pauses_ms, default=0.0) > LONGEST_PAUSE_MS:
            yield "pauses_ms", f"at most {LONGEST_PAUSE_MS:g} each"
        if self.scheduled is None and any(each.kind is RequestKind.WAIT for each in self.requests):
            yield "scheduled", "a rate with `kind: wait`, which otherwise takes no time"

    def _contradicted_content(self) -> Iterator[tuple[str, str]]:
        if len(set(self.plugins)) < len(self.plugins):
            yield "plugins", "each of them once"
        if self.members > self.users:
            yield "members", f"at most the {self.users} users that are seeded (`users`)"
        if self.groups * self.members < self.distinct_users and self._names("{group_dn}"):
            yield (
                "groups",
                "so many `groups` of `members` that every user of `{group_dn}` is in one",
            )
        if self.writes and self.bound_as == "user":
            yield "bound_as", "`manager` with requests that write: users may only read"
        for place, sharers in SHARERS.items():
            if self.users % sharers and self._names(f"{{{place}}}"):
                yield "users", f"a multiple of the {sharers} users that share a `{{{place}}}`"

    def _contradicted_imports(self) -> Iterator[tuple[str, str]]:
        imports = {
            name: any(step.kind is RequestKind.IMPORT_TASK for each in asked for step in each.steps)
            for name, asked in self._queues.items()
        }
        if imports["requests"]:
            yield "requests", "`kind: import-task` in the `disturber` only"
        elif bool(self.imported) != imports["disturber"]:
            yield "imported", "users together with a disturber's `kind: import-task`"

    @property
    def _queues(self) -> dict[str, tuple[LdapRequest, ...]]:
        others = self.disturber.requests if self.disturber else ()
        return {"requests": self.requests, "disturber": others}

    def _names(self, place: str) -> bool:
        return any(place in text for step in self.steps for text in step.texts.values())


OF_TIME = frozenset({"threads", "warmup_s", "duration_s", "operations", "most_s"})


class ImportWorkload(DirectoryWorkload):
    """All users, imported by the server's own program while it is stopped."""

    tool: Literal["import"] = "import"
    operation: Literal["import"] = "import"
    users: Number = Field(default=1000, description="users that are imported")
    distinct_users: Literal[1] = 1

    @property
    def distinct_entries(self) -> int:
        return self.users

    @property
    def content(self) -> DirectoryContent:
        """As little as can be checked: the import replaces it."""
        return DirectoryContent(number=1)

    @property
    def writes(self) -> bool:
        return True

    @property
    def stopped(self) -> bool:
        return True

    def shown(self, name: str) -> object:
        """An import is as long as its users make it."""
        return None if name in {*OF_TIME, "distinct_users"} else super().shown(name)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse what would change nothing."""
        for name in sorted(OF_TIME & self.model_fields_set):
            yield name, "left out with `tool: import`, which is as long as its `users` make it"


class Transport(StrEnum):
    """How a request travels."""

    UDP = "udp"
    TCP = "tcp"


# A fixed load. Told apart by ``tool`` in matrix.yaml, or wherever it was kept.
Workload = Annotated[
    WorkloadBase,
    OneOf("tool", lambda folder: folder.workloads, LdcltWorkload, LdaploadWorkload, ImportWorkload),
]


class WorkloadFile(Value):
    """A file with a load that is no part of a matrix; written as there."""

    workloads: tuple[Workload, ...] = Field(min_length=1, max_length=1)
