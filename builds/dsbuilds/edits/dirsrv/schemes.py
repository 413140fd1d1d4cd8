"""The password storage schemes that a source has, as its own configuration templates name them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dsbuilds.edits.edit import Files
from dsharness.errors import EditError
from dsharness.model import Promise, PromisedFact

C_SCHEME = "PBKDF2_SHA256"  # computed by NSS; its rounds are tuned at start-up
RUST_SCHEMES = ("PBKDF2", "PBKDF2-SHA1", "PBKDF2-SHA256", "PBKDF2-SHA512")
RUST_SOURCE = "src/plugins/pwdchan/src/lib.rs"
DSE = (
    "ldap/ldif/template-dse.ldif.in",
    "ldap/ldif/template-dse-minimal.ldif.in",
    "ldap/servers/slapd/fedse.c",
    "ldap/servers/slapd/config.c",
)
# As facts, which the server's driver reads back.
STORED_AS, ROUNDS = "password-scheme", "password-rounds"
# The same entry is LDIF in the templates and adjacent string literals in C.
ENTRY = re.compile(r"\bdn:\s*cn=(?P<name>[\w-]+),\s*cn=Password Storage Schemes,", re.IGNORECASE)
NEXT = re.compile(r"\bdn:\s", re.IGNORECASE)
ONE_WAY = "pwdstoragescheme"
NO_ENCODER = ("NS-MTA-MD5",)  # compares old hashes, makes none


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """A scheme and the plugin that computes it."""

    name: str
    plugin: str
    init: str

    @property
    def stored_as(self) -> str:
        """What stands in the braces of a stored value, which is not always the scheme's name."""
        if self.name == "PBKDF2":
            return "PBKDF2-SHA1"
        return "CRYPT" if self.name.startswith("CRYPT") else self.name


def stored_under(scheme: str) -> Promise:
    """Promise that passwords are stored under a scheme."""
    return Promise(facts=(PromisedFact(name=STORED_AS, value=scheme),))


def hashed_with(schemes: Iterable[str], rounds: int) -> Promise:
    """Promise rounds for passwords that are stored under one of these schemes."""
    return Promise(
        facts=tuple(
            PromisedFact(name=ROUNDS, value=rounds, where={STORED_AS: each})
            for each in sorted(schemes)
        )
    )


def whole_number(name: str, value: str, most: int) -> int:
    """A number of rounds, as users write it: 10000 or 10_000."""
    if re.fullmatch(r"[0-9]+(?:_[0-9]+)*", value, re.ASCII) and len(value) <= 20:
        number = int(value)
        if 1 <= number <= most:
            return number
    raise EditError(f"{name}={value}: rounds are a whole number from 1 to {most}")


def has_rust(files: Files) -> bool:
    return files(RUST_SOURCE) is not None


def schemes(files: Files) -> dict[str, Scheme]:
    """Every scheme that can store a new password."""
    found = {name: _rust(name) for name in RUST_SCHEMES} if has_rust(files) else {}
    for path in DSE:
        text = files(path) or ""
        for entry in ENTRY.finditer(text):
            end = NEXT.search(text, entry.end())
            facts = text[entry.end() : end.start() if end else len(text)]
            plugin, init = _fact("pluginpath", facts), _fact("plugininitfunc", facts)
            if plugin and init and _fact("plugintype", facts) == ONE_WAY:
                name = entry["name"]
                found.setdefault(name, Scheme(name=name, plugin=plugin, init=init))
    return {name: found[name] for name in sorted(found) if name not in NO_ENCODER}


def dse_values(files: Files, attribute: str, names: tuple[str, ...]) -> dict[str, int]:
    """Path -> the smallest number that some of these schemes' entries give an attribute there."""
    smallest: dict[str, int] = {}
    for path in DSE:
        text = files(path) or ""
        for entry in ENTRY.finditer(text):
            end = NEXT.search(text, entry.end())
            value = _fact(attribute, text[entry.end() : end.start() if end else len(text)])
            if entry["name"] in names and value and value.isdecimal():
                smallest[path] = min(int(value), smallest.get(path, int(value)))
    return smallest


def _rust(name: str) -> Scheme:
    plugin = name.lower().replace("-", "_")
    return Scheme(name=name, plugin="libpwdchan-plugin", init=f"pwdchan_{plugin}_plugin_init")


def _fact(attribute: str, text: str) -> str | None:
    found = re.search(rf"nsslapd-{attribute}:[ \t]*([\w.-]+)", text, re.IGNORECASE)
    return found[1] if found else None
