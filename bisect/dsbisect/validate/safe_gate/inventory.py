"""What a system with a running server offers to an attacker, read from the inventory script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import Field

from dsharness.model import Value

SECTION = "== "
LISTENING, BOUND = "0A", "07"  # states of TCP and UDP in /proc/net
ACCEPTING = "00010000"  # a flag in /proc/net/unix


class Inventory(Value):
    """Sorted, each once."""

    ports: tuple[str, ...] = Field(description="TCP and UDP, by number")
    sockets: tuple[str, ...] = Field(description="Unix sockets that accept connections")
    setuid: tuple[str, ...] = Field(description="mode, owner, group and path")
    capabilities: tuple[str, ...] = Field(description="as stored, and path")
    writable: tuple[str, ...] = Field(description="by anyone; mode, owner, group and path")
    libraries: tuple[str, ...] = Field(description="that the server has loaded")


def inventory_in(text: str) -> Inventory:
    """Of the script's output."""
    sections = _sections(text)
    return Inventory(
        ports=_sorted(_ports(sections.get("ports", []))),
        sockets=_sorted(_sockets(sections.get("sockets", []))),
        setuid=_sorted(sections.get("setuid", [])),
        capabilities=_sorted(sections.get("capabilities", [])),
        writable=_sorted(sections.get("writable", [])),
        libraries=_sorted(_libraries(sections.get("maps", []))),
    )


def _sections(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(SECTION):
            lines = found.setdefault(line.removeprefix(SECTION).strip(), [])
        elif line.strip():
            lines.append(line.strip())
    return found


def _ports(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        words = line.split()
        if len(words) < 4 or not words[0].endswith(":"):
            continue
        port = int(words[1].rpartition(":")[2], 16)
        if words[3] in {LISTENING, BOUND} and port:
            yield f"{'TCP' if words[3] == LISTENING else 'UDP'} {port}"


def _sockets(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        words = line.split(maxsplit=7)
        if len(words) == 8 and words[3] == ACCEPTING:
            yield words[7]


def _libraries(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        path = line.split(maxsplit=5)[-1]
        if path.startswith("/") and ".so" in path:
            yield path


def _sorted(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(lines)))
