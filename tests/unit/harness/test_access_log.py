"""What becomes of an access log: a workload that the lab takes, with nothing of the log's names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shipped import MATRIX
from typer.testing import CliRunner

from dsbisect.cli.workload_commands import app
from dsharness.errors import UsageError
from dsharness.matrix import find_workload
from dsproducts.dirsrv.recorded.access_log import (
    LogEvent,
    UnreadLine,
    read_file,
    read_files,
    read_line,
)
from dsproducts.dirsrv.recorded.recorded_load import RecordedLoad, recorded_load

HEAD = ["\t389-Directory/2.3.1 B2023.017.2100", "\thost:389 (/etc/dirsrv/slapd-x)", ""]
START = "conn=1 fd=64 slot=64 connection from 10.0.0.7 to 10.0.0.1"


def stamped(second: int, rest: str) -> str:
    return f"[26/Nov/2026:01:00:{second:02d}.123456789 +0000] {rest}"


def asked(number: int, request: str, answer: str = "err=0 tag=101 nentries=1") -> list[str]:
    at = number % 60
    result = f"RESULT {answer} wtime=0.000100 optime=0.000200 etime=0.000300"
    return [
        stamped(at, f"conn=1 op={number} {request}"),
        stamped(at, f"conn=1 op={number} {result}"),
    ]


def search(filter_: str, base: str = "dc=hidden", scope: int = 2, attrs: str = "ALL") -> str:
    return f'SRCH base="{base}" scope={scope} filter="{filter_}" attrs={attrs}'


def load_of(*lines: str) -> RecordedLoad:
    read = (read_line(line, number) for number, line in enumerate(lines, 1))
    return recorded_load(each for each in read if each is not None)


@pytest.mark.parametrize(
    ("rest", "word"),
    [
        (START, "connection"),
        ("conn=2 fd=65 slot=65 SSL connection from 10.0.0.7 to 10.0.0.1", "SSL connection"),
        ("conn=2 TLS1.3 128-bit AES-GCM", "TLS"),
        ("conn=1 op=2 fd=64 closed - U1", "closed"),
        (
            "conn=1 op=-1 fd=64 Disconnect - Bad Ber Tag - B1",
            "Disconnect",
        ),
        ('conn=Internal op=-1 MOD dn="cn=x"', "internal"),
        ('conn=5 (Internal) op=1(1)(1) SRCH base="" scope=0 filter="(a=b)" attrs=ALL', "internal"),
        ('conn=1 op=3 EXT oid="1.3.6.1.4.1.1466.20037" name="start_tls_plugin"', "EXT"),
    ],
)
def test_each_kind_of_line_is_known(rest: str, word: str) -> None:
    event = read_line(stamped(1, rest), 1)
    assert isinstance(event, LogEvent)
    assert event.word == word


def test_an_old_line_without_parts_of_seconds_is_read() -> None:
    event = read_line("[10/Jun/2015:14:00:05 -0400] conn=7 op=1 UNBIND", 1)
    assert isinstance(event, LogEvent)
    assert (event.at_s, event.connection, event.operation) == (1433959205.0, "7", 1)


@pytest.mark.parametrize(
    ("filter_", "found", "becomes"),
    [
        ("(uid=alice)", 1, "(uid={user})"),
        ("(uid=alice)", 0, "(uid=nobody)"),
        ("(mail=a@b.c)", 1, "(uid={user})"),
        ("(cn=ali*)", 1, "(cn={user}*)"),
        ("(&(objectClass=posixAccount)(uid=alice))", 1, "(&(objectClass=person)(uid={user}))"),
        ("(|(uid=a)(cn=b)(sn=c))", 1, "(|(uid=nobody)(cn=nobody)(sn={surname}))"),
        ("(&(uid=a)(!(employeeType=left)))", 1, "(&(uid={user})(!(uid=nobody)))"),
        (
            "(&(objectClass=groupOfNames)(memberUid=alice))",
            3,
            "(&(objectClass=groupOfNames)(member={user_dn}))",
        ),
        ("(objectClass=*)", 9, "(objectClass=*)"),
    ],
)  # fmt: skip
def test_a_filter_becomes_one_of_the_labs_own(filter_: str, found: int, becomes: str) -> None:
    load = load_of(*asked(1, search(filter_), f"err=0 tag=101 nentries={found}"))
    assert [each.filter for each in load.workload.requests] == [becomes]


@pytest.mark.parametrize(
    "filter_", ["(uid>=a)", "(uid:caseExactMatch:=a)", "(uid=cut", "(&", "uid=a", "(" * 500]
)
def test_what_the_load_cannot_ask_is_told_with_its_share(filter_: str) -> None:
    load = load_of(*asked(1, search(filter_)), *asked(2, search("(uid=a)")))
    assert sum(load.left_out.values()) == 1
    assert "# 50.0 % of the operations are left out: searches" in load.text


def test_shares_are_those_of_the_log() -> None:
    lines = [line for number in range(90) for line in asked(number, search(f"(uid=user{number})"))]
    lines += [line for number in range(90, 100) for line in asked(number, 'MOD dn="uid=a,dc=b"')]
    load = load_of(*lines)
    assert [(each.kind, each.share) for each in load.workload.requests] == [
        ("search", 90), ("modify", 10),
    ]  # fmt: skip


def paused(connections: int, pause_s: float) -> RecordedLoad:
    """Each connection asks ten times, and pauses after each answer, which takes a millisecond."""
    lines = []
    for at in range(10):
        for number in range(connections):
            begun = at * (pause_s + 0.001) + number / 10_000
            for time, rest in (
                (begun, search("(uid=a)")), (begun + 0.001, "RESULT err=0 tag=101 nentries=1"),
            ):  # fmt: skip
                part = f"{time:013.9f}"
                lines.append(
                    (time, f"[26/Nov/2026:01:00:{part[1:]} +0000] conn={number} op={at} {rest}")
                )
    return load_of(*(line for _, line in sorted(lines)))


def test_pauses_of_clients_are_kept_and_asking_again_at_once_is_none() -> None:
    load = paused(30, 0.05).workload
    assert load.pauses_ms == pytest.approx([50.0] * 20, abs=0.02)
    assert load.threads == 30, "so many connections were open"
    restless = paused(3, 0.00001).workload
    assert (restless.pauses_ms, restless.threads) == ((), 3)
    assert set(paused(2, 3.0).workload.pauses_ms) == {1000.0}, "longer ones are rest"


def test_an_entry_that_comes_and_goes_is_one_operation() -> None:
    words = ["ADD"] * 4 + ["DEL"] * 3 + ["MODRDN"]
    lines = [line for at, each in enumerate(words) for line in asked(at, f'{each} dn="uid=a,dc=b"')]
    requests = load_of(*lines).workload.requests
    assert [(each.name, each.share) for each in requests] == [
        ("add+delete", 75), ("add+rename+delete", 25),
    ]  # fmt: skip


@pytest.mark.parametrize(("code", "value"), [(6, "{user}"), (5, "nobody")])
def test_a_compare_has_the_answer_that_it_had(code: int, value: str) -> None:
    (request,) = load_of(*asked(1, 'CMP dn="uid=a" attr="cn"', f"err={code}")).workload.requests
    assert (request.kind, request.value, request.result) == ("compare", value, code)


@pytest.mark.parametrize(
    ("filter_", "found", "entries"),
    [
        ("(uid=a)", 1, 1), ("(uid=a)", 0, 0), ("(cn=a*)", 3, None), ("(|(uid=a)(cn=b))", 1, None),
        ("(!(uid=a))", 0, None), ("(&(objectClass=person)(mail=x))", 1, 1),
    ],
)  # fmt: skip
def test_how_many_entries_are_found_is_checked_where_it_is_plain(
    filter_: str, found: int, entries: int | None
) -> None:
    (request,) = load_of(*asked(1, search(filter_), f"err=0 nentries={found}")).workload.requests
    assert request.entries == entries


def test_operations_that_were_never_answered_are_not_at_work_forever() -> None:
    lines = [stamped(1, f"conn={each} op=1 {search('(uid=a)')}") for each in range(9)]
    ended = [stamped(1, f"conn={each} op=1 fd=64 closed - B1") for each in range(9)]
    both = [line for pair in zip(lines, ended, strict=True) for line in pair]
    assert load_of(*both, *asked(2, search("(uid=a)"))).workload.threads == 1


VALUE = st.text("abcdefghijkm0123456789", min_size=9, max_size=12).map(lambda text: f"qz{text}")


@given(VALUE, VALUE, VALUE, st.integers(0, 2))
def test_nothing_of_the_log_comes_out(name: str, value: str, base: str, scope: int) -> None:
    requests = (
        search(f"(|({name}={value})(cn={value}*)(member={value}))", base, scope, f'"{name}"'),
        search(f"(objectClass={value})", f"ou={base}", scope),
        search(f"(&({name}=*)(!(uid={value})))", f"ou={base}", scope),
        f'BIND dn="uid={value},{base}" method=128 version=3',
        f'MOD dn="uid={value}"', f'ADD dn="uid={value}"', f'EXT oid="{value}" name="{name}"',
        f'MODRDN dn="uid={value}" newrdn="uid={base}" newsuperior="{name}"',
    )  # fmt: skip
    start = stamped(0, f"conn=1 fd=64 slot=64 connection from {value} to {base}")
    lines = [line for number, each in enumerate(requests) for line in asked(number, each)]
    load = load_of(start, *lines)
    written = load.text + str(load)
    assert not [each for each in (name, value, base) if each in written]


def test_what_is_written_is_what_the_lab_takes(tmp_path: Path) -> None:
    lines = [*HEAD, stamped(0, START)]
    lines += asked(0, 'BIND dn="uid=a,dc=b" method=128 version=3', "err=0 tag=97 nentries=0")
    lines += asked(1, search("(&(objectClass=groupOfNames)(member=uid=a))"))
    lines += asked(2, 'ADD dn="uid=a,dc=b"', "err=0 tag=105 nentries=0")
    log, output = tmp_path / "access", tmp_path / "mine.yaml"
    log.write_text("\n".join([*lines, "half a li"]))
    done = CliRunner().invoke(app, ["from-log", str(log), "--output", str(output), "--json"])
    said = json.loads(done.stdout)
    assert (said["operations"], said["unread_lines"]) == (3, 1)
    found = find_workload(MATRIX, str(output))
    expected = type(found).model_validate(said["workload"])
    assert found.model_copy(update={"file": None}) == expected


def test_files_are_read_in_their_own_order_and_unpacked(tmp_path: Path) -> None:
    old, new = tmp_path / "a.gz", tmp_path / "b"
    old.write_bytes(gzip.compress(stamped(1, "conn=1 op=1 UNBIND").encode()))
    new.write_text(stamped(9, "conn=2 op=1 UNBIND"))
    events = [each for each in read_files([new, old]) if isinstance(each, LogEvent)]
    assert [each.connection for each in events] == ["1", "2"]


def test_a_folder_is_no_access_log(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: Is a directory\n"):
        list(read_file(tmp_path))


@pytest.mark.parametrize("text", ["hello\n" * 500, '{"operation": "BIND"}\n' * 500])
def test_a_file_that_is_no_access_log_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(UsageError, match="x:1: this is no line of an access log"):
        list(read_file(tmp_path / "x"))


def test_a_log_in_json_is_the_same_log() -> None:
    """The same events in both forms give one workload; the JSON is as 389-ds 3.3.1 wrote it."""
    at = '{"local_time":"2026-11-26T02:24:18.801979453 +0000","operation":'
    where = '"key":"1795659858-4","conn_id":4,"op_id"'
    told = [
        f'{at}"SEARCH",{where}:1,"base_dn":"dc=lab","scope":2,"filter":"(uid=a)","attrs":["cn"]}}',
        f'{at}"RESULT",{where}:1,"msg":"","tag":101,"err":0,"nentries":1,"wtime":"0.000340945"}}',
        f'{at}"BIND",{where}:2,"bind_dn":"uid=a,dc=lab","version":3,"method":"128"}}',
        f'{at}"RESULT",{where}:2,"tag":97,"err":0,"nentries":0,"bind_dn":"uid=a,dc=lab"}}',
        f'{at}"MODIFY",{where}:3,"target_dn":"uid=a,dc=lab"}}',
        f'{at}"RESULT",{where}:3,"tag":103,"err":0,"nentries":0}}',
        f'{at}"SEARCH",{where}:4,"internal_op":true,"base_dn":"dc=lab","scope":2,"filter":"(a=b)"}}',
        f'{at}"DISCONNECT",{where}:5,"fd":64,"close_reason":"U1"}}',
    ]
    text = [
        *asked(1, search("(uid=a)", attrs='"cn"')),
        *asked(2, 'BIND dn="uid=a,dc=lab" method=128 version=3', "err=0 tag=97 nentries=0"),
        *asked(3, 'MOD dn="uid=a,dc=lab"', "err=0 tag=103 nentries=0"),
    ]
    found, expected = load_of(*told), load_of(*text)
    assert (found.operations, found.unread) == (3, 0)
    assert expected.workload.pauses_ms, "its lines are seconds apart"
    assert found.workload == expected.workload.model_copy(update={"pauses_ms": ()})


def test_a_log_without_operations_is_refused() -> None:
    with pytest.raises(UsageError, match="no operation that the load could make"):
        recorded_load([UnreadLine(number=1)])
