"""The functional suites of the LDAP client, against a server that the patched packages made."""

from __future__ import annotations

from collections.abc import Sequence

from dsharness.model import Image
from dsvalidate.check import Check, Gate
from dsvalidate.dirsrv.populated_image import populated
from dsvalidate.dirsrv.population import client_users
from dsvalidate.dirsrv.server_traces import observe
from dsvalidate.dirsrv.validated_server import (
    ClientAnswer,
    ValidatedServer,
    checks_of,
    validated_server,
)
from dsvalidate.safe_gate.new_traces import Traces
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools

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


def checks(sides: Sides, tools: StepTools, evidence: EvidenceFolder, name: str) -> Sequence[Check]:
    """Run a suite on the patched server."""
    answers, _ = answered(tools, evidence, sides.patched, name, "patched")
    return checks_of(answers, Gate.WORKS, ADVICE, OTHERWISE)


def answered(
    tools: StepTools, evidence: EvidenceFolder, image: Image, name: str, side: str
) -> tuple[tuple[ClientAnswer, ...], Traces]:
    """Run a suite's client on an image's server; return its answers and what the server left."""
    made = populated(tools, image)
    with validated_server(tools, made.reference, purpose=name) as server:
        server.start()
        if name == "passwords":
            _write_all_down(server)
        tools.progress(f"running the client's suite {name} on the {side} server")
        users = {"users": client_users(made.population.users)}
        answers = server.asked(name, users)
        replies = server.asked("replies", users) if name == "passwords" else ()
        traces = observe(server, evidence, f"{name}-{side}", made.population.users, replies)
        return answers, traces


def _write_all_down(server: ValidatedServer) -> None:
    """Every log and the changelog, which many sites have on, see the passwords change."""
    with server.manager() as directory:
        directory.modify("cn=config", AUDITED, optional=True)
        directory.modify(*CHANGELOG, optional=True)
    server.stop()
    server.start()
