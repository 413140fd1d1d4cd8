"""How many rounds the server stores a password with, as two edits.

rust-rounds=N is for the schemes written in Rust, c-rounds=N for PBKDF2_SHA256, computed by NSS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dsbuilds.edits.edit import UNFAMILIAR, Edited, EditedSource, Files, source
from dsharness.errors import AlreadySoError, EditError
from dsproducts.dirsrv.edits.scheme_edits import (
    C_SCHEME,
    RUST_SCHEMES,
    RUST_SOURCE,
    dse_values,
    hashed_with,
    whole_number,
)

MOST = 10_000_000
# One constant until 2.6.0; then a default with bounds; for a while a default for each digest.
DEFAULTS = r"(?:DEFAULT_)?PBKDF2_(?:SHA\d+_)?ROUNDS"
LEAST = "MIN_PBKDF2_ROUNDS"
MOST_NAME = "MAX_PBKDF2_ROUNDS"
CONFIGURED = "pwdPBKDF2NumIterations"
ACCEPTED = "pwdPBKDF2AcceptMaxIterations"


@dataclass(frozen=True, kw_only=True)
class NumberOfRounds:
    """What both edits take: a number of rounds."""

    name: str

    def check(self, value: str) -> None:
        whole_number(self.name, value, MOST)


@dataclass(frozen=True, kw_only=True)
class RustRounds(NumberOfRounds):
    """The constants of the pwdchan plugin; fewer rounds than the minimum lower the minimum."""

    name: str = "rust-rounds"
    title: str = "the Rust schemes (PBKDF2-SHA512 and its kin) store another number of rounds"
    parameter: str = "a whole number of rounds, also below the source's minimum"
    example: str = "rust-rounds=10000"

    def held(self, files: Files) -> str | None:
        matches = re.finditer(_constant(DEFAULTS), files(RUST_SOURCE) or "", re.MULTILINE)
        numbers = {_number(match) for match in matches}
        return str(*numbers) if len(numbers) == 1 else None

    def apply(self, value: str, files: Files) -> Edited:
        rounds = whole_number(self.name, value, MOST)
        plugin = source(
            files,
            RUST_SOURCE,
            "there is no such file: this source has no Rust schemes (before 2.0.2): "
            "rust-rounds changes nothing here",
        )
        _refuse_configured(rounds, files)
        changed = _with_defaults(plugin, rounds)
        if changed.text == plugin.text:
            raise AlreadySoError(
                f"{RUST_SOURCE}: {rounds} rounds are already the default of this source",
                hint="leave the edit out",
            )
        return Edited(
            files={RUST_SOURCE: _with_bounds(changed, rounds).text},
            promise=hashed_with(RUST_SCHEMES, rounds),
        )


def _constant(name: str) -> str:
    return (
        rf"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?const\s+(?P<name>{name})\s*:\s*(?:usize|u32|u64|i32)"
        r"\s*=\s*(?P<value>[0-9][0-9_]*)\s*;"
    )


def _number(match: re.Match[str]) -> int:
    return int(match["value"].replace("_", ""))


def _with_defaults(plugin: EditedSource, rounds: int) -> EditedSource:
    names = [match["name"] for match in re.finditer(_constant(DEFAULTS), plugin.text, re.MULTILINE)]
    if not names:
        raise EditError(
            f"{RUST_SOURCE}: looked for the constant of the rounds (PBKDF2_ROUNDS or "
            "DEFAULT_PBKDF2_ROUNDS), but there is none",
            hint=UNFAMILIAR,
        )
    for name in dict.fromkeys(names):
        plugin = _set(plugin, name, rounds)
    return plugin


def _set(plugin: EditedSource, name: str, rounds: int) -> EditedSource:
    match = plugin.only(_constant(re.escape(name)), f"the constant {name}")
    return plugin if _number(match) == rounds else plugin.put(match.span("value"), f"{rounds:_}")


def _with_bounds(plugin: EditedSource, rounds: int) -> EditedSource:
    """Below its minimum the server would neither take the rounds nor, lately, accept the hash."""
    if re.search(rf"\b{MOST_NAME}\b", plugin.text):
        most = plugin.only(_constant(MOST_NAME), f"the constant {MOST_NAME}")
        if rounds > _number(most):
            raise EditError(
                f"{RUST_SOURCE}: {MOST_NAME} allows {_number(most)} rounds at most, not {rounds}",
                hint=f"choose up to {_number(most)}",
            )
    if not re.search(rf"\b{LEAST}\b", plugin.text):
        return plugin
    least = plugin.only(_constant(LEAST), f"the constant {LEAST}")
    return _set(plugin, LEAST, rounds) if rounds < _number(least) else plugin


def _refuse_configured(rounds: int, files: Files) -> None:
    """An instance's own entries win over the plugin's constants."""
    for path, number in dse_values(files, CONFIGURED, RUST_SCHEMES).items():
        if number != rounds:
            raise AlreadySoError(
                f"{path}: nsslapd-{CONFIGURED} already says {number} rounds, "
                f"whatever the default is",
                hint="change that value with --patch",
            )
    _refuse_unaccepted(rounds, files, RUST_SCHEMES)


def _refuse_unaccepted(rounds: int, files: Files, schemes: tuple[str, ...]) -> None:
    """EditError where an instance's own entries accept fewer rounds of one of these schemes."""
    for path, number in dse_values(files, ACCEPTED, schemes).items():
        if number < rounds:
            raise EditError(
                f"{path}: nsslapd-{ACCEPTED} lets the server store and accept {number} rounds "
                f"at most, not {rounds}",
                hint=f"choose up to {number}, or raise that value with --patch first",
            )


PLUGIN = "ldap/servers/plugins/pwdstorage/pbkdf2_pwd.c"
HEADER = "ldap/servers/plugins/pwdstorage/pwdstorage.h"
MEASURED = r"\bpbkdf2_sha256_calculate_iterations\s*\(\s*\w+\s*\)"
MEASURING = (
    r"(?:^[ \t]*/\*[^*\n]*\*/[ \t]*\n)?"
    r"^[ \t]*uint64_t\s+\w+\s*=\s*pbkdf2_sha256_benchmark_iterations\s*\(\s*\)\s*;[ \t]*\n"
)
CHOSEN = rf"\b\w+\s*=\s*(?P<value>{MEASURED}|[0-9]+)\s*;"
BOAST = "Based on CPU performance, chose "
C_LEAST = r"^[ \t]*#[ \t]*define[ \t]+PBKDF2_MINIMUM[ \t]+(?P<value>[0-9]+)\b"
CAP = "PBKDF2_ACCEPT_MAX_ITERATIONS_DEFAULT"


@dataclass(frozen=True, kw_only=True)
class CRounds(NumberOfRounds):
    """The start of the plugin: a number in the place of its measuring of the CPU."""

    name: str = "c-rounds"
    title: str = "PBKDF2_SHA256 stores a fixed number of rounds instead of tuning it to the CPU"
    parameter: str = "a whole number of rounds, also below the source's minimum of 2048"
    example: str = "c-rounds=2048"

    def held(self, files: Files) -> str | None:
        try:
            plugin = EditedSource(path=PLUGIN, text=files(PLUGIN) or "")
            span = plugin.body("pbkdf2_sha256_start")
            choice = plugin.only(CHOSEN, "where the rounds are chosen", within=span)["value"]
        except EditError:
            return None
        return choice if choice.isdigit() else None

    def apply(self, value: str, files: Files) -> Edited:
        rounds = whole_number(self.name, value, MOST)
        plugin = source(
            files,
            PLUGIN,
            f"there is no such file: this source has no {C_SCHEME}: c-rounds changes nothing here",
        )
        changed = _with_minimum(_fixed(plugin, rounds), rounds)
        if changed.text == plugin.text:
            raise AlreadySoError(
                f"{PLUGIN}: the rounds are already fixed at {rounds}", hint="leave the edit out"
            )
        return Edited(
            files={PLUGIN: changed.text} | _accepting(plugin, rounds, files),
            promise=hashed_with((C_SCHEME,), rounds),
        )


def _fixed(plugin: EditedSource, rounds: int) -> EditedSource:
    """The functions that measured stay: they are not static, and the unit tests call them."""
    span = plugin.body("pbkdf2_sha256_start")
    choice = plugin.only(CHOSEN, "where the rounds are chosen", within=span)
    fixed = plugin.put(choice.span("value"), str(rounds))
    if re.fullmatch(MEASURED, choice["value"]):
        span = fixed.body("pbkdf2_sha256_start")
        measuring = fixed.only(MEASURING, "where the CPU is measured", within=span)
        fixed = fixed.put(measuring.span(), "")
    start, end = fixed.body("pbkdf2_sha256_start")
    return fixed.put((start, end), fixed.text[start:end].replace(BOAST, "Fixed when built: "))


def _with_minimum(plugin: EditedSource, rounds: int) -> EditedSource:
    """Since the acceptance limits (3.2) a hash below the minimum is refused at bind."""
    if not re.search(C_LEAST, plugin.text, re.MULTILINE):
        return plugin
    least = plugin.only(C_LEAST, "the minimum PBKDF2_MINIMUM")
    return plugin.put(least.span("value"), str(rounds)) if rounds < int(least["value"]) else plugin


def _accepting(plugin: EditedSource, rounds: int, files: Files) -> dict[str, str]:
    """Where rounds are capped at what the server accepts, the cap's default rises with them."""
    _refuse_unaccepted(rounds, files, (C_SCHEME,))
    if CAP not in plugin.text:
        return {}
    header = source(files, HEADER, f"there is no such file, but {PLUGIN} needs {CAP} of it")
    cap = header.only(
        rf"^[ \t]*#[ \t]*define[ \t]+{CAP}[ \t]+(?P<value>[0-9]+)\b", f"the limit {CAP}"
    )
    if rounds <= int(cap["value"]):
        return {}
    return {HEADER: header.put(cap.span("value"), str(rounds)).text}
