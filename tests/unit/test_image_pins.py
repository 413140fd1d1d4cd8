from __future__ import annotations

import pytest
from rows import APT, DNF, KOJI, row_of

from dsharness.errors import PackageError
from dsimages.pins import answers, check_manifest, lockable, upstream, wanted

KOJI_RPMS = ("389-ds-base", "389-ds-base-libs", "python3-lib389")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.4.4.11-2", "1.4.4.11"),
        ("2.3.1+dfsg1-1+deb12u1", "2.3.1"),
        ("2:3.87.1-1+deb12u4", "3.87.1"),
        ("3.1.2-3.fc41", "3.1.2"),
        ("1.4.3.30-6.module+el8.7.0+1", "1.4.3.30"),
        ("3.3.1~dfsg-1", "3.3.1"),
        ("3.3.1~rc1-1", "3.3.1~rc1"),
        ("7", "7"),
    ],
)
def test_upstream(version, expected):
    assert upstream(version) == expected


@pytest.mark.parametrize(
    ("version", "wish", "expected"),
    [
        ("2.3.1+dfsg1-1+deb12u1", "2.3.1", True),
        ("2.3.1+dfsg1-1+deb12u1", "2.3.1+dfsg1-1+deb12u1", True),
        ("2:3.87.1-1", "3.87.1-1", True),
        ("2.0.15-1.fc34", "2.0.15-1", False),
        ("2.0.15-1.fc34", "2.0.15", True),
        ("2.0.15-1.fc34", "2.0.1", False),
        ("2.0.15-1.fc34", "2.0.16", False),
    ],
)
def test_answers(version, wish, expected):
    assert answers(version, wish) is expected


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
        ({}, {}, r"389-ds-base 2\.3\.1 was wanted, but the image holds no 389-ds-base"),
        ({"versions": {}}, {"x": "1"}, r"389-ds-base \(any version\) was wanted"),
        ({}, {"389-ds-base": "2.4.0-1"}, r"2\.3\.1 was wanted, but the image holds 2\.4\.0-1"),
        ({"pins": {"nss": "3"}}, {"389-ds-base": "2.3.1-1"}, r"nss 3 was wanted"),
        (
            {"versions": {"freeipa": "4.9.9"}},
            {"389-ds-base": "1-1", "ipa-server": "4.9.8-1.el8"},
            r"ipa-server 4\.9\.9 was wanted, but the image holds 4\.9\.8-1\.el8",
        ),
    ],
)
def test_broken_promises_are_refused(changes, packages, said):
    with pytest.raises(PackageError, match=said):
        check_manifest(row_of(APT, **changes), packages)


def test_kept_promises_pass():
    packages = {"389-ds-base": "1-1", "freeipa-server": "4.9.9-1.fc36"}
    check_manifest(row_of(APT, versions={"freeipa": "4.9.9"}), packages)
