"""A small LDAP server whose answers a test decides: what a measured server may do to the lab.

Answers are encoded by hand (RFC 4511), so that they can also be wrong.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ldap3.protocol.rfc4511 import LDAPMessage
from pyasn1.codec.ber import decoder
from pyasn1.error import PyAsn1Error

# The tag of what ends each request, by the tag of the request.
ENDS = {0x60: 0x61, 0x63: 0x65, 0x66: 0x67, 0x68: 0x69, 0x4A: 0x6B, 0x6C: 0x6D, 0x6E: 0x6F,
        0x77: 0x78}  # fmt: skip
SEARCH, UNBIND = 0x63, 0x42
REFERRAL = 10
Entries = Mapping[str, Mapping[str, Sequence[bytes]]]


def tlv(tag: int, *parts: bytes) -> bytes:
    """One value as BER has it."""
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 + len(length)]) + length + content


def message(number: int, operation: bytes) -> bytes:
    return tlv(0x30, tlv(2, number.to_bytes(4, "big")), operation)


def result(request: Request, code: int = 0, referrals: Sequence[str] = ()) -> bytes:
    """What ends an operation."""
    uris = [tlv(0xA3, *(tlv(4, uri.encode()) for uri in referrals))] if referrals else []
    ended = tlv(ENDS[request.tag], tlv(0x0A, bytes([code])), tlv(4), tlv(4), *uris)
    return message(request.number, ended)


def entry(request: Request, dn: str, attributes: Mapping[str, Sequence[bytes]]) -> bytes:
    listed = (
        tlv(0x30, tlv(4, name.encode()), tlv(0x31, *(tlv(4, value) for value in values)))
        for name, values in attributes.items()
    )
    return message(request.number, tlv(0x64, tlv(4, dn.encode()), tlv(0x30, *listed)))


def reference(request: Request, *uris: str) -> bytes:
    """A search goes on elsewhere."""
    return message(request.number, tlv(0x73, *(tlv(4, uri.encode()) for uri in uris)))


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked: the tag of the operation, and of a search where and how deep."""

    number: int
    tag: int
    base: str = ""
    scope: int = 0

    @classmethod
    def read(cls, received: bytes) -> Request:
        whole: Any = decoder.decode(received, asn1Spec=LDAPMessage())[0]
        number, operation = int(whole["messageID"]), whole["protocolOp"].getComponent()
        tag = received[_content_at(received) + 2 + received[_content_at(received) + 1]]
        if tag != SEARCH:
            return cls(number=number, tag=tag)
        base, scope = str(operation["baseObject"]), int(operation["scope"])
        return cls(number=number, tag=tag, base=base.lower(), scope=scope)


Reply = Callable[[Request], bytes | None]  # None hangs up


@dataclass
class Server:
    """Answers every connection, until the block ends."""

    listener: socket.socket
    reply: Reply
    clients: list[socket.socket] = field(default_factory=list)

    def serve(self) -> None:
        with contextlib.suppress(OSError):  # it was shut down
            while True:
                client, _ = self.listener.accept()
                self.clients.append(client)
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, PyAsn1Error), client:  # it may ask in TLS
            received = b""
            while data := client.recv(1 << 16):
                received += data
                while (end := _end_of(received)) is not None:
                    request, received = Request.read(received[:end]), received[end:]
                    answer = None if request.tag == UNBIND else self.reply(request)
                    if answer is None:
                        return
                    client.sendall(answer)


@contextmanager
def answering(listener: socket.socket, reply: Reply) -> Iterator[Server]:
    """A server on a socket that is bound."""
    listener.listen()
    server = Server(listener=listener, reply=reply)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=10)
        for client in server.clients:
            client.close()


def directory(entries: Entries) -> Reply:
    """A directory that lets everyone do everything and changes nothing."""

    def reply(request: Request) -> bytes:
        found = entries.items() if request.tag == SEARCH else ()
        hits = (entry(request, dn, values) for dn, values in found if _in_scope(dn, request))
        return b"".join(hits) + result(request)

    return reply


def _in_scope(dn: str, request: Request) -> bool:
    dn = dn.lower()
    if request.scope == 0:
        return dn == request.base
    if request.scope == 1:
        return dn.partition(",")[2] == request.base
    return dn.endswith(request.base)


def _content_at(received: bytes) -> int:
    return 2 + (received[1] - 0x80 if received[1] > 0x7F else 0)


def _end_of(received: bytes) -> int | None:
    """Where the first message ends; None while it is not whole."""
    if len(received) < 2 or len(received) < _content_at(received):
        return None
    at = _content_at(received)
    end = at + (int.from_bytes(received[2:at], "big") if at > 2 else received[1])
    return end if len(received) >= end else None
