"""What a build left, read and taken over by the host: as it is, and never through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sandbox.untrusted_files import (
    DEEPEST,
    copy_output,
    entries,
    plain_file,
    removed,
    size_of,
    stays_inside,
)
from dsharness.process.command import run


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """What a build left, and next to it what is none of its business."""
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "secret").write_text("secret")
    folder = tmp_path / "build"
    folder.mkdir()
    return folder


def bottomless(folder: Path) -> None:
    """Folders in one another, more than a path can name."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d" * 10, dir_fd=here)
        below = os.open("d" * 10, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_no_link_is_followed(left: Path, tmp_path: Path) -> None:
    (left / "folder").symlink_to(tmp_path / "host")
    (left / "file").symlink_to(tmp_path / "host" / "secret")
    found = [(entry.path, entry.is_link) for entry in entries(left)]
    assert found == [("file", True), ("folder", True)]
    assert size_of(left) < 3 * 4096


@pytest.mark.parametrize("parts", [("out",), ("out", "host"), ("none",), ("file",)])
def test_a_folder_is_one_or_it_is_none(left: Path, tmp_path: Path, parts: tuple[str, ...]) -> None:
    (left / "out").symlink_to(tmp_path)
    (left / "file").write_text("x")
    with pytest.raises(UnbuildableError, match="it left no folder"):
        copy_output(left, *parts, target=tmp_path / "taken")


def test_what_is_taken_has_modes_and_inodes_of_its_own(left: Path, tmp_path: Path) -> None:
    outside = tmp_path / "host" / "secret"
    (left / "sbin").mkdir()
    server = left / "sbin" / "server"
    server.write_text("x")
    server.chmod(0o6777)
    (left / "sbin" / "same").hardlink_to(server)
    (left / "hard").hardlink_to(outside)
    os.mkfifo(left / "pipe")
    (left / "sbin" / "inner").symlink_to("server")
    (left / "outer").symlink_to(outside)
    copy_output(left, target=tmp_path / "taken")
    taken = {str(path.relative_to(tmp_path / "taken")): path.lstat()
             for path in (tmp_path / "taken").rglob("*")}  # fmt: skip
    assert sorted(taken) == ["hard", "sbin", "sbin/inner", "sbin/same", "sbin/server"]
    assert [oct(stat.S_IMODE(taken[f"sbin/{name}"].st_mode)) for name in ("server", "same")] == [
        "0o755", "0o755",
    ]  # fmt: skip
    assert {facts.st_nlink for facts in taken.values() if stat.S_ISREG(facts.st_mode)} == {1}


@pytest.mark.parametrize(
    ("path", "leads_to", "inside"),
    [
        ("lib/libx.so", "libx.so.0", True),
        ("lib/a/b", "../../sbin/x", True),
        ("a", "sub/../..", False),
        ("a/b", "sub/..", False),
        ("a", "..", False),
        ("lib/a", "../..", False),
        ("a", "/etc/passwd", False),
        ("a", "", True),
    ],
)
def test_links_that_lead_out_are_left_behind(path: str, leads_to: str, inside: bool) -> None:
    assert stays_inside(path, leads_to) is inside


@pytest.mark.parametrize("name", ["a b", "-o", "../x", "a\nb", ".hidden"])
def test_only_plainly_named_files_are_packages(left: Path, tmp_path: Path, name: str) -> None:
    target = left / name
    target.parent.mkdir(exist_ok=True)
    target.write_text("x")
    (left / "good_1.0~rc1-1+deb13u1.deb").write_text("x")
    top = left.parent if name.startswith("..") else left
    with pytest.raises(UnbuildableError, match="plain names"):
        copy_output(top, target=left.parent / "taken", keep=plain_file)


def test_a_folder_without_a_bottom_is_too_large_and_can_be_removed(left: Path) -> None:
    bottomless(left)
    assert size_of(left) > 1 << 60
    with pytest.raises(UnbuildableError, match=str(DEEPEST)):
        list(entries(left))
    removed(left)
    assert not left.exists()


def test_many_empty_files_are_not_for_nothing(left: Path) -> None:
    for number in range(100):
        (left / str(number)).touch()
    assert size_of(left) >= 100 * 4096


def test_what_is_closed_to_its_owner_can_be_removed(left: Path) -> None:
    """As a user who is not root; for root nothing is closed."""
    run(["sh", "-c", f"mkdir -p {left}/a/b/c && chmod 0 {left}/a/b && chmod 0 {left}/a"])
    removed(left)
    assert not left.exists()


def test_a_link_in_place_of_a_folder_is_what_is_removed(left: Path, tmp_path: Path) -> None:
    left.rmdir()
    left.symlink_to(tmp_path / "host")
    removed(left)
    assert not left.is_symlink()
    assert (tmp_path / "host" / "secret").read_text() == "secret"
