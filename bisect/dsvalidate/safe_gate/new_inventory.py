"""What the patched system has that stock has not: ports, privileged files, libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from dsharness.model import Image, Value
from dsvalidate.check import Check, Gate, Status
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools
from dsvalidate.suite import Suite

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
    """Read the output of the script."""
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


SCRIPTS = "/run/dsbisect-scripts"
OWN = Path(__file__).parents[1] / "libexec"
SHOWN = 40
# To see what another user's process has loaded, and files that only their owner may list.
CAPABILITIES = ("DAC_READ_SEARCH", "SYS_PTRACE")


@dataclass(frozen=True, kw_only=True)
class InventoryPart:
    """One part of the inventory, and what something new in it means."""

    part: str
    words: str
    advice: str
    status: Status = Status.WARNED


LOOKS = (
    InventoryPart(
        part="ports", words="ports that anyone on the network can reach",
        advice="Say in the changelog what listens there, and how to switch it off.",
    ),
    InventoryPart(
        part="sockets", words="Unix sockets that accept connections",
        advice="Check who may connect: the mode of the socket and of its folder.",
    ),
    InventoryPart(
        part="setuid", words="files that run with their owner's or group's rights",
        advice="A setuid file needs a review of its own; the distribution's security team asks.",
    ),
    InventoryPart(
        part="capabilities", words="files with capabilities",
        advice="A file with capabilities needs a review of its own, as a setuid file does.",
    ),
    InventoryPart(
        part="writable", words="files or folders that anyone may write to", status=Status.FAILED,
        advice="Fix the modes in the package: any local user could change these files.",
    ),
    InventoryPart(
        part="libraries", words="libraries in the server's process",
        advice="Each is code that runs with the server's rights: it was asked for by the patch?",
    ),
)  # fmt: skip


def run(sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite) -> Sequence[Check]:
    """List what both systems have while their servers run."""
    stock, patched = (_inventory(suite, tools, image) for image in (sides.stock, sides.patched))
    log = evidence.keep("inventory.json", patched.model_dump_json(indent=1) + "\n")
    evidence.keep("inventory-stock.json", stock.model_dump_json(indent=1) + "\n")
    return list(inventory_checks(stock, patched, log))


def inventory_checks(stock: Inventory, patched: Inventory, log: str) -> Iterator[Check]:
    """Compare each part; what is gone is no objection."""
    for look in LOOKS:
        before: tuple[str, ...] = getattr(stock, look.part)
        after: tuple[str, ...] = getattr(patched, look.part)
        new = tuple(sorted({*after} - {*before}))
        found = f"no new {look.words} ({len(after)} as in stock)"
        if new:
            found = f"{look.words}: {len(new)} that stock does not have: {', '.join(new[:3])}"
        yield Gate.SAFE.check(
            f"new-{look.part}", look.status if new else Status.PASSED, found,
            advice=look.advice, details=new[:SHOWN], evidence=(log,),
            figures={"new": len(new), "all": len(after)},
        )  # fmt: skip


def _inventory(suite: Suite, tools: StepTools, image: Image) -> Inventory:
    tools.progress(f"listing what {image.candidate_id} offers")
    with suite.served(
        tools, suite.filled(tools, image), purpose="inventory",
        capabilities=CAPABILITIES, volumes=((OWN, SCRIPTS, "ro"),),
    ) as server:  # fmt: skip
        server.start()
        command = f'exec sh {SCRIPTS}/inventory "$(cat {server.pid_file})"'
        text = server.box.must("sh", "-c", command, what="list what the system offers")
        server.stop()
    return inventory_in(text)
