"""ldapload: the lab's own load for directories, for what ldclt cannot do.

Open loops, mixes of operations, any filter, answers that are checked one by one, and how long each
took. The program (``ldapload.rs``) sends what is encoded here; it is compiled by the lab.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import ldap3
from ldap3.operation.bind import bind_operation
from ldap3.operation.compare import compare_operation
from ldap3.operation.modify import modify_operation
from ldap3.operation.search import search_operation
from ldap3.protocol.rfc4511 import LDAPMessage, MessageID, ProtocolOp
from ldap3.utils.asn1 import encode  # pyright: ignore[reportAttributeAccessIssue] - its stubs lack it

from dsharness.errors import WorkloadError
from dsharness.loads.load import Extent, LoadReport, Operations, Schedule, last_of
from dsharness.model import Latencies, LdaploadWorkload, LdapRequest, RequestKind, Workload
from dsharness.systems.ldap.directory import USER_MASK, Site, user_name
from dsharness.systems.ldap.directory_system import OwnDirectory
from dsharness.systems.system import Endpoint

REQUESTS_FILE = "requests.txt"
MOST_REQUESTS, MOST_BYTES = 20_000, 32 << 20  # of one file; it is read again from its beginning
LATE_US = 1000.0  # half of the operations begun later than this: the load did not keep its schedule
# Stands in an encoded request for a value of its length, which takes its place.
VALUE_MASK = "Y" * 12

_RUN = """\
"$@"
status=$?
echo "load ended with status $status"
exit $status
"""

_SCOPES = {"base": ldap3.BASE, "one": ldap3.LEVEL, "subtree": ldap3.SUBTREE}


class Ldapload:
    """The driver of the lab's own LDAP load."""

    protocol: ClassVar[str] = "ldap"
    grace_s: ClassVar[float] = 35.0  # it waits up to 30 s until a connection is bound
    source: ClassVar[Path | None] = Path(__file__).with_suffix(".rs")

    def files(self, workload: Workload, endpoint: Endpoint, turn: int) -> Mapping[str, str]:
        """Requests of one turn, in their own order; both members of a pair get the same."""
        load, site = _ldap(workload, endpoint)
        return {REQUESTS_FILE: "".join(f"{line}\n" for line in _lines(load, site, turn))}

    def argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, extent: Extent
    ) -> list[str]:
        load, _ = _ldap(workload, endpoint)
        match extent:
            case Operations():
                much = ["--operations", str(extent.total(load.threads))]
            case Schedule():
                count = str(extent.total(load.threads))
                much = ["--rate", f"{extent.per_second:g}", "--operations", count]
            case _:
                much = ["--seconds", str(extent.seconds)]
        limit_s = 2 * extent.limit_s + 1
        silent = ["--silent", str(load.silent)] if load.silent else []
        return [
            "timeout", "--kill-after=5", f"{limit_s + self.grace_s:.0f}", "sh", "-c", _RUN, "sh",
            "ldapload", endpoint.host, str(endpoint.port), f"{folder}/{REQUESTS_FILE}",
            "--connections", str(load.threads), *silent, "--limit", f"{limit_s:g}", *much,
        ]  # fmt: skip

    def parse(self, text: str) -> LoadReport:
        total, seconds, cpu_us, status = (
            last_of(each, text) for each in (_TOTAL, _SECONDS, _CPU, _STATUS)
        )
        failed = dict.fromkeys(_FAILED.findall(text), 1)
        return LoadReport(
            active_s=float(seconds) if seconds else None,
            total=int(total) if total else None,
            errors={words: int(count) for count, words in _ERROR.findall(text)} | failed,
            exit_status=int(status) if status else None,
            client_cpu_us=float(cpu_us) if cpu_us else None,
            latencies={kind: Latencies.of(each) for kind, each in _times(text).items()},
            late=Latencies.of(late) if (late := _late(text)) else None,
            verified="\nfinished\n" in text,
        )

    def objections(self, report: LoadReport) -> Iterator[str]:
        late_us = report.late.at_us(50) if report.late else 0.0
        if late_us > LATE_US:
            yield f"the load began half of its operations more than {late_us / 1000:.1f} ms late"


def _ldap(workload: Workload, endpoint: Endpoint) -> tuple[LdaploadWorkload, Site]:
    if isinstance(workload, LdaploadWorkload) and isinstance(endpoint, OwnDirectory):
        return workload, endpoint.users
    raise WorkloadError(
        f"workload {workload.id} is only for directories that the lab made",
        hint="choose a workload that fits the rows; `dsbisect matrix show` lists both",
    )


def _lines(load: LdaploadWorkload, site: Site, turn: int) -> Iterator[str]:
    """What ``ldapload.rs`` reads: KIND RESULT ENTRIES PAGE HEX."""
    chance = random.Random(f"{load.id}/{turn}")  # noqa: S311 - fairness, not secrecy
    users = list(range(load.distinct_users))
    chance.shuffle(users)
    encoded = [(each, _encoded(each, site)) for each in load.requests]
    shares = [pair for pair in encoded for _ in range(pair[0].share)]
    longest = max(2 * len(body) for _, body in encoded)
    most = min(MOST_REQUESTS, MOST_BYTES // max(1, longest))
    count = max(len(shares), min(most, len(users) * len(shares)))
    yield f"first 0 - - {_manager(site).hex()}"
    for number in range(count):
        if number % len(shares) == 0:
            chance.shuffle(shares)
        asked, masked = shares[number % len(shares)]
        user = user_name(users[number % len(users)]).encode()
        body = masked.replace(USER_MASK.encode(), user)
        if VALUE_MASK in asked.value_of(VALUE_MASK):
            drawn = "".join(chance.choices(string.ascii_letters, k=len(VALUE_MASK)))
            body = body.replace(VALUE_MASK.encode(), drawn.encode())
        entries, page = _or_dash(asked.entries), _or_dash(asked.page)
        yield f"{asked.kind} {asked.result} {entries} {page} {body.hex()}"


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


def _encoded(asked: LdapRequest, site: Site) -> bytes:
    """A request with masks where each one has a user's name and a value."""
    known = {
        "user": USER_MASK, "value": VALUE_MASK, "people": site.people, "suffix": site.suffix,
        "user_dn": f"uid={USER_MASK},{site.people}",
    }  # fmt: skip
    base, filter_, value = (
        text.format_map(known) for text in (asked.base, asked.filter, asked.value)
    )
    match asked.kind:
        case RequestKind.SEARCH:
            request = search_operation(
                base, filter_, _SCOPES[asked.scope], ldap3.DEREF_NEVER, list(asked.attributes),
                0, 0, False, False, False,
            )  # fmt: skip
            return _body("searchRequest", request)
        case RequestKind.COMPARE:
            return _body("compareRequest", compare_operation(base, asked.attribute, value, False))
        case RequestKind.MODIFY:
            changes = {asked.attribute: [(ldap3.MODIFY_REPLACE, [value])]}
            return _body("modifyRequest", modify_operation(base, changes, False))
        case RequestKind.WAIT:
            return b""


def _manager(site: Site) -> bytes:
    """A bind of the manager, which is cheap in every version."""
    return _body(
        "bindRequest", bind_operation(3, ldap3.SIMPLE, site.manager, site.manager_password)
    )


def _body(name: str, request: Any) -> bytes:  # noqa: ANN401 - ldap3 is untyped
    """Everything of a message after its id."""
    message = LDAPMessage()
    message["messageID"] = MessageID(1)
    message["protocolOp"] = ProtocolOp().setComponentByName(name, request)
    encoded = bytes(encode(message))
    header = 2 + (encoded[1] & 0x7F if encoded[1] & 0x80 else 0)
    return encoded[header + 3 :]


_TOTAL = re.compile(r"^operations (\d+)$", re.MULTILINE)
_SECONDS = re.compile(r"^seconds ([\d.]+)$", re.MULTILINE)
_CPU = re.compile(r"^cpu (\d+)$", re.MULTILINE)
_STATUS = re.compile(r"^load ended with status (\d+)$", re.MULTILINE)
_ERROR = re.compile(r"^error (\d+) (.*)$", re.MULTILINE)
_FAILED = re.compile(r"^failed (.*)$", re.MULTILINE)
_TIME = re.compile(r"^time (\S+) (\d+) (\d+)$", re.MULTILINE)
_LATE = re.compile(r"^late (\d+) (\d+)$", re.MULTILINE)


def _times(text: str) -> dict[str, dict[float, int]]:
    """For each kind how many operations took so long, from when they were due."""
    found: dict[str, dict[float, int]] = {}
    for kind, time_us, count in _TIME.findall(text):
        found.setdefault(kind, {})[float(time_us)] = int(count)
    return found


def _late(text: str) -> dict[float, int]:
    return {float(late_us): int(count) for late_us, count in _LATE.findall(text)}
