"""What a server answers makes the lab connect nowhere else, and ends no search of candidates.

The servers are real sockets on this machine that speak LDAP.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest
from answering_ldap import (
    REFERRAL,
    SEARCH,
    Reply,
    Request,
    answering,
    directory,
    entry,
    message,
    reference,
    result,
    tlv,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import dsbisect
from dsharness.errors import InstanceError
from dsharness.model import DirectoryContent, Settings
from dsharness.systems.ldap.directory import Directory, connect, read_anonymously
from dsharness.systems.ldap.directory_system import OwnDirectory
from dsharness.systems.ldap.ldap_connection import (
    check_message,
)
from dsharness.systems.system import Seed
from dsproducts.dirsrv.dirsrv import Dirsrv
from dsproducts.dirsrv.password_trials import changed_scheme
from dsproducts.dirsrv.validation.ldap_client import job as client_job
from dsproducts.dirsrv.validation.ldap_client.operations import OPERATIONS, REPLIES
from dsproducts.dirsrv.validation.ldap_client.passwords import BINDS, PASSWORDS
from dsproducts.dirsrv.validation.population import add_scheme_users, dump_of, schemes_of
from dsproducts.openldap.slapd import OpenLdap

ROOT = Path(dsbisect.__file__).parents[2]
SITE = Dirsrv.site
LOOPBACK = "127.0.0.1"


# --- A server says that the answer is elsewhere.


@pytest.fixture
def elsewhere() -> Iterator[socket.socket]:
    """A port that listens: nobody of the lab may ever connect to it."""
    with closing(socket.socket()) as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen()
        listener.setblocking(False)
        yield listener
        with pytest.raises(BlockingIOError):
            listener.accept()


def as_result(uri: str, request: Request) -> bytes:
    return result(request, REFERRAL, [uri])


def as_attribute(uri: str, request: Request) -> bytes:
    """An entry that is a referral."""
    values = {"objectClass": [b"referral"], "ref": [uri.encode()], "cn": [b"config"]}
    answer = entry(request, request.base, values) if request.tag == SEARCH else b""
    return answer + result(request)


def as_reference(uri: str, request: Request) -> bytes:
    """A search goes on elsewhere; so does, in the end, the rest."""
    answer = reference(request, uri, uri) if request.tag == SEARCH else b""
    return answer + result(request, REFERRAL if request.tag == SEARCH else 0, [uri])


def after_bind(reply: Callable[[str, Request], bytes], uri: str) -> Reply:
    """The bind is accepted."""
    return lambda asked: result(asked) if asked.tag == 0x60 else reply(uri, asked)


REFERRING = pytest.mark.parametrize("reply", [as_result, as_attribute, as_reference])
ASKED: dict[str, Callable[[Directory], object]] = {
    "read": lambda asked: asked.read("cn=config"),
    "children": lambda asked: list(asked.children("cn=config", "cn")),
    "below": lambda asked: list(asked.below("cn=config")),
    "pages": Directory.count_users,
    "modify": lambda asked: asked.modify("cn=config", {"a": "b"}),
    "add": lambda asked: asked.add_user(1),
    "delete": lambda asked: asked.connection.delete("cn=a"),
    "password": lambda asked: asked.set_password(1),
    "counts": lambda asked: Dirsrv().counts(asked),
}


@REFERRING
@pytest.mark.parametrize("ask", ASKED.values(), ids=[*ASKED])
def test_the_lab_follows_its_own_server_nowhere(
    tmp_path: Path,
    elsewhere: socket.socket,
    reply: Callable[[str, Request], bytes],
    ask: Callable[[Directory], object],
) -> None:
    uri = "ldap://{}:{}/cn=config".format(*elsewhere.getsockname())
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "ldapi"))
        with (
            answering(listener, after_bind(reply, uri)),
            suppress(InstanceError),
            connect(tmp_path / "ldapi", SITE) as asked,
        ):
            ask(asked)


@REFERRING
def test_nor_does_it_when_it_binds(
    tmp_path: Path, elsewhere: socket.socket, reply: Callable[[str, Request], bytes]
) -> None:
    uri = "ldap://{}:{}/".format(*elsewhere.getsockname())
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "ldapi"))
        with (
            answering(listener, partial(reply, uri)),
            suppress(InstanceError),
            connect(tmp_path / "ldapi", SITE),
        ):
            pass


@REFERRING
def test_nor_someone_else_s_server(
    elsewhere: socket.socket, reply: Callable[[str, Request], bytes]
) -> None:
    uri = "ldap://{}:{}/".format(*elsewhere.getsockname())
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        with answering(listener, after_bind(reply, uri)):
            read_anonymously(LOOPBACK, listener.getsockname()[1], "uid=a,dc=lab")


TRIES = {**BINDS, **OPERATIONS, **PASSWORDS, **REPLIES}


def job_for(port: int) -> client_job.Job:
    """The job of the client that asks a validated server; nobody listens where it encrypts."""
    user = client_job.User(dn="uid=a,dc=lab", password="p", scheme="SSHA")
    return client_job.Job(
        port=port, secure_port=port, ca_file="/nowhere", suffix="dc=lab", people="dc=lab",
        manager=user, users=(user,),
    )  # fmt: skip


@REFERRING
def test_nor_does_the_client_of_a_validation(
    elsewhere: socket.socket,
    reply: Callable[[str, Request], bytes],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    uri = "ldap://{}:{}/".format(*elsewhere.getsockname())
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        with answering(listener, after_bind(reply, uri)):
            for name, attempt in TRIES.items():
                client_job.report(name, attempt, job_for(listener.getsockname()[1]))
    assert capsys.readouterr().out.count("\n") == len(TRIES), "each try is told"


def test_a_range_of_values_is_not_asked_for_again_and_again(tmp_path: Path) -> None:
    asked: list[Request] = []

    def reply(request: Request) -> bytes:
        asked.append(request)
        values = {f"member;range={len(asked)}-{len(asked)}": [b"a"]}
        answer = entry(request, request.base, values) if request.tag == SEARCH else b""
        return (b"" if len(asked) > 50 else answer) + result(request)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "ldapi"))
        with answering(listener, reply), connect(tmp_path / "ldapi", SITE) as directory_:
            directory_.read("cn=config", "member")
    assert len(asked) == 2, "one bind, one search"


def test_one_place_makes_connections() -> None:
    made = re.compile(r"\bConnection\(|ldap3\.core\.connection|auto_referrals|initialize\(")
    folders = ("harness", "images", "builds", "results", "bisect", "benchmarks", "examples")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    makers = {
        path.name
        for path in files
        if "ldap3" in (text := path.read_text(encoding="utf-8")) and made.search(text)
    }
    assert makers == {"ldap_connection.py"}


# --- A server answers what nobody expects.

PASSWORD = b"{PBKDF2-SHA512}10000$c2FsdA$aGFzaA"
USER = {"uid": [b"user0000000"], "userPassword": [PASSWORD]}
LDBM = "cn=config,cn=ldbm database,cn=plugins,cn=config"
SCHEMES = "cn=password storage schemes,cn=plugins,cn=config"
HELD = {
    "": {"vendorVersion": [b"389-Directory/2.3.1"]},
    "cn=config": {
        "nsslapd-accesslog": [b"/var/log/access"], "passwordStorageScheme": [b"SSHA"],
        "nsslapd-enable-upgrade-hash": [b"on"],
    },
    LDBM: {"nsslapd-backend-implement": [b"bdb"]},
    "cn=snmp,cn=monitor": {
        "simpleauthbinds": [b"41"], "entriesreturned": [b"7"], "modifyentryops": [b"2"],
    },
    f"cn=ssha,{SCHEMES}": {
        "cn": [b"SSHA"], "nsslapd-pluginEnabled": [b"on"],
        "nsslapd-pluginType": [b"pwdstoragescheme"],
    },
    "cn=monitor": {"monitoredInfo": [b"OpenLDAP: slapd 2.5.13"]},
    "cn=bind,cn=operations,cn=monitor": {"monitorOpInitiated": [b"41"]},
    "cn=entries,cn=statistics,cn=monitor": {"monitorCounter": [b"7"]},
    "cn=modify,cn=operations,cn=monitor": {"monitorOpInitiated": [b"2"]},
    **{SITE.user_dn(number): USER for number in (0, 1)},
}  # fmt: skip
SEED = Seed(
    content=DirectoryContent(number=2, passwords=2),
    settings=Settings(id="s", options={}),
)


def endpoint(path: Path) -> OwnDirectory:
    return OwnDirectory(port=1, users=SITE, socket=path)


def asked_as_manager(ask: Callable[[Directory], object]) -> Callable[[Path], object]:
    def work(path: Path) -> object:
        with connect(path, SITE) as manager:
            return ask(manager)

    return work


DOORS: dict[str, Callable[[Path], object]] = {
    "look": lambda path: Dirsrv().look(endpoint(path)),
    "look-openldap": lambda path: OpenLdap().look(endpoint(path)),
    "check": lambda path: Dirsrv().check(endpoint(path), SEED),
    "ready": lambda path: Dirsrv().ready(endpoint(path)),
    "configuration": lambda path: Dirsrv().configuration(endpoint(path)),
    "give": lambda path: Dirsrv().give(endpoint(path), SEED, Dirsrv.parts[0]),
    "count-users": lambda path: Dirsrv().count_users(endpoint(path)),
    "schemes": lambda path: Dirsrv().schemes(None, endpoint(path)),  # type: ignore[arg-type]
    "rounds": lambda path: Dirsrv().rounds_stored(endpoint(path), "SSHA"),
    "change-scheme": asked_as_manager(lambda manager: changed_scheme(manager, "SSHA")),
    "set-password": asked_as_manager(lambda manager: manager.set_password(1)),
    "validate-schemes": asked_as_manager(schemes_of),
    "validate-dump": asked_as_manager(dump_of),
    "validate-users": asked_as_manager(lambda manager: add_scheme_users(manager, "a-")),
}
HOSTILE: dict[str, dict[str, list[bytes]] | None] = {
    "renamed": {"modifyEntryOperations": [b"2"]},
    "missing": {},
    "no value": {"simpleauthbinds": [], "entriesreturned": [], "modifyentryops": []},
    "no number": {"simpleauthbinds": [b"abc"]},
    "negative": {"simpleauthbinds": [b"-1"]},
    "5,000 digits": {"simpleauthbinds": [b"9" * 5000]},
    "another script's digits": {"simpleauthbinds": ["٣".encode()]},
    "no text": {"simpleauthbinds": [b"\xff\xfe\x00"]},
    "empty": {"simpleauthbinds": [b""]},
    "no entry": None,
}


@pytest.fixture
def look_at(tmp_path: Path) -> Callable[[Reply], object]:
    """One look of the lab at a server that answers so."""

    def look(reply: Reply) -> object:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "ldapi"))
            with answering(listener, reply):
                return DOORS["look"](tmp_path / "ldapi")

    return look


@pytest.mark.parametrize("values", HOSTILE.values(), ids=[*HOSTILE])
def test_a_counter_that_is_none_is_one_candidate_s_failure(
    look_at: Callable[[Reply], object], values: dict[str, list[bytes]] | None
) -> None:
    entries = {dn: held for dn, held in HELD.items() if dn != "cn=snmp,cn=monitor"}
    if values is not None:
        entries["cn=snmp,cn=monitor"] = values
    with pytest.raises(InstanceError, match=r"cn=snmp,cn=monitor|simpleauthbinds"):
        look_at(directory(entries))


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not end its answer is waited for, but not for long."""
    monkeypatch.setattr("dsharness.systems.ldap.directory.reached.__kwdefaults__", {"limit_s": 1})


def unread(request: Request, *values: bytes) -> bytes:
    """A search that is answered with something else inside the message."""
    return message(request.number, tlv(0x64, *values)) if request.tag == SEARCH else result(request)


BAD_BER: dict[str, Reply] = {
    "a number of 4 MB": lambda asked: unread(asked, tlv(2, b"\x7f" * (4 << 20))),
    "a number of 4 MB as a value": lambda asked: unread(
        asked, tlv(4), tlv(0x30, tlv(0x30, tlv(4, b"a"), tlv(0x31, tlv(2, b"\x7f" * (4 << 20)))))
    ),
    "2 GB of nothing as a value": lambda asked: unread(
        asked, tlv(4), tlv(0x30, tlv(0x30, tlv(4, b"a"), tlv(0x31, tlv(2, b"\x7f\xff\xff\xff"))))
    ),
    "values that reach to the message's end": lambda asked: unread(
        asked, tlv(4), tlv(0x30, *(3 << 16) * [bytes([0x30, 6, 4, 0x84, 0, 0x1F, 0xFF, 0xFF])])
    ),
    "deep": lambda asked: unread(asked, b"\x30\x80" * 20_000),
    "deep and whole": lambda asked: unread(asked, deep(2000)),
    "no message": lambda asked: tlv(4, b"abc") if asked.tag == SEARCH else result(asked),
    "an empty message": lambda asked: tlv(0x30) if asked.tag == SEARCH else result(asked),
    "a bad name": lambda asked: entry(asked, "=,,=\x00\\", {"a": [b"b"]}) + result(asked),
    "a result of no kind": lambda asked: (
        result(asked, 127) if asked.tag == SEARCH else result(asked)
    ),
    "another's result": lambda asked: result(Request(number=asked.number + 1, tag=asked.tag)),
    "a reference": lambda asked: (
        reference(asked, "no uri", "ldap://") if asked.tag == SEARCH else b""
    ) + result(asked),
    "nothing": lambda asked: None if asked.tag == SEARCH else result(asked),
}  # fmt: skip


def deep(levels: int) -> bytes:
    value = b""
    for _ in range(levels):
        value = tlv(0x30, value)
    return value


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("reply", BAD_BER.values(), ids=[*BAD_BER])
def test_an_answer_that_is_none_is_one_candidate_s_failure(
    look_at: Callable[[Reply], object], reply: Reply
) -> None:
    with pytest.raises(InstanceError):
        look_at(reply)


NAMES = sorted({name for held in HELD.values() for name in held} | {"a", "ref", "uid;range=0-1"})
VALUES = st.binary(max_size=20) | st.sampled_from([b"on", b"{SSHA}x", b"9" * 5000, PASSWORD])
ATTRIBUTES = st.dictionaries(st.sampled_from(NAMES), st.lists(VALUES, max_size=3), max_size=4)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """An answer, or a part of it, with some bytes changed; or bytes alone."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.binary(max_size=60))
    bytes_ = bytearray(whole[: draw(st.integers(0, len(whole)))] if draw(st.booleans()) else whole)
    for _ in range(draw(st.integers(0, 3))):
        if bytes_:
            bytes_[draw(st.integers(0, len(bytes_) - 1))] = draw(st.integers(0, 255))
    return bytes(bytes_)


def hostile_world(data: DataObject) -> Reply:
    """A directory with some of what it holds exchanged, and from one answer on damaged ones."""
    changed = data.draw(st.dictionaries(st.sampled_from(sorted(HELD)), ATTRIBUTES, max_size=3))
    whole, left = directory({**HELD, **changed}), data.draw(st.integers(0, 12))
    answers = [data.draw(st.none() | st.integers(0, 2)) for _ in range(2)]
    bytes_ = [data.draw(damaged(result(Request(number=2, tag=SEARCH)))) for _ in range(2)]
    hits = [data.draw(st.integers(1, 400)) for _ in range(2)]
    turn = 0

    def reply(request: Request) -> bytes | None:
        nonlocal turn
        turn += 1
        answer = whole(request)
        if turn <= left or answers[turn % 2] is None:
            return answer
        if answers[turn % 2] == 0:
            return bytes_[turn % 2]
        place = hits[turn % 2] % len(answer or b"x")
        return (answer or b"")[:place] + bytes([hits[0] % 256]) + (answer or b"")[place + 1 :]

    return reply


def law_of_the_door(name: str, data: DataObject, folder: Path) -> None:
    path = folder / "ldapi"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        with answering(listener, hostile_world(data)), suppress(InstanceError):
            DOORS[name](path)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("name", DOORS)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=settings.default.max_examples // 2,
)
@given(data=st.data())
def test_whatever_a_directory_answers_is_an_answer_or_an_instance_error(
    name: str, tmp_path: Path, data: DataObject
) -> None:
    law_of_the_door(name, data, tmp_path)


@pytest.mark.whole
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("name", DOORS)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=4 * settings.default.max_examples,
)
@given(data=st.data())
def test_and_so_are_many_more(name: str, tmp_path: Path, data: DataObject) -> None:
    law_of_the_door(name, data, tmp_path)


@given(st.binary(max_size=200))
def test_bytes_that_no_answer_has_are_refused_in_one_way(raw: bytes) -> None:
    with suppress(ValueError, IndexError):
        check_message(raw)
