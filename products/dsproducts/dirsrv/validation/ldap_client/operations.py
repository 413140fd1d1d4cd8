"""Reading and writing: filters, pages, attributes, and the life of an entry.

Two further suites read and write for other steps. One tells every value that the server tells
anyone, and an ordinary user, for a search for secrets. The other writes without a pause until the
server is gone; its last line tells what was acknowledged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ldap3
from ldap3.core.exceptions import LDAPException

from .job import Attempt, Job, User, described, expect, opened

CLASSES = ["top", "person", "organizationalPerson", "inetOrgPerson"]
PAGE = 7
# Controls: an OID that nobody uses, and one that is for searches alone.
UNKNOWN, SORT = "1.3.6.1.4.1.99999.1", "1.2.840.113556.1.4.473"
# Filter -> how many of the people that the lab adds it finds, of 30.
FILTERS = {
    "(uid=person007)": 1,
    "(uid=person00*)": 10,
    "(&(uid=person*)(!(uid=person00*)))": 20,
    "(|(uid=person001)(uid=person002))": 2,
    "(mail=*@example.org)": 30,
    "(&(objectClass=inetOrgPerson)(uid>=person025)(uid<=person029))": 5,
    "(cn=zoë пример 3)": 1,
    "(uid=nobody)": 0,
    "(sn:caseIgnoreMatch:=ПРИМЕР)": 30,
}


def filters(job: Job) -> str:
    """Equal, beginning, and, or, not, present, ordered, beyond ASCII, by a matching rule."""
    with job.bound(job.manager) as connection:
        for text, count in FILTERS.items():
            count_found = len(_search(connection, job.people, text, ["uid"]))
            expect(count_found == count, f"{text} found {count_found} entries, not {count}")
    return f"{len(FILTERS)} kinds of filters found what is there"


def paging(job: Job) -> str:
    """Page by page, the same entries come as at once."""
    with job.bound(job.manager) as connection:
        all_dns = [
            entry["dn"] for entry in _search(connection, job.people, "(uid=person*)", ["uid"])
        ]
        pages = list(_pages(connection, job.people, "(uid=person*)"))
    paged = [dn for page in pages for dn in page]
    expect(
        sorted(paged) == sorted(all_dns), f"{len(paged)} entries by pages, {len(all_dns)} at once"
    )
    expect(max(map(len, pages)) <= PAGE, "a page has more entries than were asked for")
    return f"{len(all_dns)} entries came in {len(pages)} pages of at most {PAGE}"


def attributes(job: Job) -> str:
    """Only those that were asked for; a binary one byte by byte; operational ones by name."""
    dn = f"uid=person000,{job.people}"
    with job.bound(job.manager) as connection:
        two = _entry(connection, dn, ["uid", "sn"])
        expect({*two} == {"uid", "sn"}, f"asked for uid and sn, got {', '.join(sorted(two))}")
        photo = _entry(connection, dn, ["jpegPhoto"])["jpegPhoto"][0]
        expect(photo == bytes(range(256)) * 8, f"{len(photo)} bytes of a photo are not the same")
        entry = _entry(connection, dn, ["*", "createTimestamp"])
        expect("createTimestamp" in entry, "an operational attribute is not shown by its name")
    return f"two of {len(entry)} attributes alone, {len(photo)} bytes of a photo unchanged"


def entry_life(job: Job) -> str:
    """Added, changed, compared, renamed, moved and deleted."""
    dn, renamed = f"uid=life,{job.people}", f"uid=life2,{job.people}"
    moved = f"uid=life2,ou=groups,{job.suffix}"
    with job.bound(job.manager) as connection:
        _do(connection.add(dn, CLASSES, {"uid": "life", "cn": "a", "sn": "b"}), connection, "add")
        change = {
            "cn": [(ldap3.MODIFY_ADD, ["c"])],
            "sn": [(ldap3.MODIFY_REPLACE, ["d"])],
            "description": [(ldap3.MODIFY_ADD, ["e"])],
        }
        _do(connection.modify(dn, change), connection, "modify")
        _do(connection.modify(dn, {"description": [(ldap3.MODIFY_DELETE, [])]}), connection, "drop")
        values = _entry(connection, dn, ["cn", "sn", "description"])
        left_values = {name: sorted(value) for name, value in values.items() if value}
        expect(
            left_values == {"cn": [b"a", b"c"], "sn": [b"d"]},
            f"after the changes it has {left_values}",
        )
        _do(connection.compare(dn, "sn", "d"), connection, "compare")
        _do(connection.modify_dn(dn, "uid=life2"), connection, "rename")
        _do(
            connection.modify_dn(renamed, "uid=life2", new_superior=f"ou=groups,{job.suffix}"),
            connection,
            "move",
        )
        expect(not _search(connection, job.people, "(uid=life*)", ["uid"]), "the old name is left")
        _do(connection.delete(moved), connection, "delete")
        expect(not _search(connection, job.suffix, "(uid=life2)", ["uid"]), "the entry is left")
    return "an entry was added, changed, compared, renamed, moved and deleted"


def refusals(job: Job) -> str:
    """What has to be refused: twice the same entry, a missing one, a broken rule, no right."""
    dn, user = f"uid=person001,{job.people}", job.users[0]
    with job.bound(job.manager) as connection:
        attributes_of = {"uid": "person001", "cn": "a", "sn": "b"}
        connection.add(dn, CLASSES, attributes_of)
        _refused(connection, "entryAlreadyExists", "adding an entry that exists")
        connection.delete(f"uid=nobody,{job.people}")
        _refused(connection, "noSuchObject", "deleting an entry that does not exist")
        connection.add(f"uid=broken,{job.people}", CLASSES, {"uid": "broken", "cn": "a"})
        _refused(connection, "objectClassViolation", "adding a person without a surname")
        connection.delete(job.people)
        _refused(connection, "notAllowedOnNonLeaf", "deleting an entry with others below it")
        connection.modify(dn, {"uid": [(ldap3.MODIFY_DELETE, ["person001"])]})
        _refused(connection, "notAllowedOnRDN", "deleting the value that an entry is named by")
        connection.compare(dn, "noSuchAttribute", "a")
        _refused(connection, "noSuchAttribute", "comparing an attribute that is not there")
    with job.bound(user) as connection:
        connection.modify(dn, {"sn": [(ldap3.MODIFY_REPLACE, ["taken"])]})
        _refused(connection, "insufficientAccessRights", "changing another user's entry")
        connection.delete(dn)
        _refused(connection, "insufficientAccessRights", "deleting another user's entry")
    return "8 requests that break a rule or lack the right were refused"


def unknown_control(job: Job) -> str:
    """A critical control that the server does not know, or not for that request, is refused."""
    dn, refused = f"uid=person002,{job.people}", "unavailableCriticalExtension"
    with job.bound(job.manager) as connection:
        for critical, expected in ((True, refused), (False, "success")):
            controls = [(UNKNOWN, critical, None)]
            connection.search(dn, "(objectClass=*)", ldap3.BASE, controls=controls)
            result = connection.result["description"]
            expect(result == expected, f"an unknown control, critical: {critical}, got {result}")
        change = {"description": [(ldap3.MODIFY_REPLACE, ["number 2"])]}
        connection.modify(dn, change, controls=[(SORT, True, None)])
        result = connection.result["description"]
        expect(result == refused, f"a change with a critical control for searches got {result}")
    return "an unknown control is refused if it is critical, and ignored if it is not"


def _search(
    connection: Any, base: str, text: str, names: list[str], **more: Any
) -> list[dict[str, Any]]:
    connection.search(base, text, attributes=names, **more)
    result = connection.result
    expect(result["description"] in {"success", "noSuchObject"}, f"{text}: {described(result)}")
    return list(connection.response)


def _pages(connection: Any, base: str, text: str) -> Iterator[list[str]]:
    cookie = None
    while True:
        entries = _search(connection, base, text, ["uid"], paged_size=PAGE, paged_cookie=cookie)
        yield [entry["dn"] for entry in entries]
        control = connection.result["controls"]["1.2.840.113556.1.4.319"]
        cookie = control["value"]["cookie"]
        if not cookie:
            return


def _entry(connection: Any, dn: str, names: list[str]) -> dict[str, list[bytes]]:
    entries = _search(connection, dn, "(objectClass=*)", names, search_scope=ldap3.BASE)
    expect(entries, f"{dn} cannot be read")
    return dict(entries[0]["raw_attributes"])


def _do(succeeded: object, connection: Any, task: str) -> None:
    expect(succeeded, f"{task} was refused: {described(connection.result)}")


def _refused(connection: Any, expected: str, task: str) -> None:
    result = connection.result["description"]
    expect(result == expected, f"{task} got {result}, not {expected}")


OPERATIONS: dict[str, Attempt] = {
    "search-filters": filters,
    "search-paging": paging,
    "search-attributes": attributes,
    "entry-life": entry_life,
    "refusals": refusals,
    "unknown-control": unknown_control,
}


MOST = 100_000


def until_it_ends(job: Job) -> str:
    """Entries one after the other; the number of those that the server acknowledged."""
    count = 0
    with job.bound(job.manager) as connection:
        try:
            while count < MOST:
                name = f"write-{count:06d}"
                dn = f"cn={name},ou=writes,{job.suffix}"
                entry = {"sn": name, "description": name * 10}
                succeeded = connection.add(dn, ["top", "person"], entry)
                expect(succeeded, f"the server refused {dn}: {connection.result}")
                count += 1
        except (LDAPException, OSError):
            pass
    return str(count)


WRITES: dict[str, Attempt] = {"acknowledged": until_it_ends}


PLACES = ("", "cn=monitor", "cn=config", "cn=changelog")


def to_anyone(job: Job) -> str:
    return json.dumps(_told(job, None))


def to_a_user(job: Job) -> str:
    """After binds with a wrong password and with the right one."""
    user = next((user for user in job.users if user.scheme != "CLEAR"), job.users[0])
    replies = {}
    for binder in (replace(user, password=f"x{user.password}"), user):
        with opened(job.server(), binder) as connection:
            connection.bind()
            replies[f"the reply to a bind of {user.dn}: {connection.result['description']}"] = str(
                connection.result
            )
    return json.dumps({**replies, **_told(job, user)})


def _told(job: Job, user: User | None) -> dict[str, str]:
    """Place -> values, a character for each byte."""
    reader = user.dn if user else "anyone"
    replies: dict[str, str] = {}
    with opened(job.server(), user) as connection:
        expect(connection.bind(), f"the bind of {reader} was refused")
        for base in (*PLACES, job.suffix):
            scope = ldap3.SUBTREE if base else ldap3.BASE
            connection.search(base, "(objectClass=*)", scope, attributes=["*", "+"])
            replies[f"the result for {reader}: {base or 'the root entry'}"] = str(connection.result)
            replies[f"references for {reader}: {base or 'the root entry'}"] = "\n".join(
                connection.references
            )
            for entry in connection.response:
                replies.update(_values(reader, entry))
    return replies


def _values(reader: str, entry: dict[str, Any]) -> dict[str, str]:
    return {
        f"the reply to {reader}: {entry['dn'] or 'the root entry'}: {name}": "\n".join(
            value.decode("latin-1") for value in values
        )
        for name, values in entry["raw_attributes"].items()
    }


REPLIES: dict[str, Attempt] = {"replies-to-anyone": to_anyone, "replies-to-a-user": to_a_user}
