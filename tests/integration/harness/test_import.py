"""A directory that is imported while it is stopped holds what one holds that was filled by LDAP."""

from __future__ import annotations

import math

import pytest
from benches import MATRIX, connected, golden_of, served

from dsharness.containers.engine import Engine
from dsharness.model import DirectoryContent
from dsharness.systems import SYSTEMS
from dsharness.systems.ldap.directory import Directory

CONTENT = DirectoryContent(number=40, passwords=3, groups=2, members=10, photo_bytes=3000)
OWN = {"userpassword", "nsuniqueid", "entryid", "parentid", "entryuuid"}


def entries_of(directory: Directory) -> dict[str, dict[str, set[bytes]]]:
    """All entries by name, without what is drawn for each."""
    connection = directory.connection
    assert connection.search(directory.site.suffix, "(objectClass=*)", attributes=["*"])
    return {
        each["dn"].lower(): {
            name.lower(): set(values)
            for name, values in each["raw_attributes"].items()
            if name.lower() not in OWN
        }
        for each in connection.response
    }


@pytest.mark.parametrize("row", ["debian-11", "debian-12", "debian-13", "debian-13-openldap"])
def test_imported_and_added_entries_are_the_same(
    engine: Engine, row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = type(SYSTEMS[MATRIX.row(row).system])
    seen = []
    # A revision of its own, so that each state is made in the way that is said.
    for revision, imports_from in ((9001, math.inf), (9002, CONTENT.number)):
        monkeypatch.setattr(driver, "revision", revision)
        monkeypatch.setattr(driver, "imports_from", imports_from)
        golden = golden_of(engine, row, content=CONTENT)
        with served(engine, golden) as instance, connected(instance) as directory:
            stored = [directory.stored_value(number) for number in range(3)]
            assert len(set(stored)) == 3, "each user has a salt of its own"
            directory.check_user(1)
            seen.append((golden.facts, entries_of(directory)))
    added, imported = seen
    assert imported == added
    assert len(added[1]) == 2 + CONTENT.number + CONTENT.groups
