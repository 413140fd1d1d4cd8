"""Access logs that a hostile server wrote, or a client of it: refused or read, in linear time."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsharness.errors import InstanceError, UsageError
from dsharness.measure.profiler import logged_times
from dsharness.process.command import run
from dsharness.process.deadline import Deadline
from dsharness.systems import SYSTEMS
from dsharness.systems.system import TimesLogger
from dsproducts.dirsrv.recorded import access_log
from dsproducts.dirsrv.recorded.access_log import (
    LogEvent,
    UnreadLine,
    read_file,
    read_files,
    read_line,
)
from dsproducts.dirsrv.recorded.operation_times import server_times
from dsproducts.dirsrv.recorded.recorded_load import recorded_load

AT = "[27/Nov/2026:01:00:00.123456789 +0000]"
TIMES = "wtime=0.000010 optime=0.000090 etime=0.000100"
ASKED = (
    f'{AT} conn=7 op=1 SRCH base="dc=lab" scope=2 filter="(&(uid=a)(|(cn=b)(cn=c*)))" attrs="cn"'
)
ANSWER = f"{AT} conn=7 op=1 RESULT err=0 tag=101 nentries=1 {TIMES} notes=U,P"
JSON_AT = '{"local_time":"2026-11-27T02:24:18.801979453 +0000","operation":'
KEY = '"key":"1795659858-4","conn_id":4,"op_id":1'
JSON_ASKED = (
    f'{JSON_AT}"SEARCH",{KEY},"base_dn":"dc=lab","scope":2,"filter":"(uid=a)","attrs":["cn"]}}'
)
JSON_ANSWER = (
    f'{JSON_AT}"RESULT",{KEY},"err":0,"nentries":0,"wtime":"0.000010","optime":"0.000090",'
    '"etime":"0.000100","notes":[{"note":"A"}]}'
)
REAL = (
    "\t389-Directory/2.3.1 B2023.017.2100",
    f"{AT} conn=7 fd=64 slot=64 connection from 10.0.0.7 to 10.0.0.1",
    f'{AT} conn=7 op=0 BIND dn="uid=a,dc=lab" method=128 version=3',
    f'{AT} conn=7 op=0 RESULT err=0 tag=97 nentries=0 {TIMES} dn="uid=a,dc=lab"',
    ASKED,
    ANSWER,
    JSON_ASKED,
    JSON_ANSWER,
    f'{AT} conn=7 op=2 CMP dn="uid=a,dc=lab" attr="uid"',
    f"{AT} conn=7 op=2 RESULT err=6 tag=111 nentries=0 {TIMES}",
    f'{AT} conn=5 (Internal) op=1(1)(1) MOD dn="cn=x"',
    f"{AT} conn=7 op=3 UNBIND",
    f"{AT} conn=7 op=3 fd=64 closed - U1",
)
MEGABYTE = 10**6
PROGRAM = str(Path(sys.executable).with_name("dsbisect"))
ODD = (
    "1e999", "-1e999", "NaN", "9" * 5000, "-1", "", "null", "[" * 3000, "{}", "true", '"', "\\",
    "9999", "0000", "\x00", "\ud800".encode("utf-8", "replace").decode(), "٣", " ", "=", "(", ")",
    '" scope=2 filter="', '" attrs=', "e" * 70_000,
)  # fmt: skip


def use(path: Path) -> None:
    """Everything that the lab makes of a log."""
    with suppress(UsageError):
        assert recorded_load(read_file(path)).text
    with suppress(UsageError):
        server_times(read_file(path), candidate_id="new", workload_id="load")
    system = SYSTEMS["dirsrv"]
    assert isinstance(system, TimesLogger)
    with suppress(InstanceError):
        logged_times(system, path, "new", "load")


def damaged(line: str, chance: random.Random) -> str:
    """A line with something else in it."""
    at, to = sorted(chance.choices(range(len(line) + 1), k=2))
    numbers = [at for at, letter in enumerate(line) if letter.isdigit()]
    if numbers and chance.random() < 0.5:  # a number is another one
        at = chance.choice(numbers)
        to = at + 1 + len(line[at + 1 :]) - len(line[at + 1 :].lstrip("0123456789."))
    kind = chance.randrange(4)
    if kind == 0:
        return line[:at] + chance.choice(ODD) + line[to:]
    if kind == 1:
        return line[:to] + line[at:to] * chance.choice([1, 2, 500]) + line[to:]
    if kind == 2:
        return line[:at] + line[to:]
    return line[:at] + chance.choice(REAL) + line[to:]


def written(folder: Path, seed: int) -> Path:
    chance, path = random.Random(seed), folder / "access"
    lines = [*REAL, *chance.choices(REAL, k=40)]
    for _ in range(chance.choice([1, 5, 60])):
        at = chance.randrange(len(lines))
        lines[at] = damaged(lines[at], chance)
    data = bytearray("\n".join(lines).encode(errors="surrogateescape"))
    if chance.random() < 0.2:
        data = bytearray(gzip.compress(data))
        for _ in range(chance.choice([0, 1, 9])):
            data[chance.randrange(2, len(data))] = chance.randrange(256)
    path.write_bytes(data)
    return path


@pytest.mark.few(2)
@pytest.mark.parametrize("block", range(150))
def test_real_lines_that_were_damaged_are_read_or_refused(block: int, tmp_path: Path) -> None:
    began = time.process_time()
    for seed in range(15 * block, 15 * (block + 1)):
        use(written(tmp_path, seed))
    assert time.process_time() - began < 60


@settings(max_examples=(settings.default or settings()).max_examples * 5)
@given(data=st.binary(max_size=3000) | st.text(max_size=3000).map(str.encode))
def test_any_bytes_are_read_or_refused(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-bytes"
    path.write_bytes(f"{ANSWER}\n".encode() + data)
    use(path)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)


@settings(max_examples=(settings.default or settings()).max_examples * 5)
@given(
    st.dictionaries(
        st.sampled_from(sorted(json.loads(JSON_ASKED) | json.loads(JSON_ANSWER))), JSON_VALUES
    )
)
def test_json_of_any_types_is_an_event_or_none(said: dict[str, object]) -> None:
    for real in (JSON_ASKED, JSON_ANSWER):
        found = read_line(json.dumps(json.loads(real) | said), 1)
        assert isinstance(found, LogEvent | UnreadLine)


def linear(line: str) -> None:
    """What takes the square of a megabyte takes hours."""
    began = time.process_time()
    found = read_line(line, 1)
    events = [each for each in (found, read_line(ANSWER, 2)) if each is not None]
    with suppress(UsageError):
        recorded_load(events)
    server_times(events, candidate_id="new", workload_id="load")
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "line",
    [
        f'{AT} conn=7 op=1 SRCH base="' + '" scope=2 filter="' * (MEGABYTE // 18),
        f'{AT} conn=7 op=1 SRCH base="a" scope=2 filter="' + '" attrs=' * (MEGABYTE // 8) + "\t",
        f'{AT} conn=7 op=1 SRCH base="a" scope=2 filter="(|'
        + "(a=b)" * (MEGABYTE // 5)
        + ')" attrs=ALL',
        f'{AT} conn=7 op=1 SRCH base="a" scope=2 filter="' + "(|" * (MEGABYTE // 2) + '" attrs=ALL',
        f'{AT} conn=7 op=1 SRCH base="a" scope=2 filter="(a=' + "*" * MEGABYTE + ')" attrs=ALL',
        f'{AT} conn=7 op=1 BIND dn="' + "a" * MEGABYTE + " method=128",
        f"{AT} conn=7 op=1 RESULT " + "err=" * (MEGABYTE // 4),
        f"{AT} conn=7 op=1 RESULT err=0 etime=" + "9" * MEGABYTE,
        f"{AT} conn=7 op=1 RESULT err=0 etime=1 notes=" + "A," * (MEGABYTE // 2),
        f"{AT} conn=" + "7" * MEGABYTE,
        f"{AT} conn=7 op=" + "1" * MEGABYTE + " UNBIND",
        "[" * MEGABYTE,
        " " * MEGABYTE + "\x00",
        JSON_AT + "[" * MEGABYTE,
        JSON_AT + '"SEARCH",' + KEY + ',"base_dn":' + "[" * 900 + "]" * 900 + "}",
        JSON_ASKED.replace(".801979453", "." + "1" * MEGABYTE),
    ],
    ids=lambda line: line[40:75],
)
def test_a_line_of_a_megabyte_takes_seconds_at_most(line: str) -> None:
    linear(line)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def long_line(path: Path) -> None:
    path.write_text(f"{ANSWER}\n")
    os.truncate(path, 3 << 30)  # zeros, without an end of line


def broken_archive(path: Path) -> None:
    packed = bytearray(gzip.compress("\n".join(REAL * 500).encode()))
    packed[len(packed) // 2] ^= 255
    path.write_bytes(packed)


def cut_archive(path: Path) -> None:
    path.write_bytes(gzip.compress("\n".join(REAL * 500).encode())[:-20])


def large_archive(path: Path) -> None:
    """A megabyte that becomes a gigabyte."""
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(1100):
            stream.write(bytes(1 << 20))


HOSTILE = [
    (pipe, "not a regular file"),
    (device, "not a regular file"),
    pytest.param(long_line, "more than 1024 MiB", marks=pytest.mark.whole),
    pytest.param(large_archive, "more than 1024 MiB", marks=pytest.mark.whole),
    (broken_archive, "cannot be read"),
    (cut_archive, "cannot be read"),
]


@pytest.mark.parametrize(("make", "why"), HOSTILE)
def test_what_is_no_log_is_refused_at_once(
    make: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    make(tmp_path / "access")
    with pytest.raises(UsageError, match=why):
        recorded_load(read_files([tmp_path / "access"]))


@pytest.mark.few(1)
@pytest.mark.parametrize(("make", "why"), [(long_line, "more than 1024 MiB"), *HOSTILE])
def test_the_program_refuses_it_with_little_memory(
    make: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    make(tmp_path / "access")
    words = 'ulimit -v 1000000; exec "$0" workload from-log "$1"'
    argv = ["sh", "-c", words, PROGRAM, str(tmp_path / "access")]
    done = run(argv, deadline=Deadline.after(60))
    assert (done.status, done.timed_out) == (2, False), done
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_a_line_that_is_too_long_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "access"
    path.write_text(f"{ASKED}\n{'x' * 10**6}\n{ANSWER}\n")
    first, long, last = read_file(path)
    assert isinstance(first, LogEvent)
    assert long == UnreadLine(number=2)
    assert isinstance(last, LogEvent)


def test_requests_that_nobody_answers_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "MOST_WAITING", 10_000)
    path = tmp_path / "access"
    path.write_text("".join(ASKED.replace("op=1", f"op={each}") + "\n" for each in range(100)))
    for reader in (recorded_load, lambda log: server_times(log, candidate_id="", workload_id="")):
        with pytest.raises(UsageError, match="wait for their answers"):
            reader(read_file(path))


def test_a_measured_servers_log_is_no_fault_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("nonsense\n" * 200)
    system = SYSTEMS["dirsrv"]
    assert isinstance(system, TimesLogger)
    with pytest.raises(InstanceError, match="the log of new cannot be read"):
        logged_times(system, tmp_path / "log", "new", "load")
