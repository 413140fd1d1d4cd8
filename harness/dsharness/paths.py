"""Where the lab keeps what it makes: nothing of the user's is ever written to."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_home() -> Path:
    """Images' inputs, golden states, manifests, logs: all of it can be made again."""
    override = os.environ.get("DSBISECT_CACHE")
    if override:
        return Path(override).absolute()
    return usual_cache()


def usual_cache() -> Path:
    """Where it lies unless DSBISECT_CACHE says otherwise: a folder that only the lab uses."""
    return platformdirs.user_cache_path("dsbisect").absolute()


def config_home() -> Path:
    """The containers configuration that the lab writes for itself."""
    override = os.environ.get("DSBISECT_CONFIG")
    if override:
        return Path(override).absolute()
    return platformdirs.user_config_path("dsbisect").absolute()


def data_home() -> Path:
    """Results and reports that no folder was named for."""
    return platformdirs.user_data_path("dsbisect")


def logs_home() -> Path:
    return cache_home() / "logs"
