"""One client that waits for each answer, and how long that took: its requests are encoded before.

ldap3 takes as long for a request as the server does; what is compared here is the server.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsharness.errors import InstanceError
from dsharness.guarded_files import shared_socket
from dsharness.systems.ldap.directory import BoundedSocket

LIMIT_S = 30.0
# Tags of RFC 4511: sequence, octet string, integer, enumerated, boolean, set.
SEQUENCE, STRING, INTEGER, ENUMERATED, BOOLEAN, SET = 0x30, 0x04, 0x02, 0x0A, 0x01, 0x31
BIND, SIMPLE, SEARCH, EQUALITY, MODIFY = 0x60, 0x80, 0x63, 0xA3, 0x66
ENTRY, REFERENCE = 0x64, 0x73  # what comes before the end of a search
REPLACE = 2


@dataclass(frozen=True, kw_only=True)
class SingleClient:
    """An open connection over a server's socket."""

    stream: BoundedSocket

    def timed(self, requests: Sequence[bytes]) -> tuple[float, ...]:
        """Microseconds of each, one after the other; InstanceError for a refusal."""
        took = []
        for request in requests:
            begin = time.perf_counter_ns()
            self.stream.sendall(request)
            code = self._code()
            took.append((time.perf_counter_ns() - begin) / 1000)
            if code != 0:
                raise InstanceError(f"the server answered a plain request with result {code}")
        return tuple(took)

    def _code(self) -> int:
        """The result's code, at the end of the answer."""
        data = b""
        while True:
            message, data = first_message(data)
            if message is None:
                more = self.stream.recv(65536)
                if not more:
                    raise InstanceError("the server closed a connection in the middle of requests")
                data += more
            elif (code := result_code(message)) is not None:
                return code


@contextmanager
def single_client(path: Path) -> Iterator[SingleClient]:
    """InstanceError when nothing listens there, or no whole answer comes in time."""
    real = socket.socket(socket.AF_UNIX)
    try:
        with shared_socket(path) as held:
            real.settimeout(LIMIT_S)
            real.connect(held)
        yield SingleClient(stream=BoundedSocket(real, LIMIT_S))
    except OSError as error:
        raise InstanceError(f"the server stopped answering at {path}: {error}") from error
    finally:
        real.close()


def bind(dn: str, password: str) -> bytes:
    content = _value(INTEGER, b"\x03") + _text(dn) + _value(SIMPLE, password.encode())
    return _message(_value(BIND, content))


def search(base: str, attribute: str, value: str) -> bytes:
    """One level or below, by equality."""
    content = (
        _text(base)
        + _value(ENUMERATED, b"\x02")
        + _value(ENUMERATED, b"\0")
        + _value(INTEGER, b"\0") * 2
        + _value(BOOLEAN, b"\0")
        + _value(EQUALITY, _text(attribute) + _text(value))
        + _value(SEQUENCE, b"")
    )
    return _message(_value(SEARCH, content))


def replace(dn: str, attribute: str, value: str) -> bytes:
    change = _value(SEQUENCE, _text(attribute) + _value(SET, _text(value)))
    each = _value(SEQUENCE, _value(ENUMERATED, bytes([REPLACE])) + change)
    return _message(_value(MODIFY, _text(dn) + _value(SEQUENCE, each)))


def first_message(data: bytes) -> tuple[bytes | None, bytes]:
    """The first whole message's content, and what follows; None while it is not whole."""
    header = _header(data)
    if header is None or len(data) < sum(header):
        return None, data
    begin, size = header
    return data[begin : begin + size], data[begin + size :]


def result_code(message: bytes) -> int | None:
    """None for a message that others of the same answer follow."""
    after_id = message[2 + message[1] :]
    if after_id[0] in {ENTRY, REFERENCE}:
        return None
    header = _header(after_id)
    if header is None:
        raise InstanceError("the server's answer is no LDAP")
    code = after_id[header[0] :]
    return int.from_bytes(code[2 : 2 + code[1]], "big")


def _header(data: bytes) -> tuple[int, int] | None:
    """Bytes of tag and length, and the length."""
    if len(data) < 2:
        return None
    if data[1] < 0x80:
        return 2, data[1]
    many = data[1] & 0x7F
    return (2 + many, int.from_bytes(data[2 : 2 + many], "big")) if len(data) >= 2 + many else None


def _message(request: bytes) -> bytes:
    return _value(SEQUENCE, _value(INTEGER, b"\x01") + request)


def _text(text: str) -> bytes:
    return _value(STRING, text.encode())


def _value(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes(-(-size.bit_length() // 8), "big")
    return bytes([tag, 0x80 | len(length)]) + length + content
