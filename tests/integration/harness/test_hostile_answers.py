"""The program of ldapload, krbload, dnsload and loginload against servers that answer anything."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from dsharness.loads import LOADS
from dsharness.loads.own_load import CONNECT, program_files
from dsharness.process.command import Completed, run
from dsharness.process.deadline import Deadline
from dsproducts.bind.dnsload import query
from dsproducts.krb5.kerberos_request_bytes import NONCE, as_request
from dsproducts.krb5.krbload import MASK

BIND = "600702010304008000"
LDAP = f"first 0 - - \nconnect+bind {CONNECT} 0 - - {BIND} 0 - 10 63020400\n"
KERBEROS = (
    f"ticket {CONNECT} 0 - - {as_request('user0', 'LAB', None).hex().replace(NONCE.hex(), MASK)}\n"
)
DNS = f"query 0 1 - {query('n0.lab.').hex()}\n"
FORM = b"action=?\t!\nGET / HTTP/1.1\r\nHost: lab\r\n\r\n"
LOGIN = f"login/authorize 200 1 - {FORM.hex()}\n"
FIRST_ID = b"\x01\x00\x00\x00"
MEMORY_KB = 300_000  # of addresses, for a program that needs 20,000
CASES = 40  # connections of a run, each of which gets another answer


def tlv(tag: int, content: bytes) -> bytes:
    length = len(content)
    size = bytes([length]) if length < 128 else b"\x84" + length.to_bytes(4, "big")
    return bytes([tag]) + size + content


def ldap_answer() -> bytes:
    result = b"\x0a\x01\x00\x04\x00\x04\x00"
    cookie = tlv(0x04, tlv(0x30, b"\x02\x01\x00" + tlv(0x04, b"more")))
    controls = tlv(0xA0, tlv(0x30, tlv(0x04, b"1.2.840.113556.1.4.319") + cookie))
    entry = tlv(0x30, tlv(2, FIRST_ID) + tlv(0x64, tlv(4, b"uid=a") + tlv(0x30, b"")))
    return entry + tlv(0x30, tlv(2, FIRST_ID) + tlv(0x65, result) + controls)


def kerberos_answer() -> bytes:
    name = bytes.fromhex("3010a003020101a10930071b05") + b"user0"
    body = tlv(0x6B, tlv(0x30, tlv(0xA0, b"\x02\x01\x05") + tlv(0xA4, name)))
    return len(body).to_bytes(4, "big") + body


def dns_answer() -> bytes:
    asked = query("n0.lab.")
    body = (
        asked[:2] + b"\x84\x00\0\1\0\1\0\0\0\0" + asked[12:] + b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4abcd"
    )
    return len(body).to_bytes(2, "big") + body


def login_answer() -> bytes:
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"8\r\n<action=\r\n6;x\r\n?a&b!>\r\n0\r\n\r\n"


SPOKEN = {
    "ldapload": (LDAP, ldap_answer),
    "krbload": (KERBEROS, kerberos_answer),
    "dnsload": (DNS, dns_answer),
    "loginload": (LOGIN, login_answer),
}


def damaged(answer: bytes, chance: random.Random) -> bytes:
    """Something else at some places; bytes that announce a length are among them."""
    made = bytearray(answer)
    for _ in range(chance.choice([1, 1, 2, 8])):
        at = chance.randrange(len(made))
        match chance.randrange(4):
            case 0:
                made[at] = chance.choice([0, 1, 0x7F, 0x80, 0x84, 0xFF, chance.randrange(256)])
            case 1:
                made[at:at] = chance.randbytes(chance.choice([1, 4, 200]))
            case 2:
                del made[at : at + chance.choice([1, 4, 20])]
            case _:
                made[at : at + 5] = b"\x84\xff\xff\xff\xff"
        made = made or bytearray(b"\x00")
    return bytes(made)


@contextmanager
def server(answer: Callable[[int, bytes], Iterator[bytes]]) -> Iterator[int]:
    """Its port; each connection is answered with all of ``answer(number)``, whatever it asks."""

    def serve(client: socket.socket, number: int) -> None:
        with suppress(OSError), client:
            client.settimeout(5)
            for part in answer(number, client.recv(4096)):
                client.sendall(part)
            client.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0), backlog=500) as listening:

        def accept() -> None:
            number = 0
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    threading.Thread(target=serve, args=(client, number), daemon=True).start()
                    number += 1

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Each with the checks of a build for tests: an overflow ends it."""
    compiler = shutil.which("rustc")
    if compiler is None:
        pytest.skip("no rustc on this machine")

    @cache
    def compiled(name: str) -> Path:
        folder, speech = tmp_path_factory.mktemp("program"), LOADS[name].speech
        assert speech is not None
        for file, source in program_files(speech).items():
            (folder / file).write_text(source, encoding="utf-8")
        subprocess.run(
            [compiler, "--edition=2021", "-Dwarnings", "-C", "debug-assertions", "-o", name,
             "main.rs"],
            cwd=folder, check=True, timeout=300, capture_output=True,
        )  # fmt: skip
        return folder / name

    return compiled


@pytest.fixture
def program(programs: Callable[[str], Path]) -> Path:
    return programs("ldapload")


def loaded(program: Path, port: int, folder: Path, *options: str) -> Completed:
    (folder / "requests").write_text(SPOKEN[program.name][0])
    words = f'ulimit -v {MEMORY_KB}; exec "$@"'
    argv = [
        str(program), f"tcp://127.0.0.1:{port}", str(folder / "requests"),
        "--connections", str(CASES), "--limit", "5", "--seconds", "0.5", *options,
    ]  # fmt: skip
    return run(["sh", "-c", words, "sh", *argv], deadline=Deadline.after(60))


@pytest.mark.few(6)
@pytest.mark.parametrize("block", range(60))
@pytest.mark.parametrize("name", SPOKEN)
def test_damaged_answers_are_errors_and_never_a_crash(
    programs: Callable[[str], Path], name: str, block: int, tmp_path: Path
) -> None:
    real = SPOKEN[name][1]()

    def answer(number: int, _: bytes) -> Iterator[bytes]:
        chance = random.Random(f"{name}/{block}/{number}")
        yield damaged(real, chance)

    with server(answer) as port:
        done = loaded(programs(name), port, tmp_path)
    assert "panicked" not in done.stderr, done
    assert done.status == 0, done
    assert not done.timed_out


def test_an_answer_that_announces_4_gb_takes_no_memory(program: Path, tmp_path: Path) -> None:
    """It sends as much as one takes; the program closes the connection instead."""

    def answer(_: int, __: bytes) -> Iterator[bytes]:
        yield b"\x30\x84\xff\xff\xff\xf0"
        for _ in range(1024):
            yield bytes(1 << 20)

    with server(answer) as port:
        done = loaded(program, port, tmp_path, "--errors", "1")
    assert done.status == 0, done
    assert "an answer of 4294967280 bytes, which is more than 32 MiB" in done.stdout


@pytest.mark.parametrize("name", ["krbload", "dnsload", "loginload"])
def test_bytes_that_nobody_asked_for_take_no_memory(
    programs: Callable[[str], Path], name: str, tmp_path: Path
) -> None:
    """An answer that is right, and then a stream without an end."""
    real = SPOKEN[name][1]()

    def answer(_: int, __: bytes) -> Iterator[bytes]:
        yield real
        for _ in range(1024):
            yield bytes(1 << 20)

    with server(answer) as port:
        done = loaded(programs(name), port, tmp_path)
    assert done.status == 0, done
    assert "panicked" not in done.stderr, done


def test_kinds_of_errors_are_bounded(program: Path, tmp_path: Path) -> None:
    """Another result in each answer."""
    requests = f"first 0 - - \nconnect+bind {CONNECT} 0 - - {BIND}\n"

    def answer(number: int, asked: bytes) -> Iterator[bytes]:
        result = tlv(0x0A, (number + 1).to_bytes(4, "big")) + b"\x04\x00\x04\x00"
        yield tlv(0x30, tlv(2, asked[4:8]) + tlv(0x61, result))

    with server(answer) as port:
        (tmp_path / "requests").write_text(requests)
        argv = [
            str(program), f"tcp://127.0.0.1:{port}", str(tmp_path / "requests"),
            "--connections", "4", "--limit", "30", "--operations", "900",
        ]  # fmt: skip
        done = run(argv, deadline=Deadline.after(60))
    assert done.status == 0, done
    assert done.stdout.count("\nerror ") <= 501
    assert "errors of still other kinds" in done.stdout


def test_the_first_refused_bind_ends_a_load_that_is_to_end_there(
    program: Path, tmp_path: Path
) -> None:
    binds: list[int] = []

    def answer(number: int, asked: bytes) -> Iterator[bytes]:
        binds.append(number)
        yield tlv(0x30, tlv(2, asked[4:8]) + tlv(0x61, b"\x0a\x01\x31\x04\x00\x04\x00"))

    with server(answer) as port:
        (tmp_path / "requests").write_text(LDAP)
        argv = [
            str(program), f"tcp://127.0.0.1:{port}", str(tmp_path / "requests"),
            "--connections", "4", "--limit", "30", "--seconds", "10", "--rate", "200",
            "--errors", "1",
        ]  # fmt: skip
        done = run(argv, deadline=Deadline.after(60))
    assert done.status == 0, done
    assert "result 49 instead of 0" in done.stdout
    assert len(binds) <= 4, "no more than were under way"
