"""Text that is safe to show: no control characters, no credentials.

The border for addresses that are recorded or shown: without users and secrets.

A repository, a source or a mirror may be named with a user and a password or token in its URL. It
is fetched by that URL, but shown without them: in messages, logs, builds, the store, the report.
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
    """Return the text without anything that a terminal would obey; lines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return UNSAFE.sub(_shown, SEQUENCE.sub("", text))


def shown(text: str) -> str:
    """The text with each character that a terminal would obey as its number, as JSON writes it."""
    if text.isascii() and text.isprintable():
        return text
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


def plain_bytes(block: bytes) -> bytes:
    """Return a piece of a log, without the control characters that steer a terminal."""
    return block.translate(None, LOGGED)


def _shown(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}"


HIDDEN = ":***"  # as databases are shown
# A name alone is a token where the scheme is http; with ssh it is an account such as git.
USER = re.compile(
    r"(?P<scheme>(?:https?)?://)(?P<user>[^\s/@:'\"]*)(?P<secret>:[^\s/'\"]*)?@", re.IGNORECASE
)
BEHIND_SCHEME = re.compile(r"://[^\s'\"]+")
PARAMETER = re.compile(r"(?P<mark>[?&;])(?P<name>[^&;#=]*)=?(?P<value>[^&;#]*)")
NAME = re.compile(r"[\w.-]{1,40}")
# A secret's name may be any, so only these show what they are set to.
PUBLIC = frozenset(
    {
        "arch",
        "branch",
        "commit",
        "h",
        "id",
        "page",
        "ref",
        "release",
        "repo",
        "rev",
        "sslmode",
        "tag",
        "v",
        "version",
    }
)
WITH_FRAGMENT = re.compile(r"https?://[^\s'\"]*", re.IGNORECASE)
WORD_ENDS = b" \t\n\r'\""  # no URL goes on behind one: what is shown of a text is that of its parts


def without_credentials(text: str) -> str:
    """Return the text, with every URL in it as anyone may see it."""
    if "://" not in text:
        return text
    text = WITH_FRAGMENT.sub(_without_fragment, USER.sub(_public, text))
    return BEHIND_SCHEME.sub(_without_values, text)


def _without_values(match: re.Match[str]) -> str:
    return PARAMETER.sub(_public_parameter, match[0])


def _public_parameter(match: re.Match[str]) -> str:
    mark, name, value = match.group("mark", "name", "value")
    if not NAME.fullmatch(name) or not value.strip("="):  # a value alone; base64 may end with =
        return f"{mark}…" if name else match[0]
    return match[0] if name.lower() in PUBLIC and "?" not in value else f"{mark}{name}=…"


def _without_fragment(match: re.Match[str]) -> str:
    """No server is ever sent what follows the # of an address: it is only of use as a secret."""
    address, mark, fragment = match[0].partition("#")
    end = fragment[len(fragment.rstrip(").,;:")) :]
    return f"{address}{mark}…{end}" if fragment else match[0]


def _public(match: re.Match[str]) -> str:
    scheme, user = match["scheme"], match["user"]
    if match["secret"] == HIDDEN:
        return match[0]
    names_user = "http" not in scheme.lower() and user
    return f"{scheme}{user}@" if names_user else scheme


# A path of a machine, quoted or not, but no part of an address, of a rate, or of a tag.
FOLDER = re.compile(
    r"(?<=')~?/(?:[^'\n]*/)?([^'/\n]+)(?=')"
    r"|(?<![\w:/.<])~?/(?:[^\s'\"`();,]*/)?([^\s'\"`();,/]+)"
)


def without_folders(text: str) -> str:
    """Return a text that leaves the machine, with no more of a file than its name."""
    return FOLDER.sub(lambda match: match[1] or match[2], text)
