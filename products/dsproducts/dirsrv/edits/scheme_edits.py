"""The password storage schemes that a source has, as its own configuration templates name them.

The edit default-scheme=NAME changes with which one the server stores a password by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsbuilds.edits.edit import UNFAMILIAR, Edited, EditedSource, Files, source
from dsharness.errors import AlreadySoError, EditError, UsageError
from dsharness.model import Promise, PromisedFact
from dsharness.yaml_files.problems import shown, suggestion

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
            PromisedFact(name=ROUNDS, value=rounds, where={STORED_AS: name})
            for name in sorted(schemes)
        )
    )


def whole_number(name: str, value: str, most: int) -> int:
    """A number of rounds, as users write it: 10000 or 10_000."""
    if re.fullmatch(r"[0-9]+(?:_[0-9]+)*", value, re.ASCII) and len(value) <= 20:
        number = int(value)
        if 1 <= number <= most:
            return number
    raise UsageError(
        f"{name}={shown(value)}: rounds are a whole number from 1 to {most}",
        hint=f"for example {name}=10000",
    )


def has_rust(files: Files) -> bool:
    return files(RUST_SOURCE) is not None


def schemes(files: Files) -> dict[str, Scheme]:
    """Every scheme that can store a new password."""
    schemes_found = {name: _rust(name) for name in RUST_SCHEMES} if has_rust(files) else {}
    for _, name, facts in _entries(files):
        plugin, init = _fact("pluginpath", facts), _fact("plugininitfunc", facts)
        if plugin and init and _fact("plugintype", facts) == ONE_WAY:
            schemes_found.setdefault(name, Scheme(name=name, plugin=plugin, init=init))
    return {name: schemes_found[name] for name in sorted(schemes_found) if name not in NO_ENCODER}


def dse_values(files: Files, attribute: str, names: tuple[str, ...]) -> dict[str, int]:
    """Path -> the smallest number that some of these schemes' entries give an attribute there."""
    smallest: dict[str, int] = {}
    for path, name, facts in _entries(files):
        value = _fact(attribute, facts)
        if name in names and value and value.isdecimal():
            smallest[path] = min(int(value), smallest.get(path, int(value)))
    return smallest


def _entries(files: Files) -> Iterator[tuple[str, str, str]]:
    """Path, name and text of every scheme's entry."""
    for path in DSE:
        text = files(path) or ""
        for entry in ENTRY.finditer(text):
            end = NEXT.search(text, entry.end())
            yield path, entry["name"], text[entry.end() : end.start() if end else len(text)]


def _rust(name: str) -> Scheme:
    plugin = name.lower().replace("-", "_")
    return Scheme(name=name, plugin="libpwdchan-plugin", init=f"pwdchan_{plugin}_plugin_init")


def _fact(attribute: str, text: str) -> str | None:
    match = re.search(rf"nsslapd-{attribute}:[ \t]*([\w.-]+)", text, re.IGNORECASE)
    return match[1] if match else None


PW = "ldap/servers/slapd/pw.c"
CONFIG = "ldap/servers/slapd/config.c"
OPENING = (
    r"^static\s+(?:const\s+)?char\s*\*\s*(?:const\s+)?bootstrap_plugins\s*\[\s*\]"
    r"\s*=\s*\{[ \t]*\n"
)
NO_SERVER = "there is no such file; this is not the source of a 389 directory server"
# Where the name is NULL or DEFAULT, a literal is looked up among the plugins.
CHOICE = r"DEFAULT_PASSWORD_SCHEME_NAME"
# Under FIPS the older sources use another scheme in a separate branch; it is not changed.
FIPS = re.compile(r"\bif\s*\(\s*\w*FIPS\w*\s*\(\s*\)\s*\)\s*\{[^{}]*\}")
# Up to 2.1 a server without Rust loads another scheme first: not the server that is built here.
WITHOUT_RUST = re.compile(r"^[ \t]*#[ \t]*else\b.*?^[ \t]*#[ \t]*endif\b", re.MULTILINE | re.DOTALL)
LOOKUP = re.compile(r"plugin_get_pwd_storage_scheme\s*\(\s*(?P<variable>\w+)\s*,")


@dataclass(frozen=True, kw_only=True)
class DefaultScheme:
    """The literal in pw_name2scheme(), and the plugin that must be there at bootstrap."""

    name: str = "default-scheme"
    title: str = "passwords are stored under another scheme by default"
    parameter: str = "a password storage scheme that the source has, such as PBKDF2-SHA512"
    example: str = "default-scheme=PBKDF2_SHA256"

    def check(self, value: str) -> None:
        if re.fullmatch(r"[A-Za-z0-9][\w-]{0,63}", value, re.ASCII) is None:
            raise UsageError(
                f"{self.name}={shown(value)}: a scheme is named by letters, digits, - and _",
                hint=f"for example {self.example}",
            )

    def held(self, files: Files) -> str | None:
        try:
            first, *_ = _literals(EditedSource(path=PW, text=files(PW) or ""))
        except EditError:
            return None
        return first["name"]

    def apply(self, value: str, files: Files) -> Edited:
        pw = source(files, PW, NO_SERVER)
        literals = _literals(pw)
        scheme = _scheme(value, files)
        changed = pw
        for literal in reversed(_to_change(literals, scheme)):
            changed = changed.put(literal.span("name"), scheme.name)
        if changed.text == pw.text:
            raise AlreadySoError(
                f"{PW}: {scheme.name} is already the default scheme of this source",
                hint="leave the edit out",
            )
        edited = {PW: changed.text}
        config = files(CONFIG)
        if config is not None:
            booted = _bootstrapped(EditedSource(path=CONFIG, text=config), scheme)
            edited |= {CONFIG: booted.text} if booted.text != config else {}
        return Edited(files=edited, promise=stored_under(scheme.stored_as))


def _scheme(value: str, files: Files) -> Scheme:
    schemes_known = schemes(files)
    if value in schemes_known:
        return schemes_known[value]
    if value in RUST_SCHEMES and not has_rust(files):
        raise EditError(
            f"default-scheme={value}: this source has no Rust schemes (before 2.0.2)",
            hint=f"it has: {', '.join(schemes_known)}",
        )
    raise EditError(
        f"default-scheme={value}: this source has no such scheme."
        f"{suggestion(value, schemes_known)}",
        hint=f"it has: {', '.join(schemes_known)}",
    )


def _literals(pw: EditedSource) -> list[re.Match[str]]:
    """One declaration of the default's name, or two: with Rust, and after #else without."""
    start, end = pw.body("pw_name2scheme")
    choice = pw.only(CHOICE, "the choice of the default scheme", within=(start, end))
    fips = FIPS.search(pw.text, choice.end(), end)
    lookup = LOOKUP.search(pw.text, fips.end() if fips else choice.end(), end)
    if lookup is None:
        raise EditError(f"{PW}: the default scheme is not looked up by name", hint=UNFAMILIAR)
    declared = re.compile(
        rf"\b(?:const\s+)?char\s*\*\s*{lookup['variable']}\s*=\s*\"(?P<name>[^\"\n]+)\"\s*;"
    )
    matches = list(declared.finditer(pw.text, start, end))
    between = pw.text[matches[0].end() : matches[-1].start()] if matches else ""
    if len(matches) == 1 or (len(matches) == 2 and re.fullmatch(r"\s*#\s*else\b.*\s*", between)):
        return matches
    raise EditError(
        f"{PW}: looked for the name of the default scheme, but there are {len(matches)}",
        hint=UNFAMILIAR,
    )


def _to_change(literals: list[re.Match[str]], scheme: Scheme) -> list[re.Match[str]]:
    """A server built without Rust has no Rust scheme to fall back on: its branch stays."""
    return literals[:1] if scheme.name in RUST_SCHEMES else literals


def _bootstrapped(config: EditedSource, scheme: Scheme) -> EditedSource:
    """The server exits when the default scheme is not among what it loads before dse.ldif."""
    head = config.only(OPENING, "the list of bootstrap plugins")
    end = config.only(r"^\s*NULL\s*,?\s*\}\s*;", "the end of a list", within=_after(config, head))
    listed = WITHOUT_RUST.sub("", config.text[head.end() : end.start()])
    if re.search(rf"\bcn={re.escape(scheme.name)},\s*cn=Password Storage Schemes,", listed):
        return config
    return config.put((head.end(), head.end()), _entry(scheme))


def _after(config: EditedSource, head: re.Match[str]) -> tuple[int, int]:
    end = re.compile(r"^\}\s*;", re.MULTILINE).search(config.text, head.end())
    return head.end(), end.end() if end else len(config.text)


def _entry(scheme: Scheme) -> str:
    lines = (
        f"dn: cn={scheme.name},cn=Password Storage Schemes,cn=plugins,cn=config",
        "objectclass: top",
        "objectclass: nsSlapdPlugin",
        f"cn: {scheme.name}",
        f"nsslapd-pluginpath: {scheme.plugin}",
        f"nsslapd-plugininitfunc: {scheme.init}",
        "nsslapd-plugintype: pwdstoragescheme",
        "nsslapd-pluginenabled: on",
    )
    return "\n".join(f'    "{line}\\n"' for line in lines) + ",\n\n"
