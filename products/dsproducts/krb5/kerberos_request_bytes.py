"""A user's first request to a KDC as krbload sends it: bytes, with a mask for its nonce.

RFC 4120 says how a request is made, RFC 3961 and 3962 how a password becomes a key and what it
encrypts: only the kind of key that every version gives by default, ``aes256-cts-hmac-sha1-96``.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from datetime import datetime
from functools import lru_cache

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dsproducts.krb5.kdc import SERVICE

AES256_SHA1 = 18
ROUNDS = 4096  # of a password's key, where nobody asks for others
NONCE = bytes.fromhex("7ffffffe")  # stands for what its program puts in its place
OF_TIMESTAMP = 1  # the use of a key that encrypts one
PERSON, SERVER = 1, 2  # kinds of names
_VERSION, _REQUEST, _ENCRYPTED_TIMESTAMP = 5, 10, 2
_BLOCK, _KEY, _CHECK = 16, 32, 12  # bytes


def _der(tag: int, *parts: bytes) -> bytes:
    """An element, whose length is as short as it can be."""
    content = b"".join(parts)
    size = len(content)
    length = size.to_bytes(max(1, (size.bit_length() + 7) // 8), "big")
    return bytes([tag, *([] if size < 0x80 else [0x80 | len(length)])]) + length + content


def _sequence(*parts: bytes) -> bytes:
    return _der(0x30, *parts)


def _part(number: int, content: bytes) -> bytes:
    return _der(0xA0 + number, content)


def _integer(number: int) -> bytes:
    return _der(0x02, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _text(text: str) -> bytes:
    return _der(0x1B, text.encode("ascii"))


def _name(kind: int, *words: str) -> bytes:
    return _sequence(_part(0, _integer(kind)), _part(1, _sequence(*map(_text, words))))


def as_request(user: str, realm: str, proof: bytes | None) -> bytes:
    """A request for the ticket that a login begins with; ``proof`` is an encrypted timestamp."""
    body = _sequence(
        _part(0, _der(0x03, b"\0\0\0\0\x10")),  # a renewable one will do
        _part(1, _name(PERSON, user)),
        _part(2, _text(realm)),
        _part(3, _name(SERVER, *SERVICE)),
        _part(5, _der(0x18, b"19700101000000Z")),  # as long as may be
        _part(7, _der(0x02, NONCE)),
        _part(8, _sequence(_integer(AES256_SHA1))),
    )
    parts = [_part(1, _integer(_VERSION)), _part(2, _integer(_REQUEST))]
    if proof is not None:
        kind, value = _part(1, _integer(_ENCRYPTED_TIMESTAMP)), _part(2, _der(0x04, proof))
        parts.append(_part(3, _sequence(_sequence(kind, value))))
    return _der(0x6A, _sequence(*parts, _part(4, body)))


def encrypted_timestamp(key: bytes, now: datetime, confounder: bytes) -> bytes:
    """The proof that someone has the key: the time, encrypted by it."""
    stamp = _der(0x18, now.strftime("%Y%m%d%H%M%SZ").encode("ascii"))
    plain = _sequence(_part(0, stamp), _part(1, _integer(now.microsecond)))
    cipher = encrypt(key, OF_TIMESTAMP, plain, confounder)
    return _sequence(_part(0, _integer(AES256_SHA1)), _part(2, _der(0x04, cipher)))


@lru_cache(maxsize=1 << 16)
def key_of(password: str, salt: str, rounds: int = ROUNDS) -> bytes:
    """A password's key; it takes milliseconds, as it does for who types it."""
    seed = hashlib.pbkdf2_hmac("sha1", password.encode(), salt.encode(), rounds, _KEY)
    return _derived(seed, b"kerberos")


def encrypt(key: bytes, use: int, plain: bytes, confounder: bytes) -> bytes:
    """What the key encrypts for one use, and what shows that it was not changed."""
    secret, checked = (_derived(key, use.to_bytes(4, "big") + end) for end in (b"\xaa", b"\x55"))
    whole = confounder + plain
    check = hmac.new(checked, whole, hashlib.sha1).digest()[:_CHECK]
    return _stealing(secret, whole) + check


def _stealing(key: bytes, plain: bytes) -> bytes:
    """AES with the last two blocks swapped and cut, so that nothing is longer than it was."""
    padded = plain + bytes(-len(plain) % _BLOCK)
    sealer = Cipher(algorithms.AES256(key), modes.CBC(bytes(_BLOCK))).encryptor()
    sealed = sealer.update(padded) + sealer.finalize()
    before, last = sealed[: -2 * _BLOCK], sealed[-_BLOCK:]
    return (before + last + sealed[-2 * _BLOCK : -_BLOCK])[: len(plain)]


def _derived(key: bytes, constant: bytes) -> bytes:
    """A key that follows from another one."""
    sealer = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305 - RFC 3961
    first = sealer.update(folded(constant, _BLOCK))
    return first + sealer.update(first)


def folded(text: bytes, size: int) -> bytes:
    """Any number of bytes as so many (RFC 3961, 5.1): copies, each turned by 13 bits, added up."""
    bits, most = 8 * len(text), (1 << 8 * size) - 1
    number, copies = int.from_bytes(text, "big"), math.lcm(len(text), size) // len(text)
    turned = b"".join(
        ((number >> turn | number << bits - turn) & (1 << bits) - 1).to_bytes(len(text), "big")
        for turn in (13 * copy % bits for copy in range(copies))
    )
    total = sum(int.from_bytes(turned[at : at + size], "big") for at in range(0, len(turned), size))
    while total > most:
        total = (total & most) + (total >> 8 * size)
    return total.to_bytes(size, "big")
