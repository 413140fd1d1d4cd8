"""The only place that makes connections to LDAP servers: what they answer is theirs to choose.

No answer makes ldap3 connect anywhere else or ask for more: references and ranges are not followed.
What cannot be read is an LDAPException, as every other failure is. The file needs nothing but
ldap3: the client in a container and Locust's own Python read it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ldap3
from ldap3.core.exceptions import LDAPException

# The tags that an answer has by RFC 4511, other than requests: ldap3's decoder goes by their last
# five bits alone, and does not ask whether a value ends before the one that it is in.
NUMBER, ENUMERATED = 0x02, 0x0A
SIMPLE_TAGS = frozenset({0x01, NUMBER, 0x04, ENUMERATED, 0x87, 0x8A, 0x8B})
NESTING_TAGS = frozenset(
    {0x30, 0x31, 0x61, 0x64, 0x65, 0x67, 0x69, 0x6B, 0x6D, 0x6F, 0x73, 0x78, 0xA0, 0xA3}
)
NUMBER_DEPTHS = {NUMBER: 1, ENUMERATED: 2}  # the message's number and the result's code
DEEPEST, NUMBER_BYTES, LENGTH_BYTES = 8, 4, 4
ENTRY, REFERENCE = "searchResEntry", "searchResRef"
SHOWN_CHARACTERS = 200


def connection_to(
    server: ldap3.Server,
    dn: str | None = None,
    password: str | None = None,
    *,
    limit_s: int,
    raise_exceptions: bool = False,
) -> Any:  # noqa: ANN401 - ldap3 is untyped
    """A connection that is not open yet. A search's response holds entries and nothing else."""
    connection: Any = ldap3.Connection(
        server,
        dn,
        password,
        auto_referrals=False,
        auto_range=False,
        receive_timeout=limit_s,
        raise_exceptions=raise_exceptions,
    )
    receive = connection.strategy.receiving

    def receiving() -> list[bytes]:
        messages: list[bytes] = receive()
        for message in messages:
            check_message(message)
        return messages

    connection.strategy.receiving = receiving
    connection.references = ()
    connection.post_send_single_response = _readable(connection.post_send_single_response)
    search = _readable(connection.post_send_search)

    def entries(message_id: int) -> list[dict[str, Any]]:
        answers = search(message_id)
        uris = (uri for answer in answers if answer["type"] == REFERENCE for uri in answer["uri"])
        connection.references = tuple(uris)  # told, never followed
        connection.response = [_entry(answer) for answer in answers if answer["type"] == ENTRY]
        return list(connection.response)

    connection.post_send_search = entries
    return connection


@contextmanager
def reading_answers() -> Iterator[None]:
    """A block in which ldap3 reads answers: whatever it stumbles over is an LDAPException."""
    try:
        yield
    except (LDAPException, OSError):
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"[:SHOWN_CHARACTERS]
        raise LDAPException(f"its answer cannot be read: {why}") from error


def check_message(message: bytes) -> None:
    """ValueError or IndexError unless each value ends in the one that it is in, as in an answer."""
    ends, position = [len(message)], 0
    while ends:
        if position == ends[-1]:
            ends.pop()
            continue
        tag, depth = message[position], len(ends) - 1
        position, end = _bounds(message, position)
        if end > ends[-1]:
            raise ValueError(f"byte {position}: a value does not end within the one that it is in")
        if tag in NESTING_TAGS and depth < DEEPEST:
            ends.append(end)
            continue
        if tag not in SIMPLE_TAGS:
            raise ValueError(f"byte {position}: no answer has the tag {tag:#x} at depth {depth}")
        if tag in NUMBER_DEPTHS and (depth != NUMBER_DEPTHS[tag] or end - position > NUMBER_BYTES):
            raise ValueError(f"byte {position}: no answer has such a number at depth {depth}")
        position = end


def _bounds(message: bytes, position: int) -> tuple[int, int]:
    """Where a value begins and ends whose tag is there."""
    size, position = message[position + 1], position + 2
    if size > 0x7F:
        count = size - 0x80
        if not 0 < count <= LENGTH_BYTES:
            raise ValueError(f"byte {position}: a length of {count} bytes")
        size, position = (
            int.from_bytes(message[position : position + count], "big"),
            position + count,
        )
    return position, position + size


def _readable(post_send: Callable[[int], Any]) -> Callable[[int], Any]:
    def read(message_id: int) -> Any:  # noqa: ANN401 - what ldap3 makes of an answer
        with reading_answers():
            return post_send(message_id)

    return read


def _entry(answer: dict[str, Any]) -> dict[str, Any]:
    """An attribute without values has a list of none."""
    raw = answer["raw_attributes"]
    for name in [name for name in raw if raw[name] is None]:
        raw[name] = []
    return answer
