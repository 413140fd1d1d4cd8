"""rust-rounds=N: how many rounds the schemes written in Rust store."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dsbuilds.edits.dirsrv.schemes import (
    RUST_SCHEMES,
    RUST_SOURCE,
    dse_values,
    hashed_with,
    whole_number,
)
from dsbuilds.edits.edit import Edited, Files
from dsbuilds.edits.source_place import UNFAMILIAR, EditedSource, source
from dsharness.errors import AlreadySoError, EditError

MOST = 10_000_000
# One constant until 2.6.0; then a default with bounds; for a while a default for each digest.
DEFAULTS = r"(?:DEFAULT_)?PBKDF2_(?:SHA\d+_)?ROUNDS"
LEAST = "MIN_PBKDF2_ROUNDS"
MOST_NAME = "MAX_PBKDF2_ROUNDS"
CONFIGURED = "pwdPBKDF2NumIterations"
ACCEPTED = "pwdPBKDF2AcceptMaxIterations"


@dataclass(frozen=True, kw_only=True)
class RustRounds:
    """The constants of the pwdchan plugin; fewer rounds than the minimum lower the minimum."""

    name: str = "rust-rounds"
    title: str = "the Rust schemes (PBKDF2-SHA512 and its kin) store another number of rounds"
    parameter: str = "a whole number of rounds, also below the source's minimum"
    example: str = "rust-rounds=10000"

    def check(self, value: str) -> None:
        whole_number(self.name, value, MOST)

    def held(self, files: Files) -> str | None:
        found = re.finditer(_constant(DEFAULTS), files(RUST_SOURCE) or "", re.MULTILINE)
        numbers = {_number(match) for match in found}
        return str(*numbers) if len(numbers) == 1 else None

    def apply(self, value: str, files: Files) -> Edited:
        wanted = whole_number(self.name, value, MOST)
        plugin = source(
            files,
            RUST_SOURCE,
            "there is no such file: this source has no Rust schemes (before 2.0.2): "
            "rust-rounds changes nothing here",
        )
        _refuse_configured(wanted, files)
        changed = _with_defaults(plugin, wanted)
        if changed.text == plugin.text:
            raise AlreadySoError(
                f"{RUST_SOURCE}: {wanted} rounds are already the default of this source",
                hint="leave the edit out",
            )
        return Edited(
            files={RUST_SOURCE: _with_bounds(changed, wanted).text},
            promise=hashed_with(RUST_SCHEMES, wanted),
        )


def _constant(name: str) -> str:
    return (
        rf"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?const\s+(?P<name>{name})\s*:\s*(?:usize|u32|u64|i32)"
        r"\s*=\s*(?P<value>[0-9][0-9_]*)\s*;"
    )


def _number(match: re.Match[str]) -> int:
    return int(match["value"].replace("_", ""))


def _with_defaults(plugin: EditedSource, wanted: int) -> EditedSource:
    names = [match["name"] for match in re.finditer(_constant(DEFAULTS), plugin.text, re.MULTILINE)]
    if not names:
        raise EditError(
            f"{RUST_SOURCE}: looked for the constant of the rounds (PBKDF2_ROUNDS or "
            "DEFAULT_PBKDF2_ROUNDS), but there is none",
            hint=UNFAMILIAR,
        )
    for name in dict.fromkeys(names):
        plugin = _set(plugin, name, wanted)
    return plugin


def _set(plugin: EditedSource, name: str, wanted: int) -> EditedSource:
    found = plugin.only(_constant(re.escape(name)), f"the constant {name}")
    return plugin if _number(found) == wanted else plugin.put(found.span("value"), f"{wanted:_}")


def _with_bounds(plugin: EditedSource, wanted: int) -> EditedSource:
    """Below its minimum the server would neither take the rounds nor, lately, accept the hash."""
    if re.search(rf"\b{MOST_NAME}\b", plugin.text):
        most = plugin.only(_constant(MOST_NAME), f"the constant {MOST_NAME}")
        if wanted > _number(most):
            raise EditError(
                f"{RUST_SOURCE}: {MOST_NAME} allows {_number(most)} rounds at most, not {wanted}",
                hint=f"choose up to {_number(most)}",
            )
    if not re.search(rf"\b{LEAST}\b", plugin.text):
        return plugin
    least = plugin.only(_constant(LEAST), f"the constant {LEAST}")
    return _set(plugin, LEAST, wanted) if wanted < _number(least) else plugin


def _refuse_configured(wanted: int, files: Files) -> None:
    """An instance's own entries win over the plugin's constants."""
    for path, number in dse_values(files, CONFIGURED, RUST_SCHEMES).items():
        if number != wanted:
            raise AlreadySoError(
                f"{path}: nsslapd-{CONFIGURED} already says {number} rounds, "
                f"whatever the default is",
                hint="change that value with --patch",
            )
    for path, number in dse_values(files, ACCEPTED, RUST_SCHEMES).items():
        if number < wanted:
            raise EditError(
                f"{path}: nsslapd-{ACCEPTED} lets the server store and accept {number} rounds "
                f"at most, not {wanted}",
                hint=f"choose up to {number}, or raise that value with --patch first",
            )
