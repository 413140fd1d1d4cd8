"""The border for untrusted text: of builds, servers, commits. Core pure logic.

What a compiler, a server or a commit says ends up in messages, reports and terminals. There it is
text and nothing else: it moves no cursor, rings no bell and reads from left to right.
"""

from __future__ import annotations

import re

# Colours and similar codes are removed, since they were meant for a terminal.
SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS and similar codes: titles, clipboards
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
# What is left of control and of direction marks is shown by its number.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
LOGGED = bytes(sorted({*range(0x20), 0x7F} - set(b"\t\n\r")))  # what is left out of logs


def plain(text: str) -> str:
    """The text without anything that a terminal would obey; lines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return UNSAFE.sub(_shown, SEQUENCE.sub("", text))


def plain_bytes(block: bytes) -> bytes:
    """A piece of a log, without the control characters that steer a terminal."""
    return block.translate(None, LOGGED)


def _shown(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}"
