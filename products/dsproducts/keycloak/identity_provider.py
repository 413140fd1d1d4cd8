"""Keycloak over a 389-ds: an identity provider whose users are a directory's, in one container.

The directory is made, filled and asked as 389-ds alone is. Next to it Keycloak runs from its own
distribution, with one realm whose users it looks up and binds there. Both are one system: its cost
is the sum of both, and what settings may set of the directory they may set here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from dsharness.containers.container import Container, Options
from dsharness.errors import InstanceError
from dsharness.model import DirectoryContent, Facts
from dsharness.progress import Progress
from dsharness.systems.boxed_server import MOST_BYTES, InBox, answer_of, box_of
from dsharness.systems.ldap.directory import Directory, connect, user_name
from dsharness.systems.ldap.directory_system import OwnDirectory, hashed, socket_of
from dsharness.systems.readiness import SOCKETS, listens
from dsharness.systems.system import Endpoint, Look, Part, Seed
from dsproducts.dirsrv.dirsrv import CONFIG_FOLDER, Dirsrv
from dsproducts.dirsrv.ns_slapd import serve_command

HOME = "/opt/keycloak"
PORT = 8080
PID_FILE = "/run/dirsrv/keycloak.pid"
REALM, CLIENT, SECRET = "lab", "lab-site", "dsbisect-site"  # of a realm that is nowhere else
SITE = "http://127.0.0.1/done"  # where a login leads back to; nobody asks for it
ADMIN, ADMIN_PASSWORD = "admin", "dsbisect-admin"  # it reaches no network but loopback
SERVICE_PASSWORD = "dsbisect-service"  # noqa: S105 - likewise
WORK = Path(__file__).with_name("realm-work")
MAKE_S = 300.0

# $1 is the file for the process that ends both, the rest is the directory's command. Keycloak has
# no user of its own: it runs as the directory's, also where root starts both.
SERVE = f"""
rm -f "$1" && echo $$ >"$1" && shift || exit 1
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=dirsrv --regid=dirsrv --clear-groups)
end() {{ kill "$idp"; wait "$idp"; kill "$directory"; wait "$directory"; exit 0; }}
"$@" & directory=$!
"${{as[@]}}" {HOME}/sbin/keycloak & idp=$!
trap end TERM
wait -n -p ended; status=$?
who=directory; [ "$ended" = "$directory" ] || who='identity provider'
echo "the $who ended with status $status" >&2
kill "$idp" "$directory"; wait
exit 1
"""
ENDED = re.compile(r"^the (?:directory|identity provider) ended with status \d+$")
GRAVE = re.compile(r" (?:ERROR|FATAL) |^Error: |OutOfMemoryError|Address already in use")
OWNED = f"mkdir -p {HOME}/data && chown -R dirsrv: {HOME}/data"
_VERSION = re.compile(r"^Keycloak - Version ([!-~]{1,100})$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class LoginEndpoint(OwnDirectory, InBox):
    """An identity provider with a realm, a site that its users log in to, and its directory."""

    realm: str = REALM
    client: str = CLIENT
    secret: str = SECRET
    site: str = SITE


class Keycloak(Dirsrv):
    """The driver of Keycloak, from 20 on, and of the directory of its users."""

    protocols: ClassVar[frozenset[str]] = Dirsrv.protocols | {"oidc"}
    revision: ClassVar[int] = Dirsrv.revision
    pid_file: ClassVar[str] = PID_FILE
    creating: ClassVar[str] = "creating the directory"
    parts: ClassVar[tuple[Part, ...]] = tuple(
        replace(part, operations=part.operations | {"login"}) for part in Dirsrv.parts
    )
    look_operations: ClassVar[Mapping[str, int]] = {**Dirsrv.look_operations, "login": 1}
    programs: ClassVar[Mapping[str, str]] = {"idp": "java", "directory": "ns-slapd"}
    service = f"cn=identity provider,{Dirsrv.site.suffix}"

    def making(self, shared: Path) -> Options:
        """Keycloak makes its first administrator of these, under the names of all versions."""
        names = ("KEYCLOAK_ADMIN", "KC_BOOTSTRAP_ADMIN_USERNAME")
        keys = ("KEYCLOAK_ADMIN_PASSWORD", "KC_BOOTSTRAP_ADMIN_PASSWORD")
        first = (*((name, ADMIN) for name in names), *((key, ADMIN_PASSWORD) for key in keys))
        return replace(super().making(shared), environment=first)

    def serving(self, shared: Path) -> Options:
        return replace(super().serving(shared), memory="3g")

    def serve_command(self) -> tuple[str, ...]:
        directory = serve_command(CONFIG_FOLDER, Dirsrv.pid_file, self.program)
        return ("bash", "-c", SERVE, "bash", PID_FILE, *directory)

    def create(self, box: Container, seed: Seed) -> None:
        super().create(box, seed)
        box.must("sh", "-c", OWNED, what="give the identity provider its folder")

    def endpoint(self, box: Container, shared: Path) -> LoginEndpoint:
        own = super().endpoint(box, shared)
        return LoginEndpoint(
            box=box,
            port=own.port,
            ports={"oidc": PORT},
            users=own.users,
            socket=own.socket,
            secure_port=own.secure_port,
            import_task=own.import_task,
        )

    def ready(self, endpoint: Endpoint) -> bool:
        """Whether the directory answers, and Keycloak, which listens once it can answer."""
        if not super().ready(endpoint):
            return False
        done = box_of(endpoint).execute("cat", *SOCKETS, keep_bytes=MOST_BYTES)
        return listens(done.stdout, PORT)

    def fill(self, endpoint: Endpoint, seed: Seed, progress: Progress) -> None:
        super().fill(endpoint, seed, progress)
        with connect(socket_of(endpoint), self.site) as directory:
            names = {"objectClass": ["person"], "sn": ["service"]}
            directory.add(self.service, {**names, "userPassword": [SERVICE_PASSWORD]})
        progress("making the realm, and bringing the users to it")
        requests = json.dumps([*realm_requests(self.site.people, self.port, self.service)])
        self._work(endpoint, "make", ADMIN, ADMIN_PASSWORD, stdin=requests)

    def check(self, endpoint: Endpoint, seed: Seed) -> Facts:
        """The same as of the directory, once its first and last user with a password logged in."""
        super().check(endpoint, seed)
        last = hashed(seed.holds(DirectoryContent)) - 1
        for number in dict.fromkeys((0, last)):
            who = (user_name(number), self.site.user_password)
            self._work(endpoint, "login", REALM, CLIENT, SECRET, SITE, *who)
        return self.look(endpoint).facts

    def _work(self, endpoint: Endpoint, *words: str, stdin: str | None = None) -> None:
        script = WORK.read_text(encoding="utf-8")
        command = ("python3", "-c", script, str(PORT), *words)
        box_of(endpoint).must(*command, what="ask Keycloak", stdin=stdin, limit_s=MAKE_S)

    def look(self, endpoint: Endpoint) -> Look:
        looked = super().look(endpoint)
        text = answer_of(endpoint, "cat", f"{HOME}/version.txt", silent="Keycloak has no version")
        match = _VERSION.search(text)
        if match is None:
            raise InstanceError("Keycloak does not tell its version")
        return replace(looked, facts={**looked.facts, "keycloak": match[1]})

    def counts(self, directory: Directory) -> dict[str, int]:
        """A login is a bind of its user; those of Keycloak's own connections stay open."""
        counts = super().counts(directory)
        open_now = directory.read("cn=monitor", "connection").get("connection", [])
        own = sum(f":{self.service}:" in connection.lower() for connection in open_now)
        return counts | {"login": counts["bind"] - own}

    def reason(self, lines: Sequence[str]) -> str | None:
        """What either of them says, or which of them ended."""
        of_keycloak = next((line for line in lines if GRAVE.search(line)), None)
        which = next((line for line in lines if ENDED.match(line)), None)
        return super().reason(lines) or of_keycloak or which


Request = tuple[str, str, Mapping[str, Any] | None]


def realm_requests(people: str, port: int, service: str) -> Iterator[Request]:
    """What makes the realm: method, path, and what is sent; `{id}` is what was made last.

    Only a user federation that is added to a realm which is there gets its mappers.
    """
    yield "POST", "", {"id": REALM, "realm": REALM, "enabled": True, "sslRequired": "none"}
    yield (
        "POST",
        f"/{REALM}/clients",
        {"clientId": CLIENT, "secret": SECRET, "redirectUris": [SITE], "enabled": True},
    )
    # A user without an address would be asked for it at each login; old versions do not ask.
    action = "VERIFY_PROFILE"
    asked_first = {"alias": action, "name": action, "providerId": action, "enabled": False}
    yield "PUT?", f"/{REALM}/authentication/required-actions/{action}", asked_first
    kind = "org.keycloak.storage.UserStorageProvider"
    federation = {
        "name": "directory",
        "providerId": "ldap",
        "providerType": kind,
        "parentId": REALM,
    }
    settings = federation_settings(people, port, service)
    config = {name: [value] for name, value in settings.items()}
    yield "POST", f"/{REALM}/components", {**federation, "config": config}
    yield "POST", f"/{REALM}/user-storage/{{id}}/sync?action=triggerFullSync", None


def federation_settings(people: str, port: int, service: str) -> dict[str, str]:
    """How Keycloak asks the directory; the users are brought to its own database beforehand."""
    return {
        "enabled": "true",
        "vendor": "rhds",
        "connectionUrl": f"ldap://127.0.0.1:{port}",
        "connectionPooling": "true",
        "authType": "simple",
        "bindDn": service,
        "bindCredential": SERVICE_PASSWORD,
        "usersDn": people,
        "searchScope": "1",
        "usernameLDAPAttribute": "uid",
        "rdnLDAPAttribute": "uid",
        "uuidLDAPAttribute": "nsuniqueid",
        "userObjectClasses": "inetOrgPerson, organizationalPerson",
        "editMode": "READ_ONLY",
        "importEnabled": "true",
        "syncRegistrations": "false",
        "pagination": "true",
        "batchSizeForSync": "1000",
        "cachePolicy": "DEFAULT",
    }
