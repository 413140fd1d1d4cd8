"""What the patched server wrote or told that stock does not: secrets, messages, answers, files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from dsharness.containers.container import running
from dsharness.model import Image
from dsharness.paths import logs_home
from dsvalidate.check import Check, Figure, Gate, Status, listed
from dsvalidate.dirsrv import suites
from dsvalidate.dirsrv.product_advice import IN_PROGRAMS, OWN_FOLDERS
from dsvalidate.dirsrv.server_logs import information, literal, new_kinds, severe, unindexed
from dsvalidate.dirsrv.server_traces import Traces, kept_traces
from dsvalidate.secret_search import DIGITS, Find, new_finds
from dsvalidate.sides import Sides
from dsvalidate.step_tools import EvidenceFolder, StepTools

# Both sides do the same in these; the others are looked through for secrets alone.
PAIRED = (*suites.NAMES, "latency")
OTHERS = ("upgrade", "recovery", "replication")
MORE_LINES, FEW_LINES = 1.5, 20.0  # times stock's, and lines of 1,000 operations above it
SHOWN = 40
InStock = Callable[[Sequence[str]], Collection[str]]  # which of the messages stock has too
LEAKED = (
    "Whoever reads a log, a backup or a core file would have it. Do not ship this: find what "
    "writes it, and change every password that a server with this patch has seen."
)


def run(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
    """Stock's servers do now what patched ones did in earlier steps."""
    stock = {
        name: suites.answered(tools, evidence, sides.stock, name, "stock")[1]
        for name in suites.NAMES
    }
    every = (*PAIRED, *OTHERS)
    patched = {name: kept for name in every if (kept := kept_traces(evidence, f"{name}-patched"))}
    for name in ("replication", "latency"):
        kept = kept_traces(evidence, f"{name}-stock")
        stock |= {name: kept} if kept else {}
    lacking = [name for name in every if name not in patched]
    return list(traces_checks(patched, stock, lacking, partial(_in_programs, sides.stock, tools)))


def _in_programs(stock: Image, tools: StepTools, kinds: Sequence[str]) -> Collection[str]:
    """The messages that files of stock's server have in them."""
    texts = {kind: text for kind in kinds if (text := literal(kind))}
    if not texts:
        return ()
    log = logs_home() / "validate" / f"{tools.name}-messages.log"
    with running(
        tools.engine, stock.reference, "sleep", "infinity", purpose="messages", log=log
    ) as box:
        found = box.must(
            "sh", "-c", IN_PROGRAMS, "sh", *texts.values(), what="looking for messages in stock"
        ).split()
    return [kind for kind, answer in zip(texts, found, strict=True) if answer == "yes"]


def nowhere(_: Sequence[str]) -> Collection[str]:
    """Nothing is looked through."""
    return ()


def traces_checks(
    patched: Mapping[str, Traces],
    stock: Mapping[str, Traces],
    lacking: Sequence[str],
    in_stock: InStock = nowhere,
) -> Iterator[Check]:
    """By the names of what both sides did; ``lacking`` ended before anything could be kept."""
    yield secrets_check(patched, stock, lacking)
    both = [(patched[name], stock[name]) for name in PAIRED if name in patched and name in stock]
    yield messages_check(both, in_stock)
    yield answers_check(both)
    yield readable_check(
        [path for each in patched.values() for path in each.readable],
        [path for each in stock.values() for path in each.readable],
    )


def secrets_check(
    patched: Mapping[str, Traces], stock: Mapping[str, Traces], lacking: Sequence[str] = ()
) -> Check:
    """Passwords, hashes and keys in places where stock has none of that kind."""
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
        return Check(
            gate=Gate.SAFE, name="secrets", status=Status.FAILED, advice=LEAKED, figures=figures,
            found=f"{_kinds(finds)} where stock has none: {listed(_places(finds), 3)}",
            details=tuple(lines[:SHOWN]),
        )  # fmt: skip
    if lacking or cut:
        why = [f"{', '.join(lacking)} ended too early"] if lacking else []
        why += [f"only the beginning of {listed(cut, 3)} was searched"] if cut else []
        return Check(
            gate=Gate.SAFE, name="secrets", status=Status.INCONCLUSIVE, figures=figures,
            found=f"no secret was found, but not all was looked at: {'; '.join(why)}",
            advice="correct what failed before it, then give the same command again",
        )  # fmt: skip
    return Check(
        gate=Gate.SAFE, name="secrets", status=Status.PASSED, figures=figures,
        found=f"none of {figures['secrets']} passwords, hashes and keys is anywhere in "
        f"{figures['files']} written files or in replies where stock has none",
    )  # fmt: skip


def _kinds(finds: Sequence[Find]) -> str:
    words = {"password": "passwords", "hash": "stored passwords", "key": "keys"}
    return " and ".join(dict.fromkeys(words[find.kind] for find in finds))


def _places(finds: Sequence[Find]) -> list[str]:
    return list(dict.fromkeys(find.place.partition(", line ")[0] for find in finds))


def messages_check(both: Sequence[tuple[Traces, Traces]], in_stock: InStock = nowhere) -> Check:
    """The error log: new kinds of messages, and how many lines of it 1,000 operations make.

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
    return Check(
        gate=Gate.SAFE, name="error-log", status=status, found="; ".join(words),
        advice="read the new messages: each is work, disk and attention on every server"
        if status is not Status.PASSED else "",
        details=tuple(f"{kind} ({lines[kind]} lines)" for kind in new)[:SHOWN],
        figures={"lines of 1,000 operations": round(rates[0], 1), "new kinds": len(new)},
    )  # fmt: skip


def _new_messages(both: Sequence[tuple[Traces, Traces]]) -> Counter[str]:
    """In how many of the patched servers' logs each kind is that no stock server wrote."""
    known = {kind for _, stock in both for kind in stock.messages}
    return Counter(kind for patched, _ in both for kind in patched.messages if kind not in known)


def lines_per_thousand(traces: Sequence[Traces]) -> float:
    lines = sum(sum(each.messages.values()) for each in traces)
    operations = sum(each.operations for each in traces)
    return 1000 * lines / operations if operations else 0.0


def answers_check(both: Sequence[tuple[Traces, Traces]]) -> Check:
    """The access log: result codes and notes that the same requests do not get from stock."""
    new = {
        kind: patched.answers[kind]
        for patched, stock in both
        for kind in new_kinds(patched.answers, stock.answers)
    }
    slow = [(whole_reads(patched), whole_reads(stock)) for patched, stock in both]
    more = sum(max(0, ours - theirs) for ours, theirs in slow)
    status = Status.FAILED if more else Status.WARNED if new else Status.PASSED
    found = f"{sum(patched.operations for patched, _ in both)} operations got answers as in stock"
    if new:
        found = f"answers that stock does not give to the same requests: {listed(list(new), 3)}"
    if more:
        found = f"{more} searches that stock does by an index read every entry"
    return Check(
        gate=Gate.SAFE, name="answers", status=status, found=found,
        advice="look at what no longer uses the index" if more else
        "see whether the other result is meant" if new else "",
        details=tuple(f"{kind}: {count}" for kind, count in new.items())[:SHOWN],
    )  # fmt: skip


def whole_reads(traces: Traces) -> int:
    """How many searches used no index."""
    return sum(count for kind, count in traces.answers.items() if unindexed(kind))


def readable_check(patched: Sequence[str], stock: Sequence[str]) -> Check:
    """Files that the running server wrote, and that every user of the machine may read."""
    known = {DIGITS.sub("#", path) for path in stock}
    new = sorted({path for path in patched if DIGITS.sub("#", path) not in known})
    own = any(path.startswith(OWN_FOLDERS) for path in new)
    status = Status.FAILED if own else Status.WARNED if new else Status.PASSED
    found = f"anyone may read {listed(new, 3)}, which stock does not write or keeps closed"
    return Check(
        gate=Gate.SAFE, name="new-readable", status=status, details=tuple(new[:SHOWN]),
        found=found if new else "the server wrote no file that anyone may read but those of stock",
        advice="close it (mode 0600), or say why everyone may read it" if new else "",
    )  # fmt: skip
