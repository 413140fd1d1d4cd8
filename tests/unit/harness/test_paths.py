"""Where things are kept: an override, then the desktop's convention, then the home folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsharness import paths
from dsharness.errors import ExitCode, UnwritableError

VARIABLES = ("DSBISECT_CACHE", "DSBISECT_CONFIG", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


@pytest.mark.parametrize(
    ("env", "cache", "config"),
    [
        ({}, "/home/u/.cache/dsbisect", "/home/u/.config/dsbisect"),
        (
            {"XDG_CACHE_HOME": "/x/cache", "XDG_CONFIG_HOME": "/x/config"},
            "/x/cache/dsbisect",
            "/x/config/dsbisect",
        ),
        ({"XDG_CACHE_HOME": "/x", "DSBISECT_CACHE": "/mine"}, "/mine", "/home/u/.config/dsbisect"),
        ({"DSBISECT_CONFIG": "/mine"}, "/home/u/.cache/dsbisect", "/mine"),
        (
            {"DSBISECT_CACHE": "", "XDG_CONFIG_HOME": ""},
            *("/home/u/.cache/dsbisect", "/home/u/.config/dsbisect"),
        ),
    ],
    ids=["home", "xdg", "own-cache", "own-config", "empty-is-unset"],
)
def test_homes(
    env: dict[str, str], cache: str, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/u", **env}.items():
        monkeypatch.setenv(name, value)
    assert paths.cache_home() == Path(cache)
    assert paths.config_home() == Path(config)
    assert paths.logs_home() == Path(cache) / "logs"


def test_a_relative_folder_is_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Podman takes a relative path for the name of a volume."""
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.setenv(name, "here")
    assert (paths.cache_home(), paths.config_home()) == (tmp_path / "here", tmp_path / "here")
    monkeypatch.delenv("DSBISECT_CACHE")
    monkeypatch.setenv("HOME", "/home/u")
    usual = Path("/home/u/.cache/dsbisect")
    assert paths.cache_home() == usual, "the standard ignores a relative XDG_CACHE_HOME"


NOBODY = 65534


def told_to_nobody(folder: Path) -> str:
    """What an ordinary user is told who uses this cache."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.environ["DSBISECT_CACHE"] = str(folder)
            if os.getuid() == 0:
                os.setuid(NOBODY)
            paths.use_cache()
        except UnwritableError as error:
            os.write(writing, f"{error.exit_code} {error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        return told.read()


@pytest.mark.parametrize("name", ["cache", "cache/not-there-yet", "file", "file/below"])
def test_a_cache_that_cannot_be_written_to_is_told_before_anything_is_made(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    place = tmp_path_factory.mktemp("place")
    for folder in (place.parent, place):
        folder.chmod(0o755)
    (place / "cache").mkdir(mode=0o555)
    (place / "file").touch(mode=0o444)
    told = told_to_nobody(place / name)
    assert told.startswith(f"{ExitCode.DISK} {place / name} in the cache of the lab cannot")
    assert "next: set DSBISECT_CACHE" in told


def test_a_part_of_the_cache_that_cannot_be_written_to_is_known_by_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    inside = PermissionError(13, "Permission denied", str(tmp_path / "cache" / "locks" / "a"))
    assert "locks/a in the cache" in str(paths.unwritable_cache(inside))
    elsewhere = PermissionError(13, "Permission denied", str(tmp_path / "other"))
    for error in (elsewhere, FileNotFoundError(2, "", inside.filename), OSError("of no file")):
        assert paths.unwritable_cache(error) is None
