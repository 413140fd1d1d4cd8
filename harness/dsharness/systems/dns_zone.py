"""The zone that the lab generates: numbered names, each with one address. Pure text."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from dsharness.systems.system import Endpoint

ZONE = "lab"

_FLAGS = re.compile(r"^;; flags: ([a-z ]*);", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class DnsEndpoint(Endpoint):
    """A server of one zone whose names are numbered."""

    zone: str = ZONE

    def name(self, number: int) -> str:
        return f"{host(number)}.{self.zone}."


def host(number: int) -> str:
    return f"n{number}"


def address(number: int) -> str:
    """The one address of a name; no two names of a zone share it."""
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def zone_file(entries: int) -> str:
    """The zone; its serial is the checksum of its names, so that it vouches for them."""
    names = "".join(f"{host(number)} A {address(number)}\n" for number in range(entries))
    serial = zlib.crc32(names.encode("ascii")) or 1
    start = f"{host(0)} root {serial} 3600 600 86400 3600"
    return f"$TTL 3600\n@ SOA {start}\n@ NS {host(0)}\n{names}"


def is_answer(text: str, name: str, expected: str) -> bool:
    """Whether dig was answered with authority, and with this name's address."""
    flags = _FLAGS.search(text)
    record = rf"^{re.escape(name)}\s+\d+\s+IN\s+A\s+{re.escape(expected)}$"
    return (
        "status: NOERROR" in text
        and flags is not None
        and "aa" in flags.group(1).split()
        and re.search(record, text, re.MULTILINE) is not None
    )
