"""What a validated server left behind: secrets, messages, answers, and files that anyone may read.

It is taken where a step ends, and kept with the evidence: a later step compares both sides. What
the logs say is counted by kind: messages of the error log, answers of the access log. A kind is a
message without what differs each time: numbers, names, values.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import InstanceError
from dsharness.plain_text import plain
from dsproducts.dirsrv.dirsrv import CONFIG_FOLDER, INSTANCE
from dsproducts.dirsrv.validation.ldap_client import WORDS
from dsproducts.dirsrv.validation.population import SchemeUser, dump_of, password_of, passwords_in
from dsproducts.dirsrv.validation.validated_server import ClientAnswer, ValidatedServer
from dsvalidate.safe_gate import VARIES, Traces, keep_traces
from dsvalidate.secret_search import Find, Secret, SecretKind, finds_in, without_secrets
from dsvalidate.step_tools import EvidenceFolder

MESSAGE = re.compile(r"^\[[^\]]*\] - (?P<level>[A-Z]+) - (?P<rest>.*)$")
RESULT = re.compile(
    r"\bop=(?P<op>-?\d+) RESULT err=(?P<code>-?\d+) tag=(?P<tag>\d{1,9})\b(?P<rest>.*)$"
)
NOTES = re.compile(r"\bnotes=(\S+)")
# Quoted words, DNs, and whatever has a digit in it. A word is looked at once, from its begin: a
# server may write one of any length.
VARYING = re.compile(r"""\"[^\"]*\"|'[^']*'|\([^()]*\)|(?<!\S)\S*[=\d]\S*""")
NO_LEVEL = "a line without a level"
UNINDEXED = frozenset("AU")  # notes of a search that used no index
OPERATIONS = {
    97: "bind",
    101: "search",
    103: "modify",
    105: "add",
    107: "delete",
    109: "rename",
    111: "compare",
    120: "extended operation",
}
MOST_KINDS = 500  # a server that says something else each time says too much anyway
KIND_CHARACTERS = 120


def messages(log: str) -> dict[str, int]:
    """Count the lines of the error log by kind."""
    return _counted(filter(None, map(_kind, log.splitlines())))


def _counted(kinds: Iterable[str]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for kind in kinds:
        counts[kind if kind in counts or len(counts) < MOST_KINDS else "others"] += 1
    return dict(counts)


def _kind(line: str) -> str:
    match = MESSAGE.match(line)
    if match is None:  # the heading of a log, or the next line of a long message
        return NO_LEVEL if line.strip() else ""
    return f"{match['level']}: {VARYING.sub(VARIES, match['rest'])[:KIND_CHARACTERS].rstrip()}"


def answers(log: str) -> dict[str, int]:
    """Count the results in the access log by kind: operation, code, and notes if it has some."""
    return _counted(kind[:KIND_CHARACTERS] for kind in _answers(log))


def _answers(log: str) -> Iterator[str]:
    for line in log.splitlines():
        match = RESULT.search(line)
        if match is None:
            continue
        notes = NOTES.search(match["rest"])
        operation = OPERATIONS.get(int(match["tag"]), f"tag {match['tag']}")
        yield f"{operation} err={match['code']}" + (f" notes={notes[1]}" if notes else "")


def unindexed(kind: str) -> bool:
    """Whether an answer's notes say that the server read every entry."""
    return bool(UNINDEXED & set(kind.partition(" notes=")[2].split(",")))


SCRIPT = Path(__file__).with_name("written-files")
MOST_WRITTEN = 1088 << 20  # the script gives a GiB of files; their headers need some more
MOST_OF_ONE = 128 << 20  # as in the script: of one file, and here of a log with its older parts
LIMIT_S = 240.0
NOBODY = "65534:65534"
LOGS = f"/var/log/dirsrv/slapd-{INSTANCE}/"
DATABASE = (f"/var/lib/dirsrv/slapd-{INSTANCE}/", f"/dev/shm/slapd-{INSTANCE}/")  # noqa: S108
READABLE = """
find / -xdev -type f -newerct "@$1" -readable ! -path '/opt/dsbisect-*' 2>/dev/null
find /etc/dirsrv /var/*/dirsrv -type f -newerct "@$2" -readable 2>/dev/null
true
"""
# A token's password and a key, as 389-ds keeps them next to its configuration.
KEYS = f"""
cd {CONFIG_FOLDER} || exit
for each in pin.txt pwdfile.txt; do cat "$each"; echo; done 2>/dev/null
sed -n '/-----BEGIN/,/-----END/p' *-Key.pem 2>/dev/null
true
"""
PEM = re.compile(r"-----BEGIN [A-Z ]*KEY-----\n(.*?)-----END", re.DOTALL)
NAME = re.compile(r"^uid=([^,]*),.*$", re.DOTALL)
HEADER = re.compile(rb"(\d{1,12}) (\d{1,5}) (\d{1,18})\n")
MOST_READABLE = 200


def observe(
    server: ValidatedServer,
    evidence: EvidenceFolder,
    name: str,
    users: Sequence[SchemeUser],
    replies: Sequence[ClientAnswer] = (),
    *,
    since_s: float | None = None,
) -> Traces:
    """Stop a server, look through all that it wrote and replied, and keep that under a name.

    What was written earlier than ``since_s``, or than its container, is the image's.
    """
    secrets = (*_secrets(server, users), *_keys(server))
    with suppress(InstanceError):  # it may have been stopped already
        server.stop()
    server.tools.progress(f"looking through what the server wrote: {name}")
    since = f"{since_s or server.began_at:.3f}"
    with scratch_folder("traces") as folder:
        written_files = folder / "written"
        result = server.box.execute(
            "sh",
            "-s",
            since,
            stdin=SCRIPT.read_text(encoding="utf-8"),
            limit_s=LIMIT_S,
            into=written_files,
            into_bytes=MOST_WRITTEN,
        )
        if not result.ok:
            raise InstanceError(f"what the server wrote cannot be read: {result.end}")
        traces = _traces(written_files, secrets, replies)
    moments = (since, f"{server.began_at:.3f}")  # in its own folders, packages' scripts count too
    readable = server.box.execute("sh", "-c", READABLE, "sh", *moments, user=NOBODY).stdout
    paths = tuple(sorted({*plain(readable).splitlines()}))[:MOST_READABLE]
    traces = traces.model_copy(update={"readable": paths})
    keep_traces(evidence, name, traces)
    return traces


def _traces(
    written_files: Path, secrets: Sequence[Secret], replies: Sequence[ClientAnswer]
) -> Traces:
    finds, cut, logs, files = [], [], {"errors": b"", "access": b""}, 0
    with written_files.open("rb") as stream:
        for path, data, full_size in files_in(stream):
            files += 1
            finds += [f for f in finds_in({path: data}, secrets) if not belongs(f)]
            cut += [path] if len(data) < full_size else []
            name, _, rotated = path.removeprefix(LOGS).partition(".")
            if path.startswith(LOGS) and name in logs and rotated != "rotationinfo":
                room = MOST_OF_ONE - len(logs[name])
                logs[name] += data[:room]
                cut += [path] if len(data) > room else []
    finds += finds_in(replied(replies), secrets)
    logs["errors"] = without_secrets(logs["errors"], secrets)  # its words stand in the report
    texts = {name: plain(data.decode(errors="replace")) for name, data in logs.items()}
    return Traces(
        finds=tuple(finds),
        cut=tuple(cut),
        files=files,
        secrets=len(secrets),
        messages=messages(texts["errors"]),
        answers=answers(texts["access"]),
    )


def files_in(stream: BinaryIO) -> Iterator[tuple[str, bytes, int]]:
    """Path, bytes and whole size of each file that the script gave; InstanceError if it is cut."""
    while header := stream.readline(64):
        match = HEADER.fullmatch(header)
        if match is None:
            raise InstanceError("what the server wrote cannot be read: a header is not one")
        size, length, full_size = map(int, match.groups())
        if size > MOST_OF_ONE:
            raise InstanceError(f"what the server wrote cannot be read: a file of {size} bytes")
        path, data = stream.read(length), stream.read(size)
        if len(path) != length or len(data) != size:
            raise InstanceError("what the server wrote cannot be read: it ends too early")
        yield plain(path.decode(errors="replace")), data, full_size


def belongs(find: Find) -> bool:
    """Whether a server has to keep that secret there: hashes in its database, a key in its file."""
    path = find.place.partition(", line ")[0]
    if find.kind is SecretKind.HASH:
        return path.startswith((*DATABASE, f"{CONFIG_FOLDER}/dse"))
    return find.kind is SecretKind.KEY and path.startswith(f"{CONFIG_FOLDER}/")


def replied(replies: Sequence[ClientAnswer]) -> dict[str, bytes]:
    """Place -> what the server told somebody there, from the client's answers."""
    texts_found: dict[str, bytes] = {}
    for answer in replies:
        try:
            document = json.loads(answer.found) if answer.ok else {}
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            texts = ((plain(place), str(text)) for place, text in document.items())
            texts_found |= {place: text.encode("latin-1", "replace") for place, text in texts}
    return texts_found


def _secrets(server: ValidatedServer, users: Sequence[SchemeUser]) -> Iterator[Secret]:
    """Passwords that are used, and what the server stores of them now."""
    site, stored = server.site, {user.dn: user.stored for user in users}
    passwords, root = {user.dn: user.password for user in users}, ""
    with suppress(InstanceError), server.manager() as directory:  # else what is known of before
        stored |= passwords_in(dump_of(directory))
        root = "".join(directory.read("cn=config", "nsslapd-rootpw").get("nsslapd-rootpw", []))
    passwords = {dn: password_of(NAME.sub(r"\1", dn)) for dn in stored} | passwords
    words = {f"the password of {dn}": word for dn, word in passwords.items()}
    words |= {f"a password of a suite, number {number}": word for number, word in enumerate(WORDS)}
    words |= {"the password of the manager": site.manager_password}
    hashes = {f"the stored password of {dn}": value for dn, value in stored.items()}
    hashes |= {"the stored password of the manager": root}
    clear = {value.rpartition("}")[2] for value in stored.values()} & {*words.values()}
    for name, word in words.items():
        kind = SecretKind.HASH if word in clear else SecretKind.PASSWORD  # stored as it is
        yield Secret(name=name, kind=kind, value=word.encode())
    for name, value in hashes.items():
        if (word := value.rpartition("}")[2]) not in clear:
            yield Secret(name=name, kind=SecretKind.HASH, value=word.encode())


def _keys(server: ValidatedServer) -> Iterator[Secret]:
    text = server.box.must("sh", "-c", KEYS, what="read the server's keys")
    for body in PEM.findall(text):
        lines = body.split()
        with suppress(ValueError):  # the middle: every key of a kind begins with the same bytes
            middle = base64.b64decode(lines[len(lines) // 2])
            yield Secret(name="the key of the certificate", kind=SecretKind.KEY, value=middle)
    for line in PEM.sub("", text).splitlines():
        word = line.rpartition(":")[2].strip()
        if word and "-----" not in word:
            yield Secret(name="the password of the keys", kind=SecretKind.KEY, value=word.encode())
