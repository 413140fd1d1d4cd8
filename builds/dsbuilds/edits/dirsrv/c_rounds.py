"""c-rounds=N: how many rounds the scheme PBKDF2_SHA256, computed by NSS, stores."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dsbuilds.edits.dirsrv.schemes import C_SCHEME, dse_values, hashed_with, whole_number
from dsbuilds.edits.edit import Edited, Files
from dsbuilds.edits.source_place import EditedSource, source
from dsharness.errors import AlreadySoError, EditError

PLUGIN = "ldap/servers/plugins/pwdstorage/pbkdf2_pwd.c"
HEADER = "ldap/servers/plugins/pwdstorage/pwdstorage.h"
MOST = 10_000_000
MEASURED = r"\bpbkdf2_sha256_calculate_iterations\s*\(\s*\w+\s*\)"
MEASURING = (
    r"(?:^[ \t]*/\*[^*\n]*\*/[ \t]*\n)?"
    r"^[ \t]*uint64_t\s+\w+\s*=\s*pbkdf2_sha256_benchmark_iterations\s*\(\s*\)\s*;[ \t]*\n"
)
CHOSEN = rf"\b\w+\s*=\s*(?P<value>{MEASURED}|[0-9]+)\s*;"
BOAST = "Based on CPU performance, chose "
LEAST = r"^[ \t]*#[ \t]*define[ \t]+PBKDF2_MINIMUM[ \t]+(?P<value>[0-9]+)\b"
ACCEPTED = "PBKDF2_ACCEPT_MAX_ITERATIONS_DEFAULT"
ACCEPTED_ATTRIBUTE = "pwdPBKDF2AcceptMaxIterations"


@dataclass(frozen=True, kw_only=True)
class CRounds:
    """The start of the plugin: a number in the place of its measuring of the CPU."""

    name: str = "c-rounds"
    title: str = "PBKDF2_SHA256 stores a fixed number of rounds instead of tuning it to the CPU"
    parameter: str = "a whole number of rounds, also below the source's minimum of 2048"
    example: str = "c-rounds=2048"

    def check(self, value: str) -> None:
        whole_number(self.name, value, MOST)

    def held(self, files: Files) -> str | None:
        try:
            plugin = EditedSource(path=PLUGIN, text=files(PLUGIN) or "")
            span = plugin.body("pbkdf2_sha256_start")
            chosen = plugin.only(CHOSEN, "where the rounds are chosen", within=span)["value"]
        except EditError:
            return None
        return chosen if chosen.isdigit() else None

    def apply(self, value: str, files: Files) -> Edited:
        wanted = whole_number(self.name, value, MOST)
        plugin = source(
            files,
            PLUGIN,
            f"there is no such file: this source has no {C_SCHEME}: c-rounds changes nothing here",
        )
        changed = _with_minimum(_fixed(plugin, wanted), wanted)
        if changed.text == plugin.text:
            raise AlreadySoError(
                f"{PLUGIN}: the rounds are already fixed at {wanted}", hint="leave the edit out"
            )
        return Edited(
            files={PLUGIN: changed.text} | _accepting(plugin, wanted, files),
            promise=hashed_with((C_SCHEME,), wanted),
        )


def _fixed(plugin: EditedSource, wanted: int) -> EditedSource:
    """The functions that measured stay: they are not static, and the unit tests call them."""
    span = plugin.body("pbkdf2_sha256_start")
    chosen = plugin.only(CHOSEN, "where the rounds are chosen", within=span)
    fixed = plugin.put(chosen.span("value"), str(wanted))
    if re.fullmatch(MEASURED, chosen["value"]):
        span = fixed.body("pbkdf2_sha256_start")
        measuring = fixed.only(MEASURING, "where the CPU is measured", within=span)
        fixed = fixed.put(measuring.span(), "")
    start, end = fixed.body("pbkdf2_sha256_start")
    return fixed.put((start, end), fixed.text[start:end].replace(BOAST, "Fixed when built: "))


def _with_minimum(plugin: EditedSource, wanted: int) -> EditedSource:
    """Since the acceptance limits (3.2) a hash below the minimum is refused at bind."""
    if not re.search(LEAST, plugin.text, re.MULTILINE):
        return plugin
    least = plugin.only(LEAST, "the minimum PBKDF2_MINIMUM")
    return plugin.put(least.span("value"), str(wanted)) if wanted < int(least["value"]) else plugin


def _accepting(plugin: EditedSource, wanted: int, files: Files) -> dict[str, str]:
    """Where rounds are capped at what the server accepts, the cap's default rises with them."""
    for path, number in dse_values(files, ACCEPTED_ATTRIBUTE, (C_SCHEME,)).items():
        if number < wanted:
            raise EditError(
                f"{path}: nsslapd-{ACCEPTED_ATTRIBUTE} lets the server store and accept "
                f"{number} rounds at most, not {wanted}",
                hint=f"choose up to {number}, or raise that value with --patch first",
            )
    if ACCEPTED not in plugin.text:
        return {}
    header = source(files, HEADER, f"there is no such file, but {PLUGIN} needs {ACCEPTED} of it")
    cap = header.only(
        rf"^[ \t]*#[ \t]*define[ \t]+{ACCEPTED}[ \t]+(?P<value>[0-9]+)\b", f"the limit {ACCEPTED}"
    )
    if wanted <= int(cap["value"]):
        return {}
    return {HEADER: header.put(cap.span("value"), str(wanted)).text}
