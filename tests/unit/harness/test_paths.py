"""Where things are kept: an override, then the desktop's convention, then the home folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsharness import paths

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
