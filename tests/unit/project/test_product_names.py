"""The core knows no product by its name: what only one needs is in that product's folder."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from dsharness.product_folder import product_folders

ROOT = Path(__file__).resolve().parents[3]
CORE = ("harness", "images", "builds", "results", "bisect")
# The words of each product that has a folder of its own, as nobody else uses them.
WORDS = {
    "389-ds": r"(?i:389[- ]?ds|389-directory|ns.slapd|dirsrv|dsconf)",
    "bind": r"(?i:bind9|bind-tree|dnsload|dnsperf|named\.conf)|\bDNS\b(?! rebinding)|\bBIND's\b",
    "keycloak": r"(?i:keycloak|loginload|kc\.sh)",
    "fastd": r"(?i:\bfastd\b)",
    "freeipa": r"(?i:freeipa-tree|\bipa-server|ipa-pwd)",
    "krb5": r"(?i:krb5|kerberos|krbload|kdc)",
    "openldap": r"(?i:openldap|\bslapd\.conf)",
    "samba": r"(?i:samba|smb\.conf|domain controller)",
    "tinc": r"(?i:\btincd?\b)",
    "vpncloud": r"(?i:vpncloud)",
}


def core_files() -> list[str]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *CORE]
    listing = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listing.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("product", WORDS)
def test_its_words_stand_nowhere_in_the_core(product: str) -> None:
    words = re.compile(WORDS[product])
    places = [
        f"{name}:{number}: {line.strip()}"
        for name in core_files()
        for number, line in enumerate((ROOT / name).read_text("utf-8").splitlines(), 1)
        if words.search(line) or words.search(name)
    ]
    assert places == []


def test_every_folder_has_its_words() -> None:
    assert WORDS.keys() == product_folders().keys()
