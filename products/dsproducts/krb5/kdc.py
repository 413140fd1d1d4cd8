"""MIT Kerberos' KDC of one realm that the lab generates.

The realm has numbered users, all with one password, and as many whom the KDC asks first to prove
that they know it. Everything else, the kind of the keys too, is what the version sets by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container
from dsharness.errors import InstanceError, MatrixError
from dsharness.model import Content, Facts
from dsharness.systems.boxed_server import MOST_BYTES, BoxedServer, InBox, answer_of, box_of
from dsharness.systems.system import Endpoint, Look, Seed, count_in
from dsproducts.krb5.krbload_workload import SHORT_TICKETS, RealmContent

REALM = "LAB"
SERVICE = ("krbtgt", REALM)  # whose ticket a user asks for at a login
PASSWORD = "Kerberos-4-the-lab"  # noqa: S105 - of a realm that is nowhere else
USER = "nobody"  # the KDC needs no privilege at any time; its package makes no user of its own
FOLDER = "/var/tmp/kdc"  # noqa: S108 - of the container, where that user may write
PID_FILE, LOG = f"{FOLDER}/kdc.pid", f"{FOLDER}/kdc.log"
PORT = 8800
LAST_SUCCESS = "disable-last-success"  # whether no login with a proof is written down
CLOCK_S = 86_400  # by which a user's clock may differ: proofs are made once, before a load


@dataclass(frozen=True, kw_only=True)
class KdcEndpoint(Endpoint):
    """A KDC of a realm whose users are numbered."""

    realm: str = REALM
    password: str = PASSWORD


@dataclass(frozen=True, kw_only=True)
class OwnKdc(KdcEndpoint, InBox):
    """One that the lab made: it is looked at inside its own container."""


def user(number: int, *, guarded: bool) -> str:
    """A user's name; of a guarded one a proof of the password is asked first."""
    return f"{'guarded' if guarded else 'user'}{number}"


def commands(users: int) -> str:
    """What makes all users, for kadmin.local."""
    flags = {False: "-requires_preauth", True: "+requires_preauth"}
    return "".join(
        f"add_principal {flags[guarded]} -pw {PASSWORD} {user(number, guarded=guarded)}\n"
        for guarded in (False, True)
        for number in range(users)
    )


# Both programs read both files. Each request is one line of the log, as it is by default.
CONFIG = f"""\
[libdefaults]
    default_realm = {REALM}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    rdns = false
    clockskew = {CLOCK_S}
    udp_preference_limit = TRANSPORT
[realms]
    {REALM} = {{
        kdc = 127.0.0.1:{PORT}
    }}
[logging]
    kdc = FILE:{LOG}
"""
KDC_CONFIG = f"""\
[kdcdefaults]
    kdc_listen = 127.0.0.1:{PORT}
    kdc_tcp_listen = 127.0.0.1:{PORT}
[realms]
    {REALM} = {{
        key_stash_file = {FOLDER}/stash
    }}
[dbmodules]
    {REALM} = {{
        db_library = db2
        database_name = {FOLDER}/principal
        disable_last_success = UNMARKED
    }}
"""


def kdc_config(seed: Seed) -> str:
    """The KDC's own configuration, with what the settings ask for."""
    asked = seed.settings.options.get(LAST_SUCCESS, "false")
    if asked not in {"true", "false"}:
        raise MatrixError(
            f"settings {seed.settings.id}: {LAST_SUCCESS} is {asked!r}",
            hint='give "true" or "false"',
        )
    return KDC_CONFIG.replace("UNMARKED", asked)


UDP, TCP = 1465, 1  # bytes up to which a client asks over UDP
ENVIRONMENT = 'export KRB5_CONFIG="$1/krb5.conf" KRB5_KDC_PROFILE="$1/kdc.conf" LC_ALL=C\n'
# Standard input makes the users; $2 and $3 are the files, $4 the master password.
CREATE = f"""umask 077
mkdir -p "$1" && cd "$1" || exit 1
echo "$2" | sed 's/TRANSPORT/{UDP}/' >krb5.conf
echo "$2" | sed 's/TRANSPORT/{TCP}/' >tcp.conf
echo "$3" >kdc.conf
kdb5_util create -s -P "$4" >create.log 2>&1 || {{ cat create.log >&2; exit 1; }}
kadmin.local >create.log 2>&1 || {{ cat create.log >&2; exit 1; }}
echo 0 >issued
"""
SERVE = 'exec krb5kdc -n -P "$1/kdc.pid"'
# $2 is who asks, $3 the configuration; kinit reads the password from standard input.
ASK = 'KRB5_CONFIG="$1/$3" kinit -c "FILE:$1/ticket" "$2" && klist -c "FILE:$1/ticket" -e\n'
# Whoever looks takes the log's lines away: it never grows far.
LOOK = f"""cd "$1" && klist -V && kadmin.local getprinc {SERVICE[0]}/{SERVICE[1]} &&
kadmin.local getprinc "$2" || exit 1
more=$(grep -c ' AS_REQ .* ISSUE: ' "{LOG}"); again=$(grep -c ' DISPATCH: repeated ' "{LOG}")
: >"{LOG}"
echo $(($(cat issued) + more)) >issued
echo "tickets issued: $(cat issued)"
echo "answers again: $again"
"""

# What a KDC says before it gives up.
GRAVE = re.compile(r"krb5kdc: |- (?:while|Cannot|for realm)|Address already in use", re.IGNORECASE)
_VERSION = re.compile(r"^Kerberos 5 version ([!-~]{1,100})$", re.MULTILINE)
_KEYS = re.compile(r"^Key: vno \d+, ([!-+\--~]{1,100})", re.MULTILINE)
_PRINCIPAL = re.compile(r"^Principal: ", re.MULTILINE)
_AGAIN = re.compile(r"^answers again: (\d+)$", re.MULTILINE)
_ISSUED = re.compile(r"^tickets issued: (\d+)$", re.MULTILINE)


class Krb5(BoxedServer):
    """The driver of MIT Kerberos' krb5kdc, from 1.18 on."""

    protocols: ClassVar[frozenset[str]] = frozenset({"kerberos"})
    port: ClassVar[int] = PORT
    revision: ClassVar[int] = 1
    user: ClassVar[str] = USER
    pid_file: ClassVar[str] = PID_FILE
    grave: ClassVar[re.Pattern[str]] = GRAVE
    creating: ClassVar[str] = "making the realm and its users"
    options: ClassVar[frozenset[str]] = frozenset({LAST_SUCCESS})
    offers: ClassVar[frozenset[str]] = frozenset({SHORT_TICKETS})
    content: ClassVar[type[Content]] = RealmContent
    look_operations: ClassVar[Mapping[str, int]] = {"ticket": 0}  # the database is asked, not it

    def serve_command(self) -> tuple[str, ...]:
        return _script(SERVE)

    def create(self, box: Container, seed: Seed) -> None:
        make = _script(CREATE, CONFIG, kdc_config(seed), PASSWORD)
        users = commands(seed.holds(RealmContent).number)
        box.must(*make, what="make the realm", stdin=users)

    def endpoint(self, box: Container, shared: Path) -> OwnKdc:
        del shared
        return OwnKdc(port=PORT, box=box)

    def ready(self, endpoint: Endpoint) -> bool:
        return _has_ticket(endpoint, user(0, guarded=False), "krb5.conf")

    def check(self, endpoint: Endpoint, seed: Seed) -> Facts:
        """What it says of itself, once both ends of both kinds of users had a ticket."""
        for number in (0, seed.holds(RealmContent).number - 1):
            for guarded in (False, True):
                for transport in ("krb5.conf", "tcp.conf"):
                    name = user(number, guarded=guarded)
                    if not _has_ticket(endpoint, name, transport):
                        raise InstanceError(f"{name} gets no ticket ({transport})")
        return self.look(endpoint).facts

    def look(self, endpoint: Endpoint) -> Look:
        look = _script(LOOK, user(0, guarded=True))
        return read_look(answer_of(endpoint, *look, silent="the KDC's database does not answer"))

    def error_log(self) -> str:
        return LOG


def _script(text: str, *words: str) -> tuple[str, ...]:
    return ("sh", "-c", f"{ENVIRONMENT}{text}", "sh", FOLDER, *words)


def read_look(text: str) -> Look:
    """The version, the keys of the realm and of a user, and how many tickets the log tells of.

    An answer that was only sent again cost nothing: a run with such is not what it seems.
    """
    version, issued, again = (each.search(text) for each in (_VERSION, _ISSUED, _AGAIN))
    owners = [" ".join(_KEYS.findall(each)) for each in _PRINCIPAL.split(text)[1:]]
    if version is None or issued is None or again is None or len(owners) != 2 or not all(owners):
        raise InstanceError("the KDC does not tell its version, keys and tickets")
    return Look(
        facts={
            "version": version.group(1),
            "realm-keys": owners[0],
            "user-keys": owners[1],
            "answers-again": count_in(again.group(1), "answers sent again"),
        },
        operations={"ticket": count_in(issued.group(1), "tickets issued")},
    )


def _has_ticket(endpoint: Endpoint, name: str, transport: str) -> bool:
    """Whether a user gets a ticket and can decrypt what only the password's key opens."""
    ask = _script(ASK, name, transport)
    done = box_of(endpoint).execute(*ask, stdin=f"{PASSWORD}\n", keep_bytes=MOST_BYTES)
    return done.ok and f"Default principal: {name}@{REALM}" in done.stdout
