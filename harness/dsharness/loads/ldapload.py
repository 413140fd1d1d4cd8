"""ldapload: the lab's own load for directories, for what ldclt cannot do.

Open loops, mixes of operations, any filter, answers that are checked one by one, and how long each
took. The program (in ``ldapload/``) sends what is encoded here; it is compiled by the lab.
"""

from __future__ import annotations

import random
import re
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
from dsharness.loads.load_driver import (
    CUT,
    OVER_TIME,
    Extent,
    LoadReport,
    Operations,
    Schedule,
    SourcePorts,
    Worker,
    last_of,
)
from dsharness.model import (
    USER_BIND,
    Latencies,
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

REQUESTS_FILE = "requests.txt"
MOST_REQUESTS, MOST_BYTES = 20_000, 32 << 20  # of one file; it is read again from its beginning
ADDRESSES = 12  # of each of several workers
LAST_S = 10.0  # for the last answers, once the time is over in which operations begin
LATE_US = 1000.0  # half of the operations begun later than this: the load did not keep its schedule

_RUN = """\
"$@"
status=$?
echo "load ended with status $status"
exit $status
"""


class Ldapload:
    """The driver of the lab's own LDAP load."""

    most_workers: ClassVar[int] = 20
    # It waits up to 30 s until a connection is bound, and for the end of an import.
    grace_s: ClassVar[float] = 65.0
    source: ClassVar[Path | None] = Path(__file__).with_suffix("")

    def files(self, workload: Workload, endpoint: Endpoint, turn: int) -> Mapping[str, str]:
        """Requests of one turn, in their own order; both members of a pair get the same."""
        load, server = _ldap(workload, endpoint)
        lines = (
            _lines(load, server, turn)
            if isinstance(server, OwnDirectory)
            else _binds(load, server, turn)
        )
        return {REQUESTS_FILE: "".join(f"{line}\n" for line in lines)}

    def argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, extent: Extent
    ) -> list[str]:
        match extent:
            case Operations():
                much = ["--operations", str(extent.total(workload.threads))]
            case Schedule():
                count = str(extent.total(workload.threads))
                much = ["--rate", f"{extent.per_second:g}", "--operations", count]
            case _:
                much = ["--seconds", str(extent.seconds)]
        return self._run(workload, endpoint, folder, 2 * extent.limit_s + 1, much)

    def live_argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, worker: Worker
    ) -> list[str]:
        """A block of source addresses is the worker's own."""
        first = 1 + (worker.number - 1) * ADDRESSES
        much = ["--seconds", f"{worker.seconds:g}", "--tells", "1"]
        much += ["--first", str(first), "--addresses", str(ADDRESSES)]
        if worker.per_second is not None:
            much += ["--rate", f"{worker.per_second:g}"]
        if isinstance(endpoint, LdapEndpoint) and not isinstance(endpoint, OwnDirectory):
            # it is someone else's: the first refused bind ends it
            much += ["--errors", "1"]
        return self._run(workload, endpoint, folder, worker.seconds + LAST_S, much)

    def _server(self, workload: Workload, endpoint: Endpoint) -> tuple[str, list[str]]:
        """Where connections go, and what options those have that are not the load's own."""
        load, _ = _ldap(workload, endpoint)
        others = ["--silent", str(load.silent)] if load.silent else []
        if load.disturber is not None:
            others += ["--disturbers", str(load.disturber.connections)]
        return _url(load.over, endpoint), others

    def _run(
        self, workload: Workload, endpoint: Endpoint, folder: str, limit_s: float, much: list[str]
    ) -> list[str]:
        url, others = self._server(workload, endpoint)
        return [
            "timeout", "--kill-after=5", f"{limit_s + self.grace_s:.0f}", "sh", "-c", _RUN, "sh",
            "ldapload", url, f"{folder}/{REQUESTS_FILE}",
            "--connections", str(workload.threads), *others, "--limit", f"{limit_s:g}", *much,
        ]  # fmt: skip

    def parse(self, text: str) -> LoadReport:
        total, seconds, cpu_us, starved_us, disturbances, status = (
            last_of(each, text)
            for each in (_TOTAL, _SECONDS, _CPU, _STARVED, _DISTURBANCES, _STATUS)
        )
        failed = dict.fromkeys(_FAILED.findall(text), 1)
        return LoadReport(
            active_s=float(seconds) if seconds else None,
            total=int(total) if total else None,
            errors={words: int(count) for count, words in _ERROR.findall(text)} | failed,
            exit_status=int(status) if status else None,
            client_cpu_us=float(cpu_us) if cpu_us else None,
            starved_us=float(starved_us or 0),
            latencies=_times(_TIME, text),
            sent=_times(_SENT, text),
            disturbances=int(disturbances) if disturbances else None,
            ports=_ports(text),
            late=Latencies.of(late) if (late := _late(text)) else None,
            verified="\nfinished\n" in text,
            expired=OVER_TIME in text,
        )

    def objections(self, report: LoadReport) -> Iterator[str]:
        yield from (words for words in report.errors if words.startswith(_SHORT))
        if report.total and not report.verified:
            yield CUT
        if report.disturbances == 0:
            yield "what should disturb the load had no answer"
        late_us = report.late.at_us(50) if report.late else 0.0
        if late_us > LATE_US:
            yield f"the load began half of its operations more than {late_us / 1000:.1f} ms late"


def _url(over: LdapTransport, endpoint: Endpoint) -> str:
    """Where a load's connections go, as its program wants it."""
    if over is LdapTransport.LDAPI:
        return f"ldapi://{SHARED_FOLDER}/{SOCKET_NAME}"
    secure = endpoint.secure_port if isinstance(endpoint, OwnDirectory) else None
    port = secure if over is LdapTransport.LDAPS else endpoint.port
    return f"{over}://{endpoint.host}:{port}"


def _ldap(workload: Workload, endpoint: Endpoint) -> tuple[LdaploadWorkload, LdapEndpoint]:
    if isinstance(workload, LdaploadWorkload) and (
        isinstance(endpoint, OwnDirectory)
        or (isinstance(endpoint, LdapEndpoint) and workload.requests == (USER_BIND,))
    ):
        return workload, endpoint
    raise WorkloadError(
        f"workload {workload.id} is only for directories that the lab made",
        hint="choose a workload that fits the rows; `dsbisect matrix show` lists both",
    )


def _lines(load: LdaploadWorkload, server: OwnDirectory, turn: int) -> Iterator[str]:
    """What ``ldapload/plan.rs`` reads: KIND and for each step RESULT ENTRIES PAGE HEX.

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
    masked = [(each, tuple(_steps(load, each, server))) for each in requests]
    shares = [pair for pair in masked for _ in range(pair[0].share)]
    for number in range(_count(masked, len(users) * len(shares))):
        if number % len(shares) == 0:
            chance.shuffle(shares)
        asked, steps = shares[number % len(shares)]
        user = users[number % len(users)]
        group = user // max(1, load.members) % max(1, load.groups)
        texts = {USER_MASK: user_name(user), GROUP_MASK: group_name(group)}
        texts |= {SHARED_MASKS[place]: name for place, name in shared_names(user).items()}
        if any(VALUE_MASK.encode() in body for _, body in steps):
            drawn = chance.choices(string.ascii_letters, k=len(VALUE_MASK))
            texts[VALUE_MASK] = "".join(drawn)
        pause_ms = chance.choice(load.pauses_ms) if load.pauses_ms else 0.0
        yield _line(asked, [(wanted, _filled(body, texts)) for wanted, body in steps], pause_ms)


Step = tuple[str, bytes]  # what its answer must be, and the encoded request
Masked = tuple[LdapRequest, tuple[Step, ...]]


def _steps(load: LdaploadWorkload, asked: LdapRequest, server: OwnDirectory) -> Iterator[Step]:
    for step in asked.steps:
        if step.kind is not RequestKind.IMPORT_TASK:
            yield _wanted(step), encoded(step, server.users)
        elif server.import_task is not None:
            yield from import_steps(step, server.import_task)
        else:
            raise WorkloadError(
                f"workload {load.id} imports, which this server cannot do while it runs",
                hint="choose a row of plain 389-ds, or another workload",
            )


def _wanted(step: LdapStep) -> str:
    numbers = (step.result, step.entries, step.page)
    words = ["-" if each is None else str(each) for each in numbers]
    return " ".join([*words, "connect"] if step.kind is RequestKind.CONNECT else words)


def _count(masked: Sequence[Masked], wanted: int) -> int:
    """How many operations a file has, at least one of each share.

    The names of new entries come again with the file: it is so long that those are gone by then.
    """
    longest = max(2 * sum(len(body) for _, body in steps) for _, steps in masked)
    most = min(MOST_REQUESTS, MOST_BYTES // max(1, longest))
    adds = any(step.kind is RequestKind.ADD for asked, _ in masked for step in asked.steps)
    return max(sum(asked.share for asked, _ in masked), most if adds else min(most, wanted))


def _filled(body: bytes, texts: Mapping[str, str]) -> bytes:
    for mask, text in texts.items():
        body = body.replace(mask.encode(), text.encode())
    return body


def _line(asked: LdapRequest, steps: Sequence[Step], pause_ms: float = 0.0) -> str:
    words = [asked.name + (f"@{round(1000 * pause_ms)}" if pause_ms else "")]
    for wanted, body in steps:
        words.append(wanted)
        if not wanted.endswith("connect"):
            words.append(body.hex().replace(NAME_MASK.hex(), NAMED))
    return " ".join(words)


_TOTAL = re.compile(r"^operations (\d+)$", re.MULTILINE)
_SECONDS = re.compile(r"^seconds ([\d.]+)$", re.MULTILINE)
_CPU = re.compile(r"^cpu (\d+)$", re.MULTILINE)
_STARVED = re.compile(r"^starved (\d+)$", re.MULTILINE)
_DISTURBANCES = re.compile(r"^disturbances (\d+)$", re.MULTILINE)
_STATUS = re.compile(r"^load ended with status (\d+)$", re.MULTILINE)
_ERROR = re.compile(r"^error (\d+) (.*)$", re.MULTILINE)
_FAILED = re.compile(r"^failed (.*)$", re.MULTILINE)
_TIME = re.compile(r"^time (\S+) (\d+) (\d+)$", re.MULTILINE)
_SENT = re.compile(r"^sent (\S+) (\d+) (\d+)$", re.MULTILINE)
_PORTS = re.compile(r"^ports (\d+) addresses (\d+) waiting (\d+) (\d+)$", re.MULTILINE)
_SHORT = "too few ports"
_LATE = re.compile(r"^late (\d+) (\d+)$", re.MULTILINE)


def _ports(text: str) -> SourcePorts | None:
    found = _PORTS.search(text)
    if found is None:
        return None
    each, addresses, before, after = map(int, found.groups())
    return SourcePorts(
        of_address=each, addresses=addresses, waiting_before=before, waiting_after=after
    )


def _times(line: re.Pattern[str], text: str) -> dict[str, Latencies]:
    """For each kind how many operations took so long."""
    found: dict[str, dict[float, int]] = {}
    for kind, time_us, count in line.findall(text):
        found.setdefault(kind, {})[float(time_us)] = int(count)
    return {kind: Latencies.of(each) for kind, each in found.items()}


def _late(text: str) -> dict[float, int]:
    return {float(late_us): int(count) for late_us, count in _LATE.findall(text)}
