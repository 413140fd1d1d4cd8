"""Where the lab keeps what it makes: nothing of the user's is ever written to."""

from __future__ import annotations

import os
from pathlib import Path


def cache_home() -> Path:
    """Images' inputs, golden states, manifests, logs: all of it can be made again."""
    override = os.environ.get("DSBISECT_CACHE")
    if override:
        return Path(override)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "dsbisect"


def config_home() -> Path:
    """The containers configuration that the lab writes for itself."""
    override = os.environ.get("DSBISECT_CONFIG")
    if override:
        return Path(override)
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "dsbisect"


def logs_home() -> Path:
    return cache_home() / "logs"
