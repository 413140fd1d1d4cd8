"""A recorded request as one that the lab's own directory can answer; nothing of a name is kept."""

from __future__ import annotations

import re

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
DEEP = 50


class CannotAskError(ValueError):
    """Why the load cannot make a request, in words that hold nothing of it."""


def request_shape(asked: LogEvent, error: int, entries: int) -> LdapRequest:
    """What the load asks instead; CannotAskError where it has nothing that is like it."""
    match asked.word:
        case "SRCH":
            return _search(asked.details, error, entries)
        case "BIND":
            return _bind(asked.details, error)
        case _ if error:
            raise CannotAskError("changes that failed")
        case "MOD":
            return LdapRequest(kind=RequestKind.MODIFY, base="{user_dn}")
        case "ADD" | "DEL" | "MODRDN":
            return _new_entry(asked.word)
        case "EXT":
            raise CannotAskError("extended operations")
        case "CMP":
            raise CannotAskError("compares")
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
    return LdapRequest(
        base="{user_dn}" if read else "{people}",
        scope=scope,
        filter="(objectClass=*)" if read and entries else filter_,
        attributes=_attributes(found["attrs"]),
    )


def _attributes(text: str) -> tuple[str, ...]:
    if text.startswith("ALL"):
        return ("*",)
    names = text.partition('"')[2].partition('"')[0].lower().split()
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
        return "(member={user_dn})" if hit else "(member={new_dn})"
    who = "{user}" if hit else "nobody"
    if "*" in value:
        return f"(cn={'*' if value.startswith('*') else ''}{who}{'*' if value[-1] == '*' else ''})"
    return f"({name if name in {'cn', 'sn'} else 'uid'}={who})"


def _bind(details: str, error: int) -> LdapRequest:
    dn, method = _DN.match(details), _METHOD.search(details)
    if error or dn is None or method is None or method[1] != "128":
        raise CannotAskError("binds that failed, or by SASL")
    if not dn["dn"]:
        raise CannotAskError("anonymous binds")
    if dn["dn"].lower() == MANAGER:
        return LdapRequest(kind=RequestKind.BIND, base="{manager}")
    return LdapRequest(
        kind=RequestKind.BIND,
        base="{user_dn}",
        then=(LdapStep(kind=RequestKind.BIND, base="{manager}"),),
    )


def _new_entry(word: str) -> LdapRequest:
    gone = LdapStep(kind=RequestKind.DELETE, base="{new_dn}")
    if word == "MODRDN":
        gone = LdapStep(kind=RequestKind.DELETE, base="uid=x{value},{people}")
        renamed = LdapStep(kind=RequestKind.RENAME, base="{new_dn}", value="uid=x{value}")
        return LdapRequest(kind=RequestKind.ADD, base="{new_dn}", then=(renamed, gone))
    return LdapRequest(kind=RequestKind.ADD, base="{new_dn}", then=(gone,))
