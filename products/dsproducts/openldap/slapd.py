"""OpenLDAP's slapd from Debian's packages: one mdb database, fixed sizes, no logs.

Both containers run as slapd's own user, without any capability. The configuration is one file that
the lab writes, so that nothing depends on the package's own set-up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from dsharness.containers.container import Container, Options
from dsharness.errors import InstanceError
from dsharness.model import Settings
from dsharness.systems.ldap.directory import Directory, Site
from dsharness.systems.ldap.directory_system import (
    MANY,
    PASSWORD_SCHEME,
    SOCKET_NAME,
    DirectorySystem,
)
from dsharness.systems.system import OUTPUT_NAME, SHARED_FOLDER, OfferedScheme, Seed

MODULES = "/usr/lib/ldap"
# What may hash passwords, by module; 2.5 renamed pw-argon2 to argon2.
HASHING: Mapping[str, tuple[str, ...]] = {
    "pw-sha2": ("SHA256", "SSHA256", "SHA384", "SSHA384", "SHA512", "SSHA512"),
    "pw-pbkdf2": ("PBKDF2", "PBKDF2-SHA1", "PBKDF2-SHA256", "PBKDF2-SHA512"),
    "pw-argon2": ("ARGON2",),
    "argon2": ("ARGON2",),
}
READABLE = "CLEARTEXT"
BUILT_IN = ("SSHA", "SHA", "SMD5", "MD5", "CRYPT", READABLE)
SCHEME_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
VERSION = re.compile(r"slapd (\S+)")

# Operations that began: a completed one is counted only after its answer was sent. A search counts
# for each entry that it found.
BEGUN = "monitorOpInitiated"
COUNTS = {
    "bind": ("cn=Bind,cn=Operations", BEGUN),
    "search": ("cn=Entries,cn=Statistics", "monitorCounter"),
    "modify": ("cn=Modify,cn=Operations", BEGUN),
}

HOME = "/var/lib/ldap/lab"
CONFIG = f"{HOME}/slapd.conf"
PID_FILE = f"{HOME}/slapd.pid"
FILES = f"{HOME}/descriptors"
WRITE = f'umask 077; mkdir -p {HOME}/data && echo "$1" >{FILES} && cat >{CONFIG}'
REPLACE = f'rm -f {HOME}/data/* && exec "$@"'

MAP_BYTES = 1 << 30  # of the database's address space; its file grows as it is filled
THREADS = 16
# Its tables have one place for each file that it may open. Engines allow from 1,024 files to a
# thousand million, for which it would take gigabytes. (podman's own flag drops its other limits.)
OWN_DESCRIPTORS = 1024
SERVE = f'ulimit -n "$(cat {FILES})" && exec "$@"'

# Where a file is wrong; what follows such a line only repeats that it was.
WRONG = re.compile(r"failed|: line \d+: (?!.*(?:no valid hashes found|handler exited))")


class OpenLdap(DirectorySystem):
    """The driver of OpenLDAP's slapd."""

    revision: ClassVar[int] = 4
    pid_file: ClassVar[str] = PID_FILE
    grave: ClassVar[re.Pattern[str]] = WRONG
    imports_from: ClassVar[float] = MANY
    own_descriptors: ClassVar[int | None] = OWN_DESCRIPTORS
    creating: ClassVar[str] = "writing the configuration"
    look_operations: ClassVar[Mapping[str, int]] = {"bind": 1, "search": 5, "modify": 0}
    port: ClassVar[int] = 3389
    # A root DN's password counts only inside the database that it is the root of.
    site: ClassVar[Site] = Site(
        suffix="dc=lab", people="ou=people,dc=lab", port=port, manager="cn=manager,dc=lab"
    )

    def making(self, shared: Path) -> Options:
        return Options(user="openldap", volumes=((shared, SHARED_FOLDER, "rw"),))

    def serving(self, shared: Path) -> Options:
        return Options(
            user="openldap",
            memory="2g",
            volumes=((shared, SHARED_FOLDER, "rw"),),
        )

    def serve_command(self) -> tuple[str, ...]:
        """The server in the foreground; without `-d none` one that cannot start ends silently."""
        socket = quote(f"{SHARED_FOLDER}/{SOCKET_NAME}", safe="")
        listen = f"ldap://127.0.0.1:{self.port}/ ldapi://{socket}/"
        return ("sh", "-c", SERVE, "sh", "slapd", "-f", CONFIG, "-h", listen, "-d", "none")

    def create(self, box: Container, seed: Seed) -> None:
        installed = box.must("ls", MODULES, what="list slapd's modules").split()
        modules = tuple(name for name in HASHING if f"{name}.so" in installed)
        scheme = seed.settings.options.get(PASSWORD_SCHEME)
        text = configuration(self.site, modules, scheme)
        files = str(self.descriptors(seed.settings))
        box.must("sh", "-c", WRITE, "sh", files, what="write slapd's configuration", stdin=text)

    def settle(self, directory: Directory, settings: Settings) -> None:
        """All settings are in the file that it was started with."""
        del settings
        directory.add(self.site.suffix, {"objectClass": ["top", "domain"], "dc": ["lab"]})
        directory.add(self.site.people, {"objectClass": ["organizationalUnit"]})

    def import_ldif(self, box: Container, text: str, limit_s: float) -> None:
        box.must("slapadd", "-q", "-f", CONFIG, what="import users", stdin=text, limit_s=limit_s)

    def import_command(self, *files: str) -> tuple[str, ...]:
        """It adds to what there is, so that goes first."""
        given = (word for file in files for word in ("-l", file))
        return ("sh", "-c", REPLACE, "sh", "slapadd", "-q", "-f", CONFIG, *given)

    def add_user(self, directory: Directory, number: int) -> None:
        """It stores an added password unchanged; it hashes one that it is asked to set."""
        directory.add(self.site.user_dn(number), self.site.user_attributes(number))
        directory.set_password(number)

    def offered(self, box: Container, directory: Directory) -> Iterator[OfferedScheme]:
        """What it has without modules, then what those add that it was started with."""
        del directory
        loaded = box.must("sed", "-n", "s/^moduleload //p", CONFIG, what="list slapd's modules")
        added = (name for module in loaded.split() for name in HASHING.get(module, ()))
        for name in (*BUILT_IN, *added):
            yield OfferedScheme(
                name=name, options={PASSWORD_SCHEME: name}, readable=name == READABLE
            )

    def version(self, directory: Directory) -> str:
        text = directory.read("cn=Monitor", "monitoredInfo").must("monitoredInfo")
        found = VERSION.search(text)
        return found[1] if found else text

    def counts(self, directory: Directory) -> dict[str, int]:
        return {
            kind: directory.read(f"{entry},cn=Monitor", name).count(name)
            for kind, (entry, name) in COUNTS.items()
        }

    def error_log(self) -> str:
        """It writes none: its output goes here while the state is made."""
        return f"{SHARED_FOLDER}/{OUTPUT_NAME}"


def configuration(site: Site, modules: tuple[str, ...], scheme: str | None) -> str:
    """The whole of slapd.conf; without a scheme, slapd takes its own default."""
    if scheme is not None and not SCHEME_NAME.fullmatch(scheme):
        raise InstanceError(
            f"{PASSWORD_SCHEME}: {scheme!r} is not the name of a password scheme",
            hint="name it without braces, such as SSHA512, PBKDF2-SHA512 or ARGON2",
        )
    schemas = ("core", "cosine", "inetorgperson")
    return "\n".join(
        [
            *(f"include /etc/ldap/schema/{name}.schema" for name in schemas),
            f"modulepath {MODULES}",
            *(f"moduleload {name}" for name in ("back_mdb", "back_monitor", *modules)),
            *([f"password-hash {{{scheme}}}"] if scheme is not None else []),
            f"pidfile {PID_FILE}",
            "loglevel 0",
            f"threads {THREADS}",
            "database monitor",
            f'rootdn "{site.manager}"',
            "access to * by * none",
            "database mdb",
            f'suffix "{site.suffix}"',
            f'rootdn "{site.manager}"',
            f"rootpw {site.manager_password}",
            f"directory {HOME}/data",
            f"maxsize {MAP_BYTES}",
            "index objectClass,uid,member,sn,givenName,telephoneNumber eq",
            "access to attrs=userPassword by anonymous auth by * none",
            "access to * by users read by * none",
            "",
        ]
    )
