"""The configurations of podman that are worth a try."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import dataclass

from dsharness.containers.engine import AS_IT_IS


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """One configuration to try, from the least to the most intrusive."""

    runtime: str | None = None
    ulimits: tuple[str, ...] = ()
    cgroup_manager: str | None = None
    cgroups: str | None = None

    @property
    def settings(self) -> dict[str, dict[str, object]]:
        """What the plan changes of containers.conf, without empty tables."""
        engine: dict[str, object] = {"runtime": self.runtime, "cgroup_manager": self.cgroup_manager}
        containers: dict[str, object] = {
            "default_ulimits": list(self.ulimits),
            "cgroups": self.cgroups,
        }
        tables = {"engine": engine, "containers": containers}
        return {
            name: kept
            for name, table in tables.items()
            if (kept := {key: value for key, value in table.items() if value})
        }

    @property
    def build_flags(self) -> tuple[str, ...]:
        runtime = ("--runtime", self.runtime) if self.runtime else ()
        return (*runtime, *(part for limit in self.ulimits for part in ("--ulimit", limit)))

    def __str__(self) -> str:
        parts = [f"runtime {self.runtime}"] if self.runtime else []
        parts += [f"ulimits {' '.join(self.ulimits)}"] if self.ulimits else []
        parts += [f"cgroup manager {self.cgroup_manager}"] if self.cgroup_manager else []
        parts += [f"cgroups {self.cgroups}"] if self.cgroups else []
        return ", ".join(parts) or AS_IT_IS


def plans(limits: tuple[int, int]) -> Iterator[EngineConfig]:
    """From the least to the most intrusive; the first one that starts a container is kept."""
    ulimits = (f"nofile={limits[0]}:{limits[0]}", f"nproc={limits[1]}:{limits[1]}")
    yield EngineConfig()
    yield EngineConfig(ulimits=ulimits)
    # No systemd to ask for a cgroup: a container inside a container, a plain ssh session.
    yield EngineConfig(cgroup_manager="cgroupfs")
    yield EngineConfig(ulimits=ulimits, cgroup_manager="cgroupfs")
    # crun refuses hybrid cgroups; runc takes them.
    yield EngineConfig(runtime="runc")
    yield EngineConfig(runtime="runc", ulimits=ulimits)
    yield EngineConfig(runtime="runc", ulimits=ulimits, cgroup_manager="cgroupfs")
    yield EngineConfig(runtime="crun", ulimits=ulimits, cgroup_manager="cgroupfs")
    # Cgroups that may not be written to at all; only crun can do without.
    yield EngineConfig(
        runtime="crun", ulimits=ulimits, cgroup_manager="cgroupfs", cgroups="disabled"
    )


def hard_limits() -> tuple[int, int]:
    """What this process may hand down: no more than its own hard limits."""
    bounds = ((resource.RLIMIT_NOFILE, 20000), (resource.RLIMIT_NPROC, 4096))
    hard = [(resource.getrlimit(kind)[1], most) for kind, most in bounds]
    files, processes = (
        most if limit == resource.RLIM_INFINITY else min(limit, most) for limit, most in hard
    )
    return files, processes
