"""Requests of a directory's load: kinds, places that are filled in, and what an answer must be."""

# Every value is frozen, which pyright does not read off the model's configuration.
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from string import Formatter
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from dsharness.model.value import Value


class RequestKind(StrEnum):
    """What ldapload asks a directory for."""

    SEARCH = "search"
    COMPARE = "compare"
    MODIFY = "modify"
    ADD = "add"  # a user without a password, whose name is `value`
    RENAME = "rename"  # its first part becomes `value`
    DELETE = "delete"
    BIND = "bind"  # as the entry, on the connection that is open
    WAIT = "wait"  # for nothing: an operation that only takes its time
    CONNECT = "connect"  # a connection of the operation's own, which ends with it
    IMPORT_TASK = "import-task"  # into a suffix of its own; answered once the task has ended


class LdapTransport(StrEnum):
    """How a load's connections reach a directory."""

    LDAP = "ldap"
    LDAPI = "ldapi"  # over the server's socket in a folder that the load sees
    LDAPS = "ldaps"
    STARTTLS = "starttls"

    @property
    def encrypted(self) -> bool:
        return self in {LdapTransport.LDAPS, LdapTransport.STARTTLS}


Mechanism = Literal["simple", "plain", "external"]


WRITES = frozenset(
    {
        RequestKind.MODIFY,
        RequestKind.ADD,
        RequestKind.RENAME,
        RequestKind.DELETE,
        RequestKind.IMPORT_TASK,
    }
)

# Without control characters: no name or value of a request has a NUL.
Template = Annotated[str, Field(max_length=65536, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
# Values that so many users share, each under an index.
SHARERS = {"surname": 5, "given_name": 20, "phone": 200}
# What stands in a request's places.
PLACES = {
    "user": "the name of a user: user0000042",
    "user_dn": "the entry of a user",
    "group_dn": "a group that the user is in",
    "people": "the entry above all users",
    "suffix": "the whole tree",
    "value": "a text that each operation draws",
    "new_dn": "the entry of a user with that text as its name",
    "manager": "who the load's connections are bound as",
    **{
        place: f"the user's {attribute}, which {SHARERS[place]} users have"
        for place, attribute in (
            ("surname", "sn"),
            ("given_name", "givenName"),
            ("phone", "telephoneNumber"),
        )
    },
}
MASKS = frozenset(PLACES)
MOST_NOBODIES = 5000
MOST_NESTED = 50  # filters; encoding them takes stack for each level


class Window(Value):
    """A part of a list of entries."""

    first: int = Field(ge=1, lt=1 << 31, description="the place of its first entry, from 1")
    entries: int = Field(ge=1, lt=1 << 31)


def _with_places(schema: dict[str, Any], kind: type[BaseModel]) -> None:
    """Describe what its texts may hold, once: in the schema of a step."""
    if kind is LdapStep:
        places = "; ".join(f"``{{{place}}}`` is {meaning}" for place, meaning in PLACES.items())
        schema["description"] += (
            f"\n\nIn its texts {places}. ``{{nobodies:300}}`` are so many parts of a filter that "
            "find nobody."
        )


class LdapStep(Value):
    """A request, and what its answer must be."""

    model_config = ConfigDict(json_schema_extra=_with_places)

    kind: RequestKind = RequestKind.SEARCH
    base: Template = Field(default="{people}", description="where it searches, or the entry")
    scope: Literal["base", "one", "subtree"] = "subtree"
    filter: Template = "(uid={user})"
    attributes: tuple[str, ...] = Field(default=("*",), description="that a search returns")
    attribute: str = Field(default="description", description="that is compared or changed")
    change: Literal["replace", "add", "delete"] = Field(
        default="replace", description="what a change does with the attribute's values"
    )
    value: Template = Field(
        default="{value}", description="that it is compared with or becomes, or a new name"
    )
    result: NonNegativeInt = Field(
        default=0, lt=1 << 31, description="the code that its answer must have"
    )
    entries: NonNegativeInt | None = Field(
        default=None, description="that a search must find; by default any number"
    )
    page: PositiveInt | None = Field(
        default=None,
        lt=1 << 31,
        description="entries of a page: one operation asks for all of them in turn",
    )

    sort: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z][A-Za-z0-9;-]*$",
        max_length=100,
        description="an attribute by which the server must sort the entries",
    )

    window: Window | None = Field(
        default=None,
        exclude_if=lambda window: window is None,
        description="the part of the sorted entries that it asks for (a virtual list view)",
    )

    mechanism: Mechanism = Field(
        default="simple",
        exclude_if=lambda mechanism: mechanism == "simple",
        description="of a bind: by SASL with name and password, or as who opened the socket",
    )

    imports: Literal["users", "suffix"] = Field(
        default="users",
        exclude_if=lambda imports: imports == "users",
        description="all of the workload's `imported` users, or the entry of their suffix alone",
    )

    def __str__(self) -> str:
        """Return all that is sent, and what must be answered."""
        match self.kind:
            case RequestKind.SEARCH:
                text = ", ".join(self._search)
            case RequestKind.BIND if self.mechanism == "external":
                text = "bind as who opened the socket"
            case RequestKind.BIND:
                text = f"bind as {self.base} by its password ({self.mechanism})"
            case RequestKind.COMPARE:
                text = f"compare {self.attribute} of {self.base} with {self.value}"
            case RequestKind.MODIFY:
                text = f"modify {self.base}: {self.change} {self.attribute} {self.value}"
            case RequestKind.RENAME:
                text = f"rename {self.base} to {self.value}"
            case RequestKind.ADD | RequestKind.DELETE:
                text = f"{self.kind} {self.base}"
            case RequestKind.IMPORT_TASK:
                text = f"import-task of {self.imports}"
            case RequestKind.WAIT | RequestKind.CONNECT:
                text = self.kind
        return f"{text}, answered by result {self.result}" if self.result else text

    @property
    def _search(self) -> Iterator[str]:
        yield f"search {self.base}"
        yield f"filter {self.filter}"
        yield f"scope {self.scope}"
        yield f"attributes {' '.join(self.attributes)}"
        if self.sort:
            yield f"sorted by {self.sort}"
        if self.window:
            yield f"{self.window.entries} from {self.window.first} on (virtual list view)"
        if self.page:
            yield f"in pages of {self.page}"
        if self.entries is not None:
            yield f"entries {self.entries}"

    @property
    def texts(self) -> dict[str, str]:
        return {"base": self.base, "filter": self.filter, "value": self.value}

    def contradictions(self) -> Iterator[str]:
        """What is allowed instead of what cannot be asked for."""
        if self.page and self.kind is not RequestKind.SEARCH:
            yield "`page` with `kind: search` only"
        if self.sort and (self.page or self.kind is not RequestKind.SEARCH):
            yield "`sort` with `kind: search` only, and without `page`"
        if self.window and not self.sort:
            yield "`window` with `sort` only"
        if self.imports != "users" and self.kind is not RequestKind.IMPORT_TASK:
            yield "`imports` with `kind: import-task` only"
        if self.mechanism != "simple" and self.kind is not RequestKind.BIND:
            yield "`mechanism` with `kind: bind` only"
        elif self.mechanism == "plain" and self.base != "{user_dn}":
            yield "`base: {user_dn}` with `mechanism: plain`"
        named = self.kind is RequestKind.BIND and self.mechanism != "external"
        if named and self.base not in {"{user_dn}", "{manager}"}:
            yield "`base: {user_dn}` or `base: {manager}` with `kind: bind`"
        for name, text in self.texts.items():
            yield from _contradicted_text(name, text)


def _contradicted_text(name: str, text: str) -> Iterator[str]:
    if not _known_places(text):
        masks = ", ".join(f"{{{mask}}}" for mask in sorted(MASKS))
        yield f"a {name} with no other places than {masks}, {{nobodies:300}}"
    elif name == "filter" and not is_filter(_filled(text)):
        yield (
            "a filter in brackets, such as (&(uid={user})(cn=*)) or (!(cn=a)), nested at most "
            f"{MOST_NESTED} deep"
        )


def _known_places(text: str) -> bool:
    try:
        places = [part for part in Formatter().parse(text) if part[1] is not None]
    except ValueError:
        return False
    return all(
        (spec or "").isdecimal() and 0 < int(spec or 0) <= MOST_NOBODIES
        if name == "nobodies"
        else name in MASKS and not spec and not conversion
        for _, name, spec, conversion in places
    )


def _filled(text: str) -> str:
    """A filter with something in its places; of many parts two are enough to see its form."""
    pieces = []
    for before, name, number, _ in Formatter().parse(text):
        part = "(uid=x)" * min(int(number or 0), 2) if name == "nobodies" else "x"
        pieces.append(before if name is None else before + part)
    return "".join(pieces)


_FILTER_PIECE = re.compile(r"\(\s*[&|!]?|\)|[^()]+")
_COMPARISON = re.compile(r"\s*[A-Za-z0-9.;:_-]+\s*[~<>]?=.*", re.DOTALL)


def is_filter(text: str) -> bool:
    """Whether a text is one filter as RFC 4515 writes it.

    ``ldap3`` would say so too, but takes longer to import than the matrix to read.
    """
    open_: list[tuple[str, int]] = [("", 0)]  # what each bracket begins with, and its parts so far
    for piece in _FILTER_PIECE.findall(text.strip()):
        sort, parts = open_.pop()
        comparison = not sort and bool(open_)
        match piece[0]:
            case ")" if open_ and parts and (sort != "!" or parts == 1):
                pass
            case "(" if not comparison and len(open_) < MOST_NESTED:
                open_ += [(sort, parts + 1), (piece[1:].strip(), 0)]
            case ")" | "(":
                return False
            case _ if comparison and not parts and _COMPARISON.fullmatch(piece):
                open_.append((sort, 1))
            case _ if not piece.strip():
                open_.append((sort, parts))
            case _:
                return False
    return open_ == [("", 1)]


class LdapRequest(LdapStep):
    """One kind of operation: a request, or several that follow each other on one connection."""

    share: PositiveInt = Field(
        default=1, le=100, description="of all operations, against the others'"
    )
    then: tuple[LdapStep, ...] = Field(
        default=(), description="what follows its answer; all steps are one operation"
    )

    def __str__(self) -> str:
        steps = ", then ".join([super().__str__(), *map(str, self.then)])
        return f"{steps} (share {self.share})" if self.share > 1 else steps

    @property
    def steps(self) -> tuple[LdapStep, ...]:
        return (self, *self.then)

    @property
    def name(self) -> str:
        """The kinds of its steps: `add+delete`."""
        return "+".join(step.kind for step in self.steps)

    def contradictions(self) -> Iterator[str]:
        """Refuse what one of its steps cannot be, and waiting in the middle of an operation."""
        yield from super().contradictions()
        for step in self.then:
            yield from step.contradictions()
        if self.then and any(step.kind is RequestKind.WAIT for step in self.steps):
            yield "`kind: wait` without `then`"
        if any(step.kind is RequestKind.CONNECT for step in self.then):
            yield "`kind: connect` as the first step only"
        if self.kind is RequestKind.CONNECT and not self.then:
            yield "`then` with `kind: connect`, which by itself asks for nothing"


# All that a directory is asked whose entries nobody knows.
USER_BIND = LdapRequest(
    kind=RequestKind.CONNECT, then=(LdapStep(kind=RequestKind.BIND, base="{user_dn}"),)
)


class Disturber(Value):
    """Requests of other connections, in a closed loop as long as the load itself runs.

    They are no operations of the load; an error of theirs is one of the run.
    """

    connections: PositiveInt = Field(default=1, le=64, description="each with one request")
    over: LdapTransport | None = Field(
        default=None,
        exclude_if=lambda over: over is None,
        description="how its connections reach the server; by default as the load's own",
    )
    requests: tuple[LdapRequest, ...] = Field(min_length=1)

    def __str__(self) -> str:
        request_text = "; ".join(map(str, self.requests))
        over = f", over {self.over}" if self.over else ""
        return f"{request_text} (connections: {self.connections}{over})"

    def contradictions(self) -> Iterator[str]:
        """Refuse what its requests cannot be, and a loop that waits for nothing."""
        for request in self.requests:
            yield from request.contradictions()
            if request.kind is RequestKind.WAIT:
                yield "requests other than `kind: wait`"
