"""389-ds alone, from 1.4.4 on: an instance made by dscreate, users imported offline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dsharness.commands import writing
from dsharness.containers import Container, Options
from dsharness.directory import Site, connect
from dsharness.errors import InstanceError
from dsharness.model import Arm
from dsharness.servers import slapd
from dsharness.servers.contract import SOCKET_FOLDER, Seed

INSTANCE = "lab"
CONFIG_FOLDER = f"/etc/dirsrv/slapd-{INSTANCE}"
PID_FILE = f"/run/dirsrv/slapd-{INSTANCE}.pid"
# dscreate reads its answers twice, so a pipe will not do.
CREATE = "umask 077; cat > /tmp/lab.inf && dscreate -v from-file /tmp/lab.inf && rm /tmp/lab.inf"


class Dirsrv:
    """The driver of a plain 389-ds."""

    revision = 3
    program = "ns-slapd"
    config_folder = CONFIG_FOLDER
    creating = "creating the directory"
    # An unprivileged port: the measured server needs no capability at all.
    site = Site(suffix="dc=lab", people="ou=people,dc=lab", port=3389)

    def making(self, shared: Path) -> Options:
        return Options(
            shm="512m",
            volumes=((shared, SOCKET_FOLDER, "rw"),),
            capabilities=("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"),
        )

    def serving(self, shared: Path) -> Options:
        return Options(
            user="dirsrv",
            memory="2g",
            shm="512m",
            volumes=((shared, SOCKET_FOLDER, "rw"),),
        )

    def idle_command(self) -> tuple[str, ...]:
        return ("sleep", "infinity")

    def serve_command(self) -> tuple[str, ...]:
        return slapd.serve_command(self.config_folder, PID_FILE, self.program)

    def create(self, box: Container) -> None:
        box.must("sh", "-s", what="prepare the server's folders", stdin=PREPARE)
        box.must("sh", "-c", CREATE, what="dscreate", stdin=self._answers())
        slapd.move_socket(box, self.config_folder)

    def start(self, box: Container) -> None:
        box.start(*self.serve_command())

    def stop(self, box: Container) -> None:
        slapd.stop(box, PID_FILE)

    def settle(self, socket: Path, arm: Arm) -> None:
        with connect(socket, self.site) as directory:
            slapd.settle(directory, arm)
            directory.connection.add(self.site.people, "organizationalUnit")

    def fill(self, box: Container, socket: Path, values: tuple[str, ...], seed: Seed) -> None:
        self.stop(box)
        ldif = socket.parent / "people.ldif"
        with writing(ldif), ldif.open("w", encoding="utf-8") as stream:
            stream.writelines(people_ldif(self.site, values, seed.users))
        ldif.chmod(0o644)
        box.must(
            self.program, "ldif2db", "-D", self.config_folder, "-n", "userroot",
            "-i", f"{SOCKET_FOLDER}/{ldif.name}",
            what=f"import {seed.users} users offline",
        )  # fmt: skip
        ldif.unlink()

    def error_log(self) -> str:
        return f"/var/log/dirsrv/slapd-{INSTANCE}/errors"

    def _answers(self) -> str:
        return "\n".join(
            [
                "[general]",
                "full_machine_name = localhost",
                "start = False",
                "strict_host_checking = False",
                "[slapd]",
                f"instance_name = {INSTANCE}",
                f"port = {self.site.port}",
                "secure_port = 6636",
                f"root_password = {self.site.manager_password}",
                "self_sign_cert = False",
                "[backend-userroot]",
                f"suffix = {self.site.suffix}",
                "create_suffix_entry = True",
                "",
            ]
        )


PREPARE = """
inf=/usr/share/dirsrv/inf/defaults.inf
[ ! -f "$inf" ] || sed -i 's/^with_systemd *=.*/with_systemd = 0/' "$inf"
mkdir -p /run/dirsrv /run/lock/dirsrv
chown dirsrv: /run/dirsrv /run/lock/dirsrv
"""


def people_ldif(site: Site, values: tuple[str, ...], users: int) -> Iterator[str]:
    """The whole tree as LDIF; the values go round when there are more users than values."""
    if not values:
        raise InstanceError("no hashed password to give to the users")
    yield f"dn: {site.suffix}\nobjectClass: top\nobjectClass: domain\ndc: lab\n\n"
    yield f"dn: {site.people}\nobjectClass: top\nobjectClass: organizationalUnit\nou: people\n\n"
    for number in range(users):
        lines = [f"dn: {site.user_dn(number)}"]
        for name, several in site.user_attributes(number).items():
            lines += [f"{name}: {value}" for value in several]
        yield "\n".join([*lines, f"userPassword: {values[number % len(values)]}", "", ""])
