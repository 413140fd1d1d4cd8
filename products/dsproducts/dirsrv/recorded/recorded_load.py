"""From the events of an access log to a workload: what is asked, shares, connections, rate.

A recorded request becomes one that the lab's own directory can answer; nothing of a name is kept.
"""

from __future__ import annotations

import json
import re
import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal

from ldap3.core.results import RESULT_COMPARE_FALSE, RESULT_COMPARE_TRUE

from dsharness.errors import UsageError
from dsharness.model import LONGEST_PAUSE_MS, LdaploadWorkload, LdapRequest, LdapStep, RequestKind
from dsproducts.dirsrv.recorded.access_log import LogEvent, Unanswered, UnreadLine, read_files

MEMBERSHIP = frozenset({"member", "uniquemember", "memberuid", "memberof"})
GROUP_CLASSES = frozenset({"groupofnames", "groupofuniquenames", "posixgroup", "ipausergroup"})
# Of the lab's own entries; only these names may stand in what is written.
ASKED = {
    name.lower(): name
    for name in ("uid", "cn", "sn", "objectClass", "member", "description", "*", "+", "1.1")
}
_BASE, _ATTRS = ' base="', '" attrs='
_SCOPE = re.compile(r'" scope=(?P<scope>[012]) filter="')
_PART = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9;.-]*|[0-9.]+)=(?P<value>[^()]*)")
_DN = re.compile(r' dn="(?P<dn>.*?)"')
_METHOD = re.compile(r"method=(\S+)")
Scope = Literal["base", "one", "subtree"]
_SCOPES: tuple[Scope, ...] = ("base", "one", "subtree")
MANAGER = "cn=directory manager"
COMPARED = frozenset({RESULT_COMPARE_FALSE, RESULT_COMPARE_TRUE})
DEEP = 50
MOST_OF_FILTER = 16_384  # letters; in the lab's words it is three times as long at most


class CannotAskError(ValueError):
    """Why the load cannot make a request, in words that hold nothing of it."""


def request_shape(request: LogEvent, error: int, entries: int) -> LdapRequest:
    """Return what the load asks instead; CannotAskError where it has nothing that is like it."""
    match request.word:
        case "SRCH":
            return _search(request.details, error, entries)
        case "BIND":
            return _bind(request, error)
        case "CMP" if error in COMPARED:
            value = "{user}" if error == RESULT_COMPARE_TRUE else "nobody"
            return LdapRequest(
                kind=RequestKind.COMPARE,
                base="{user_dn}",
                attribute="uid",
                value=value,
                result=error,
            )
        case _ if error:
            raise CannotAskError("changes that failed")
        case "MOD":
            return LdapRequest(kind=RequestKind.MODIFY, base="{user_dn}")
        case "ADD" | "DEL" | "MODRDN":
            return new_entry(renamed=request.word == "MODRDN")
        case "EXT":
            raise CannotAskError("extended operations")
        case _:
            raise CannotAskError("operations of another kind")


def _search(details: str, error: int, entries: int) -> LdapRequest:
    base, scope, asked_filter, attributes = _search_parts(details)
    if error:
        raise CannotAskError("searches that failed")
    if not base or base.lower().startswith(("cn=config", "cn=schema", "cn=mon")):
        raise CannotAskError("searches of the server's own entries")
    if len(asked_filter) > MOST_OF_FILTER:
        raise CannotAskError("searches whose filter is too long")
    filter_, end = _filter(asked_filter, hit=entries > 0)
    if end != len(asked_filter):
        raise CannotAskError("searches whose filter cannot be read")
    read = scope == "base"
    filter_ = "(objectClass=*)" if read and entries else filter_
    return LdapRequest(
        base="{user_dn}" if read else "{people}",
        scope=scope,
        filter=filter_,
        attributes=_attributes(attributes),
        entries=1 if read and entries else _found(filter_, hit=entries > 0),
    )


def _search_parts(details: str) -> tuple[str, Scope, str, str]:
    """Split base, scope, filter and attributes; a name may hold what stands between them."""
    head, mark, attributes = details.rpartition(_ATTRS)
    between = None
    for between in _SCOPE.finditer(head):  # noqa: B007 - the last one
        pass
    if not mark or not head.startswith(_BASE) or between is None:
        raise CannotAskError("searches that the log cut off")
    base, scope = head[len(_BASE) : between.start()], _SCOPES[int(between["scope"])]
    return base, scope, head[between.end() :], attributes


def _found(filter_: str, *, hit: bool) -> int | None:
    """Return how many entries the lab's directory has of it, where that is plain."""
    if "(!" in filter_:
        return None
    if not hit:
        return 0
    return 1 if "={user})" in filter_ and "(|" not in filter_ else None


def _attributes(text: str) -> tuple[str, ...]:
    if text.startswith("ALL"):
        return ("*",)
    names = text.partition('"')[2].partition('"')[0].lower().split()
    if "*" in names and "aci" in names:  # the server itself adds it to what was asked for
        names.remove("aci")
    return tuple(sorted({ASKED.get(name, "description") for name in names})) or ("*",)


def _filter(text: str, start: int = 0, *, hit: bool, depth: int = 0) -> tuple[str, int]:
    """Return the filter that begins there in the lab's words, and where it ends."""
    if not text.startswith("(", start) or depth > DEEP:
        raise CannotAskError("searches whose filter cannot be read")
    sign = text[start + 1 : start + 2]
    if sign not in {"&", "|", "!"}:
        part = _PART.match(text, start + 1)
        if part is None or not text.startswith(")", part.end()):
            raise CannotAskError("searches with orderings, or filters that cannot be read")
        return _assertion(part["name"].lower(), part["value"], hit=hit), part.end() + 1
    start, parts = start + 2, list[str]()
    while text.startswith("(", start):
        # of what is not to match nothing may, and of several choices the last one finds the user
        within = hit and sign != "!" and not (sign == "|" and _more(text, start, depth))
        part_text, start = _filter(text, start, hit=within, depth=depth + 1)
        parts.append(part_text)
    if not text.startswith(")", start) or (sign == "!" and len(parts) != 1):
        raise CannotAskError("searches whose filter cannot be read")
    return f"({sign}{''.join(parts)})", start + 1


def _more(text: str, start: int, depth: int) -> bool:
    """Return whether another filter follows the one there."""
    return text.startswith("(", _filter(text, start, hit=False, depth=depth + 1)[1])


def _assertion(name: str, value: str, *, hit: bool) -> str:
    if name == "objectclass":
        if value == "*":
            return "(objectClass=*)"
        return f"(objectClass={'groupOfNames' if value.lower() in GROUP_CLASSES else 'person'})"
    if value == "*":
        attribute = ASKED.get(name, "uid") if hit else "description"
        return f"({attribute}=*)"
    if name in MEMBERSHIP:
        return f"(member={'{user_dn}' if hit else '{new_dn}'})"
    user = "{user}" if hit else "nobody"
    if "*" in value:
        return f"(cn={'*' if value.startswith('*') else ''}{user}{'*' if value[-1] == '*' else ''})"
    if name == "sn" and hit:
        name, user = "sn", "{surname}"
    elif name != "cn":
        name = "uid"
    return f"({name}={user})"


def _bind(request: LogEvent, error: int) -> LdapRequest:
    dn, method = _DN.match(request.details), _METHOD.search(request.details)
    if error or dn is None or method is None or method[1] != "128":
        raise CannotAskError("binds that failed, or by SASL")
    if not dn["dn"]:
        raise CannotAskError("anonymous binds")
    if dn["dn"].lower() == MANAGER:
        if request.operation == 0:
            raise CannotAskError("the manager's first binds of connections: the load's stay bound")
        return LdapRequest(kind=RequestKind.BIND, base="{manager}")
    return LdapRequest(
        kind=RequestKind.BIND,
        base="{user_dn}",
        then=(LdapStep(kind=RequestKind.BIND, base="{manager}"),),
    )


def new_entry(*, renamed: bool) -> LdapRequest:
    """An entry is added, perhaps renamed, and deleted: the directory stays what it was."""
    deletion = LdapStep(kind=RequestKind.DELETE, base="{new_dn}")
    if renamed:
        deletion = LdapStep(kind=RequestKind.DELETE, base="uid=x{value},{people}")
        rename = LdapStep(kind=RequestKind.RENAME, base="{new_dn}", value="uid=x{value}")
        return LdapRequest(kind=RequestKind.ADD, base="{new_dn}", then=(rename, deletion))
    return LdapRequest(kind=RequestKind.ADD, base="{new_dn}", then=(deletion,))


ASKING = frozenset({"BIND", "SRCH", "MOD", "ADD", "DEL", "MODRDN", "CMP", "EXT"})
PASSING = frozenset({"ADD", "DEL", "MODRDN"})  # an entry comes, goes, or is renamed
ENDS = frozenset({"UNBIND", "closed", "Disconnect", "connection"})
MOST_CONNECTIONS = 64
MOST_OPEN = 1_000_000  # connections of a log; a server has as many files at most
PAUSES = 20  # quantiles that stand for all of them
SHORT_MS = 0.1  # a client that asks again so soon does not pause
USERS, GROUPS, MEMBERS = 1000, 10, 1000
_ERROR, _ENTRIES = (
    re.compile(rf" {name}=(-?[0-9]{{1,9}})(?![0-9])") for name in ("err", "nentries")
)


@dataclass(frozen=True, kw_only=True)
class RecordedLoad:
    """What a log holds, without a name of it."""

    workload: LdaploadWorkload
    left_out: dict[str, int]  # why: how many operations
    operations: int
    unread: int
    per_second: float  # the median of the seconds in which there was one

    @property
    def left_out_lines(self) -> list[str]:
        """Which operations the workload does not have, and how many they are."""
        return [
            f"{100 * count / self.operations:.1f} % of the operations are left out: {why}"
            for why, count in sorted(self.left_out.items(), key=lambda item: -item[1])
        ]

    @property
    def text(self) -> str:
        """The file that `--workload` takes."""
        settings = self.workload.model_dump(
            mode="json", exclude_defaults=True, exclude={"requests"}
        )
        settings |= {"tool": "ldapload", "users": USERS, "distinct_users": USERS}
        settings |= {"threads": self.workload.threads}
        lines = [
            f"# Made from {self.operations} recorded operations; no name or value of them is here.",
            "# Names that are looked up became `uid`, `cn` or `sn`; memberships `member`; other",
            "# attributes that were read `description`. Entries that were added are deleted again.",
            *(f"# {line}." for line in self.left_out_lines),
            "workloads:",
            f"  - id: {settings.pop('id')}",
            *(f"    {name}: {json.dumps(value)}" for name, value in settings.items()),
            f"    # scheduled: {self.per_second:g}  # a second as recorded, or `pauses_ms`",
            "    requests:",
        ]
        for request in self.workload.requests:
            fields = request.model_dump(mode="json", exclude_defaults=True)
            fields |= {"share": request.share, "kind": request.kind.value}
            lines.append(f"      - {json.dumps(fields)}")
        return "\n".join(lines) + "\n"


def load_of_logs(paths: Iterable[Path]) -> RecordedLoad:
    """Return a load like what these files recorded, in whatever order they are named."""
    return recorded_load(read_files(paths))


RECORDED_LOAD = load_of_logs  # the product's part: a log makes a workload


def recorded_load(events: Iterable[LogEvent | UnreadLine]) -> RecordedLoad:
    """A load like the recorded one; UsageError if the log has no operation that it can make."""
    waiting = Unanswered()
    pauses = RecordedPauses()
    shapes: Counter[LdapRequest] = Counter()
    left_out: Counter[str] = Counter()
    passing: Counter[str] = Counter()
    seconds: Counter[int] = Counter()
    most = unread = 0
    for event in events:
        if isinstance(event, UnreadLine):
            unread += 1
            continue
        if event.word in ASKING:
            waiting.asks(event)
            most = max(most, waiting.count)
            pauses.asks(event)
        elif event.word in ENDS:
            waiting.ends(event.connection)
            pauses.ends(event)
        elif event.word == "RESULT" and (request := waiting.answer(event)):
            seconds[int(request.at_s)] += 1
            pauses.answers(event)
            error, entries = (_number(pattern, event.details) for pattern in (_ERROR, _ENTRIES))
            try:
                shape = request_shape(request, error, entries)
            except CannotAskError as why:
                left_out[str(why)] += 1
            else:
                shapes[shape] += 1
                if request.word in PASSING:
                    passing[request.word] += 1
    _count_once(passing, shapes)
    requests, rare = _shared(shapes)
    if rare:
        left_out["requests that are rarer than one in 200"] = rare
    return RecordedLoad(
        workload=_workload(requests, most, pauses),
        left_out=dict(left_out),
        operations=seconds.total(),
        unread=unread,
        per_second=statistics.median(seconds.values()),
    )


class RecordedPauses:
    """How long connections asked for nothing after an answer, and how many were open at once."""

    def __init__(self) -> None:
        self._answered: dict[str, float | None] = {}  # when; None: an operation is under way
        self._lengths_ms: Counter[float] = Counter()  # with three digits: a log has millions
        self.most = 0

    def asks(self, event: LogEvent) -> None:
        since = self._answered.get(event.connection)
        if since is not None:
            length = min(1000 * max(0.0, event.at_s - since), LONGEST_PAUSE_MS)
            self._lengths_ms[float(f"{length:.3g}")] += 1
        self._answered[event.connection] = None
        self.most = max(self.most, len(self._answered))
        if self.most > MOST_OPEN:
            raise UsageError(
                f"more than {MOST_OPEN:_} connections are open at once in this log",
                hint="record one with the ends of connections (`nsslapd-accesslog-level: 256`)",
            )

    def answers(self, event: LogEvent) -> None:
        self._answered[event.connection] = event.at_s

    def ends(self, event: LogEvent) -> None:
        self._answered.pop(event.connection, None)

    @property
    def lengths_ms(self) -> tuple[float, ...]:
        """As evenly spaced quantiles; none where its clients asked again at once.

        A connection that says nothing for longer than a pause may last is at rest.
        """
        lengths = sorted(self._lengths_ms)
        ranks = list(accumulate(self._lengths_ms[length] for length in lengths))
        total = self._lengths_ms.total()
        places = (total * (2 * number + 1) // (2 * PAUSES) for number in range(PAUSES))
        quantiles = (
            tuple(round(lengths[bisect_right(ranks, rank)], 2) for rank in places)
            if lengths
            else ()
        )
        return quantiles if quantiles and statistics.fmean(quantiles) >= SHORT_MS else ()


def _count_once(passing: Counter[str], shapes: Counter[LdapRequest]) -> None:
    """Each operation of the load adds an entry and deletes it: a pair of the log is one of them."""
    pair = new_entry(renamed=False)
    most = max(passing["ADD"], passing["DEL"]) - passing["MODRDN"]
    if most > 0:
        shapes[pair] = most
    else:
        del shapes[pair]  # which a Counter need not have


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0


def _shared(shapes: Counter[LdapRequest]) -> tuple[list[LdapRequest], int]:
    """Return shares of a hundred, and how many operations are too rare for one."""
    total = shapes.total()
    if not total:
        raise UsageError(
            "the log has no operation that the load could make",
            hint="record one with searches, binds or changes (`nsslapd-accesslog-level: 256`)",
        )
    shares, rare = list[LdapRequest](), 0
    for shape, count in shapes.most_common():
        share = round(100 * count / total)
        if share or not shares:
            shares.append(shape.model_copy(update={"share": max(1, share)}))
        else:
            rare += count
    return shares, rare


def _workload(requests: list[LdapRequest], most: int, pauses: RecordedPauses) -> LdaploadWorkload:
    """Return a workload whose pausing connections are as many as were open at once."""
    lengths_ms = pauses.lengths_ms
    most = pauses.most if lengths_ms else most
    groups = any("(member=" in request.filter for request in requests)
    return LdaploadWorkload(
        id="recorded",
        title="like a recorded access log",
        threads=min(MOST_CONNECTIONS, max(1, most)),
        pauses_ms=lengths_ms,
        users=USERS,
        distinct_users=USERS,
        groups=GROUPS if groups else 0,
        members=MEMBERS if groups else 0,
        requests=tuple(requests),
    )
