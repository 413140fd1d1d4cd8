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
from typing import Any, ClassVar

import ldap3
from ldap3.operation.add import add_operation
from ldap3.operation.bind import bind_operation
from ldap3.operation.compare import compare_operation
from ldap3.operation.delete import delete_operation
from ldap3.operation.modify import modify_operation
from ldap3.operation.modifyDn import modify_dn_operation
from ldap3.operation.search import search_operation
from ldap3.protocol.convert import build_controls_list
from ldap3.protocol.rfc4511 import LDAPMessage, MessageID, ProtocolOp
from ldap3.utils.asn1 import encode  # pyright: ignore[reportAttributeAccessIssue] - its stubs lack it

from dsharness.errors import WorkloadError
from dsharness.loads.load import (
    CUT,
    Extent,
    LoadReport,
    Operations,
    Schedule,
    SourcePorts,
    last_of,
)
from dsharness.model import (
    Latencies,
    LdaploadWorkload,
    LdapRequest,
    LdapStep,
    LdapTransport,
    RequestKind,
    Workload,
)
from dsharness.systems.ldap.directory import (
    DIGITS,
    SHARED_MASKS,
    USER_MASK,
    Site,
    group_name,
    shared_names,
    user_name,
)
from dsharness.systems.ldap.directory_system import SOCKET_NAME, OwnDirectory
from dsharness.systems.system import SHARED_FOLDER, Endpoint

REQUESTS_FILE = "requests.txt"
MOST_REQUESTS, MOST_BYTES = 20_000, 32 << 20  # of one file; it is read again from its beginning
LATE_US = 1000.0  # half of the operations begun later than this: the load did not keep its schedule
# Stand in an encoded request for what takes their place: a text of the same length.
VALUE_MASK = "Y" * 12
GROUP_MASK = "group" + DIGITS * "X"

_RUN = """\
"$@"
status=$?
echo "load ended with status $status"
exit $status
"""

_SCOPES = {"base": ldap3.BASE, "one": ldap3.LEVEL, "subtree": ldap3.SUBTREE}
_CHANGES = {
    "replace": ldap3.MODIFY_REPLACE, "add": ldap3.MODIFY_ADD, "delete": ldap3.MODIFY_DELETE,
}  # fmt: skip


class Ldapload:
    """The driver of the lab's own LDAP load."""

    grace_s: ClassVar[float] = 35.0  # it waits up to 30 s until a connection is bound
    source: ClassVar[Path | None] = Path(__file__).with_suffix("")

    def files(self, workload: Workload, endpoint: Endpoint, turn: int) -> Mapping[str, str]:
        """Requests of one turn, in their own order; both members of a pair get the same."""
        load, site = _ldap(workload, endpoint)
        return {REQUESTS_FILE: "".join(f"{line}\n" for line in _lines(load, site, turn))}

    def argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, extent: Extent
    ) -> list[str]:
        load, _ = _ldap(workload, endpoint)
        url = _url(load.over, endpoint)
        match extent:
            case Operations():
                much = ["--operations", str(extent.total(load.threads))]
            case Schedule():
                count = str(extent.total(load.threads))
                much = ["--rate", f"{extent.per_second:g}", "--operations", count]
            case _:
                much = ["--seconds", str(extent.seconds)]
        limit_s = 2 * extent.limit_s + 1
        others = ["--silent", str(load.silent)] if load.silent else []
        if load.disturber is not None:
            others += ["--disturbers", str(load.disturber.connections)]
        return [
            "timeout", "--kill-after=5", f"{limit_s + self.grace_s:.0f}", "sh", "-c", _RUN, "sh",
            "ldapload", url, f"{folder}/{REQUESTS_FILE}",
            "--connections", str(load.threads), *others, "--limit", f"{limit_s:g}", *much,
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
            latencies={kind: Latencies.of(each) for kind, each in _times(text).items()},
            disturbances=int(disturbances) if disturbances else None,
            ports=_ports(text),
            late=Latencies.of(late) if (late := _late(text)) else None,
            verified="\nfinished\n" in text,
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


def _ldap(workload: Workload, endpoint: Endpoint) -> tuple[LdaploadWorkload, Site]:
    if isinstance(workload, LdaploadWorkload) and isinstance(endpoint, OwnDirectory):
        return workload, endpoint.users
    raise WorkloadError(
        f"workload {workload.id} is only for directories that the lab made",
        hint="choose a workload that fits the rows; `dsbisect matrix show` lists both",
    )


def _lines(load: LdaploadWorkload, site: Site, turn: int) -> Iterator[str]:
    """What ``ldapload/plan.rs`` reads: KIND and for each step RESULT ENTRIES PAGE HEX.

    A step that connects has that word in place of bytes.
    """
    chance = random.Random(f"{load.id}/{turn}")  # noqa: S311 - fairness, not secrecy
    yield f"first 0 - - {_first(load, site).hex()}"
    yield from _operations(load, load.requests, site, chance)
    if load.disturber is not None:
        yield "disturbers"
        yield from _operations(load, load.disturber.requests, site, chance)


def _operations(
    load: LdaploadWorkload, requests: Sequence[LdapRequest], site: Site, chance: random.Random
) -> Iterator[str]:
    users = list(range(load.distinct_users))
    chance.shuffle(users)
    masked = [(each, tuple(_encoded(step, site) for step in each.steps)) for each in requests]
    shares = [pair for pair in masked for _ in range(pair[0].share)]
    for number in range(_count(masked, len(users) * len(shares))):
        if number % len(shares) == 0:
            chance.shuffle(shares)
        asked, bodies = shares[number % len(shares)]
        user = users[number % len(users)]
        group = user // max(1, load.members) % max(1, load.groups)
        texts = {USER_MASK: user_name(user), GROUP_MASK: group_name(group)}
        texts |= {SHARED_MASKS[place]: name for place, name in shared_names(user).items()}
        if any(VALUE_MASK.encode() in body for body in bodies):
            drawn = chance.choices(string.ascii_letters, k=len(VALUE_MASK))
            texts[VALUE_MASK] = "".join(drawn)
        yield _line(asked, [_filled(body, texts) for body in bodies])


Masked = tuple[LdapRequest, tuple[bytes, ...]]  # an operation, and each step as it is encoded


def _count(masked: Sequence[Masked], wanted: int) -> int:
    """How many operations a file has, at least one of each share.

    The names of new entries come again with the file: it is so long that those are gone by then.
    """
    longest = max(2 * sum(map(len, bodies)) for _, bodies in masked)
    most = min(MOST_REQUESTS, MOST_BYTES // max(1, longest))
    adds = any(step.kind is RequestKind.ADD for asked, _ in masked for step in asked.steps)
    return max(sum(asked.share for asked, _ in masked), most if adds else min(most, wanted))


def _filled(body: bytes, texts: Mapping[str, str]) -> bytes:
    for mask, text in texts.items():
        body = body.replace(mask.encode(), text.encode())
    return body


def _line(asked: LdapRequest, bodies: Sequence[bytes]) -> str:
    words = [asked.name]
    for step, body in zip(asked.steps, bodies, strict=True):
        numbers = (step.result, step.entries, step.page)
        words += ["-" if each is None else str(each) for each in numbers]
        words.append("connect" if step.kind is RequestKind.CONNECT else body.hex())
    return " ".join(words)


class _Nobodies:
    """Parts of a filter, as many as its format says."""

    def __format__(self, number: str) -> str:
        return "".join(f"(uid=nobody{each:0{DIGITS}d})" for each in range(int(number)))


def _encoded(asked: LdapStep, site: Site) -> bytes:
    """A request with masks where each one has a name or a value."""
    known = {
        "user": USER_MASK, "user_dn": f"uid={USER_MASK},{site.people}",
        "group_dn": f"cn={GROUP_MASK},{site.people}", "value": VALUE_MASK,
        "new_dn": f"uid={VALUE_MASK},{site.people}", "people": site.people, "suffix": site.suffix,
        "manager": site.manager, "nobodies": _Nobodies(), **SHARED_MASKS,
    }  # fmt: skip
    base, filter_, value = (
        text.format_map(known) for text in (asked.base, asked.filter, asked.value)
    )
    match asked.kind:
        case RequestKind.WAIT | RequestKind.CONNECT:
            return b""
        case RequestKind.SEARCH:
            request = search_operation(
                base, filter_, _SCOPES[asked.scope], ldap3.DEREF_NEVER, list(asked.attributes),
                0, 0, False, False, False,
            )  # fmt: skip
        case RequestKind.COMPARE:
            request = compare_operation(base, asked.attribute, value, False)
        case RequestKind.MODIFY:
            request = modify_operation(
                base, {asked.attribute: [(_CHANGES[asked.change], [value])]}, False
            )
        case RequestKind.ADD:
            request = add_operation(base, site.plain_attributes(value), False)
        case RequestKind.RENAME:
            request = modify_dn_operation(base, value, True)
        case RequestKind.DELETE:
            request = delete_operation(base)
        case RequestKind.BIND:
            request = _bind(asked, base, site)
    return _body(_NAMES[asked.kind], request, tuple(_controls(asked)))


def _bind(asked: LdapStep, who: str, site: Site) -> Any:  # noqa: ANN401 - ldap3 is untyped
    if asked.mechanism == "external":
        return bind_operation(3, ldap3.SASL, "", None, "EXTERNAL")
    if asked.mechanism == "plain":
        said = f"\0{USER_MASK}\0{site.user_password}".encode()
        return bind_operation(3, ldap3.SASL, "", None, "PLAIN", said)
    password = site.manager_password if who == site.manager else site.user_password
    return bind_operation(3, ldap3.SIMPLE, who, password)


_NAMES = {
    RequestKind.SEARCH: "searchRequest", RequestKind.COMPARE: "compareRequest",
    RequestKind.MODIFY: "modifyRequest", RequestKind.ADD: "addRequest",
    RequestKind.RENAME: "modDNRequest", RequestKind.DELETE: "delRequest",
    RequestKind.BIND: "bindRequest",
}  # fmt: skip


def _first(load: LdaploadWorkload, site: Site) -> bytes:
    """A bind of the manager, which is cheap in every version, or of the first user."""
    who, password = site.manager, site.manager_password
    if load.bound_as == "user":
        who, password = site.user_dn(0), site.user_password
    return _body("bindRequest", bind_operation(3, ldap3.SIMPLE, who, password))


SORT = "1.2.840.113556.1.4.473"  # the control by which a server sorts (RFC 2891)
WINDOW = "2.16.840.1.113730.3.4.9"  # by which it gives a part of the list (a draft: "vlv-09")


def _controls(asked: LdapStep) -> Iterator[tuple[str, bytes]]:
    if asked.sort is not None:
        key = _ber(0x04, asked.sort.encode())
        yield SORT, _ber(0x30, _ber(0x30, key))
    if asked.window is not None:
        place = _ber(0xA0, _number(asked.window.first) + _number(0))
        yield WINDOW, _ber(0x30, _number(0) + _number(asked.window.entries - 1) + place)


def _ber(tag: int, content: bytes) -> bytes:
    """An element shorter than 128 bytes."""
    return bytes([tag, len(content), *content])


def _number(number: int) -> bytes:
    return _ber(0x02, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _body(name: str, request: Any, controls: Sequence[tuple[str, bytes]] = ()) -> bytes:  # noqa: ANN401 - untyped
    """Everything of a message after its id; a server without a control must refuse the request."""
    message = LDAPMessage()
    message["messageID"] = MessageID(1)
    message["protocolOp"] = ProtocolOp().setComponentByName(name, request)
    if controls:
        message["controls"] = build_controls_list([(oid, True, value) for oid, value in controls])
    encoded = bytes(encode(message))
    header = 2 + (encoded[1] & 0x7F if encoded[1] & 0x80 else 0)
    return encoded[header + 3 :]


_TOTAL = re.compile(r"^operations (\d+)$", re.MULTILINE)
_SECONDS = re.compile(r"^seconds ([\d.]+)$", re.MULTILINE)
_CPU = re.compile(r"^cpu (\d+)$", re.MULTILINE)
_STARVED = re.compile(r"^starved (\d+)$", re.MULTILINE)
_DISTURBANCES = re.compile(r"^disturbances (\d+)$", re.MULTILINE)
_STATUS = re.compile(r"^load ended with status (\d+)$", re.MULTILINE)
_ERROR = re.compile(r"^error (\d+) (.*)$", re.MULTILINE)
_FAILED = re.compile(r"^failed (.*)$", re.MULTILINE)
_TIME = re.compile(r"^time (\S+) (\d+) (\d+)$", re.MULTILINE)
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


def _times(text: str) -> dict[str, dict[float, int]]:
    """For each kind how many operations took so long, from when they were due."""
    found: dict[str, dict[float, int]] = {}
    for kind, time_us, count in _TIME.findall(text):
        found.setdefault(kind, {})[float(time_us)] = int(count)
    return found


def _late(text: str) -> dict[float, int]:
    return {float(late_us): int(count) for late_us, count in _LATE.findall(text)}
