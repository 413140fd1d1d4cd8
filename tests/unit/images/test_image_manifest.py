from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.model import Image
from dsharness.products import notable_versions
from dsimages.manifest import manifest_key, parse, recall, store

NAMES = st.from_regex(r"[a-z0-9.+-]+", fullmatch=True)
DEBIAN_11 = {
    "389-ds-base": "1.4.4.11-2",
    "libnss3": "2:3.61-1",
    "libssl1.1": "1.1.1w",
    "libldap-2.4-2": "2.4.57",
    "libc6": "2.31-13",
}
SID = {
    "389-ds-base": "3.3.1-3",
    "libnss3": "2:3.132-1",
    "libssl3t64": "3.6.5-1",
    "libldap2": "2.6.14",
    "libc6": "2.43-7",
}
FEDORA = {
    "389-ds-base": "2.0.15-1.fc34",
    "nss": "3.63-1",
    "nss-softokn": "3.63-1",
    "openssl-libs": "1.1.1k",
    "openldap": "2.4.57-2",
    "glibc": "2.33-5",
}


@given(st.dictionaries(NAMES, NAMES))
def test_parse_reads_back_what_was_printed(packages):
    assert parse("".join(f"{name}\t{version}\n" for name, version in packages.items())) == packages


def test_parse_ignores_what_is_no_package():
    assert parse("warning: x\n\nnss\t3.90\n\t1\nname\t\na\tb\tc\n") == {"nss": "3.90"}


def test_key_ignores_order_and_sees_versions():
    assert manifest_key({"a": "1", "b": "2"}) == manifest_key({"b": "2", "a": "1"})
    assert manifest_key({"a": "1"}) != manifest_key({"a": "2"})


@pytest.mark.parametrize("packages", [DEBIAN_11, SID, FEDORA])
def test_notable_versions_are_found_under_every_name(packages):
    image = Image(candidate_id="r", reference="x", key="k", product="389-ds", packages=packages)
    assert set(notable_versions(image)) == {"389-ds", "nss", "openssl", "libldap", "glibc"}


def test_store_and_recall(tmp_path, monkeypatch):
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path))
    image = Image(candidate_id="r", reference="x:k", key="k", packages=SID)
    assert recall("k") is None
    store(image)
    assert recall("k") == image
    (tmp_path / "images/k/manifest.json").write_text("{half")
    assert recall("k") is None
