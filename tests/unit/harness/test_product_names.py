"""What the lab knows of one product is its data and its driver: no other code names it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from dsharness.products import product, product_ids

ROOT = Path(__file__).resolve().parents[3]
SOURCES = (
    "harness/dsharness",
    "images/dsimages",
    "builds/dsbuilds",
    "results/dsresults",
    "bisect",
)
OWN = (
    "harness/dsharness/products/",
    "harness/dsharness/systems/ldap/",
    "harness/dsharness/systems/bind",
    "builds/dsbuilds/edits/dirsrv/",
    "builds/dsbuilds/libexec/389-ds/",
    "bisect/dsvalidate/dirsrv/",
)
# What lists the drivers there are, and why it may.
LISTS = {
    "harness/dsharness/model/rows.py": "the values of a row's `system`",
    "harness/dsharness/systems/__init__.py": "the drivers",
    "builds/dsbuilds/edits/known_edits.py": "the edits",
    "bisect/dsvalidate/suites.py": "the suites of validations",
}
ORDINARY = {"bind"}  # also what a client of LDAP does
MORE = ("389ds", "dirsrv", "slapd", "lib389")


def names() -> set[str]:
    """Ids and packages of all products."""
    found = {*MORE, *product_ids()}
    for known in map(product, product_ids()):
        for packages in (known.deb, known.rpm):
            found |= {packages.source, *packages.all} if packages else set()
    return found - ORDINARY


@cache
def lines() -> list[tuple[str, str]]:
    """File and line of all that names a product."""
    pattern = re.compile("|".join(map(re.escape, names())), re.IGNORECASE)
    return [
        (str(path.relative_to(ROOT)), f"{number}: {line.strip()}")
        for source in SOURCES
        for path in sorted((ROOT / source).rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_code_names_a_product_but_its_own():
    others = [
        f"{file}:{line}" for file, line in lines() if not file.startswith(OWN) and file not in LISTS
    ]
    assert others == []


@pytest.mark.parametrize("file", LISTS)
def test_what_is_allowed_is_still_needed(file):
    assert file in {found for found, _ in lines()}
