"""The password storage schemes that a source has, as its own configuration templates name them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dsbuilds.edits.edit import Files

C_SCHEME = "PBKDF2_SHA256"  # computed by NSS; its rounds are tuned at start-up
RUST_SCHEMES = ("PBKDF2", "PBKDF2-SHA1", "PBKDF2-SHA256", "PBKDF2-SHA512")
RUST_SOURCE = "src/plugins/pwdchan/src/lib.rs"
DSE = (
    "ldap/ldif/template-dse.ldif.in",
    "ldap/ldif/template-dse-minimal.ldif.in",
    "ldap/servers/slapd/fedse.c",
    "ldap/servers/slapd/config.c",
)
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
