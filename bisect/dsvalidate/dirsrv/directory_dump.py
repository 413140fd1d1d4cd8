"""A directory's entries at one moment, and what differs between two of them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping

from pydantic import TypeAdapter

from dsharness.errors import InstanceError
from dsharness.systems.ldap.directory import Directory

Entry = Mapping[str, tuple[str, ...]]
Dump = dict[str, Entry]  # DN -> attribute -> values
DUMP = TypeAdapter(Dump)
PASSWORD = "userPassword"  # noqa: S105 - an attribute
SHOWN = 60  # characters of a value


def dump_of(directory: Directory) -> Dump:
    """Every entry with its user attributes; operational ones may change by themselves."""
    found = directory.connection.search(
        directory.site.suffix, "(objectClass=*)", attributes=["*", PASSWORD]
    )
    if not found:
        raise InstanceError(f"{directory.site.suffix}: no entry in the served directory")
    return {
        entry["dn"]: {
            name: tuple(sorted(map(_text, values)))
            for name, values in entry["raw_attributes"].items()
        }
        for entry in directory.connection.response
        if "raw_attributes" in entry
    }


def differences(before: Dump, after: Dump) -> Iterator[str]:
    """One line for each entry or attribute that is not the same."""
    for dn in sorted(before.keys() - after.keys()):
        yield f"{dn}: is gone"
    for dn in sorted(after.keys() - before.keys()):
        yield f"{dn}: was not there before"
    for dn in sorted(before.keys() & after.keys()):
        yield from _changed(dn, _lower(before[dn]), _lower(after[dn]))


def passwords_in(dump: Dump) -> dict[str, str]:
    """DN -> stored password, of those that have one."""
    return {
        dn: values[0]
        for dn, entry in dump.items()
        if len(values := _lower(entry).get(PASSWORD.lower(), ())) == 1
    }


def _changed(dn: str, before: Entry, after: Entry) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, ()), after.get(name, ())
        if old != new:
            yield f"{dn}: {name}: {_shown(old)} became {_shown(new)}"


def _shown(values: tuple[str, ...]) -> str:
    text = ", ".join(values) or "nothing"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _lower(entry: Entry) -> Entry:
    return {name.lower(): values for name, values in entry.items()}


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode()}"
