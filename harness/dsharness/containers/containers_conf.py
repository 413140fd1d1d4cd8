"""The containers.conf that the lab writes for itself; the user's files are only read."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import tomli_w

from dsharness.containers.engine_configs import EngineConfig
from dsharness.errors import EngineError
from dsharness.process.command import atomic_write


def write_configuration(plan: EngineConfig, path: Path) -> Path | None:
    """The machine's and the user's settings with the plan's on top, in a file of the lab's.

    None when the plan changes nothing: podman then reads its own files.
    """
    if plan == EngineConfig():
        return None
    merged = merge_settings([_read_settings(path) for path in _settings_files()], plan)
    write_own(path, tomli_w.dumps(merged))
    return path


def write_own(path: Path, text: str) -> None:
    """Write one of the lab's own settings, or say which folder may not be written to."""
    try:
        atomic_write(path, text)
    except OSError as error:
        raise EngineError(
            f"cannot write {path}: {error.strerror}",
            hint="set DSBISECT_CONFIG to a folder you may write to",
        ) from error


def merge_settings(layers: Sequence[Mapping[str, object]], plan: EngineConfig) -> dict[str, object]:
    """Later layers win, key by key in each table, as podman itself merges them."""
    merged: dict[str, object] = {}
    for layer in [*layers, plan.settings]:
        for table, values in layer.items():
            known = merged.get(table)
            if isinstance(known, dict) and isinstance(values, dict):
                merged[table] = {**known, **values}
            else:
                merged[table] = values
    return merged


def _settings_files() -> list[Path]:
    """What podman would read by itself; naming CONTAINERS_CONF makes it read nothing else."""
    named = os.environ.get("CONTAINERS_CONF")
    if named:
        return [Path(named)]
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = [Path("/usr/share/containers/containers.conf")]
    for folder in (Path("/etc/containers"), home / "containers"):
        files += [folder / "containers.conf", *sorted(folder.glob("containers.conf.d/*.conf"))]
    return files


def _read_settings(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise EngineError(
            f"{path}: cannot be read as containers.conf: {error}",
            hint="fix that file; podman itself would stumble over it",
        ) from error
