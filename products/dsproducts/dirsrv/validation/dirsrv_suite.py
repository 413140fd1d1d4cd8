"""The suite of the directory server: what its steps are; what its clients do, and leave behind.

The suites of the LDAP client run against a server that the patched packages made. Stock's does the
same work, and what both wrote and told is compared (the step "traces").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

from dsharness.containers.container import running
from dsharness.model import Image, SystemName
from dsharness.paths import logs_home
from dsproducts.dirsrv.dirsrv import PREPARE
from dsproducts.dirsrv.validation import password_strength, recovery, replication
from dsproducts.dirsrv.validation.latency_step import single_client_step
from dsproducts.dirsrv.validation.populated_image import populated
from dsproducts.dirsrv.validation.population import client_users
from dsproducts.dirsrv.validation.server_traces import observe, unindexed
from dsproducts.dirsrv.validation.upgrade import downgrade_checks, upgrade_checks, upgraded_image
from dsproducts.dirsrv.validation.validated_server import (
    ClientAnswer,
    ValidatedServer,
    checks_of,
    validated_server,
)
from dsvalidate.check import Check, Gate, Status, listed
from dsvalidate.safe_gate import (
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
from dsvalidate.step import Step, server_step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools
from dsvalidate.suite import Serve, SpeedQuestion, Suite

# Every log that may see a password is written, and so is the changelog that clients can read.
AUDITED = {"nsslapd-auditlog-logging-enabled": "on", "nsslapd-auditfaillog-logging-enabled": "on"}
CHANGELOG = ("cn=Retro Changelog Plugin,cn=plugins,cn=config", {"nsslapd-pluginEnabled": "on"})
OTHERWISE = (
    "The same request works on stock. The log of this step has the client's and the server's words."
)
ADVICE = {
    "bind-every-scheme": "The server starts but refuses right passwords: look for a password "
    "storage plugin that is missing or not registered.",
    "bind-wrong-password": "The server accepts wrong passwords. Do not ship this.",
    "bind-empty-password": "A name with an empty password must not count as proof. Do not ship.",
    "starttls": "Clients that encrypt lose the server: look at NSS and the instance's certificate.",
    "ldaps": "Clients that encrypt lose the server: look at NSS and the instance's certificate.",
}


NAMES = ("binds", "operations", "passwords")


def client_checks(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, name: str
) -> Sequence[Check]:
    """Run a suite on the patched server."""
    answers, _ = answered(tools, evidence, sides.patched, name, "patched")
    return checks_of(answers, Gate.WORKS, ADVICE, OTHERWISE)


def answered(
    tools: StepTools, evidence: EvidenceFolder, image: Image, name: str, side: str
) -> tuple[tuple[ClientAnswer, ...], Traces]:
    """Run a suite's client on an image's server; return its answers and what the server left."""
    populated_image = populated(tools, image)
    with validated_server(tools, populated_image.reference, purpose=name) as server:
        server.start()
        if name == "passwords":
            _write_all_down(server)
        tools.progress(f"running the client's suite {name} on the {side} server")
        users = {"users": client_users(populated_image.population.users)}
        answers = server.asked(name, users)
        replies = server.asked("replies", users) if name == "passwords" else ()
        traces = observe(
            server, evidence, f"{name}-{side}", populated_image.population.users, replies
        )
        return answers, traces


def _write_all_down(server: ValidatedServer) -> None:
    """Every log and the changelog, which many sites have on, see the passwords change."""
    with server.manager() as directory:
        directory.modify("cn=config", AUDITED, optional=True)
        directory.modify(*CHANGELOG, optional=True)
    server.stop()
    server.start()


OWN_FOLDERS = ("/etc/dirsrv/", "/var/lib/dirsrv/", "/var/log/dirsrv/")  # closed to others
# A shell's search of the server's own programs and libraries: yes or no for each text.
IN_PROGRAMS = (
    "for text; do find /usr/sbin /usr/lib /usr/lib64 -type f "
    r"\( -path '*dirsrv*' -o -name '*slapd*' \) "
    '-exec grep -qaF -e "$text" {} \\; -print 2>/dev/null | grep -q . '
    "&& echo yes || echo no; done"
)
# Both sides do the same in these; the others are looked through for secrets alone.
PAIRED = (*NAMES, "latency")
OTHERS = ("upgrade", "recovery", "replication")


def compared_traces(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
    """Stock's servers do now what patched ones did in earlier steps."""
    stock = {name: answered(tools, evidence, sides.stock, name, "stock")[1] for name in NAMES}
    names = (*PAIRED, *OTHERS)
    patched = {
        name: traces for name in names if (traces := kept_traces(evidence, f"{name}-patched"))
    }
    for name in ("replication", "latency"):
        traces = kept_traces(evidence, f"{name}-stock")
        stock |= {name: traces} if traces else {}
    lacking = [name for name in names if name not in patched]
    return list(traces_checks(patched, stock, lacking, partial(_in_programs, sides.stock, tools)))


def _in_programs(stock: Image, tools: StepTools, kinds: Sequence[str]) -> Collection[str]:
    """Find the messages that files of stock's server have in them."""
    texts = {kind: text for kind in kinds if (text := literal(kind))}
    if not texts:
        return ()
    log = logs_home() / "validate" / f"{tools.name}-messages.log"
    with running(tools.engine, stock.reference, purpose="messages", log=log) as box:
        answers = box.must(
            "sh", "-c", IN_PROGRAMS, "sh", *texts.values(), what="looking for messages in stock"
        ).split()
    return [kind for kind, answer in zip(texts, answers, strict=True) if answer == "yes"]


def traces_checks(
    patched: Mapping[str, Traces],
    stock: Mapping[str, Traces],
    lacking: Sequence[str],
    in_stock: InStock = nowhere,
) -> Iterator[Check]:
    """Compare by the names of what both did; ``lacking`` ended before anything could be kept."""
    yield secrets_check(patched, stock, lacking)
    trace_pairs = [
        (patched[name], stock[name]) for name in PAIRED if name in patched and name in stock
    ]
    yield messages_check(trace_pairs, in_stock)
    yield answers_check(trace_pairs)
    yield readable_check(
        [path for traces in patched.values() for path in traces.readable],
        [path for traces in stock.values() for path in traces.readable],
        OWN_FOLDERS,
    )


def answers_check(trace_pairs: Sequence[tuple[Traces, Traces]]) -> Check:
    """Compare access logs: result codes and notes that the same requests do not get from stock."""
    new = {
        kind: patched.answers[kind]
        for patched, stock in trace_pairs
        for kind in new_kinds(patched.answers, stock.answers)
    }
    slow = [(whole_reads(patched), whole_reads(stock)) for patched, stock in trace_pairs]
    more = sum(max(0, patched_count - stock_count) for patched_count, stock_count in slow)
    status = Status.FAILED if more else Status.WARNED if new else Status.PASSED
    operations = sum(patched.operations for patched, _ in trace_pairs)
    sentence = f"{operations} operations got answers as in stock"
    if new:
        sentence = f"answers that stock does not give to the same requests: {listed(list(new), 3)}"
    if more:
        sentence = f"{more} searches that stock does by an index read every entry"
    return Gate.SAFE.check(
        "answers",
        status,
        sentence,
        advice="look at what no longer uses the index"
        if more
        else "see whether the other result is meant",
        details=tuple(f"{kind}: {count}" for kind, count in new.items())[:SHOWN],
    )


def whole_reads(traces: Traces) -> int:
    """How many searches used no index."""
    return sum(count for kind, count in traces.answers.items() if unindexed(kind))


class DirsrvSuite:
    """A ``Suite``: users of every scheme, a client of its own, two suppliers, secrets."""

    system: ClassVar[SystemName] = "dirsrv"
    prepare: ClassVar[str] = PREPARE

    @property
    def served(self) -> Serve[ValidatedServer]:
        return validated_server

    def filled(self, tools: StepTools, image: Image) -> str:
        return populated(tools, image).reference

    def upgraded(self, sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
        return upgrade_checks(sides, tools, evidence)

    def upgraded_image(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder
    ) -> str | None:
        return upgraded_image(sides, tools, evidence)

    def downgraded(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder
    ) -> Sequence[Check]:
        return downgrade_checks(sides, tools, evidence)

    def works(self, sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> tuple[Step, ...]:
        """List the suites of the LDAP client, and what else an administrator relies on."""
        common, step = (sides, tools, evidence), partial(server_step, Gate.WORKS)
        suite = partial(partial, client_checks, *common)
        return (
            step("binds", 45, "binding with every scheme, with and without TLS", suite("binds")),
            step("operations", 20, "searching and changing entries", suite("operations")),
            step("passwords", 30, "changing passwords under a policy", suite("passwords")),
            step(
                "recovery",
                45,
                "restarting the server, and killing it during writes",
                partial(recovery.run, *common),
            ),
            step(
                "replication",
                60,
                "replicating between a patched and a stock server",
                partial(replication.run, *common),
            ),
        )

    def performs(self, question: SpeedQuestion, evidence: EvidenceFolder) -> tuple[Step, ...]:
        return (single_client_step(question, evidence),)

    def safe(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder, *, accept_weaker: bool
    ) -> tuple[Step, ...]:
        """List what is compared of stored passwords, and what the servers left behind."""
        step = partial(server_step, Gate.SAFE)
        return (
            step(
                "password-strength",
                30,
                "comparing how stock and patched servers store passwords",
                partial(
                    password_strength.strength_checks, sides, tools, accept_weaker=accept_weaker
                ),
                inputs=accept_weaker,
            ),
            step(
                "existing-passwords",
                15,
                "looking at what becomes of passwords that are stored already",
                partial(password_strength.existing_checks, sides, tools),
            ),
            step(
                "traces",
                90,
                "searching what the servers wrote and told for secrets, stock and patched",
                partial(compared_traces, sides, tools, evidence),
            ),
        )


SUITE: Suite = DirsrvSuite()
