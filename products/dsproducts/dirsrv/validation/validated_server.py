"""A 389-ds with TLS in a container of its own, that a step starts, stops, kills and asks.

An LDAP client next to it prints one JSON line for each thing that it tried; they become checks. So
does whether users can bind with their own passwords, and with no others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import ldap3
from ldap3.core.exceptions import LDAPException
from pydantic import ValidationError

from dsharness.containers.container import finished
from dsharness.errors import EngineError, InstanceError
from dsharness.model import Value
from dsharness.model.stored_password import parse_stored
from dsharness.systems.ldap import ldap_connection
from dsharness.systems.ldap.directory import (
    Directory,
    Site,
    close_quietly,
    connect,
    open_connection,
    reached,
)
from dsharness.systems.ldap.directory_system import SOCKET_NAME, socket_of
from dsharness.systems.readiness import shared_folder
from dsharness.systems.system import ENDED_NAME, SHARED_FOLDER, Endpoint
from dsproducts.dirsrv.dirsrv import CONFIG_FOLDER, PID_FILE, Dirsrv
from dsproducts.dirsrv.validation.population import SchemeUser
from dsvalidate.check import Check, Gate, Status
from dsvalidate.step_tools import StepTools
from dsvalidate.suite import Service, Volumes, service_box


class ClientAnswer(Value):
    """One thing that the client tried."""

    name: str
    ok: bool
    found: str


def answers_in(text: str) -> tuple[ClientAnswer, ...]:
    """Read the answers in the client's output; other lines are left out."""
    return tuple(_answers(text))


def _answers(text: str) -> Iterable[ClientAnswer]:
    for line in text.splitlines():
        try:
            yield ClientAnswer.model_validate_json(line)
        except ValidationError:
            continue


def checks_of(
    answers: Iterable[ClientAnswer], gate: Gate, advice: Mapping[str, str], otherwise: str
) -> tuple[Check, ...]:
    """Make a check of each answer; ``otherwise`` is the advice where it has none of its own."""
    return tuple(
        gate.check(
            answer.name,
            Status.PASSED if answer.ok else Status.FAILED,
            answer.found,
            advice=advice.get(answer.name, otherwise),
        )
        for answer in answers
    )


CLIENT = Path(__file__).parent / "ldap_client"
CONNECTION_MODULE = "/opt/dsharness/systems/ldap/ldap_connection.py"
CLIENT_LIMIT_S = 600.0
CA_NAME, JOB_NAME = "ca.crt", "job.json"
CA_BYTES = 64 << 10
JOB_FOLDER = "/run/dsbisect-job"  # inside the client's container
ANSWER_S = 10
STOPPED = "slapd stopped."
KILL = """
pid=$(cat "$1") && kill -9 "$pid" || exit 1
left=300
while [ -d "/proc/$pid" ] && [ "$left" -gt 0 ]; do sleep 0.1; left=$((left - 1)); done
left=50
while [ ! -s "$2" ] && [ "$left" -gt 0 ]; do sleep 0.1; left=$((left - 1)); done
rm -f "$2"
"""
MOVE = """
sed -i -e "s/^nsslapd-port:.*/nsslapd-port: $2/" \
    -e "s/^nsslapd-securePort:.*/nsslapd-securePort: $3/I" "$1/dse.ldif"
"""


class TlsServer(Dirsrv):
    """One with a certificate; it is ready when it answers anyone, also if it refuses binds."""

    tls: ClassVar[bool] = True

    def ready(self, endpoint: Endpoint) -> bool:
        try:
            connection = reached(socket_of(endpoint), limit_s=ANSWER_S)
        except InstanceError:
            return False
        try:
            return bool(connection.search("", "(objectClass=*)", ldap3.BASE, attributes=["*"]))
        except (LDAPException, OSError):
            return False
        finally:
            close_quietly(connection)


class PartnerServer(TlsServer):
    """A second one in the same network namespace."""

    port: ClassVar[int] = 4389
    secure_port: ClassVar[int] = 7636
    site: ClassVar[Site] = replace(Dirsrv.site, port=port)


@dataclass(frozen=True, kw_only=True)
class ValidatedServer(Service):
    """A directory that is asked over its socket, and over TCP by a client next to it."""

    system: TlsServer
    pid_file: str = PID_FILE

    @property
    def site(self) -> Site:
        return self.system.site

    @property
    def socket(self) -> Path:
        return self.shared / SOCKET_NAME

    def forget_scheme(self) -> None:
        """A stopped server's own default counts again: over LDAP it cannot be asked for that."""
        self.box.must(
            "sed",
            "-i",
            "/^passwordStorageScheme:/Id",
            f"{CONFIG_FOLDER}/dse.ldif",
            what="take back the scheme that was set",
        )

    def kill(self) -> None:
        """As the kernel ends a process: nothing is written any more."""
        ended = f"{SHARED_FOLDER}/{ENDED_NAME}"
        self.box.must("sh", "-c", KILL, "sh", self.pid_file, ended, what="kill the server")

    def move_ports(self) -> None:
        """A stopped server takes the ports of its driver."""
        ports = (str(self.system.port), str(self.system.secure_port))
        self.box.must("sh", "-c", MOVE, "sh", CONFIG_FOLDER, *ports, what="change the ports")

    @contextmanager
    def manager(self) -> Iterator[Directory]:
        """The directory as its manager sees it; InstanceError when it refuses the bind."""
        with connect(self.socket, self.site) as directory:
            yield directory

    def binds(self, dn: str, password: str) -> bool:
        """Whether it accepts them; InstanceError when it does not answer."""
        try:
            close_quietly(open_connection(self.socket, dn, password))
        except InstanceError as error:
            if error.message.startswith("cannot bind"):
                return False
            raise
        return True

    def error_lines(self, count: int = 40) -> str:
        """The end of its own log, since it was last stopped."""
        return self.box.tail(self.system.error_log(), count).rpartition(STOPPED)[2].strip()

    def asked(self, suite: str, more: Mapping[str, object]) -> tuple[ClientAnswer, ...]:
        """What a client found that reaches it over TCP, from a container next to it."""
        image = self.tools.image.reference
        with shared_folder() as job:  # the server never sees it, and the client cannot change it
            self._lay_out(job, more)
            options = replace(
                self.system.serving(self.shared),
                network=f"container:{self.box.name}",
                user=None,
                memory="512m",
                volumes=(
                    (job, JOB_FOLDER, "ro"),
                    (CLIENT, "/opt/ldap_client", "ro"),
                    (Path(ldap_connection.__file__), CONNECTION_MODULE, "ro"),
                ),
                environment=(("PYTHONPATH", "/opt"), ("PYTHONDONTWRITEBYTECODE", "1")),
            )
            result = finished(
                self.tools.engine,
                image,
                "python3",
                "-m",
                "ldap_client",
                suite,
                f"{JOB_FOLDER}/{JOB_NAME}",
                purpose="validate-client",
                limit_s=CLIENT_LIMIT_S,
                options=options,
            )
        self.box.note(str(result))
        if result.timed_out:
            raise InstanceError(
                f"the server kept its LDAP client for {CLIENT_LIMIT_S:.0f} s",
                hint="the log has what the client asked",
                log=self.box.log,
            )
        answers = answers_in(result.stdout)
        if not result.ok or not answers:
            raise EngineError(
                f"the LDAP client did not run ({result.end}): "
                f"{result.stderr[-500:] or 'no output'}",
                hint="the log has its output",
                log=self.box.log,
            )
        return answers

    def _lay_out(self, job_folder: Path, more: Mapping[str, object]) -> None:
        """What the client needs: its job, and the server's CA as the server's container has it."""
        authority = self.box.must(
            "head", "-c", str(CA_BYTES), f"{CONFIG_FOLDER}/{CA_NAME}", what="read the server's CA"
        )
        (job_folder / CA_NAME).write_text(authority, encoding="utf-8")
        job = {
            "port": self.system.port,
            "secure_port": self.system.secure_port,
            "ca_file": f"{JOB_FOLDER}/{CA_NAME}",
            "people": self.site.people,
            "suffix": self.site.suffix,
            "manager": self.site.manager,
            "manager_password": self.site.manager_password,
            **more,
        }
        (job_folder / JOB_NAME).write_text(json.dumps(job), encoding="utf-8")


@contextmanager
def validated_server(
    tools: StepTools,
    reference: str,
    *,
    purpose: str,
    system: TlsServer | None = None,
    volumes: Volumes = (),
    capabilities: tuple[str, ...] = (),
    network: str = "none",
) -> Iterator[ValidatedServer]:
    """Run a container of an image, in which an instance is, or will be made."""
    driver = system or TlsServer()
    with service_box(
        tools,
        reference,
        driver,
        purpose=purpose,
        volumes=volumes,
        capabilities=capabilities,
        network=network,
    ) as service:
        yield ValidatedServer(
            tools=tools,
            system=driver,
            box=service.box,
            shared=service.shared,
            began_at=service.began_at,
        )


REFUSED = (
    "The server refuses passwords that are right. Look for a password storage plugin that is "
    "missing or not registered (libpwdstorage-plugin, libpwdchan-plugin), or that no longer reads "
    "what it wrote before; the details name the schemes."
)
ACCEPTED = "The server accepts passwords that are wrong. Do not ship this."


def binding_checks(
    server: ValidatedServer, users: Sequence[SchemeUser], gate: Gate, *, of: str
) -> Iterator[Check]:
    """One for the right passwords, one for wrong ones; if nobody can bind, the first stops all."""
    server.tools.progress(f"binding as {len(users)} users, {of}")
    refused = tuple(user for user in users if not server.binds(user.dn, user.password))
    yield right_check(users, refused, gate, of)
    let_in = tuple(user for user in users if server.binds(user.dn, wrong(user)))
    yield wrong_check(users, let_in, gate, of)


def wrong(user: SchemeUser) -> str:
    """A password that is not the user's; it begins in another way, since DES reads 8 characters."""
    return f"x{user.password}"


def right_check(
    users: Sequence[SchemeUser], refused: Sequence[SchemeUser], gate: Gate, of: str
) -> Check:
    schemes = ", ".join(sorted({user.scheme for user in users}))
    if not refused:
        return gate.check(
            f"{of}-bind",
            Status.PASSED,
            f"all {len(users)} users bind, each stored under another scheme: {schemes}",
        )
    return gate.check(
        f"{of}-bind",
        Status.FAILED,
        f"{len(refused)} of {len(users)} users can no longer bind: "
        + ", ".join(user.scheme for user in refused),
        advice=REFUSED,
        details=tuple(f"{user.dn}: {parse_stored(user.stored)}" for user in refused),
        stops=len(refused) == len(users),
    )


def wrong_check(
    users: Sequence[SchemeUser], let_in: Sequence[SchemeUser], gate: Gate, of: str
) -> Check:
    name = f"{of}-wrong-passwords"
    if not let_in:
        return gate.check(
            name, Status.PASSED, f"{len(users)} binds with a wrong password were refused"
        )
    return gate.check(
        name,
        Status.FAILED,
        f"a wrong password was ACCEPTED for {len(let_in)} of {len(users)} users: "
        + ", ".join(user.scheme for user in let_in),
        advice=ACCEPTED,
        details=tuple(user.dn for user in let_in),
    )
