"""Files that somebody else could have written are opened as what they are, and never waited for."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from dsharness.guarded_files import (
    given_file,
    given_input,
    opened,
    regular_file,
    shared_file,
    shared_socket,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that others can write to, next to a file of the host."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


def plant(path: Path, kind: str) -> None:
    match kind:
        case "link":
            path.symlink_to(path.parent.parent / "secret")
        case "device":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()


@pytest.mark.parametrize("kind", ["link", "device", "pipe", "folder", "nothing"])
def test_in_a_shared_folder_only_a_regular_file_is_read(folder: Path, kind: str) -> None:
    plant(folder / "name", kind)
    with pytest.raises(OSError):
        shared_file(folder, "name", most_bytes=10)
    with pytest.raises(OSError), shared_socket(folder / "name"):
        pass


def test_no_part_of_a_path_is_a_link(folder: Path) -> None:
    (folder / "sub").symlink_to(folder.parent)
    with pytest.raises(NotADirectoryError), opened(folder, "sub"):
        pass
    folder.rename(folder.parent / "moved")
    folder.symlink_to(folder.parent / "moved")
    with pytest.raises(NotADirectoryError), opened(folder):
        pass


@pytest.mark.parametrize(("most_bytes", "read"), [(3, b"fgh"), (8, b"abcdefgh"), (99, b"abcdefgh")])
def test_the_end_of_a_file_is_kept(folder: Path, most_bytes: int, read: bytes) -> None:
    (folder / "name").write_bytes(b"abcdefgh")
    assert shared_file(folder, "name", most_bytes=most_bytes) == read


@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "nothing"])
def test_a_named_file_is_one(folder: Path, kind: str) -> None:
    plant(folder / "name", kind)
    with pytest.raises(OSError):
        given_file(folder / "name")


def test_a_named_file_may_be_a_link_of_the_user_s_and_is_bounded(folder: Path) -> None:
    plant(folder / "name", "link")
    assert given_file(folder / "name", most_bytes=6) == b"secret"
    with pytest.raises(OSError, match="larger than"):
        given_file(folder / "name", most_bytes=5)
    with opened(folder) as below, pytest.raises(OSError), regular_file("name", below=below):
        pass


def test_a_socket_is_reached_by_its_descriptor(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as asking:
        listener.bind(str(folder / "name"))
        listener.listen()
        with shared_socket(folder / "name") as path:
            (folder / "name").unlink()  # what lies there now is of no matter
            asking.connect(path)
        listener.accept()[0].close()


@pytest.mark.parametrize("kind", ["device", "folder", "nothing"])
def test_an_input_is_a_file_or_a_pipe(folder: Path, kind: str) -> None:
    plant(folder / "name", kind)
    with pytest.raises(OSError):
        given_input(str(folder / "name"))


def test_a_pipe_is_read_to_its_end_and_bounded(folder: Path) -> None:
    plant(folder / "name", "pipe")
    assert given_input(str(folder / "name")) == b""  # nobody writes to it
    for most_bytes in (6, 5):
        out, into = os.pipe()
        os.write(into, b"sample")
        os.close(into)
        if most_bytes == 6:
            assert given_input(f"/dev/fd/{out}", most_bytes=most_bytes) == b"sample"
        else:
            with pytest.raises(OSError, match="larger"):
                given_input(f"/dev/fd/{out}", most_bytes=most_bytes)
        os.close(out)
