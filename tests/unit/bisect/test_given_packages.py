"""Packages that a user gives: what is refused before anything is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rows import APT, DNF, row_of

from dsharness.errors import UsageError
from dsvalidate.package_files import check_given

DEB, RPM = b"!<arch>\ndebian-binary", b"\xed\xab\xee\xdb\x03\x00"


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def test_packages_of_the_rows_family_are_taken(tmp_path: Path) -> None:
    check_given((written(tmp_path, "a_1_amd64.deb", DEB),), row_of(APT))
    check_given((written(tmp_path, "a-1-1.x86_64.rpm", RPM),), row_of(DNF))


@pytest.mark.parametrize(
    ("name", "content", "row", "said"),
    [
        ("a-1-1.x86_64.rpm", RPM, APT, "not a .deb package, as toy-apt installs them"),
        ("a_1_amd64.deb", DEB, DNF, "not a .rpm package, as toy-dnf installs them"),
        ("a_1_amd64.deb", b"<html>", APT, "not a .deb package"),
        ("-o=x.deb", DEB, APT, "characters that no package's name has"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, row, said) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        check_given((written(tmp_path, name, content),), row_of(row))
    assert caught.value.hint


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.deb: No such file or directory"):
        check_given((tmp_path / "no.deb",), row_of(APT))


def test_one_package_given_twice(tmp_path: Path) -> None:
    twice = written(tmp_path, "a.deb", DEB), written(tmp_path / "b", "a.deb", DEB)
    with pytest.raises(UsageError, match=r"a\.deb: given twice"):
        check_given(twice, row_of(APT))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.deb"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
    with pytest.raises(UsageError, match=r"--package .*a\.deb: .*(regular file|directory)"):
        check_given((path,), row_of(APT))
