"""Gate 5: what the patch does to security: of the server's secrets, and of the system around it.

A suite looks at its servers and says what they left behind; here both sides are compared: secrets,
severe messages, readable files, and what is newly open, privileged or loaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import Field

from dsharness.model import Image, Value
from dsvalidate.check import Check, Figure, Gate, Status, listed
from dsvalidate.secret_search import DIGITS, Find, new_finds
from dsvalidate.step import Step, server_step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools
from dsvalidate.suite import Suite

MORE_LINES, FEW_LINES = 1.5, 20.0  # times stock's, and lines of 1,000 operations above it
SHOWN = 40
InStock = Callable[[Sequence[str]], Collection[str]]  # which of the messages stock has too
LEAKED = (
    "Whoever reads a log, a backup or a core file would have it. Do not ship this: find what "
    "writes it, and change every password that a server with this patch has seen."
)
# A kind of message is "LEVEL: words", with VARIES for what differs each time.
SEVERE = frozenset({"EMERG", "ALERT", "CRIT", "ERR"})
INFORMATION = frozenset({"INFO", "DEBUG"})
VARIES = "…"
LITERAL_CHARACTERS = 16


class Traces(Value):
    """What one server left behind, from its container's start to its stop."""

    finds: tuple[Find, ...] = ()
    cut: tuple[str, ...] = Field(default=(), description="files too large to be searched whole")
    files: int = 0
    secrets: int = 0
    messages: dict[str, int] = Field(default_factory=dict, description="of the error log, by kind")
    answers: dict[str, int] = Field(default_factory=dict, description="of the access log, by kind")
    readable: tuple[str, ...] = Field(default=(), description="written, and anyone may read them")

    @property
    def operations(self) -> int:
        return sum(self.answers.values())


def keep_traces(evidence: EvidenceFolder, name: str, traces: Traces) -> None:
    """Keep them for a later step, which compares both sides."""
    evidence.keep(_file(name), traces.model_dump_json(indent=1) + "\n")


def kept_traces(evidence: EvidenceFolder, name: str) -> Traces | None:
    """Return what an earlier step kept under that name; None where it ended before."""
    try:
        return Traces.model_validate_json((evidence.folder / _file(name)).read_bytes())
    except (OSError, ValueError):
        return None


def _file(name: str) -> str:
    return f"traces-{name}.json"


def severe(kind: str) -> bool:
    return kind.partition(":")[0] in SEVERE


def information(kind: str) -> bool:
    """Whether the server only says what it does."""
    return kind.partition(":")[0] in INFORMATION


def literal(kind: str) -> str:
    """The longest part of it that stands in a program as it is; empty where that is too short."""
    text = kind.partition(": ")[2].partition(" - ")[2]
    longest = max((part.strip() for part in text.split(VARIES)), key=len)
    return longest if len(longest) >= LITERAL_CHARACTERS else ""


def new_kinds(patched: Mapping[str, int], stock: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(patched.keys() - stock.keys()))


def nowhere(_: Sequence[str]) -> Collection[str]:
    """Find nothing: stock's programs are not looked through."""
    return ()


def secrets_check(
    patched: Mapping[str, Traces], stock: Mapping[str, Traces], lacking: Sequence[str] = ()
) -> Check:
    """Look for passwords, hashes and keys in places where stock has none of that kind."""
    in_stock = [find for traces in stock.values() for find in traces.finds]
    finds_by_name = {name: new_finds(traces.finds, in_stock) for name, traces in patched.items()}
    lines = [f"{name}: {find}" for name, finds in finds_by_name.items() for find in finds]
    cut = sorted({path for traces in patched.values() for path in traces.cut})
    figures: dict[str, Figure] = {
        "secrets": max((traces.secrets for traces in patched.values()), default=0),
        "files": sum(traces.files for traces in patched.values()),
        "in stock too": len(in_stock),
    }
    if lines:
        finds = [find for name_finds in finds_by_name.values() for find in name_finds]
        return Gate.SAFE.check(
            "secrets",
            Status.FAILED,
            f"{_kinds(finds)} where stock has none: {listed(_places(finds), 3)}",
            advice=LEAKED,
            figures=figures,
            details=tuple(lines[:SHOWN]),
        )
    if lacking or cut:
        why = [f"{', '.join(lacking)} ended too early"] if lacking else []
        why += [f"only the beginning of {listed(cut, 3)} was searched"] if cut else []
        return Gate.SAFE.check(
            "secrets",
            Status.INCONCLUSIVE,
            f"no secret was found, but not all was looked at: {'; '.join(why)}",
            figures=figures,
            advice="correct what failed before it, then give the same command again",
        )
    return Gate.SAFE.check(
        "secrets",
        Status.PASSED,
        f"none of {figures['secrets']} passwords, hashes and keys is anywhere in "
        f"{figures['files']} written files or in replies where stock has none",
        figures=figures,
    )


def _kinds(finds: Sequence[Find]) -> str:
    words = {"password": "passwords", "hash": "stored passwords", "key": "keys"}
    return " and ".join(dict.fromkeys(words[find.kind] for find in finds))


def _places(finds: Sequence[Find]) -> list[str]:
    return list(dict.fromkeys(find.place.partition(", line ")[0] for find in finds))


def messages_check(
    trace_pairs: Sequence[tuple[Traces, Traces]], in_stock: InStock = nowhere
) -> Check:
    """Compare error logs: new kinds of messages, and the lines that 1,000 operations make.

    Some messages depend on the moment, such as of a thread that ends late or waits on a busy
    machine. What ``in_stock`` finds in stock's programs is told, and warns of nothing, if it is
    information or only one of several servers says it: stock would say it too. So is any
    information of one server.
    """
    new = _new_messages(trace_pairs)
    rates = [lines_per_thousand([pair[side] for pair in trace_pairs]) for side in (0, 1)]
    odd = [kind for kind in new if new[kind] == 1 < len(trace_pairs)]
    stock_kinds = in_stock([kind for kind in new if (kind in odd) != information(kind)])
    spared = [kind for kind in new if kind in stock_kinds or (kind in odd and information(kind))]
    bad = [kind for kind in new if severe(kind) and kind not in spared]
    other_kinds = len(new) - len(bad) - len(spared)
    more = rates[0] > MORE_LINES * rates[1] + FEW_LINES
    status = Status.FAILED if bad else Status.WARNED if other_kinds or more else Status.PASSED
    words = [f"{rates[0]:.0f} lines in the error log for 1,000 operations (stock: {rates[1]:.0f})"]
    words += [f"{len(bad)} new kinds of severe messages: {listed(bad, 2)}"] if bad else []
    words += [f"{other_kinds} other new kinds of messages"] if other_kinds else []
    words += [f"{len(spared)} new kinds that depend on the moment"] if spared else []
    lines = Counter[str]()
    for patched, _ in trace_pairs:
        lines.update(patched.messages)
    return Gate.SAFE.check(
        "error-log",
        status,
        "; ".join(words),
        advice="read the new messages: each is work, disk and attention on every server",
        details=tuple(f"{kind} ({lines[kind]} lines)" for kind in new)[:SHOWN],
        figures={"lines of 1,000 operations": round(rates[0], 1), "new kinds": len(new)},
    )


def _new_messages(trace_pairs: Sequence[tuple[Traces, Traces]]) -> Counter[str]:
    """Each kind that no stock server wrote, and in how many of the patched servers' logs it is."""
    stock_kinds = {kind for _, stock in trace_pairs for kind in stock.messages}
    return Counter(
        kind for patched, _ in trace_pairs for kind in patched.messages if kind not in stock_kinds
    )


def lines_per_thousand(traces: Sequence[Traces]) -> float:
    lines = sum(sum(trace.messages.values()) for trace in traces)
    operations = sum(trace.operations for trace in traces)
    return 1000 * lines / operations if operations else 0.0


def readable_check(
    patched: Sequence[str], stock: Sequence[str], own_folders: tuple[str, ...]
) -> Check:
    """Compare the files that a running server wrote and that every user may read."""
    stock_paths = {DIGITS.sub("#", path) for path in stock}
    new = sorted({path for path in patched if DIGITS.sub("#", path) not in stock_paths})
    own = any(path.startswith(own_folders) for path in new)
    status = Status.FAILED if own else Status.WARNED if new else Status.PASSED
    sentence = f"anyone may read {listed(new, 3)}, which stock does not write or keeps closed"
    return Gate.SAFE.check(
        "new-readable",
        status,
        sentence if new else "the server wrote no file that anyone may read but those of stock",
        details=tuple(new[:SHOWN]),
        advice="close it (mode 0600), or say why everyone may read it",
    )


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
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(SECTION):
            lines = sections.setdefault(line.removeprefix(SECTION).strip(), [])
        elif line.strip():
            lines.append(line.strip())
    return sections


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
OWN = Path(__file__).parent / "libexec"
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
        part="ports",
        words="ports that anyone on the network can reach",
        advice="Say in the changelog what listens there, and how to switch it off.",
    ),
    InventoryPart(
        part="sockets",
        words="Unix sockets that accept connections",
        advice="Check who may connect: the mode of the socket and of its folder.",
    ),
    InventoryPart(
        part="setuid",
        words="files that run with their owner's or group's rights",
        advice="A setuid file needs a review of its own; the distribution's security team asks.",
    ),
    InventoryPart(
        part="capabilities",
        words="files with capabilities",
        advice="A file with capabilities needs a review of its own, as a setuid file does.",
    ),
    InventoryPart(
        part="writable",
        words="files or folders that anyone may write to",
        status=Status.FAILED,
        advice="Fix the modes in the package: any local user could change these files.",
    ),
    InventoryPart(
        part="libraries",
        words="libraries in the server's process",
        advice="Each is code that runs with the server's rights: it was asked for by the patch?",
    ),
)


def new_in_inventory(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite
) -> Sequence[Check]:
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
        sentence = f"no new {look.words} ({len(after)} as in stock)"
        if new:
            sentence = f"{look.words}: {len(new)} that stock does not have: {', '.join(new[:3])}"
        yield Gate.SAFE.check(
            f"new-{look.part}",
            look.status if new else Status.PASSED,
            sentence,
            advice=look.advice,
            details=new[:SHOWN],
            evidence=(log,),
            figures={"new": len(new), "all": len(after)},
        )


def _inventory(suite: Suite, tools: StepTools, image: Image) -> Inventory:
    tools.progress(f"listing what {image.candidate_id} offers")
    with suite.served(
        tools,
        suite.filled(tools, image),
        purpose="inventory",
        capabilities=CAPABILITIES,
        volumes=((OWN, SCRIPTS, "ro"),),
    ) as server:
        server.start()
        command = f'exec sh {SCRIPTS}/inventory "$(cat {server.pid_file})"'
        text = server.box.must("sh", "-c", command, what="list what the system offers")
        server.stop()
    return inventory_in(text)


def steps(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite, *, accept_weaker: bool
) -> tuple[Step, ...]:
    """List what the product's suite compares, and what is newly exposed."""
    return (
        *suite.safe(sides, tools, evidence, accept_weaker=accept_weaker),
        server_step(
            Gate.SAFE,
            "inventory",
            30,
            "listing ports, privileged files and libraries, stock and patched",
            partial(new_in_inventory, sides, tools, evidence, suite),
        ),
    )
