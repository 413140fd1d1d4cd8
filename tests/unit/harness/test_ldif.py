"""A directory's content as LDIF, read back by ldap3's rules of the format."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.model import DirectoryContent
from dsharness.systems.ldap.directory import Site, photo
from dsharness.systems.ldap.directory_system import content_ldif, ldif_entry, whole_ldif

SITE = Site(suffix="dc=lab", people="ou=people,dc=lab", port=3389)


def read_back(text: str) -> list[tuple[str, bytes]]:
    """RFC 2849 without folded lines: `name: text`, or `name:: base64`."""
    found: list[tuple[str, bytes]] = []
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        if value.startswith(":"):
            found.append((name, base64.b64decode(value[2:], validate=True)))
        elif name:
            found.append((name, value.removeprefix(" ").encode()))
    return found


@given(st.text() | st.binary())
def test_every_value_comes_back_from_one_line(value: str | bytes) -> None:
    text = ldif_entry("cn=x", {"description": [value]})  # type: ignore[list-item]
    raw = value if isinstance(value, bytes) else value.encode()
    assert read_back(text) == [("dn", b"cn=x"), ("description", raw)]
    assert text.count("\n") == 3


@pytest.mark.parametrize("value", ["", "a", "a b", "a: b", "a<b"])
def test_plain_values_stay_readable(value: str) -> None:
    assert f"cn: {value}\n" in ldif_entry("cn=x", {"cn": [value]})


@pytest.mark.parametrize("value", [" a", "a ", ":a", "<a", "a\nb", "\0", "ä"])
def test_values_that_a_reader_would_change_are_in_base64(value: str) -> None:
    assert "cn:: " in ldif_entry("cn=x", {"cn": [value]})


def test_content_is_what_is_added_while_a_server_runs() -> None:
    content = DirectoryContent(number=5, passwords=2, groups=2, members=3, photo_bytes=50)
    entries = [read_back(each) for each in content_ldif(SITE, content, first=2)]
    dns = [dict(entry)["dn"].decode() for entry in entries]
    assert dns == [SITE.user_dn(2), SITE.user_dn(3), SITE.user_dn(4), SITE.group_dn(0),
                   SITE.group_dn(1)]  # fmt: skip
    for number, entry in zip((2, 3, 4), entries, strict=False):
        told = {(name, value.encode()) for name, values in SITE.user_attributes(number).items()
                for value in values}  # fmt: skip
        assert set(entry[1:]) == told | {("jpegPhoto", photo(50))}
    members = [value.decode() for name, value in entries[-1] if name == "member"]
    assert members == SITE.group_attributes(1, content)["member"]


def test_nothing_is_said_of_photos_that_are_not_there() -> None:
    assert "jpegPhoto" not in "".join(content_ldif(SITE, DirectoryContent(number=1), first=0))


def test_a_whole_directory_begins_with_what_users_are_in() -> None:
    entries = [dict(read_back(each)) for each in whole_ldif(SITE, users=2)]
    assert [entry["dn"].decode() for entry in entries] == [
        SITE.suffix, SITE.people, SITE.user_dn(0), SITE.user_dn(1),
    ]  # fmt: skip
    assert (entries[0]["dc"], entries[1]["ou"]) == (b"lab", b"people")
