"""What a patched server wrote that stock does not: secrets, severe messages, readable files.

A suite looks at its servers and says what they left behind; here both sides are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from pydantic import Field

from dsharness.model import Value
from dsvalidate.check import Check, Figure, Gate, Status, listed
from dsvalidate.secret_search import DIGITS, Find, new_finds
from dsvalidate.step_tools import EvidenceFolder

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
    in_stock = [find for each in stock.values() for find in each.finds]
    found = {name: new_finds(each.finds, in_stock) for name, each in patched.items()}
    lines = [f"{name}: {find}" for name, finds in found.items() for find in finds]
    cut = sorted({path for each in patched.values() for path in each.cut})
    figures: dict[str, Figure] = {
        "secrets": max((each.secrets for each in patched.values()), default=0),
        "files": sum(each.files for each in patched.values()),
        "in stock too": len(in_stock),
    }
    if lines:
        finds = [find for each in found.values() for find in each]
        return Gate.SAFE.check(
            "secrets", Status.FAILED,
            f"{_kinds(finds)} where stock has none: {listed(_places(finds), 3)}", advice=LEAKED,
            figures=figures, details=tuple(lines[:SHOWN]),
        )  # fmt: skip
    if lacking or cut:
        why = [f"{', '.join(lacking)} ended too early"] if lacking else []
        why += [f"only the beginning of {listed(cut, 3)} was searched"] if cut else []
        return Gate.SAFE.check(
            "secrets", Status.INCONCLUSIVE,
            f"no secret was found, but not all was looked at: {'; '.join(why)}", figures=figures,
            advice="correct what failed before it, then give the same command again",
        )  # fmt: skip
    return Gate.SAFE.check(
        "secrets", Status.PASSED,
        f"none of {figures['secrets']} passwords, hashes and keys is anywhere in "
        f"{figures['files']} written files or in replies where stock has none",
        figures=figures,
    )  # fmt: skip


def _kinds(finds: Sequence[Find]) -> str:
    words = {"password": "passwords", "hash": "stored passwords", "key": "keys"}
    return " and ".join(dict.fromkeys(words[find.kind] for find in finds))


def _places(finds: Sequence[Find]) -> list[str]:
    return list(dict.fromkeys(find.place.partition(", line ")[0] for find in finds))


def messages_check(both: Sequence[tuple[Traces, Traces]], in_stock: InStock = nowhere) -> Check:
    """Compare error logs: new kinds of messages, and the lines that 1,000 operations make.

    Some messages depend on the moment, such as of a thread that ends late or waits on a busy
    machine. What only one of several servers says is told, and warns of nothing, if it is
    information, or if ``in_stock`` finds it in stock's programs: those would say it too.
    """
    new = _new_messages(both)
    rates = [lines_per_thousand([pair[side] for pair in both]) for side in (0, 1)]
    odd = [kind for kind in new if new[kind] == 1 < len(both)]
    known = in_stock([kind for kind in odd if not information(kind)])
    once = [kind for kind in odd if information(kind) or kind in known]
    bad = [kind for kind in new if severe(kind) and kind not in once]
    others = len(new) - len(bad) - len(once)
    more = rates[0] > MORE_LINES * rates[1] + FEW_LINES
    status = Status.FAILED if bad else Status.WARNED if others or more else Status.PASSED
    words = [f"{rates[0]:.0f} lines in the error log for 1,000 operations (stock: {rates[1]:.0f})"]
    words += [f"{len(bad)} new kinds of severe messages: {listed(bad, 2)}"] if bad else []
    words += [f"{others} other new kinds of messages"] if others else []
    words += [f"{len(once)} new kinds that stock has too, from one server only"] if once else []
    lines = Counter[str]()
    for patched, _ in both:
        lines.update(patched.messages)
    return Gate.SAFE.check(
        "error-log", status, "; ".join(words),
        advice="read the new messages: each is work, disk and attention on every server",
        details=tuple(f"{kind} ({lines[kind]} lines)" for kind in new)[:SHOWN],
        figures={"lines of 1,000 operations": round(rates[0], 1), "new kinds": len(new)},
    )  # fmt: skip


def _new_messages(both: Sequence[tuple[Traces, Traces]]) -> Counter[str]:
    """Each kind that no stock server wrote, and in how many of the patched servers' logs it is."""
    known = {kind for _, stock in both for kind in stock.messages}
    return Counter(kind for patched, _ in both for kind in patched.messages if kind not in known)


def lines_per_thousand(traces: Sequence[Traces]) -> float:
    lines = sum(sum(each.messages.values()) for each in traces)
    operations = sum(each.operations for each in traces)
    return 1000 * lines / operations if operations else 0.0


def readable_check(
    patched: Sequence[str], stock: Sequence[str], own_folders: tuple[str, ...]
) -> Check:
    """Compare the files that a running server wrote and that every user may read."""
    known = {DIGITS.sub("#", path) for path in stock}
    new = sorted({path for path in patched if DIGITS.sub("#", path) not in known})
    own = any(path.startswith(own_folders) for path in new)
    status = Status.FAILED if own else Status.WARNED if new else Status.PASSED
    found = f"anyone may read {listed(new, 3)}, which stock does not write or keeps closed"
    return Gate.SAFE.check(
        "new-readable", status,
        found if new else "the server wrote no file that anyone may read but those of stock",
        details=tuple(new[:SHOWN]),
        advice="close it (mode 0600), or say why everyone may read it",
    )  # fmt: skip
