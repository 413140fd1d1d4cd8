"""Finding out what this machine's podman needs, by starting a container and not by guessing.

The probe runs the host's own ``true`` over a read-only ``/usr``, so it needs no image. The
plans go from "nothing at all", which is right on most machines, to what old or nested systems
want. The plan that works is written to the lab's own folder; the user's files are only read.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tomli_w

from dsharness.commands import atomic_write, find_tool, run
from dsharness.content import content_key
from dsharness.engine import Engine, last_line
from dsharness.errors import EngineError
from dsharness.paths import config_home
from dsharness.waiting import Deadline

PROBE_LIMIT_S = 60.0
FORMAT = 1  # raise when the remembered answer changes its shape


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One configuration to try, from the least to the most intrusive."""

    runtime: str | None = None
    ulimits: tuple[str, ...] = ()
    cgroup_manager: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        engine = {"runtime": self.runtime, "cgroup_manager": self.cgroup_manager}
        return {
            "engine": {key: value for key, value in engine.items() if value},
            "containers": {"default_ulimits": list(self.ulimits)} if self.ulimits else {},
        }

    @property
    def build_flags(self) -> tuple[str, ...]:
        runtime = ("--runtime", self.runtime) if self.runtime else ()
        return (*runtime, *(part for limit in self.ulimits for part in ("--ulimit", limit)))


def detect(*, fresh: bool = False) -> Engine:
    """The engine as it works here; remembered until podman, the user or the limits change."""
    find_tool("podman")
    find_tool("buildah")
    memory = config_home() / "engine.json"
    key = content_key([FORMAT, _version(), os.getuid(), _limits(), os.environ.get("PATH", "")])
    if not fresh:
        known = _recall(memory, key)
        if known is not None:
            return known
    engine = _probe()
    remembered = {**asdict(engine), "configuration": str(engine.configuration or "")}
    atomic_write(memory, json.dumps({"key": key, "engine": remembered}, indent=2) + "\n")
    return engine


def _recall(memory: Path, key: str) -> Engine | None:
    try:
        stored = json.loads(memory.read_text(encoding="utf-8"))
        if stored["key"] != key:
            return None
        facts = stored["engine"]
        configuration = Path(facts["configuration"]) if facts["configuration"] else None
        if configuration is not None and not configuration.is_file():
            return None
        return Engine(
            **{
                **facts,
                "configuration": configuration,
                "build_flags": tuple(facts["build_flags"]),
                "notes": tuple(facts["notes"]),
            }
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _probe() -> Engine:
    complaints: list[str] = []
    for plan in _plans():
        configuration = _write_configuration(plan)
        complaint = try_container(configuration)
        if complaint is None:
            return _describe(plan, configuration, complaints)
        complaints.append(f"{_spell(plan)}: {complaint}")
    raise EngineError(
        "podman cannot start a container here:\n  " + "\n  ".join(complaints),
        hint="`dsbisect doctor` names the mend for each of these",
    )


def _plans() -> Iterator[Plan]:
    limits = _limits()
    ulimits = (f"nofile={limits[0]}:{limits[0]}", f"nproc={limits[1]}:{limits[1]}")
    yield Plan()
    yield Plan(ulimits=ulimits)
    yield Plan(runtime="runc")
    yield Plan(runtime="runc", ulimits=ulimits)
    yield Plan(runtime="runc", ulimits=ulimits, cgroup_manager="cgroupfs")
    yield Plan(runtime="crun", ulimits=ulimits, cgroup_manager="cgroupfs")


def _limits() -> tuple[int, int]:
    """What this process may hand down: no more than its own hard limits."""
    bounds = ((resource.RLIMIT_NOFILE, 20000), (resource.RLIMIT_NPROC, 4096))
    hard = [(resource.getrlimit(kind)[1], most) for kind, most in bounds]
    files, processes = (
        most if limit == resource.RLIM_INFINITY else min(limit, most) for limit, most in hard
    )
    return files, processes


def _spell(plan: Plan) -> str:
    parts = [plan.runtime or "default runtime"]
    parts += ["explicit ulimits"] if plan.ulimits else []
    parts += [f"cgroup manager {plan.cgroup_manager}"] if plan.cgroup_manager else []
    return ", ".join(parts)


def _write_configuration(plan: Plan) -> Path | None:
    """The user's own settings with the plan's on top, in the lab's folder."""
    if plan == Plan():
        return None
    merged = _users_settings()
    for table, values in plan.settings.items():
        merged[table] = {**merged.get(table, {}), **values}
    path = config_home() / "containers.conf"
    atomic_write(path, tomli_w.dumps(merged))
    return path


def _users_settings() -> dict[str, Any]:
    named = os.environ.get("CONTAINERS_CONF")
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for path in [Path(named)] if named else [home / "containers" / "containers.conf"]:
        try:
            return tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise EngineError(
                f"{path}: cannot be read as containers.conf: {error}",
                hint="mend that file; podman itself would stumble over it",
            ) from error
    return {}


def try_container(configuration: Path | None, *flags: str) -> str | None:
    """None when a container starts and ends well, else what podman said."""
    with tempfile.TemporaryDirectory(prefix="dsbisect-probe-") as folder:
        root = Path(folder)
        for name in ("usr", "proc", "sys", "dev", "etc", "tmp", "run"):
            (root / name).mkdir()
        for name in ("bin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
        done = run(
            [
                "podman", "run", "--rm", "--network", "none", "--init",
                "--security-opt", "label=disable", "--volume", "/usr:/usr:ro",
                *flags, "--rootfs", folder, "/usr/bin/true",
            ],
            deadline=Deadline.after(PROBE_LIMIT_S),
            env={"CONTAINERS_CONF": str(configuration)} if configuration else {},
        )  # fmt: skip
    return None if done.ok else last_line(done)


def _describe(plan: Plan, configuration: Path | None, complaints: list[str]) -> Engine:
    environment = {"CONTAINERS_CONF": str(configuration)} if configuration else {}
    info = run(["podman", "info", "--format", "json"], env=environment)
    if not info.ok:
        raise EngineError(f"podman info failed: {last_line(info)}")
    host = json.loads(info.stdout)["host"]
    rootless = bool(host["security"]["rootless"])
    return Engine(
        podman_version=_version(),
        rootless=rootless,
        cgroups=host["cgroupVersion"],
        runtime=plan.runtime or host["ociRuntime"]["name"],
        pins_cpus=try_container(configuration, "--cpuset-cpus", "0") is None,
        limits_memory=try_container(configuration, "--memory", "256m") is None,
        configuration=configuration,
        build_flags=plan.build_flags,
        notes=tuple(complaints),
    )


def _version() -> str:
    done = run(["podman", "--version"])
    if not done.ok:
        raise EngineError(f"podman --version failed: {last_line(done)}")
    return done.stdout.split()[-1]
