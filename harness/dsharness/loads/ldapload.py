"""ldapload: the lab's own load for directories, for what ldclt cannot do.

Open loops, mixes of operations, any filter, answers that are checked one by one, and how long each
took.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dsharness.errors import WorkloadError
from dsharness.loads.ldap_request_bytes import (
    GROUP_MASK,
    NAME_MASK,
    NAMED,
    VALUE_MASK,
    encoded,
    first_bind,
    import_steps,
    simple_bind,
)
from dsharness.loads.load_driver import Worker, unfit
from dsharness.loads.own_load import MOST_BYTES, MOST_REQUESTS, OwnLoad
from dsharness.model import (
    USER_BIND,
    LdaploadWorkload,
    LdapRequest,
    LdapStep,
    LdapTransport,
    RequestKind,
    Workload,
)
from dsharness.systems.ldap.directory import (
    SHARED_MASKS,
    USER_MASK,
    group_name,
    shared_names,
    user_name,
)
from dsharness.systems.ldap.directory_system import SOCKET_NAME, LdapEndpoint, OwnDirectory
from dsharness.systems.system import SHARED_FOLDER, Endpoint


class Ldapload(OwnLoad):
    """The driver of the lab's own LDAP load."""

    name: ClassVar[str] = "ldapload"
    usual: ClassVar[str] = "search-as-user"
    speech: ClassVar[Path | None] = Path(__file__).with_name("ldap_speech.rs")

    def lines(self, workload: Workload, endpoint: Endpoint, turn: int) -> Iterator[str]:
        load, server = _ldap(workload, endpoint)
        if isinstance(server, OwnDirectory):
            return _lines(load, server, turn)
        return _binds(load, server, turn)

    def live_argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, worker: Worker
    ) -> list[str]:
        """A server that is someone else's is asked until it refuses the first bind."""
        argv = super().live_argv(workload, endpoint, folder, worker)
        is_foreign = isinstance(endpoint, LdapEndpoint) and not isinstance(endpoint, OwnDirectory)
        return [*argv, "--errors", "1"] if is_foreign else argv

    def server(self, workload: Workload, endpoint: Endpoint) -> tuple[str, list[str]]:
        load, _ = _ldap(workload, endpoint)
        options = ["--silent", str(load.silent)] if load.silent else []
        if load.disturber is not None:
            options += ["--disturbers", str(load.disturber.connections)]
        return _url(load.over, endpoint), options


# As the program calls them.
_SCHEMES = {
    LdapTransport.LDAP: "tcp",
    LdapTransport.LDAPS: "tls",
    LdapTransport.STARTTLS: "starttls",
}


def _url(over: LdapTransport, endpoint: Endpoint) -> str:
    """Where a load's connections go, as its program wants it."""
    if over is LdapTransport.LDAPI:
        return f"unix://{SHARED_FOLDER}/{SOCKET_NAME}"
    secure = endpoint.secure_port if isinstance(endpoint, OwnDirectory) else None
    port = secure if over is LdapTransport.LDAPS else endpoint.port
    return f"{_SCHEMES[over]}://{endpoint.host}:{port}"


def _ldap(workload: Workload, endpoint: Endpoint) -> tuple[LdaploadWorkload, LdapEndpoint]:
    if isinstance(workload, LdaploadWorkload) and (
        isinstance(endpoint, OwnDirectory)
        or (isinstance(endpoint, LdapEndpoint) and workload.requests == (USER_BIND,))
    ):
        return workload, endpoint
    raise unfit(workload, "is only for directories that the lab made")


def _lines(load: LdaploadWorkload, server: OwnDirectory, turn: int) -> Iterator[str]:
    """What ``own_load/plan.rs`` reads: KIND and for each step RESULT ENTRIES PAGE HEX.

    After a kind may stand ``@`` and for how many microseconds its connection then pauses. A step
    that connects has that word in place of bytes, and an import is three steps.
    """
    chance = random.Random(f"{load.id}/{turn}")  # noqa: S311 - fairness, not secrecy
    disturber = load.disturber
    yield f"first 0 - - {first_bind(load, server.users).hex()}"
    yield from _operations(load, load.requests, server, chance)
    if disturber is not None:
        over = load.over if disturber.over is None else disturber.over
        yield "disturbers" if over is load.over else f"disturbers {_url(over, server)}"
        yield from _operations(load, disturber.requests, server, chance)


def _binds(load: LdaploadWorkload, server: LdapEndpoint, turn: int) -> Iterator[str]:
    """Each user that someone named binds on a connection of its own."""
    users = [server.users.user(number) for number in range(load.distinct_users)]
    random.Random(f"{load.id}/{turn}").shuffle(users)  # noqa: S311 - fairness, not secrecy
    yield "first 0 - - "
    for user in users[:MOST_REQUESTS]:
        bodies = (b"", simple_bind(user.dn, user.password))
        steps = zip(USER_BIND.steps, bodies, strict=True)
        yield _line(USER_BIND, [(_wanted(step), body) for step, body in steps])


def _operations(
    load: LdaploadWorkload,
    requests: Sequence[LdapRequest],
    server: OwnDirectory,
    chance: random.Random,
) -> Iterator[str]:
    users = list(range(load.distinct_users))
    chance.shuffle(users)
    masked = [(request, tuple(_steps(load, request, server))) for request in requests]
    shares = [pair for pair in masked for _ in range(pair[0].share)]
    for number in range(_count(masked, len(users) * len(shares))):
        if number % len(shares) == 0:
            chance.shuffle(shares)
        request, steps = shares[number % len(shares)]
        user = users[number % len(users)]
        texts = names_of(load, user)
        if any(VALUE_MASK.encode() in body for _, body in steps):
            letters = chance.choices(string.ascii_letters, k=len(VALUE_MASK))
            texts[VALUE_MASK] = "".join(letters)
        pause_ms = chance.choice(load.pauses_ms) if load.pauses_ms else 0.0
        yield _line(
            request, [(expected, _filled(body, texts)) for expected, body in steps], pause_ms
        )


def names_of(load: LdaploadWorkload, user: int) -> dict[str, str]:
    """Return what takes the masks' places in the requests of a user."""
    group = user // max(1, load.members) % max(1, load.groups)
    texts = {USER_MASK: user_name(user), GROUP_MASK: group_name(group)}
    return texts | {SHARED_MASKS[place]: name for place, name in shared_names(user).items()}


Step = tuple[str, bytes]  # what its answer must be, and the encoded request
Masked = tuple[LdapRequest, tuple[Step, ...]]


def _steps(load: LdaploadWorkload, request: LdapRequest, server: OwnDirectory) -> Iterator[Step]:
    for step in request.steps:
        if step.kind is not RequestKind.IMPORT_TASK:
            yield _wanted(step), encoded(step, server.users)
        elif server.import_task is not None:
            yield from import_steps(step, server.import_task)
        else:
            raise WorkloadError(
                f"workload {load.id} imports, which this server cannot do while it runs",
                hint="choose another: `dsbisect check FILE --row ROW` tells which fit",
            )


def _wanted(step: LdapStep) -> str:
    numbers = (step.result, step.entries, step.page)
    words = ["-" if number is None else str(number) for number in numbers]
    return " ".join([*words, "connect"] if step.kind is RequestKind.CONNECT else words)


def _count(masked: Sequence[Masked], number: int) -> int:
    """How many operations a file has, at least one of each share.

    The names of new entries come again with the file: it is so long that those are gone by then.
    """
    longest = max(2 * sum(len(body) for _, body in steps) for _, steps in masked)
    most = min(MOST_REQUESTS, MOST_BYTES // max(1, longest))
    adds = any(step.kind is RequestKind.ADD for request, _ in masked for step in request.steps)
    return max(sum(request.share for request, _ in masked), most if adds else min(most, number))


def _filled(body: bytes, texts: Mapping[str, str]) -> bytes:
    for mask, text in texts.items():
        body = body.replace(mask.encode(), text.encode())
    return body


def _line(request: LdapRequest, steps: Sequence[Step], pause_ms: float = 0.0) -> str:
    words = [request.name + (f"@{round(1000 * pause_ms)}" if pause_ms else "")]
    for expected, body in steps:
        words.append(expected)
        if not expected.endswith("connect"):
            words.append(body.hex().replace(NAME_MASK.hex(), NAMED))
    return " ".join(words)
