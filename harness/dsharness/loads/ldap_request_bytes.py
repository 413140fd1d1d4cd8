"""A directory's requests as ldapload sends them: bytes, with masks for names and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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

from dsharness.model import LdaploadWorkload, LdapStep, RequestKind
from dsharness.systems.ldap.directory import DIGITS, SHARED_MASKS, USER_MASK, Site
from dsharness.systems.ldap.directory_system import ImportTask

# Stand in an encoded request for what takes their place: a text of the same length.
VALUE_MASK = "Y" * 12
GROUP_MASK = "group" + DIGITS * "X"

_SCOPES = {"base": ldap3.BASE, "one": ldap3.LEVEL, "subtree": ldap3.SUBTREE}
_CHANGES = {"replace": ldap3.MODIFY_REPLACE, "add": ldap3.MODIFY_ADD, "delete": ldap3.MODIFY_DELETE}


# Stands in an encoded request for the name that ldapload gives each operation, and how its file
# says so.
NAME_MASK, NAMED = b"Z" * 8, "." * 16


def import_steps(step: LdapStep, task: ImportTask) -> Iterator[tuple[str, bytes]]:
    """The steps of an import: what must come of each, and its bytes.

    A server still has its backend in its hands for a moment after a task has ended, so one that is
    refused is asked for again.
    """
    dn = f"cn={NAME_MASK.decode()},{task.parent}"
    named = {**task.attributes, task.file_attribute: [task.files[step.imports]]}
    yield "0 until-- -", _body(_NAMES[RequestKind.ADD], add_operation(dn, named, False))
    for expected, filter_ in (("until-1", task.ended), ("1", task.succeeded)):
        search = LdapStep(base=dn, scope="base", filter=filter_, attributes=("1.1",))
        yield f"0 {expected} -", _body(_NAMES[RequestKind.SEARCH], _search(search, dn, filter_))


class _Nobodies:
    """Parts of a filter, as many as its format says."""

    def __format__(self, number: str) -> str:
        return "".join(
            f"(uid=nobody{number_there:0{DIGITS}d})" for number_there in range(int(number))
        )


def masks(site: Site) -> Mapping[str, object]:
    """Return what stands in a request's places until each operation has a name and a value."""
    return {
        "user": USER_MASK,
        "user_dn": site.named_dn(USER_MASK),
        "group_dn": f"cn={GROUP_MASK},{site.people}",
        "value": VALUE_MASK,
        "new_dn": site.named_dn(VALUE_MASK),
        "people": site.people,
        "suffix": site.suffix,
        "manager": site.manager,
        "nobodies": _Nobodies(),
        **SHARED_MASKS,
    }


def encoded(step: LdapStep, site: Site) -> bytes:
    """A request with masks where each one has a name or a value."""
    texts = masks(site)
    base, filter_, value = (text.format_map(texts) for text in (step.base, step.filter, step.value))
    match step.kind:
        case RequestKind.WAIT | RequestKind.CONNECT | RequestKind.IMPORT_TASK:
            return b""
        case RequestKind.SEARCH:
            request = _search(step, base, filter_)
        case RequestKind.COMPARE:
            request = compare_operation(base, step.attribute, value, False)
        case RequestKind.MODIFY:
            request = modify_operation(
                base, {step.attribute: [(_CHANGES[step.change], [value])]}, False
            )
        case RequestKind.ADD:
            request = add_operation(base, site.plain_attributes(value), False)
        case RequestKind.RENAME:
            request = modify_dn_operation(base, value, True)
        case RequestKind.DELETE:
            request = delete_operation(base)
        case RequestKind.BIND:
            request = _bind(step, base, site)
    return _body(_NAMES[step.kind], request, tuple(_controls(step)))


def _search(step: LdapStep, base: str, filter_: str) -> Any:  # noqa: ANN401 - ldap3 is untyped
    return search_operation(
        base,
        filter_,
        _SCOPES[step.scope],
        ldap3.DEREF_NEVER,
        list(step.attributes),
        0,
        0,
        False,
        False,
        False,
    )


def _bind(step: LdapStep, dn: str, site: Site) -> Any:  # noqa: ANN401 - ldap3 is untyped
    if step.mechanism == "external":
        return bind_operation(3, ldap3.SASL, "", None, "EXTERNAL")
    if step.mechanism == "plain":
        credentials = f"\0{USER_MASK}\0{site.user_password}".encode()
        return bind_operation(3, ldap3.SASL, "", None, "PLAIN", credentials)
    password = site.manager_password if dn == site.manager else site.user_password
    return _simple(dn, password)


_NAMES = {
    RequestKind.SEARCH: "searchRequest",
    RequestKind.COMPARE: "compareRequest",
    RequestKind.MODIFY: "modifyRequest",
    RequestKind.ADD: "addRequest",
    RequestKind.RENAME: "modDNRequest",
    RequestKind.DELETE: "delRequest",
    RequestKind.BIND: "bindRequest",
}


def _simple(dn: str, password: str) -> Any:  # noqa: ANN401 - ldap3 is untyped
    return bind_operation(3, ldap3.SIMPLE, dn, password)


def simple_bind(dn: str, password: str) -> bytes:
    """A bind with a password."""
    return _body("bindRequest", _simple(dn, password))


def first_bind(load: LdaploadWorkload, site: Site) -> bytes:
    """A bind of the manager, which is cheap in every version, or of the first user."""
    dn, password = site.manager, site.manager_password
    if load.bound_as == "user":
        dn, password = site.user_dn(0), site.user_password
    return simple_bind(dn, password)


SORT = "1.2.840.113556.1.4.473"  # the control by which a server sorts (RFC 2891)
WINDOW = "2.16.840.1.113730.3.4.9"  # by which it gives a part of the list (a draft: "vlv-09")


def _controls(step: LdapStep) -> Iterator[tuple[str, bytes]]:
    if step.sort is not None:
        key = _ber(0x04, step.sort.encode())
        yield SORT, _ber(0x30, _ber(0x30, key))
    if step.window is not None:
        place = _ber(0xA0, _number(step.window.first) + _number(0))
        yield WINDOW, _ber(0x30, _number(0) + _number(step.window.entries - 1) + place)


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
