"""Step "traces": what patched servers wrote and told, compared with stock's in the same work."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from dsharness.containers.container import running
from dsharness.model import Image
from dsharness.paths import logs_home
from dsvalidate.check import Check, Gate, Status, listed
from dsvalidate.dirsrv import client_suites
from dsvalidate.dirsrv.server_traces import unindexed
from dsvalidate.safe_gate.new_traces import (
    SHOWN,
    InStock,
    Traces,
    kept_traces,
    literal,
    messages_check,
    new_kinds,
    nowhere,
    readable_check,
    secrets_check,
)
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools

OWN_FOLDERS = ("/etc/dirsrv/", "/var/lib/dirsrv/", "/var/log/dirsrv/")  # closed to others
# A shell's search of the server's own programs and libraries: yes or no for each text.
IN_PROGRAMS = (
    "for text; do find /usr/sbin /usr/lib /usr/lib64 -type f "
    r"\( -path '*dirsrv*' -o -name '*slapd*' \) "
    '-exec grep -qaF -e "$text" {} \\; -print 2>/dev/null | grep -q . '
    "&& echo yes || echo no; done"
)
# Both sides do the same in these; the others are looked through for secrets alone.
PAIRED = (*client_suites.NAMES, "latency")
OTHERS = ("upgrade", "recovery", "replication")


def run(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
    """Stock's servers do now what patched ones did in earlier steps."""
    stock = {
        name: client_suites.answered(tools, evidence, sides.stock, name, "stock")[1]
        for name in client_suites.NAMES
    }
    every = (*PAIRED, *OTHERS)
    patched = {name: kept for name in every if (kept := kept_traces(evidence, f"{name}-patched"))}
    for name in ("replication", "latency"):
        kept = kept_traces(evidence, f"{name}-stock")
        stock |= {name: kept} if kept else {}
    lacking = [name for name in every if name not in patched]
    return list(traces_checks(patched, stock, lacking, partial(_in_programs, sides.stock, tools)))


def _in_programs(stock: Image, tools: StepTools, kinds: Sequence[str]) -> Collection[str]:
    """Find the messages that files of stock's server have in them."""
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


def traces_checks(
    patched: Mapping[str, Traces],
    stock: Mapping[str, Traces],
    lacking: Sequence[str],
    in_stock: InStock = nowhere,
) -> Iterator[Check]:
    """Compare by the names of what both did; ``lacking`` ended before anything could be kept."""
    yield secrets_check(patched, stock, lacking)
    both = [(patched[name], stock[name]) for name in PAIRED if name in patched and name in stock]
    yield messages_check(both, in_stock)
    yield answers_check(both)
    yield readable_check(
        [path for each in patched.values() for path in each.readable],
        [path for each in stock.values() for path in each.readable],
        OWN_FOLDERS,
    )


def answers_check(both: Sequence[tuple[Traces, Traces]]) -> Check:
    """Compare access logs: result codes and notes that the same requests do not get from stock."""
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
    return Gate.SAFE.check(
        "answers", status, found,
        advice="look at what no longer uses the index" if more
        else "see whether the other result is meant",
        details=tuple(f"{kind}: {count}" for kind, count in new.items())[:SHOWN],
    )  # fmt: skip


def whole_reads(traces: Traces) -> int:
    """How many searches used no index."""
    return sum(count for kind, count in traces.answers.items() if unindexed(kind))
