"""389-ds from an install tree: an instance from the tree's own template, without its lib389.

A server of one version needs the lib389 of that version to make an instance with dscreate. A tree
is built without it, so the template that the tree itself ships is filled in here.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container
from dsharness.errors import InstanceError
from dsharness.model import DATABASE, OWN, DirectoryContent, Settings
from dsharness.model.stored_password import StoredPassword, parse_stored
from dsharness.progress import Progress
from dsharness.systems.ldap.directory import Directory, add_entries, connect
from dsharness.systems.ldap.directory_system import SOCKET_NAME, WORKERS
from dsharness.systems.system import SHARED_FOLDER, Seed
from dsproducts.dirsrv import ns_slapd
from dsproducts.dirsrv.dirsrv import INSTANCE, Dirsrv

PREFIX = "/opt/dirsrv"  # where every tree is configured to be
DATA = f"{PREFIX}/share/dirsrv"
CONFIG_FOLDER = f"{PREFIX}/etc/dirsrv/slapd-{INSTANCE}"
STATE = f"{PREFIX}/var/lib/dirsrv/slapd-{INSTANCE}"
LOGS = f"/var/log/dirsrv/slapd-{INSTANCE}"

PREPARE = f"""
set -e
mkdir -p {CONFIG_FOLDER} {STATE}/db {STATE}/ldif {STATE}/bak {LOGS} /run/dirsrv /run/lock/dirsrv \\
    /run/lock/dirsrv/slapd-{INSTANCE} {PREFIX}/lib/dirsrv/slapd-{INSTANCE}
cp -R {PREFIX}/etc/dirsrv/config/. {CONFIG_FOLDER}/
cp -R {PREFIX}/etc/dirsrv/schema {CONFIG_FOLDER}/
cat >{CONFIG_FOLDER}/dse.ldif
chown -R dirsrv: {CONFIG_FOLDER} {PREFIX}/var {LOGS} /run/dirsrv /run/lock/dirsrv
"""

PROVED = 5  # of the users whose passwords were hashed before, so many bind

# To 1.4.4.4 lib389 adds these later, over the network.
LDAPI = """nsslapd-ldapilisten: %ldapi_enabled%
nsslapd-ldapifilepath: %ldapi%
nsslapd-ldapiautobind: %ldapi_autobind%
"""

# By default the first start makes a cache of a tenth of the machine's memory.
SMALL_CACHE = f"nsslapd-cache-autosize: 0\nnsslapd-dbcachesize: {ns_slapd.CACHE_BYTES}\n"


class DirsrvTree(Dirsrv):
    """The driver of a 389-ds that was built and only copied into its image."""

    revision: ClassVar[int] = 9
    creating: ClassVar[str] = "creating the directory from the tree's template"
    # Stored values by their scheme, rounds and length, for as long as this process runs.
    hashed: ClassVar[dict[tuple[StoredPassword, int], tuple[str, ...]]] = {}
    program = f"{PREFIX}/sbin/ns-slapd"
    config_folder = CONFIG_FOLDER

    def create(self, box: Container, seed: Seed) -> None:
        library_asked = seed.settings.options.get(DATABASE, OWN)
        library = _own_database(box) if library_asked == OWN else library_asked
        template = box.must(
            "cat", f"{DATA}/data/template-dse.ldif", what="read the tree's template"
        )
        box.must(
            "sh",
            "-c",
            PREPARE,
            what="lay out the directory",
            stdin=filled(template, {**self.tokens(), "db_lib": library}),
        )
        self.bring_files(box, seed.holds(DirectoryContent))

    def add_users(self, socket: Path, number: int, progress: Progress) -> None:
        """Add users; what a version of this search hashed in the same way serves the next one too.

        Hashing 1,000 passwords with 100,000 rounds takes longer than building a commit. The first
        user's is always hashed by this version: it shows the way, and its length shows another form
        of the same scheme. A few binds prove that the rest is right.
        """
        with connect(socket, self.site) as directory:
            self.add_user(directory, 0)
            value = directory.stored_value(0)
            way = (parse_stored(value), len(value))
        hashes = self.hashed.get(way, ())
        if len(hashes) < number:
            super().add_users(socket, number, progress)
            with connect(socket, self.site) as directory:
                self.hashed[way] = tuple(directory.stored_value(user) for user in range(number))
            return
        progress(f"adding {number} users; their passwords were hashed before as {way[0]}")
        rest = range(1, number)
        try:
            add_entries(
                socket,
                self.site,
                rest,
                workers=WORKERS,
                add=lambda directory, user: directory.add_hashed_user(user, hashes[user]),
            )
            with connect(socket, self.site) as directory:
                for user in rest[:: max(1, number // PROVED)]:
                    directory.check_user(user)
        except InstanceError:
            del self.hashed[way]
            progress("this version refuses such passwords, so it hashes them itself")
            add_entries(socket, self.site, rest, workers=WORKERS, add=self._hash_again)

    def _hash_again(self, directory: Directory, number: int) -> None:
        self.add_user(directory, number)  # unless it is there
        directory.set_password(number)

    def settle(self, directory: Directory, settings: Settings) -> None:
        _add_backend(directory)
        super().settle(directory, settings)

    def tokens(self) -> dict[str, str]:
        """What the templates of all versions so far ask for."""
        return {
            "schema_dir": f"{CONFIG_FOLDER}/schema",
            "config_dir": CONFIG_FOLDER,
            "cert_dir": CONFIG_FOLDER,
            "inst_dir": f"{PREFIX}/lib/dirsrv/slapd-{INSTANCE}",
            "lock_dir": f"/run/lock/dirsrv/slapd-{INSTANCE}",
            "run_dir": "/run/dirsrv",
            "tmp_dir": "/tmp",  # noqa: S108 - inside the container
            "log_dir": LOGS,
            "ldif_dir": f"{STATE}/ldif",
            "bak_dir": f"{STATE}/bak",
            "db_dir": f"{STATE}/db",
            "db_home_dir": f"{STATE}/db",
            "fqdn": "localhost",
            "ds_port": str(self.site.port),
            "ds_user": "dirsrv",
            "ds_suffix": self.site.suffix,
            "rootdn": self.site.manager,
            "ds_passwd": _ssha512(self.site.manager_password),
            "ldapi_enabled": "on",
            "ldapi": f"{SHARED_FOLDER}/{SOCKET_NAME}",
            "ldapi_autobind": "on",  # as dscreate has it
        }


def filled(template: str, tokens: dict[str, str]) -> str:
    """The template with every %token% replaced; InstanceError for an unknown one."""
    unknown = sorted(set(re.findall(r"%(\w+)%", template)) - tokens.keys())
    if unknown:
        raise InstanceError(
            f"the tree's template-dse.ldif asks for %{'%, %'.join(unknown)}%",
            hint="a newer 389-ds than the lab knows: its driver needs this value",
        )
    if "nsslapd-ldapifilepath:" not in template:
        template = template.replace("nsslapd-rootdn: ", f"{LDAPI}nsslapd-rootdn: ", 1)
    filled = re.sub(r"%(\w+)%", lambda match: tokens[match[1]], template)
    return filled.replace(f"dn: {ns_slapd.LDBM}\n", f"dn: {ns_slapd.LDBM}\n{SMALL_CACHE}", 1)


def _own_database(box: Container) -> str:
    """The library that this version prefers; old ones have only one and do not ask."""
    library = box.execute(
        "sed", "-n", "s/^db_lib *= *//p", f"{DATA}/inf/defaults.inf"
    ).stdout.split()
    return library[0] if library else "bdb"


def _ssha512(password: str) -> str:
    """A stored value that every version accepts, whatever its default is."""
    salt = b"dsbisect"
    digest = hashlib.sha512(password.encode() + salt).digest()
    return f"{{SSHA512}}{base64.b64encode(digest + salt).decode()}"


def _add_backend(directory: Directory) -> None:
    """What dscreate does over LDAP: a backend, its suffix, and the suffix's entry."""
    suffix = directory.site.suffix
    entries = {
        ns_slapd.BACKEND: {
            "objectClass": ["top", "extensibleObject", "nsBackendInstance"],
            "cn": ["userroot"],
            "nsslapd-suffix": [suffix],
        },
        f'cn="{suffix}",cn=mapping tree,cn=config': {
            "objectClass": ["top", "extensibleObject", "nsMappingTree"],
            "cn": [suffix],
            "nsslapd-state": ["backend"],
            "nsslapd-backend": ["userroot"],
        },
        suffix: {"objectClass": ["top", "domain"], "dc": ["lab"]},
    }
    for dn, attributes in entries.items():
        directory.connection.add(dn, attributes=attributes)
        result = directory.connection.result
        if result["result"] != 0:
            raise InstanceError(
                f"the server refused to add {dn}: {result['description']} {result['message']}"
            )
