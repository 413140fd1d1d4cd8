"""389-ds alone, from 1.4.4 on: an instance made by dscreate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container, Options
from dsharness.model import (
    DATABASE,
    OWN,
    DirectoryContent,
    DirectoryPlugin,
    LdapTransport,
    RequestKind,
    Settings,
    UserEntries,
)
from dsharness.systems.ldap.directory import Directory, Site
from dsharness.systems.ldap.directory_system import (
    MANY,
    OwnDirectory,
    asked_number,
    whole_ldif,
)
from dsharness.systems.system import SHARED_FOLDER, Seed
from dsproducts.dirsrv import ns_slapd

INSTANCE = "lab"
CONFIG_FOLDER = f"/etc/dirsrv/slapd-{INSTANCE}"
PID_FILE = f"/run/dirsrv/slapd-{INSTANCE}.pid"
# dscreate reads its answers twice, so a pipe does not work.
CREATE = "umask 077; cat > /tmp/lab.inf && dscreate -v from-file /tmp/lab.inf && rm /tmp/lab.inf"
KEYS = "lab-keys"
MAKE_KEYS = """
mkdir -p "$1"
head -c 64 /dev/urandom >/tmp/noise
certutil -N -d "sql:$1" --empty-password
certutil -S -d "sql:$1" -n Server-Cert -s CN=localhost -x -t CTu,u,u -k rsa -g 2048 -v 120 \\
    -z /tmp/noise
rm /tmp/noise
chown -R dirsrv: "$1"
"""
HELD, MORE = "/tmp/held.ldif", "/tmp/more.ldif"  # noqa: S108 - in the container
# $1 is the server, $2 its configuration; what follows is the import.
IMPORT = f"""
cat >{MORE} && "$1" db2ldif -D "$2" -n userroot -a {HELD} && shift 2 && "$@" && rm {HELD} {MORE}
"""

USERS_READ = (  # for loads that are bound as a user; the manager is asked for no right
    '(targetattr != "userPassword")'
    '(version 3.0; acl "users read"; allow (read, search, compare) userdn = "ldap:///all";)'
)
RULES, MOST_RULES = "rules", 10_000


def rules(site: Site, number: int) -> list[str]:
    """So many more rules of who may read what: each lets one user read an attribute."""
    return [
        '(targetattr = "telephoneNumber")'
        f'(version 3.0; acl "rule {each}"; allow (read) userdn = "ldap:///{site.user_dn(each)}";)'
        for each in range(number)
    ]


class Dirsrv(ns_slapd.NsSlapd):
    """The driver of a plain 389-ds."""

    revision: ClassVar[int] = 7
    pid_file: ClassVar[str] = PID_FILE
    options: ClassVar[frozenset[str]] = ns_slapd.NsSlapd.options | {DATABASE, RULES}
    imports_from: ClassVar[float] = MANY
    offers: ClassVar[frozenset[str]] = frozenset(
        {*LdapTransport, *DirectoryPlugin, RequestKind.IMPORT_TASK, UserEntries.PEOPLE}
    )
    program = "ns-slapd"
    config_folder = CONFIG_FOLDER
    creating: ClassVar[str] = "creating the directory"
    # An unprivileged port: the measured server needs no capability at all.
    port: ClassVar[int] = 3389
    secure_port: ClassVar[int] = 6636
    tls: ClassVar[bool] = False  # a certificate of its own, and both ways to encrypt
    site: ClassVar[Site] = Site(suffix="dc=lab", people="ou=people,dc=lab", port=port)

    def making(self, shared: Path) -> Options:
        return Options(
            shm="512m",
            volumes=((shared, SHARED_FOLDER, "rw"),),
            capabilities=("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"),
        )

    def serving(self, shared: Path) -> Options:
        return Options(
            user="dirsrv",
            memory="2g",
            shm="512m",
            volumes=((shared, SHARED_FOLDER, "rw"),),
        )

    def serve_command(self) -> tuple[str, ...]:
        return ns_slapd.serve_command(self.config_folder, PID_FILE, self.program)

    def create(self, box: Container, seed: Seed) -> None:
        box.must("sh", "-s", what="prepare the server's folders", stdin=PREPARE)
        asked = seed.settings.options.get(DATABASE, OWN)
        chosen = () if asked == OWN else ("env", f"NSSLAPD_DB_LIB={asked}")
        box.must(*chosen, "sh", "-c", CREATE, what="dscreate", stdin=self._answers())
        ns_slapd.move_socket(box, self.config_folder)
        self.bring_files(box, seed.holds(DirectoryContent))

    def bring_files(self, box: Container, content: DirectoryContent) -> None:
        """Keys and a certificate, the same kind of both for every version; files to import."""
        if content.imported:
            suffix = ns_slapd.IMPORTED_SUFFIX
            site = Site(suffix=suffix, people=f"ou=people,{suffix}", port=self.port)
            entries = list(whole_ldif(site, content.imported))
            files = ns_slapd.import_task(self.config_folder).files
            for what, file in files.items():
                text = "".join(entries if what == "users" else entries[:1])
                box.must("sh", "-c", 'cat >"$1"', "sh", file, what="bring a file", stdin=text)
        if content.encrypted:
            keys = f"{self.config_folder}/{KEYS}"
            box.must("sh", "-e", "-s", keys, what="make a certificate", stdin=MAKE_KEYS)

    def equip(self, directory: Directory, content: DirectoryContent) -> None:
        ns_slapd.switch_on(directory, content.plugins)
        if content.imported:
            ns_slapd.add_imported(directory)
        if content.encrypted:
            keys = f"{self.config_folder}/{KEYS}"
            ns_slapd.encrypt(directory, keys, self.secure_port)

    def endpoint(self, box: Container, shared: Path) -> OwnDirectory:
        task = ns_slapd.import_task(self.config_folder)
        own = super().endpoint(box, shared)
        return replace(own, secure_port=self.secure_port, import_task=task)

    def import_ldif(self, box: Container, text: str, limit_s: float) -> None:
        """An import begins with an empty database, so what it holds is exported first."""
        command = (self.program, self.config_folder, *self.import_command(HELD, MORE))
        box.must(
            "sh", "-c", IMPORT, "sh", *command, what="import users", stdin=text, limit_s=limit_s
        )

    def import_command(self, *files: str) -> tuple[str, ...]:
        given = (word for file in files for word in ("-i", file))
        return (self.program, "ldif2db", "-D", self.config_folder, "-n", "userroot", *given)

    def settle(self, directory: Directory, settings: Settings) -> None:
        super().settle(directory, settings)
        more = rules(self.site, asked_number(settings, RULES, 1, MOST_RULES) or 0)
        people = {"objectClass": ["organizationalUnit"], "aci": [USERS_READ, *more]}
        directory.add(self.site.people, people)

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
                f"secure_port = {self.secure_port}",
                f"root_password = {self.site.manager_password}",
                f"self_sign_cert = {self.tls}",
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
