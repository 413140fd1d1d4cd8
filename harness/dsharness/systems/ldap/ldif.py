"""A directory's content as LDIF (RFC 2849), for servers that import it while they are stopped."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence

from dsharness.model import DirectoryContent
from dsharness.systems.ldap.directory import Site, photo

Attributes = Mapping[str, Sequence[str] | Sequence[bytes]]

# Values that stand as they are; all others are written in base64.
SAFE = re.compile(r"(?![ :<])[\x01-\x09\x0b\x0c\x0e-\x7f]*(?<! )")


def whole_ldif(site: Site, users: int) -> Iterator[str]:
    """All that a directory needs to hold so many users without a password."""
    suffix, people = (dn.partition(",")[0].partition("=") for dn in (site.suffix, site.people))
    yield ldif_entry(site.suffix, {"objectClass": ["top", "domain"], "dc": [suffix[2]]})
    yield ldif_entry(site.people, {"objectClass": ["top", "organizationalUnit"], "ou": [people[2]]})
    yield from content_ldif(site, DirectoryContent(number=users), first=0)


def content_ldif(site: Site, content: DirectoryContent, first: int) -> Iterator[str]:
    """Users without a password from this number on, with their photos, then all groups."""
    photos = [photo(content.photo_bytes)] if content.photo_bytes else []
    for number in range(first, content.number):
        attributes: Attributes = {**site.user_attributes(number), "jpegPhoto": photos}
        yield ldif_entry(site.user_dn(number), attributes)
    for number in range(content.groups):
        yield ldif_entry(site.group_dn(number), site.group_attributes(number, content))


def ldif_entry(dn: str, attributes: Attributes) -> str:
    """One entry, and the empty line that ends it."""
    lines = [_line("dn", dn)]
    lines += [_line(name, value) for name, values in attributes.items() for value in values]
    return "\n".join([*lines, "", ""])


def _line(name: str, value: str | bytes) -> str:
    if isinstance(value, str) and SAFE.fullmatch(value):
        return f"{name}: {value}"
    raw = value if isinstance(value, bytes) else value.encode()
    return f"{name}:: {base64.b64encode(raw).decode()}"
