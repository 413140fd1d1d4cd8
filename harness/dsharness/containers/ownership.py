"""The owner of a container, so that only the lab's orphaned ones are removed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from dsharness.containers.engine import LABEL, Engine

PREFIX = "dsbisect-"
OWNER = "dsbisect.owner"
KEPT = "dsbisect.kept"  # set explicitly: a container inherits its image's labels


def remove(engine: Engine, name: str) -> None:
    """Remove a container, and with it those that live in its network namespace."""
    engine.podman(*remove_argv(name), cleanup=True)


def remove_argv(name: str) -> tuple[str, ...]:
    return ("rm", "--force", "--ignore", "--depend", "--volumes", "--time", "0", name)


def reap(engine: Engine) -> list[str]:
    """Remove containers whose owner was killed before it could; returns their names.

    Those kept on purpose stay until `dsbisect clean`.
    """
    orphans = [box.name for box in found(engine) if not box.owned and not box.kept]
    for name in orphans:
        remove(engine, name)
    return orphans


@dataclass(frozen=True, kw_only=True)
class Found:
    """A container of the lab, of any process."""

    name: str
    owned: bool  # the process that started it is alive
    kept: bool


def found(engine: Engine) -> list[Found]:
    """All containers of the lab that this user's podman knows."""
    listed = engine.must("ps", "--all", "--filter", f"label={LABEL}", "--format", "json")
    return [
        Found(
            name=entry["Names"][0],
            owned=lives(entry["Labels"].get(OWNER, "")),
            kept=entry["Labels"].get(KEPT) == "1",
        )
        for entry in json.loads(listed or "[]") or ()
        # A user's own container of one of the lab's images inherits the labels.
        if entry["Names"][0].startswith(PREFIX)
    ]


def lives(owner: str) -> bool:
    """Whether the process of a tag still runs; only its own machine can tell."""
    process = owner.partition("@")[0]
    if not process.isdigit():
        return False
    return owner_tag(int(process)) == owner or _hidden(int(process))


def _hidden(pid: int) -> bool:
    """A process of another user's, where /proc shows none of those (hidepid)."""
    if Path(f"/proc/{pid}").exists():
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def owner_tag(pid: int) -> str:
    """A process id that cannot be mistaken for its successor's: pid@start-time."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return f"{pid}@gone"
    killed = fields[0] in "ZX"  # still in the table, until its parent looks
    return f"{pid}@gone" if killed else f"{pid}@{fields[19]}"
