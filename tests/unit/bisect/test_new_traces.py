"""What the patched server left behind, judged by what stock left."""

from __future__ import annotations

import io
import json

import pytest

from dsharness.errors import InstanceError
from dsproducts.dirsrv.validation.dirsrv_suite import OWN_FOLDERS, answers_check, traces_checks
from dsproducts.dirsrv.validation.server_traces import belongs, files_in, replied
from dsproducts.dirsrv.validation.validated_server import ClientAnswer
from dsvalidate.check import Status
from dsvalidate.safe_gate import (
    Traces,
    literal,
    messages_check,
    readable_check,
    secrets_check,
)
from dsvalidate.secret_search import Find, SecretKind

AUDIT = Find(
    place="/var/log/dirsrv/slapd-lab/audit, line 3", secret="the stored password of uid=a",
    kind=SecretKind.HASH, form="as it is",
)  # fmt: skip
LEAK = Find(
    place="/var/log/dirsrv/slapd-lab/errors, line 9", secret="the password of uid=a",
    kind=SecretKind.PASSWORD, form="as base64",
)  # fmt: skip
QUIET = Traces(
    secrets=50, files=20, messages={"INFO: main - starting": 2}, answers={"bind err=0": 200},
    finds=(AUDIT,), readable=("/run/slapd.pid",),
)  # fmt: skip


def of(**changes: object) -> Traces:
    return QUIET.model_copy(update=changes)


def test_a_secret_where_stock_has_none_fails_with_its_place() -> None:
    check = secrets_check({"binds": of(finds=(AUDIT, LEAK))}, {"binds": QUIET})
    assert check.status is Status.FAILED
    assert "passwords where stock has none: /var/log/dirsrv/slapd-lab/errors" in check.found
    assert check.details == ("binds: " + str(LEAK),)


def test_what_stock_writes_as_well_is_no_objection() -> None:
    assert secrets_check({"binds": QUIET}, {"binds": QUIET}).status is Status.PASSED


@pytest.mark.parametrize(
    ("traces", "lacking", "why"),
    [(QUIET, ["recovery"], "recovery ended"), (of(cut=("/tmp/a",)), [], "/tmp/a")],
)
def test_what_was_not_looked_at_is_never_a_pass(traces, lacking, why) -> None:
    check = secrets_check({"binds": traces}, {"binds": QUIET}, lacking)
    assert check.status is Status.INCONCLUSIVE
    assert why in check.found


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ({"INFO: main - starting": 2}, Status.PASSED),
        ({"INFO: main - starting": 2, "INFO: do_bind - a": 1}, Status.WARNED),
        ({"INFO: main - starting": 60}, Status.WARNED),
        ({"INFO: main - starting": 2, "ERR: do_bind - a": 1}, Status.FAILED),
        ({"INFO: main - starting": 2, "EMERG: do_bind - a": 1}, Status.FAILED),
    ],
)
def test_new_severe_messages_fail_and_more_lines_warn(messages, status) -> None:
    check = messages_check([(of(messages=messages), QUIET)])
    assert check.status is status
    assert check.figures["lines of 1,000 operations"] == 5 * sum(messages.values())


@pytest.mark.parametrize(
    ("message", "servers", "status"),
    [
        ("INFO: daemon - waiting for a thread", 1, Status.PASSED),
        ("INFO: daemon - waiting for a thread", 2, Status.WARNED),
        ("WARN: daemon - waiting for a thread", 1, Status.WARNED),
        ("ERR: daemon - waiting for a thread", 1, Status.FAILED),
    ],
)
def test_information_that_one_of_several_servers_gives_warns_of_nothing(
    message: str, servers: int, status: Status
) -> None:
    loud = of(messages={**QUIET.messages, message: 1})
    check = messages_check([(loud if at < servers else QUIET, QUIET) for at in range(3)])
    assert check.status is status
    assert check.details == (f"{message} ({servers} lines)",)
    assert ("depend on the moment" in check.found) is (status is Status.PASSED)


@pytest.mark.parametrize(
    ("servers", "known", "status"),
    [(1, True, Status.PASSED), (1, False, Status.FAILED), (2, True, Status.FAILED)],
)
def test_a_severe_message_that_stock_has_too_may_be_the_moment(
    servers: int, known: bool, status: Status
) -> None:
    """A busy machine lets one server wait for a lock; no other did, and stock would say so too."""
    message = "ERR: plugin - already rebuilding the cache"
    loud = of(messages={**QUIET.messages, message: 1})
    both = [(loud if at < servers else QUIET, QUIET) for at in range(3)]
    assert messages_check(both, lambda asked: asked if known else ()).status is status


@pytest.mark.parametrize(("known", "status"), [(True, Status.PASSED), (False, Status.WARNED)])
def test_information_that_stock_has_too_may_come_from_every_server(
    known: bool, status: Status
) -> None:
    """On a busy machine each server may end while a thread still works."""
    loud = of(messages={**QUIET.messages, "INFO: daemon - waiting for … threads to end": 1})
    both = [(loud, QUIET)] * 3
    assert messages_check(both, lambda asked: asked if known else ()).status is status


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ERR: cos-plugin - already rebuilding the cache", "already rebuilding the cache"),
        ("ERR: x - the entry … has no parent in … any more", "has no parent in"),
        ("ERR: x - a … b", ""),
        ("a line without a level", ""),
    ],
)
def test_what_a_program_holds_of_a_message(kind: str, text: str) -> None:
    assert literal(kind) == text


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ({"bind err=0": 7}, Status.PASSED),
        ({"bind err=0": 7, "delete err=53": 1}, Status.WARNED),
        ({"bind err=0": 7, "search err=0 notes=U": 2}, Status.PASSED),
        ({"bind err=0": 7, "search err=0 notes=U": 3}, Status.FAILED),
        ({"bind err=0": 7, "search err=0 notes=A,P": 3}, Status.FAILED),
    ],
)
def test_other_answers_warn_and_an_index_that_is_not_used_fails(answers, status) -> None:
    stock = of(answers=QUIET.answers | {"search err=0 notes=U": 2})
    found = answers_check([(of(answers=answers), stock)])
    assert found.status is status
    assert bool(found.advice) is (status is not Status.PASSED)
    assert ("index" in found.advice) is (status is Status.FAILED)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/run/slapd.pid", Status.PASSED),
        ("/tmp/.cache", Status.WARNED),
        ("/etc/dirsrv/slapd-lab/pin.txt", Status.FAILED),
    ],
)
def test_a_file_that_anyone_may_read(path: str, status: Status) -> None:
    assert readable_check([path], ["/run/slapd.pid"], OWN_FOLDERS).status is status


def test_all_four_are_told_even_if_nothing_was_kept() -> None:
    checks = list(traces_checks({}, {}, ["binds"]))
    assert [check.name for check in checks] == ["secrets", "error-log", "answers", "new-readable"]
    assert checks[0].status is Status.INCONCLUSIVE


@pytest.mark.parametrize(
    ("place", "kind", "there"),
    [
        ("/var/lib/dirsrv/slapd-lab/db/data.mdb, line 1", SecretKind.HASH, True),
        ("/var/lib/dirsrv/slapd-lab/db/data.mdb, line 1", SecretKind.PASSWORD, False),
        ("/etc/dirsrv/slapd-lab/dse.ldif, line 9", SecretKind.HASH, True),
        ("/etc/dirsrv/slapd-lab/pin.txt, line 1", SecretKind.KEY, True),
        ("/etc/dirsrv/slapd-lab/pin.txt, line 1", SecretKind.PASSWORD, False),
        ("/var/log/dirsrv/slapd-lab/errors, line 1", SecretKind.HASH, False),
    ],
)
def test_a_server_keeps_hashes_and_keys_in_their_places(place, kind, there) -> None:
    assert belongs(Find(place=place, secret="s", kind=kind, form="f")) is there


def test_what_the_script_gave_is_read_and_a_cut_end_is_refused() -> None:
    [(path, _, _)] = files_in(io.BytesIO(b"0 4 0\n/a\x1b["))
    assert "\x1b" not in path  # a server chooses its files' names
    whole = b"3 2 3\n/aabc" + b"0 2 9\n/b"
    assert list(files_in(io.BytesIO(whole))) == [("/a", b"abc", 3), ("/b", b"", 9)]
    for end in range(1, len(whole)):
        if end != len(b"3 2 3\n/aabc"):
            with pytest.raises(InstanceError):
                list(files_in(io.BytesIO(whole[:end])))


def test_replies_are_places_and_a_failed_try_has_none() -> None:
    told = ClientAnswer(
        name="a", ok=True, found=json.dumps({"the reply to anyone: cn=monitor": "ÿ"})
    )
    failed = ClientAnswer(name="b", ok=False, found="refused")
    assert replied([told, failed]) == {"the reply to anyone: cn=monitor": b"\xff"}


@pytest.mark.parametrize("found", ["[1]", '{"a": 1}', "7", "null", "[" * 5000, "1" * 5000])
def test_replies_of_another_shape_are_no_defect(found: str) -> None:
    assert len(replied([ClientAnswer(name="a", ok=True, found=found)])) <= 1
