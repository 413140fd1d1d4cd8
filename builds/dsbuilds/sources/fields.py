"""Debian's control fields: `Name: value`, folded lines included. Core pure logic."""

from __future__ import annotations

import re

SIGNED = re.compile(r"\A-----BEGIN PGP SIGNED MESSAGE-----\n(?:.+\n)*\n")
SIGNATURE = "-----BEGIN PGP SIGNATURE-----"


def paragraphs(text: str) -> list[dict[str, str]]:
    """Every paragraph's fields; a signature around them is left out, not checked."""
    plain = SIGNED.sub("", text).partition(SIGNATURE)[0]
    found = [_fields(block) for block in re.split(r"\n[ \t]*\n", plain)]
    return [fields for fields in found if fields]


def _fields(block: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    last = ""
    for line in block.splitlines():
        if line.startswith("#"):
            continue
        if line[:1] in {" ", "\t"} and last:
            fields[last] += "\n" + line.strip()
        elif ":" in line:
            last, _, value = line.partition(":")
            fields[last] = value.strip()
    return fields
