"""Samba as the domain controller of a domain that the lab generates.

One server of three protocols: LDAP, Kerberos and DNS. It runs without any privilege: what serves
files and maps users to those of the machine is switched off, since only that would need one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container, Options
from dsharness.errors import InstanceError, MatrixError
from dsharness.model import (
    DATABASE,
    OWN,
    Content,
    DirectoryContent,
    Facts,
    LdapTransport,
    UserEntries,
)
from dsharness.systems.boxed_server import (
    LOW_PORTS,
    MOST_BYTES,
    BoxedServer,
    InBox,
    answer_of,
    box_of,
)
from dsharness.systems.ldap.directory_system import OwnDirectory, asked_number
from dsharness.systems.readiness import listens
from dsharness.systems.system import CannotCount, Endpoint, Look, Seed
from dsproducts.bind.named import DnsEndpoint
from dsproducts.krb5.kdc import KdcEndpoint
from dsproducts.samba.domain_entries import DOMAIN, REALM, SITE, ZONE, entries, proofs

USER = "daemon"  # it needs no privilege at any time; its packages make no user of its own
FOLDER = "/var/tmp/samba"  # noqa: S108 - of the container, where that user may write
PID_FILE, LOG = f"{FOLDER}/run/samba.pid", f"{FOLDER}/log"
PORTS: Mapping[str, int] = {"ldap": SITE.port, "kerberos": 88, "dns": 53}
SECURE_PORT = 636
SOCKETS = "/proc/net/tcp"
ADD_S, ENTRY_S = 300.0, 0.5  # to add entries, on a busy machine

STORES = ("tdb", "mdb")  # what its database may be
WORKERS, OWN_WORKERS, MOST_WORKERS = "prefork-children", 4, 64  # of each service that has several

CONFIG = f"""\
[global]
    netbios name = DC
    realm = {REALM}
    workgroup = {DOMAIN}
    server role = active directory domain controller
    server services = rpc, ldap, cldap, kdc, drepl, kcc, dns
    prefork children = WORKERS
    interfaces = 127.0.0.1
    bind interfaces only = yes
    private dir = {FOLDER}/private
    state directory = {FOLDER}/state
    cache directory = {FOLDER}/cache
    lock directory = {FOLDER}/lock
    pid directory = {FOLDER}/run
    ncalrpc dir = {FOLDER}/ncalrpc
    ntp signd socket directory = {FOLDER}/signd
    logging = file
    log file = {LOG}
    ldap server require strong auth = no
    xattr_tdb:file = {FOLDER}/state/xattr.tdb
    posix:eadb = {FOLDER}/state/eadb.tdb
"""
# Proofs are made once, before a load: a user's clock may differ by a day.
KERBEROS_CONFIG = f"""\
[libdefaults]
    default_realm = {REALM}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    clockskew = 86400
[realms]
    {REALM} = {{
        kdc = 127.0.0.1
    }}
"""
CREATE = f"""umask 077
mkdir -p {FOLDER}/lock {FOLDER}/run {FOLDER}/cache {FOLDER}/state && cd {FOLDER} || exit 1
echo "$1" >smb.conf && echo "$2" >krb5.conf && cat >domain-work
"""
SERVE = f"KRB5_CONFIG={FOLDER}/krb5.conf exec samba --foreground -s {FOLDER}/smb.conf"
LOOK = 'samba --version && exec "$@"'
WORK = Path(__file__).with_name("domain-work")

# What it says before it gives up.
GRAVE = re.compile(r"exit_daemon|task_server_terminate|PANIC|[Ff]ailed to|NT_STATUS_")
_FACTS = {
    "version": re.compile(r"^Version ([!-~]{1,100})", re.MULTILINE),
    "functional-level": re.compile(r"^functional-level (\d{1,3})$", re.MULTILINE),
    DATABASE: re.compile(r"^database ([a-z]{1,20})$", re.MULTILINE),
}


@dataclass(frozen=True, kw_only=True)
class DomainEndpoint(OwnDirectory, KdcEndpoint, DnsEndpoint, InBox):
    """A domain controller that the lab made: a directory, a KDC and the server of a zone."""


class Samba(BoxedServer):
    """The driver of Samba's domain controller, from 4.13 on."""

    protocols: ClassVar[frozenset[str]] = frozenset(PORTS)
    port: ClassVar[int] = SITE.port
    revision: ClassVar[int] = 1
    user: ClassVar[str] = USER
    pid_file: ClassVar[str] = PID_FILE
    grave: ClassVar[re.Pattern[str]] = GRAVE
    creating: ClassVar[str] = "provisioning the domain, which takes half a minute"
    options: ClassVar[frozenset[str]] = frozenset({DATABASE, WORKERS})
    offers: ClassVar[frozenset[str]] = frozenset(
        {UserEntries.ACCOUNTS, LdapTransport.LDAPS, LdapTransport.STARTTLS}
    )
    content: ClassVar[type[Content]] = DirectoryContent
    look_operations: ClassVar[Mapping[str, int]] = {}  # it counts none

    def serving(self, shared: Path) -> Options:
        return replace(super().serving(shared), extra=LOW_PORTS)

    def serve_command(self) -> tuple[str, ...]:
        return ("sh", "-c", SERVE)

    def create(self, box: Container, seed: Seed) -> None:
        options = seed.settings.options
        store = options.get(DATABASE, OWN)
        if store not in {OWN, *STORES}:
            raise MatrixError(
                f"settings {seed.settings.id}: {DATABASE} is {store!r}",
                hint=f"give {', '.join(STORES)} or {OWN}",
            )
        workers = asked_number(seed.settings, WORKERS, 1, MOST_WORKERS) or OWN_WORKERS
        config = CONFIG.replace("WORKERS", str(workers))
        write, script = ("sh", "-c", CREATE, "sh", config, KERBEROS_CONFIG), WORK.read_text("utf-8")
        box.must(*write, what="write its configuration", stdin=script)
        names = (DOMAIN, REALM, SITE.manager_password, STORES[0] if store == OWN else store)
        box.must(*_work("make", *names), what="provision the domain")
        text = "".join(entries(seed.content))
        limit_s = ADD_S + ENTRY_S * seed.content.number
        box.must(*_work("add"), what="fill the domain", stdin=text, limit_s=limit_s)

    def endpoint(self, box: Container, shared: Path) -> DomainEndpoint:
        del shared
        return DomainEndpoint(
            box=box,
            port=self.port,
            ports=PORTS,
            secure_port=SECURE_PORT,
            users=SITE,
            realm=REALM,
            password=SITE.user_password,
            zone=ZONE,
        )

    def ready(self, endpoint: Endpoint) -> bool:
        """Whether all three services listen, and the directory tells what it is."""
        done = box_of(endpoint).execute("cat", SOCKETS, keep_bytes=MOST_BYTES)
        if not all(listens(done.stdout, port) for port in PORTS.values()):
            return False
        try:
            return bool(self.look(endpoint).facts)
        except InstanceError:
            return False

    def check(self, endpoint: Endpoint, seed: Seed) -> Facts:
        """What it says of itself, once both ends of what it holds were answered."""
        check = _work("check", SITE.user_password, *proofs(seed.content))
        box_of(endpoint).must(*check, what="ask the domain controller")
        return self.look(endpoint).facts

    def look(self, endpoint: Endpoint) -> Look:
        look = ("sh", "-c", LOOK, "sh", *_work("look"))
        return read_look(answer_of(endpoint, *look, silent="the domain controller does not answer"))

    def error_log(self) -> str:
        return LOG


def _work(*words: str) -> tuple[str, ...]:
    verb, *rest = words
    return ("python3", f"{FOLDER}/domain-work", verb, FOLDER, *rest)


def read_look(text: str) -> Look:
    """The version, the level at which the domain works, and what kind its database is."""
    matches = {name: pattern.search(text) for name, pattern in _FACTS.items()}
    missing = [name for name, match in matches.items() if match is None]
    if missing:
        raise InstanceError(f"the domain controller does not tell its {', '.join(missing)}")
    return Look(
        facts={name: match[1] for name, match in matches.items() if match},
        operations=CannotCount(why="Samba has no such counter"),
    )
