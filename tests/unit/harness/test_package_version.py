"""One reading of a package's version, for images and for the matrix."""

from __future__ import annotations

import pytest

from dsharness.package_version import answers, upstream


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.4.4.11-2", "1.4.4.11"),
        ("2.3.1+dfsg1-1+deb12u1", "2.3.1"),
        ("2:3.87.1-1+deb12u4", "3.87.1"),
        ("3.1.2-3.fc41", "3.1.2"),
        ("1.4.3.30-6.module+el8.7.0+1", "1.4.3.30"),
        ("3.3.1~dfsg-1", "3.3.1"),
        ("3.1.2~rc1-1", "3.1.2~rc1"),
        ("7", "7"),
    ],
)
def test_upstream(version: str, expected: str) -> None:
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
        ("3.1.2~rc1-1", "3.1.2", False),
        ("3.1.2~rc1-1", "3.1.2~rc1", True),
    ],
)
def test_answers(version: str, wish: str, *, expected: bool) -> None:
    assert answers(version, wish) is expected
