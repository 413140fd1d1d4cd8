"""A clean restart, and an end in the middle of writes: nothing that was acknowledged is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from dsharness.errors import InstanceError, WorkloadError
from dsharness.process.deadline import Deadline, wait_until
from dsharness.systems.ldap.directory import Directory
from dsproducts.dirsrv.dirsrv import INSTANCE
from dsproducts.dirsrv.validation.populated_image import populated
from dsproducts.dirsrv.validation.population import Population, differences, dump_of
from dsproducts.dirsrv.validation.server_traces import observe
from dsproducts.dirsrv.validation.validated_server import ValidatedServer, validated_server
from dsvalidate.check import Check, Gate, Status, last_lines
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools

ENOUGH = 300  # writes before the end comes
WRITE_LIMIT_S = 60.0
BACKEND = "userroot"
LOST = "An acknowledged write must survive a crash. Look at the database library and its settings."
# What a server of this kind says for a database that it does not verify.
NO_VERIFY = ("not supported", "not implemented", "unsupported", "invalid choice")


def run(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
    """Restart one server, then kill it while it writes."""
    populated_image = populated(tools, sides.patched)
    with validated_server(tools, populated_image.reference, purpose="recovery") as server:
        checks = list(_checks(server, populated_image.population))
        observe(server, evidence, "recovery-patched", populated_image.population.users)
        return checks


def _checks(server: ValidatedServer, population: Population) -> Iterator[Check]:
    server.start()
    server.stop()
    server.start()
    yield restart_check(server, population)
    server.tools.progress("killing the server while it writes")
    acknowledged = _killed_during_writes(server)
    try:
        server.start()
    except InstanceError as error:
        yield Gate.WORKS.check(
            "crash-recovery",
            Status.FAILED,
            f"after a kill during writes the server does not start again: {error.message}",
            advice=LOST,
            details=last_lines(server.error_lines()),
        )
        return
    with server.manager() as directory:
        yield crash_check(acknowledged, *_present(directory))
    server.stop()
    yield verified_check(*_verified(server))


def restart_check(server: ValidatedServer, population: Population) -> Check:
    with server.manager() as directory:
        changes = tuple(differences(population.dump, dump_of(directory)))
    if changes:
        sentence = f"{len(changes)} differences after a clean restart: {changes[0]}"
        return Gate.WORKS.check(
            "restart", Status.FAILED, sentence, advice=LOST, details=changes[:40]
        )
    count = len(population.dump)
    return Gate.WORKS.check(
        "restart", Status.PASSED, f"after a clean restart all {count} entries are there"
    )


def crash_check(
    acknowledged: int, listed: frozenset[str], entries_found: int, counted: int
) -> Check:
    """``listed`` by reading all, ``found`` by the index, ``counted`` by the server itself."""
    lost = [name for number in range(acknowledged) if (name := _name(number)) not in listed]
    figures = {"acknowledged": acknowledged, "listed": len(listed), "lost": len(lost)}
    if lost:
        return Gate.WORKS.check(
            "crash-recovery",
            Status.FAILED,
            f"{len(lost)} of {acknowledged} acknowledged writes are lost after a kill",
            figures=figures,
            advice=LOST,
            details=tuple(lost[:40]),
        )
    if not len(listed) == entries_found == counted:
        return Gate.WORKS.check(
            "crash-recovery",
            Status.FAILED,
            f"after a kill the database contradicts itself: {len(listed)} entries by "
            f"reading, {entries_found} by the index, {counted} by the server's own count",
            figures=figures,
            advice=LOST,
        )
    return Gate.WORKS.check(
        "crash-recovery",
        Status.PASSED,
        f"killed during writes, the server starts again with all {acknowledged} "
        f"acknowledged entries ({len(listed)} in all), the same by index and by count",
        figures=figures,
    )


def verified_check(status: int, words: str) -> Check:
    """What the server's own verification of its database says; not every version has one."""
    # The server's own log comes with it, each line with its time in brackets.
    lines = [line.strip() for line in words.splitlines() if line.strip() and line[0] != "["]
    last = (lines or [words.strip()[-200:] or "no words"])[-1]
    if status == 0:
        sentence = "the server's own verification of its database (dbverify) finds no fault"
        return Gate.WORKS.check(
            "database-verified", Status.PASSED, sentence, details=tuple(lines[-3:])
        )
    if any(mark in words.lower() for mark in NO_VERIFY):
        return Gate.WORKS.check(
            "database-verified", Status.NOT_RUN, f"dbverify cannot be run here: {last}"
        )
    return Gate.WORKS.check(
        "database-verified",
        Status.FAILED,
        f"dbverify finds faults after a crash: {last}",
        advice=LOST,
        details=last_lines(words),
    )


def _killed_during_writes(server: ValidatedServer) -> int:
    with server.manager() as directory:
        directory.add(_writes(server), {"objectClass": ["top", "organizationalUnit"]})
        with ThreadPoolExecutor(max_workers=1) as pool:
            client = pool.submit(server.asked, "writes", {})
            try:
                wait_until(
                    lambda: True if client.done() or _count(directory) >= ENOUGH else None,
                    Deadline.after(WRITE_LIMIT_S),
                    what=f"{ENOUGH} writes",
                )
            finally:
                server.kill()
            (answer,) = client.result()
    if not answer.ok or int(answer.found) < ENOUGH:
        raise WorkloadError(f"the client wrote too little: {answer.found}", log=server.box.log)
    return int(answer.found)


def _count(directory: Directory) -> int:
    base = f"ou=writes,{directory.site.suffix}"
    entry = directory.read(base, "numSubordinates")
    return 0 if entry.word("numSubordinates") is None else entry.count("numSubordinates")


def _present(directory: Directory) -> tuple[frozenset[str], int, int]:
    base = f"ou=writes,{directory.site.suffix}"
    listed = frozenset(entry.must("cn") for entry in directory.children(base, "cn"))
    count = sum(1 for _ in directory.children(base, "cn", like="(cn=write-*)"))
    return listed, count, _count(directory)


def _verified(server: ValidatedServer) -> tuple[int, str]:
    result = server.box.execute("dsctl", INSTANCE, "dbverify", BACKEND)
    return result.status, f"{result.stdout}{result.stderr}"


def _writes(server: ValidatedServer) -> str:
    return f"ou=writes,{server.site.suffix}"


def _name(number: int) -> str:
    return f"write-{number:06d}"
