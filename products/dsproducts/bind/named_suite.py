"""The suite of BIND's named: the zone that the lab generates is answered, before and after.

What it wrote is not looked through: a zone has no passwords, and named's keys are not searched for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from dsbuilds.drivers.package_build import repository_of
from dsharness.content_key import content_key
from dsharness.errors import InstanceError
from dsharness.model import Image, Settings, SystemName
from dsharness.systems import Endpoint, Seed
from dsharness.systems.readiness import start_aside
from dsimages.buildah import keyed_image, labels_of
from dsproducts.bind.dns_workloads import ZoneContent
from dsproducts.bind.named import PID_FILE, USER, Bind
from dsvalidate.check import Check, Gate, Status
from dsvalidate.installs_gate import (
    DOWNGRADE_ADVICE,
    KIND,
    changeable,
    downgrade_check,
    keep_upgraded,
    left_by_upgrade,
    nothing_left_check,
    upgrade_check,
    upgraded_reference,
)
from dsvalidate.step import Step, judged, server_step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools, stock_packages
from dsvalidate.suite import Serve, Service, SpeedQuestion, Suite, Volumes, service_box

REVISION = 1  # raised when the same image would be filled in another way
NAMES = 1000
SEED = Seed(content=ZoneContent(number=NAMES), settings=Settings(id="default"))
ABSENT = f"n{NAMES}.lab."  # one more than the zone has
# Where packages are changed the container is root's; named runs as its own user even there.
AS_USER = ("setpriv", "--reuid", USER, "--regid", USER, "--init-groups")
ROOT = ("DAC_OVERRIDE", "KILL", "SETGID", "SETUID")  # to start and end what runs as another user
ADVICE = "Start `named -g` by hand in a container of the patched packages; the log has more."


@dataclass(frozen=True, kw_only=True)
class NamedService(Service):
    """A named with the lab's zone."""

    system: Bind
    pid_file: str = PID_FILE
    as_root: bool  # the container is

    def start(self) -> Endpoint:
        command = self.system.serve_command()
        start_aside(self.box, *(AS_USER if self.as_root else ()), *command)
        return self.ready()


@contextmanager
def served(
    tools: StepTools,
    reference: str,
    *,
    purpose: str,
    volumes: Volumes = (),
    capabilities: tuple[str, ...] = (),
) -> Iterator[NamedService]:
    """Run a container of an image; with capabilities it is root's, since users cannot have them."""
    system, as_root = Bind(), bool(capabilities)
    capabilities = (*capabilities, *ROOT) if as_root else ()
    with service_box(
        tools,
        reference,
        system,
        purpose=purpose,
        volumes=volumes,
        capabilities=capabilities,
        user=None if as_root else USER,
    ) as service:
        yield NamedService(
            tools=tools,
            system=system,
            box=service.box,
            shared=service.shared,
            began_at=service.began_at,
            as_root=as_root,
        )


class NamedSuite:
    """A ``Suite``: both ends of the zone by UDP and TCP, a name that is not there, a restart."""

    system: ClassVar[SystemName] = "bind"
    prepare: ClassVar[str] = ""

    @property
    def served(self) -> Serve[NamedService]:
        return served

    def filled(self, tools: StepTools, image: Image) -> str:
        def make(reference: str) -> None:
            tools.progress(f"making a zone for {image.candidate_id}'s server")
            with served(tools, image.reference, purpose="populate") as server:
                server.system.create(server.box, SEED)
                server.system.check(server.start(), SEED)
                server.stop()
                server.box.commit(reference, labels_of(KIND, row=image.candidate_id, key=key))

        key = content_key(["validated", REVISION, image.key, Bind.revision])
        return keyed_image(tools.at, KIND, key, make)

    def upgraded(self, sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
        before = self.filled(tools, sides.stock)
        reference = upgraded_reference(sides, REVISION, before)
        packages = repository_of(sides.build)

        def run() -> Sequence[Check]:
            with changeable(served, tools, before, packages, purpose="upgrade") as server:
                first = upgrade_check(server, sides, evidence)
                checks = [first] if first.stops else [first, zone_check(server, "service-answers")]
                if not any(check.stops for check in checks):
                    server.stop()
                    keep_upgraded(server, sides, reference)
                return checks

        return judged(Gate.INSTALLS, "upgrade", run)()

    def upgraded_image(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder
    ) -> str | None:
        reference = upgraded_reference(sides, REVISION, self.filled(tools, sides.stock))
        return left_by_upgrade(tools, reference, lambda: self.upgraded(sides, tools, evidence))

    def downgraded(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder
    ) -> Sequence[Check]:
        reference = self.upgraded_image(sides, tools, evidence)
        if reference is None:
            return [nothing_left_check()]
        packages = stock_packages(sides, tools)
        with changeable(served, tools, reference, packages, purpose="downgrade") as server:
            first = downgrade_check(server, sides, evidence)
            if first.status is not Status.PASSED:
                return [first]
            return [first, as_warning(zone_check(server, "downgrade-answers"))]

    def works(self, sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> tuple[Step, ...]:
        del evidence
        return (
            server_step(
                Gate.WORKS,
                "zone",
                20,
                "asking for names of a zone, before and after a restart",
                partial(self._zone, sides, tools),
            ),
        )

    def _zone(self, sides: Sides, tools: StepTools) -> Sequence[Check]:
        with served(tools, self.filled(tools, sides.patched), purpose="zone") as server:
            first = zone_check(server, "zone-answers", gate=Gate.WORKS)
            if first.status is not Status.PASSED:
                return [first]
            absent = absent_check(server)
            server.stop()
            return [first, absent, zone_check(server, "restart", gate=Gate.WORKS)]

    def performs(self, question: SpeedQuestion, evidence: EvidenceFolder) -> tuple[Step, ...]:
        del question, evidence
        return ()

    def safe(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder, *, accept_weaker: bool
    ) -> tuple[Step, ...]:
        del sides, tools, evidence, accept_weaker
        sentence = "what the server wrote is not searched for secrets: the suite has no such step"

        def run() -> Sequence[Check]:
            return [_check(Gate.SAFE, "secrets", Status.INCONCLUSIVE, sentence)]

        return (server_step(Gate.SAFE, "traces", 0, "searching what the servers wrote", run),)


def zone_check(server: NamedService, name: str, *, gate: Gate = Gate.INSTALLS) -> Check:
    """Start it: it has to answer for both ends of the zone, by UDP and TCP."""
    try:
        facts = server.system.check(server.start(), SEED)
    except InstanceError as error:
        if error.killed:  # from outside: that says nothing of the packages
            raise
        first, *rest = error.message.splitlines()
        check = _check(gate, name, Status.FAILED, f"the server does not serve its zone: {first}")
        details = (*rest, f"log: {server.box.log}")
        more = {"stops": gate is Gate.INSTALLS, "details": details, "advice": ADVICE}
        return check.model_copy(update=more)
    ends = f"the first and the last of {NAMES} names, by UDP and TCP"
    sentence = f"the server, {facts['version']}, answers for {ends}"
    return _check(gate, name, Status.PASSED, sentence)


def as_warning(check: Check) -> Check:
    """Stock cannot know what is newer than it is: nothing of a downgrade fails."""
    if check.status is not Status.FAILED:
        return check
    advice = {"status": Status.WARNED, "stops": False, "advice": DOWNGRADE_ADVICE}
    return check.model_copy(update=advice)


def absent_check(server: NamedService) -> Check:
    """A name that the zone has not must not be answered."""
    output = server.box.execute(
        "dig",
        "@127.0.0.1",
        "-p",
        str(server.system.port),
        ABSENT,
        "A",
        "+norecurse",
        "+tries=1",
        "+time=2",
        "+noall",
        "+comments",
        "+answer",
    )
    if "status: NXDOMAIN" in output.stdout:
        sentence = f"{ABSENT}, which the zone has not, is answered with NXDOMAIN"
        return _check(Gate.WORKS, "absent-name", Status.PASSED, sentence)
    last = (output.stdout.strip().splitlines() or ["nothing"])[-1]
    sentence = f"{ABSENT}, which the zone has not, is not answered with NXDOMAIN: {last}"
    check = _check(Gate.WORKS, "absent-name", Status.FAILED, sentence)
    return check.model_copy(update={"advice": ADVICE})


def _check(gate: Gate, name: str, status: Status, sentence: str) -> Check:
    return gate.check(name, status, sentence)


SUITE: Suite = NamedSuite()
