"""Where the lab keeps what it makes: nothing of the user's is ever written to."""

from __future__ import annotations

import os
from pathlib import Path


def cache_home() -> Path:
    """Images' inputs, golden states, manifests, logs: all of it can be made again."""
    override = os.environ.get("DSBISECT_CACHE")
    if override:
        return Path(override).absolute()
    return usual_cache()


def usual_cache() -> Path:
    """Where it lies unless DSBISECT_CACHE says otherwise: a folder that only the lab uses."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def config_home() -> Path:
    """The containers configuration that the lab writes for itself."""
    override = os.environ.get("DSBISECT_CONFIG")
    if override:
        return Path(override).absolute()
    return _xdg("XDG_CONFIG_HOME", ".config")


def logs_home() -> Path:
    return cache_home() / "logs"


def _xdg(variable: str, usual: str) -> Path:
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / usual).absolute() / "dsbisect"
