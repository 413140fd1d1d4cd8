"""A recorded request as one that the lab's own directory can answer; nothing of a name is kept."""

from __future__ import annotations

import re

from ldap3.core.results import RESULT_COMPARE_FALSE, RESULT_COMPARE_TRUE

from dsharness.model import LdapRequest, LdapStep, RequestKind
from dsharness.recorded.access_log import LogEvent

MEMBERSHIP = frozenset({"member", "uniquemember", "memberuid", "memberof"})
GROUPS = frozenset({"groupofnames", "groupofuniquenames", "posixgroup", "ipausergroup"})
# Of the lab's own entries; only these names may stand in what is written.
ASKED = {
    each.lower(): each
    for each in ("uid", "cn", "sn", "objectClass", "member", "description", "*", "+", "1.1")
}
_SEARCH = re.compile(
    r' base="(?P<base>.*)" scope=(?P<scope>[012]) filter="(?P<filter>.*)" attrs=(?P<attrs>.*)'
)
_PART = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9;.-]*|[0-9.]+)=(?P<value>[^()]*)")
_DN = re.compile(r' dn="(?P<dn>.*?)"')
_METHOD = re.compile(r"method=(\S+)")
_SCOPES = ("base", "one", "subtree")
MANAGER = "cn=directory manager"
COMPARED = frozenset({RESULT_COMPARE_FALSE, RESULT_COMPARE_TRUE})
DEEP = 50


class CannotAskError(ValueError):
    """Why the load cannot make a request, in words that hold nothing of it."""


def request_shape(asked: LogEvent, error: int, entries: int) -> LdapRequest:
    """What the load asks instead; CannotAskError where it has nothing that is like it."""
    match asked.word:
        case "SRCH":
            return _search(asked.details, error, entries)
        case "BIND":
            return _bind(asked, error)
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
            return new_entry(renamed=asked.word == "MODRDN")
        case "EXT":
            raise CannotAskError("extended operations")
        case _:
            raise CannotAskError("operations of another kind")


def _search(details: str, error: int, entries: int) -> LdapRequest:
    found = _SEARCH.fullmatch(details)
    if found is None:
        raise CannotAskError("searches that the log cut off")
    if error:
        raise CannotAskError("searches that failed")
    if not found["base"] or found["base"].lower().startswith(("cn=config", "cn=schema", "cn=mon")):
        raise CannotAskError("searches of the server's own entries")
    scope = _SCOPES[int(found["scope"])]
    filter_, rest = _filter(found["filter"], hit=entries > 0)
    if rest:
        raise CannotAskError("searches whose filter cannot be read")
    read = scope == "base"
    filter_ = "(objectClass=*)" if read and entries else filter_
    return LdapRequest(
        base="{user_dn}" if read else "{people}",
        scope=scope,
        filter=filter_,
        attributes=_attributes(found["attrs"]),
        entries=1 if read and entries else _found(filter_, hit=entries > 0),
    )


def _found(filter_: str, *, hit: bool) -> int | None:
    """How many entries the lab's directory has of it, where that is plain."""
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
    return tuple(sorted({ASKED.get(each, "description") for each in names})) or ("*",)


def _filter(text: str, *, hit: bool, depth: int = 0) -> tuple[str, str]:
    """One filter in the lab's words, and what stands after it."""
    if not text.startswith("(") or depth > DEEP:
        raise CannotAskError("searches whose filter cannot be read")
    sign = text[1:2]
    if sign not in {"&", "|", "!"}:
        part = _PART.match(text, 1)
        if part is None or text[part.end() : part.end() + 1] != ")":
            raise CannotAskError("searches with orderings, or filters that cannot be read")
        return _assertion(part["name"].lower(), part["value"], hit=hit), text[part.end() + 1 :]
    rest, parts = text[2:], list[str]()
    while rest.startswith("("):
        # of what is not to match nothing may, and of several choices the last one finds the user
        within = hit and sign != "!" and not (sign == "|" and _more(rest, depth))
        part_text, rest = _filter(rest, hit=within, depth=depth + 1)
        parts.append(part_text)
    if not rest.startswith(")") or (sign == "!" and len(parts) != 1):
        raise CannotAskError("searches whose filter cannot be read")
    return f"({sign}{''.join(parts)})", rest[1:]


def _more(text: str, depth: int) -> bool:
    """Whether another filter follows the first one."""
    return _filter(text, hit=False, depth=depth + 1)[1].startswith("(")


def _assertion(name: str, value: str, *, hit: bool) -> str:
    if name == "objectclass":
        if value == "*":
            return "(objectClass=*)"
        return f"(objectClass={'groupOfNames' if value.lower() in GROUPS else 'person'})"
    if value == "*":
        kept = ASKED.get(name, "uid") if hit else "description"
        return f"({kept}=*)"
    if name in MEMBERSHIP:
        return f"(member={'{user_dn}' if hit else '{new_dn}'})"
    who = "{user}" if hit else "nobody"
    if "*" in value:
        return f"(cn={'*' if value.startswith('*') else ''}{who}{'*' if value[-1] == '*' else ''})"
    if name == "sn" and hit:
        name, who = "sn", "{surname}"
    elif name != "cn":
        name = "uid"
    return f"({name}={who})"


def _bind(asked: LogEvent, error: int) -> LdapRequest:
    dn, method = _DN.match(asked.details), _METHOD.search(asked.details)
    if error or dn is None or method is None or method[1] != "128":
        raise CannotAskError("binds that failed, or by SASL")
    if not dn["dn"]:
        raise CannotAskError("anonymous binds")
    if dn["dn"].lower() == MANAGER:
        if asked.operation == 0:
            raise CannotAskError("the manager's first binds of connections: the load's stay bound")
        return LdapRequest(kind=RequestKind.BIND, base="{manager}")
    return LdapRequest(
        kind=RequestKind.BIND,
        base="{user_dn}",
        then=(LdapStep(kind=RequestKind.BIND, base="{manager}"),),
    )


def new_entry(*, renamed: bool) -> LdapRequest:
    """An entry is added, perhaps renamed, and deleted: the directory stays what it was."""
    gone = LdapStep(kind=RequestKind.DELETE, base="{new_dn}")
    if renamed:
        gone = LdapStep(kind=RequestKind.DELETE, base="uid=x{value},{people}")
        other = LdapStep(kind=RequestKind.RENAME, base="{new_dn}", value="uid=x{value}")
        return LdapRequest(kind=RequestKind.ADD, base="{new_dn}", then=(other, gone))
    return LdapRequest(kind=RequestKind.ADD, base="{new_dn}", then=(gone,))
