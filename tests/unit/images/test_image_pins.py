from __future__ import annotations

import pytest
from rows import APT, DNF, KOJI, row_of

from dsharness.errors import PackageError
from dsimages.pins import check_manifest, lockable, wanted

KOJI_RPMS = ("389-ds-base", "389-ds-base-libs", "python3-lib389")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (row_of(APT), {"389-ds-base": "2.3.1"}),
        (row_of(APT, versions={}), {}),
        (row_of(APT, pins={"libnss3": "3.87"}), {"389-ds-base": "2.3.1", "libnss3": "3.87"}),
        (row_of(KOJI), dict.fromkeys(KOJI_RPMS, "2.0.15-1.fc34")),
    ],
)
def test_wanted(row, expected):
    assert wanted(row) == expected


def test_the_server_and_its_siblings_are_locked():
    assert {"389-ds-base", "python3-lib389", "nss"} <= set(lockable(row_of(DNF, pins={"nss": "1"})))


@pytest.mark.parametrize(
    ("changes", "packages", "said"),
    [
        ({}, {}, r"389-ds-base 2\.3\.1 was requested, but the image has no 389-ds-base"),
        ({"versions": {}}, {"x": "1"}, r"389-ds-base \(any version\) was requested"),
        ({}, {"389-ds-base": "2.4.0-1"}, r"2\.3\.1 was requested, but the image has 2\.4\.0-1"),
        ({"pins": {"nss": "3"}}, {"389-ds-base": "2.3.1-1"}, r"nss 3 was requested"),
        (
            {"versions": {"freeipa": "4.9.9"}},
            {"389-ds-base": "1-1", "ipa-server": "4.9.8-1.el8"},
            r"ipa-server 4\.9\.9 was requested, but the image has 4\.9\.8-1\.el8",
        ),
    ],
)
def test_broken_promises_are_refused(changes, packages, said):
    with pytest.raises(PackageError, match=said):
        check_manifest(row_of(APT, **changes), packages)


def test_kept_promises_pass():
    packages = {"389-ds-base": "1-1", "freeipa-server": "4.9.9-1.fc36"}
    check_manifest(row_of(APT, versions={"freeipa": "4.9.9"}), packages)
