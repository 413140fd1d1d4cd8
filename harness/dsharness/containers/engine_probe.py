"""Finding out what this machine's podman needs, by starting containers instead of guessing.

The configurations that are tried go from "nothing at all", which is right on most machines, to what
old or nested systems want. The one that works is written to the lab's own folder; the user's files
are only read.

A trial container needs no image: it gets the host's own programs, read-only. What podman accepts
and what it does are two things: rootless podman on cgroup v1 takes ``--cpuset-cpus`` and
``--memory`` and ignores both. So the trial looks from inside.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import tomli_w

from dsharness.containers.container import Options, fresh_name, run_argv, running
from dsharness.containers.engine import AS_IT_IS, LABEL, Engine, last_line
from dsharness.containers.lab_folders import scratch_folder
from dsharness.containers.ownership import remove_argv
from dsharness.content_key import content_key
from dsharness.errors import EngineError
from dsharness.machine.cgroups import cgroup_trees, meter_for
from dsharness.machine.process_limits import hard_limits, refuse_low_limits
from dsharness.paths import config_home
from dsharness.process.command import Completed, atomic_write, find_tool, run
from dsharness.process.deadline import Deadline

TRIAL_LIMIT_S = 60.0
MEMORY_BYTES = 256 * 1024**2
MEMORY_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_TOP = ("bin", "lib", "lib64")


@contextmanager
def root_folder(host: Path = Path("/")) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield a root file system and the ``--volume`` flags that fill it with the host's programs."""
    with scratch_folder("trial") as folder:
        root = Path(folder)
        for name in ("usr", "proc", "sys", "dev", "etc", "tmp", "run"):
            (root / name).mkdir()
        flags = ["--volume", f"{host / 'usr'}:/usr:ro"]
        for name in _TOP:
            if (host / name).is_symlink():
                (root / name).symlink_to(f"usr/{name}")
            elif (host / name).is_dir():  # a host from before /usr was merged
                (root / name).mkdir()
                flags += ["--volume", f"{host / name}:/{name}:ro"]
        yield root, tuple(flags)


def run_trial(configuration: Path | None, *flags: str, command: tuple[str, ...]) -> Completed:
    """Run one of the host's programs in a container and wait for its end."""
    name, has_ended = fresh_name("trial"), False
    env = {"CONTAINERS_CONF": str(configuration)} if configuration else {}
    with root_folder() as (root, volumes):
        options = Options(memory=None, extra=(*volumes, *flags, "--rootfs"))
        inside = (find_tool(command[0]), *command[1:])
        argv = run_argv(str(root), name, options, inside, detached=False)
        try:
            result = run(["podman", *argv], deadline=Deadline.after(TRIAL_LIMIT_S), env=env)
            has_ended = result.ok
        finally:
            if not has_ended:
                run(["podman", *remove_argv(name)], env=env, cleanup=True)
    return result


def try_build(engine: Engine) -> str | None:
    """Return None if buildah runs a step and keeps its image, otherwise its message; cleans up."""
    with root_folder() as (root, volumes), scratch_folder("trial") as folder:
        recipe, id_file = Path(folder) / "Containerfile", Path(folder) / "id"
        steps = ("FROM scratch", "COPY . /", f"LABEL {LABEL}", f'RUN ["{find_tool("true")}"]')
        recipe.write_text("\n".join(steps) + "\n", encoding="utf-8")
        result = engine.buildah(
            "build",
            "--network",
            "host",
            "--no-cache",
            *engine.build_flags,
            *volumes,
            "--security-opt",
            "label=disable",
            "--iidfile",
            str(id_file),
            "--file",
            str(recipe),
            str(root),
            deadline=Deadline.after(TRIAL_LIMIT_S),
        )
        if result.ok:
            engine.buildah("rmi", id_file.read_text(encoding="utf-8").strip(), cleanup=True)
    return None if result.ok else last_line(result)


def try_metering(engine: Engine) -> str:
    """The means by which a running container's CPU time is read; EngineError when by none."""
    with root_folder() as (root, volumes), scratch_folder("trial") as folder:
        options = Options(memory=None, extra=(*volumes, "--rootfs"))
        with running(
            engine,
            str(root),
            find_tool("sleep"),
            str(TRIAL_LIMIT_S),
            purpose="doctor",
            log=Path(folder) / "log",
            options=options,
        ) as box:
            state = box.state()
            try:
                meter = meter_for(state.pid, state.id)
                meter.used_us()
            except (OSError, ValueError, KeyError) as error:
                raise EngineError(f"a container's CPU time: {error}") from error
            return meter.source


def moves_cpus(engine: Engine) -> bool:
    """Return whether a running container can be given another CPU; podman before 4.3 cannot."""
    cpus = sorted(os.sched_getaffinity(0))
    if not engine.pins_cpus or len(cpus) < 2:
        return False
    with root_folder() as (root, volumes), scratch_folder("trial") as folder:
        options = Options(memory=None, cpus=(cpus[0],), extra=(*volumes, "--rootfs"))
        with running(
            engine,
            str(root),
            find_tool("sleep"),
            str(TRIAL_LIMIT_S),
            purpose="trial",
            log=Path(folder) / "log",
            options=options,
        ) as box:
            try:
                box.move((cpus[-1],))
                status = Path(f"/proc/{box.state().pid}/status").read_text(encoding="utf-8")
            except (EngineError, OSError):
                return False
    return allowed_cpus(status) == str(cpus[-1])


def read_inside(configuration: Path | None, *paths: str) -> str:
    """Return the contents of some files in a container with its own network."""
    return run_trial(configuration, command=("cat", *paths)).stdout


def try_container(configuration: Path | None, *flags: str) -> str | None:
    """Return None if a container starts and ends well, otherwise podman's message."""
    result = run_trial(configuration, *flags, command=("true",))
    return None if result.ok else last_line(result)


def pins_cpus(configuration: Path | None, cpu: int) -> bool:
    """Return whether a container that is pinned to one CPU stays there."""
    result = run_trial(
        configuration, "--cpuset-cpus", str(cpu), command=("cat", "/proc/self/status")
    )
    return result.ok and allowed_cpus(result.stdout) == str(cpu)


def limits_memory(configuration: Path | None) -> bool:
    """Return whether a container's bound on memory is there to be seen inside."""
    # One of the two files is always missing, so cat's status says nothing.
    result = run_trial(configuration, "--memory", str(MEMORY_BYTES), command=("cat", *MEMORY_FILES))
    return str(MEMORY_BYTES) in result.stdout.split()


def allowed_cpus(status: str) -> str:
    """Return the CPU list of a /proc/PID/status."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return value.strip()
    return ""


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """One configuration to try, from the least to the most intrusive."""

    runtime: str | None = None
    ulimits: tuple[str, ...] = ()
    cgroup_manager: str | None = None
    cgroups: str | None = None

    @property
    def settings(self) -> dict[str, dict[str, object]]:
        """What it changes of containers.conf, without empty tables."""
        engine: dict[str, object] = {"runtime": self.runtime, "cgroup_manager": self.cgroup_manager}
        containers: dict[str, object] = {
            "default_ulimits": list(self.ulimits),
            "cgroups": self.cgroups,
        }
        tables = {"engine": engine, "containers": containers}
        return {
            name: entries
            for name, table in tables.items()
            if (entries := {key: value for key, value in table.items() if value})
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


def configurations(limits: tuple[int, int]) -> Iterator[EngineConfig]:
    """What is tried, the least intrusive first; the first one that starts a container is kept."""
    ulimits = (f"nofile={limits[0]}:{limits[0]}", f"nproc={limits[1]}:{limits[1]}")
    yield EngineConfig()
    yield EngineConfig(ulimits=ulimits)
    # No systemd to ask for a cgroup: a container inside a container, a plain ssh session.
    yield EngineConfig(ulimits=ulimits, cgroup_manager="cgroupfs")
    # crun refuses hybrid cgroups; runc takes them.
    yield EngineConfig(runtime="runc", ulimits=ulimits)
    yield EngineConfig(runtime="runc", ulimits=ulimits, cgroup_manager="cgroupfs")
    # Cgroups that may not be written to at all; only crun can do without.
    yield EngineConfig(
        runtime="crun", ulimits=ulimits, cgroup_manager="cgroupfs", cgroups="disabled"
    )


def write_configuration(config: EngineConfig) -> Path | None:
    """Return the machine's and the user's settings with these on top, in a file of the lab's.

    Its name is that of its content: what a running search uses is never changed by another
    process, whose limits may be lower. None when it changes nothing: podman then reads its own.
    """
    if config == EngineConfig():
        return None
    text = _configuration(config)
    path = config_home() / f"containers-{content_key(text)}.conf"
    if not path.is_file():
        write_own(path, text)
    return path


def _configuration(config: EngineConfig) -> str:
    return tomli_w.dumps(
        merge_settings([_read_settings(path) for path in _settings_files()], config)
    )


def write_own(path: Path, text: str) -> None:
    """Write one of the lab's own settings, or say which folder may not be written to."""
    try:
        atomic_write(path, text)
    except OSError as error:
        raise EngineError(
            f"cannot write {path}: {error.strerror}",
            hint="set DSBISECT_CONFIG to a folder you may write to",
        ) from error


def merge_settings(
    layers: Sequence[Mapping[str, object]], config: EngineConfig
) -> dict[str, object]:
    """Merge layers key by key in each table, as podman itself does; later ones win."""
    merged: dict[str, object] = {}
    for layer in [*layers, config.settings]:
        for table, values in layer.items():
            earlier = merged.get(table)
            if isinstance(earlier, dict) and isinstance(values, dict):
                merged[table] = {**earlier, **values}
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


FORMAT = 4  # raise when the remembered answer changes its shape


def detect(*, fresh: bool = False) -> Engine:
    """The engine as it works here; remembered until podman, its files or what it runs on change."""
    find_tool("podman")
    find_tool("buildah")
    refuse_low_limits()
    memory = config_home() / "engine.json"
    settings = [[str(path), str(_read_settings(path))] for path in _settings_files()]
    user = [os.getuid(), hard_limits(), os.environ.get("PATH", "")]
    key = content_key([FORMAT, _version(), *user, settings, cgroup_trees()])
    if not fresh:
        remembered_engine = _recall(memory, key)
        if remembered_engine is not None:
            return remembered_engine
    engine = _probe()
    remembered = {**asdict(engine), "configuration": str(engine.configuration or "")}
    write_own(memory, json.dumps({"key": key, "engine": remembered}, indent=2) + "\n")
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
    for config in configurations(hard_limits()):
        complaint = _try(config)
        if complaint is None:
            configuration = write_configuration(config)
            return _describe(config, configuration, complaints)
        complaints.append(f"{config}: {complaint}")
    raise EngineError(
        "podman cannot start a container here:\n  " + "\n  ".join(complaints),
        hint="`dsbisect doctor` names the fix for each of these",
    )


def _try(config: EngineConfig) -> str | None:
    """Try a configuration in a temporary file: most of them do not work."""
    if config == EngineConfig():
        return try_container(None)
    with scratch_folder("trial") as folder:
        trial = Path(folder) / "containers.conf"
        trial.write_text(_configuration(config), encoding="utf-8")
        return try_container(trial)


def _describe(config: EngineConfig, configuration: Path | None, complaints: list[str]) -> Engine:
    environment = {"CONTAINERS_CONF": str(configuration)} if configuration else {}
    info = run(["podman", "info", "--format", "json"], env=environment)
    if not info.ok:
        raise EngineError(f"podman info failed: {last_line(info)}")
    host = json.loads(info.stdout)["host"]
    engine = Engine(
        podman_version=_version(),
        rootless=bool(host["security"]["rootless"]),
        cgroups=host["cgroupVersion"],
        runtime=config.runtime or host["ociRuntime"]["name"],
        pins_cpus=pins_cpus(configuration, max(os.sched_getaffinity(0))),
        limits_memory=limits_memory(configuration),
        configuration=configuration,
        build_flags=config.build_flags,
        notes=tuple(complaints),
        works_with=str(config),
    )
    return replace(engine, moves_cpus=moves_cpus(engine))


def _version() -> str:
    result = run(["podman", "--version"])
    if not result.ok:
        raise EngineError(f"podman --version failed: {last_line(result)}")
    return result.stdout.split()[-1]
