"""What all kinds of 389-ds share, however they were made: one process, its settings, its socket."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container
from dsharness.containers.engine import last_line
from dsharness.errors import InstanceError, MatrixError
from dsharness.model import DATABASE, OWN, DirectoryContent, Facts, ServerTimes, Settings
from dsharness.plain_text import plain
from dsharness.progress import Progress
from dsharness.systems.ldap.directory import Directory, add_entries, connect
from dsharness.systems.ldap.directory_system import (
    EVERY_OTHER,
    PASSWORD_SCHEME,
    SOCKET_NAME,
    WORKERS,
    DirectorySystem,
    ImportTask,
    hashed,
    socket_of,
)
from dsharness.systems.system import SHARED_FOLDER, Endpoint, OfferedScheme, SchemeChange, Seed
from dsproducts.dirsrv.password_trials import (
    DEFAULT_SCHEME,
    SCHEMES,
    changed_scheme,
    hashed_value,
    rounds_stored,
    set_rounds,
)
from dsproducts.dirsrv.recorded.access_log import read_file
from dsproducts.dirsrv.recorded.operation_times import server_times

# Every severity and no tracing, on standard error: with -d 0 a server that cannot start ends
# without a word.
SPEAK = "266354688"
CACHE_BYTES = str(64 * 1024 * 1024)
LOGS_OFF = {
    "nsslapd-accesslog-logging-enabled": "off",
    "nsslapd-auditlog-logging-enabled": "off",
    "nsslapd-auditfaillog-logging-enabled": "off",
}
# What settings may ask for, by option and value; the first value is what holds without them. A log
# that turns over has two files of a MiB. Where hashes are upgraded, each bind looks whether the
# user's is to be made again. In turbo mode a thread keeps a connection that was busy for seconds.
Choices = Mapping[str, Mapping[str, Mapping[str, str]]]
CHOICES: Choices = {
    "access-log": {
        "off": {},
        "on": {"nsslapd-accesslog-logging-enabled": "on"},
        "turning-over": {
            "nsslapd-accesslog-maxlogsize": "1",
            "nsslapd-accesslog-maxlogsperdir": "2",
            "nsslapd-accesslog-logging-enabled": "on",
        },
    },
    "upgrade-hash": {"off": {}, "on": {"nsslapd-enable-upgrade-hash": "on"}},
    "turbo-mode": {"on": {}, "off": {"nsslapd-enable-turbo-mode": "off"}},
}
CONFIG = "cn=config"
# Entries that count or record, and attributes that are a secret, a time, a place, a name of this
# instance, or a word about a plugin.
COUNTING = re.compile(r"(?:^|,)cn=(?:monitor|snmp|tasks|features)(?:,|$)", re.IGNORECASE)
OWN_VALUE = re.compile(
    r"rootpw$|secret|symmetrickey|timestamp$|entryusn|uniqueid|subordinates|creatorsname"
    r"|modifiersname|localhost|localuser|versionstring|nsstate|directory$|dir$|path$|-list$|log$"
    r"|^aci$|^cn$|^objectclass$|entryid|parentid|entrydn|^description$|^nsslapd-plugin$"
    r"|requiresrestart|^nssystemindex$"
    r"|-plugin(?:version|id|initfunc|vendor|description|type)$",
    re.IGNORECASE,
)
ACCESS_LOG = "nsslapd-accesslog"
TIMES_LOGGED = {
    "nsslapd-accesslog-logging-enabled": "on",
    "nsslapd-accesslog-logbuffering": "on",
    "nsslapd-accesslog-level": "256",
    "nsslapd-accesslog-maxlogsize": "-1",  # it is not to be turned over meanwhile
}
MOST_LOG_BYTES = 64 << 20
LDBM = "cn=config,cn=ldbm database,cn=plugins,cn=config"
IMPLEMENT = "nsslapd-backend-implement"
BACKEND = "cn=userroot,cn=ldbm database,cn=plugins,cn=config"

READABLE_TYPE, READABLE = "reverpwdstoragescheme", ("CLEAR",)
TRIED = 9_000_000  # the number of the first user who shows whether a scheme stores passwords

# A search counts for each entry that it found.
COUNTS = {"bind": "simpleauthbinds", "search": "entriesreturned", "modify": "modifyentryops"}

# A line of the log is "[time] - SEVERITY - function - text".
SEVERITIES = ("EMERG", "ALERT", "CRIT", "ERR")  # worst first
SEVERE = re.compile(rf" - (?P<severity>{'|'.join(SEVERITIES)}) - ")
STAMP = re.compile(r"^\[[^]]*\] - ")
# What follows from another line, and what every start may say.
CONSEQUENCE = re.compile(
    r"Shutting down|server (is )?(shutting down|exiting)|[Ff]ailed to start (database )?plugin"
    r"|plugin_dependency_(start|close)all|could not be read or were not found"
    r"|dblayer_init failed|failed to init backend implementation"
    r"|attrcrypt|No symmetric key found|set_krb5_creds|Detected Disorderly Shutdown"
)
CRASH = re.compile(r"Segmentation fault|Aborted|Assertion .* failed|AddressSanitizer|core dumped")


def serve_command(config_folder: str, pid_file: str, program: str = "ns-slapd") -> tuple[str, ...]:
    """The server in the foreground."""
    return (program, "-D", config_folder, "-i", pid_file, "-d", SPEAK)


def move_socket(box: Container, config_folder: str) -> None:
    """Let a stopped server listen in the folder that the lab shares with its container."""
    box.must(
        "sed",
        "-i",
        f"s#^nsslapd-ldapifilepath:.*#nsslapd-ldapifilepath: {SHARED_FOLDER}/{SOCKET_NAME}#",
        f"{config_folder}/dse.ldif",
        what="move the server's socket to the shared folder",
    )
    # 3.3's dscreate leaves the schema file to root; a server that is not root then ends without
    # a word.
    box.must(
        "chown",
        "-R",
        f"--reference={config_folder}",
        config_folder,
        what="give the server its configuration",
    )


def chosen(settings: Settings, option: str, of: Choices) -> Mapping[str, str]:
    """Return what settings ask for of an option; MatrixError for what it does not offer."""
    choices = of[option]
    choice = settings.options.get(option, next(iter(choices)))
    if choice not in choices:
        raise MatrixError(
            f"settings {settings.id}: {option} is {choice!r}",
            hint=f"give one of {', '.join(choices)}",
        )
    return choices[choice]


NUMBER, FIRST_NUMBER, LAST_NUMBER = "employeeNumber", "1000", "9000000"
MAGIC = "0"  # who asks for this number is given one, as who asks for none
DNA = "dna"
REPLICATION = "replication"
PLUGINS = "cn=plugins,cn=config"
# By plugin: its entry and what is changed in it.
SWITCHED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "memberof": (
        "cn=MemberOf Plugin",
        {
            "memberOfGroupAttr": "member",
            "memberOfAttr": "memberOf",
            "memberOfAutoAddOC": "nsMemberOf",
        },
    ),
    "changelog": ("cn=Retro Changelog Plugin", {}),
    DNA: ("cn=Distributed Numeric Assignment Plugin", {}),
}


def switch_on(directory: Directory, plugins: Sequence[str]) -> None:
    """Switch plugins on before anything is written.

    Numbers are given from the next start on: with LMDB their index is of no use before.
    """
    if not plugins:
        return
    directory.modify("cn=config", {"nsslapd-dynamic-plugins": "on"})
    for name in sorted(plugins, key=lambda plugin: plugin == DNA):
        if name == REPLICATION:
            supply(directory, 1, f"cn=nobody,{PLUGINS}")
            continue
        entry, changes = SWITCHED[name]
        if name == DNA:
            directory.modify("cn=config", {"nsslapd-dynamic-plugins": "off"})
            _number_users(directory, f"{entry},{PLUGINS}")
        on = {**changes, "nsslapd-pluginEnabled": "on"}
        directory.modify(f"{entry},{PLUGINS}", on)
    directory.modify("cn=config", {"nsslapd-dynamic-plugins": "off"})


def supply(directory: Directory, number: int, consumer: str) -> None:
    """Make the server a supplier of its suffix; ``consumer`` is whom it lets replicate."""
    directory.add(
        replica_of(directory),
        {
            "objectClass": ["top", "nsDS5Replica"],
            "cn": ["replica"],
            "nsDS5ReplicaRoot": [directory.site.suffix],
            "nsDS5ReplicaId": [str(number)],
            "nsDS5ReplicaType": ["3"],
            "nsDS5Flags": ["1"],
            "nsDS5ReplicaBindDN": [consumer],
        },
    )


def replica_of(directory: Directory) -> str:
    """Where a server says how it replicates its suffix."""
    escaped = directory.site.suffix.replace("=", r"\3D").replace(",", r"\2C")
    return f"cn=replica,cn={escaped},cn=mapping tree,cn=config"


def _number_users(directory: Directory, plugin: str) -> None:
    """New users are to have a number of their own, which is looked for in an index."""
    index = {
        "objectClass": ["top", "nsIndex"],
        "cn": [NUMBER],
        "nsSystemIndex": ["false"],
        "nsIndexType": ["eq"],
    }
    directory.add(f"cn={NUMBER},cn=index,{BACKEND}", index)
    directory.add(
        f"cn=numbers,{plugin}",
        {
            "objectClass": ["top", "extensibleObject"],
            "cn": ["numbers"],
            "dnaType": [NUMBER],
            "dnaNextValue": [FIRST_NUMBER],
            "dnaMaxValue": [LAST_NUMBER],
            "dnaMagicRegen": [MAGIC],
            "dnaFilter": ["(objectClass=inetOrgPerson)"],
            "dnaScope": [directory.site.suffix],
        },
    )


IMPORTED = "imported"  # a backend that only tasks fill, and its suffix
IMPORTED_SUFFIX = f"dc={IMPORTED}"
IMPORTED_BACKEND = f"cn={IMPORTED},cn=ldbm database,cn=plugins,cn=config"
IMPORTED_FILES = {"users": "imported.ldif", "suffix": "imported-suffix.ldif"}


def add_imported(directory: Directory) -> None:
    """Give the server a backend with nothing in it; its cache is as large as that of the other."""
    directory.add(
        IMPORTED_BACKEND,
        {
            "objectClass": ["top", "extensibleObject", "nsBackendInstance"],
            "cn": [IMPORTED],
            "nsslapd-suffix": [IMPORTED_SUFFIX],
            "nsslapd-cachememsize": [CACHE_BYTES],
        },
    )
    directory.add(
        f'cn="{IMPORTED_SUFFIX}",cn=mapping tree,cn=config',
        {
            "objectClass": ["top", "extensibleObject", "nsMappingTree"],
            "cn": [IMPORTED_SUFFIX],
            "nsslapd-state": ["backend"],
            "nsslapd-backend": [IMPORTED],
        },
    )


def import_task(folder: str) -> ImportTask:
    """Its entry is gone a minute after it ended: until then its name is taken."""
    return ImportTask(
        parent="cn=import,cn=tasks,cn=config",
        attributes={
            "objectClass": ["top", "extensibleObject"],
            "nsInstance": [IMPORTED],
            "ttl": ["60"],
        },
        file_attribute="nsFilename",
        files={kind: f"{folder}/{name}" for kind, name in IMPORTED_FILES.items()},
        ended="(nsTaskExitCode=*)",
        succeeded="(nsTaskExitCode=0)",
    )


ENCRYPTION = "cn=encryption,cn=config"


def encrypt(directory: Directory, keys: str, port: int) -> None:
    """Let the server encrypt from its next start on, by keys that have no password."""
    directory.add(
        f"cn=RSA,{ENCRYPTION}",
        {
            "objectClass": ["top", "nsEncryptionModule"],
            "cn": ["RSA"],
            "nsSSLPersonalitySSL": ["Server-Cert"],
            "nsSSLToken": ["internal (software)"],
            "nsSSLActivation": ["on"],
        },
    )
    directory.modify(ENCRYPTION, {"nsSSLClientAuth": "off"})
    own = {"nsslapd-certdir": keys, "nsslapd-securePort": str(port), "nsslapd-security": "on"}
    directory.modify("cn=config", own)


def fix_caches(directory: Directory) -> None:
    """Sizes that do not depend on the machine: by itself the server takes a part of its memory."""
    fixed = {"nsslapd-cache-autosize": "0", "nsslapd-dbcachesize": CACHE_BYTES}
    # Up to 3.1 the common entry passes this on; 3.3 needs it on the backend library's own entry.
    for entry in (LDBM, f"cn=bdb,{LDBM}", f"cn=mdb,{LDBM}"):
        directory.modify(entry, fixed, optional=True)
    directory.modify(BACKEND, {"nsslapd-cachememsize": CACHE_BYTES})


class NsSlapd(DirectorySystem):
    """What every 389-ds answers, however it was made."""

    options: ClassVar[frozenset[str]] = DirectorySystem.options | CHOICES.keys() | {EVERY_OTHER}
    look_operations: ClassVar[Mapping[str, int]] = {"bind": 1, "search": 4, "modify": 0}

    def fill(self, endpoint: Endpoint, seed: Seed, progress: Progress) -> None:
        """As any directory; then every other password may be stored again by another scheme."""
        super().fill(endpoint, seed, progress)
        scheme = seed.settings.options.get(EVERY_OTHER)
        if scheme is None or seed.taken:
            return
        progress(f"storing every other user's password as {scheme}")
        socket, number = socket_of(endpoint), hashed(seed.holds(DirectoryContent))
        with connect(socket, self.site) as directory:
            directory.modify("cn=config", {DEFAULT_SCHEME: scheme})
        odd_numbers = range(1, number, 2)
        add_entries(socket, self.site, odd_numbers, workers=WORKERS, add=Directory.set_password)

    def settle(self, directory: Directory, settings: Settings) -> None:
        """Apply the lab's settings and those of the row."""
        # The scheme first, then the password: on 3.1.2 the default scheme makes every bind of the
        # manager cost 100,000 rounds.
        directory.modify("cn=config", {"nsslapd-rootpwstoragescheme": "SSHA512"})
        directory.modify("cn=config", {"nsslapd-rootpw": directory.site.manager_password})
        directory.modify("cn=config", {"nsslapd-enable-upgrade-hash": "off"}, optional=True)
        directory.modify("cn=config", LOGS_OFF)
        directory.modify("cn=config", {"nsslapd-securitylog-logging-enabled": "off"}, optional=True)
        fix_caches(directory)
        scheme = settings.options.get(PASSWORD_SCHEME)
        if scheme is not None:
            directory.modify("cn=config", {DEFAULT_SCHEME: scheme})
        for option in CHOICES:
            directory.modify("cn=config", chosen(settings, option, CHOICES))
        # Its table of connections is made for as many files at its next start.
        files = self.descriptors(settings)
        if files is not None:
            directory.modify("cn=config", {"nsslapd-maxdescriptors": str(files)})

    def version(self, directory: Directory) -> str:
        """Tag 2.0.17 says 2.0.16, so this is a hint only."""
        return directory.read("", "vendorVersion").word("vendorVersion") or ""

    def offered(self, box: Container, directory: Directory) -> Iterator[OfferedScheme]:
        """The plugins that are switched on; each is tried with a user of its own."""
        del box
        entries = directory.children(SCHEMES, "cn", "nsslapd-pluginEnabled", "nsslapd-pluginType")
        enabled = [entry for entry in entries if entry.word("nsslapd-pluginEnabled") == "on"]
        for number, entry in enumerate(enabled, start=TRIED):
            name, kind = entry.must("cn"), entry.word("nsslapd-pluginType")
            yield OfferedScheme(
                name=name,
                options={PASSWORD_SCHEME: name},
                readable=kind == READABLE_TYPE or name in READABLE,
                refused=self._refusal(directory, name, number),
            )

    def _refusal(self, directory: Directory, scheme: str, number: int) -> str:
        try:
            directory.modify("cn=config", {DEFAULT_SCHEME: scheme})
            self.add_user(directory, number)
            directory.check_user(number)
        except InstanceError as error:
            directory.read("cn=config", "cn")  # a server that ended has refused nothing
            first, *_ = error.message.splitlines()  # then follow all valid names
            return first.removeprefix(
                f"the server refused {DEFAULT_SCHEME}: {scheme} on cn=config: "
            )
        return ""

    def change_scheme(self, endpoint: Endpoint, scheme: str) -> SchemeChange:
        with connect(socket_of(endpoint), self.site) as directory:
            return changed_scheme(directory, scheme)

    def set_rounds(self, endpoint: Endpoint, scheme: str, rounds: int) -> None:
        with connect(socket_of(endpoint), self.site) as directory:
            set_rounds(directory, scheme, rounds)

    def rounds_stored(self, endpoint: Endpoint, scheme: str) -> int | None:
        with connect(socket_of(endpoint), self.site) as directory:
            return rounds_stored(directory, scheme)

    def hashed_before(self, scheme: str, rounds: int, users: int) -> tuple[str, ...]:
        password = self.site.user_password
        return tuple(hashed_value(password, scheme, rounds) for _ in range(users))

    def facts(self, directory: Directory) -> Facts:
        library = directory.read(LDBM, IMPLEMENT).word(IMPLEMENT)
        return {**super().facts(directory), **({} if library is None else {DATABASE: library})}

    def check(self, endpoint: Endpoint, seed: Seed) -> Facts:
        facts = super().check(endpoint, seed)
        library = seed.settings.options.get(DATABASE)
        if library not in {None, OWN, facts.get(DATABASE)}:
            raise InstanceError(
                f"settings {seed.settings.id!r} ask for the database library {library}, but this "
                f"server keeps its data in {facts.get(DATABASE, 'another')}",
                hint="compare versions that have the library, or leave the setting out",
            )
        return facts

    def counts(self, directory: Directory) -> dict[str, int]:
        counters = directory.read("cn=snmp,cn=monitor", *COUNTS.values())
        return {kind: counters.count(name) for kind, name in COUNTS.items()}

    def configuration(self, endpoint: Endpoint) -> Mapping[str, str]:
        with connect(socket_of(endpoint), self.site) as directory:
            return {
                plain(f"{name} of {entry.dn}"): plain(" | ".join(sorted(values)))
                for entry in directory.below(CONFIG)
                if not COUNTING.search(entry.dn)
                for name, values in entry.items()
                if values and not OWN_VALUE.search(name)
            }

    def start_log(self, endpoint: Endpoint) -> None:
        with connect(socket_of(endpoint), self.site) as directory:
            directory.modify("cn=config", TIMES_LOGGED)

    def end_log(self, box: Container, endpoint: Endpoint, into: Path) -> None:
        with connect(socket_of(endpoint), self.site) as directory:
            path = directory.read("cn=config", ACCESS_LOG).must(ACCESS_LOG)
            # what is still in its buffer is written with the next line; all the time, every line
            # would wait for the disk
            directory.modify("cn=config", {"nsslapd-accesslog-logbuffering": "off"})
            directory.modify("cn=config", LOGS_OFF)
        result = box.execute(
            "tail", "-c", str(MOST_LOG_BYTES), path, into=into, into_bytes=MOST_LOG_BYTES
        )
        if not result.ok:
            raise InstanceError(f"its log cannot be read: {last_line(result)}", log=box.log)

    def read_log(self, written: Path, *, candidate_id: str, workload_id: str) -> ServerTimes:
        return server_times(read_file(written), candidate_id=candidate_id, workload_id=workload_id)

    def reason(self, lines: Sequence[str]) -> str | None:
        """The first line of the worst severity that says more than that the server ends."""
        severe_lines = [
            (SEVERITIES.index(severe["severity"]), bool(CONSEQUENCE.search(line)), number)
            for number, line in enumerate(lines)
            if (severe := SEVERE.search(line))
        ]
        crashed = next((line for line in lines if CRASH.search(line)), None)
        if not severe_lines or (crashed and min(severe_lines)[0] == SEVERITIES.index("ERR")):
            return crashed
        telling = [
            severe_line for severe_line in severe_lines if not severe_line[1]
        ] or severe_lines
        line = lines[min(telling)[2]]
        return STAMP.sub("", line)
