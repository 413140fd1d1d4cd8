"""A container that needs no image: the host's own programs, read-only.

What podman accepts and what it does are two things: rootless podman on cgroup v1 takes
``--cpuset-cpus`` and ``--memory`` and ignores both. So the trial looks from inside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dsharness.containers.container import Options, fresh_name, run_argv, running
from dsharness.containers.engine import LABEL, Engine, last_line
from dsharness.containers.lab_folders import scratch_folder
from dsharness.containers.ownership import remove_argv
from dsharness.errors import EngineError
from dsharness.machine.cgroups import meter_for
from dsharness.process.command import Completed, find_tool, run
from dsharness.process.deadline import Deadline

TRIAL_LIMIT_S = 60.0
MEMORY_BYTES = 256 * 1024**2
MEMORY_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_TOP = ("bin", "lib", "lib64")


@contextmanager
def root_folder(host: Path = Path("/")) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """A root file system and the ``--volume`` flags that fill it with the host's programs."""
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
    name, ended = fresh_name("trial"), False
    env = {"CONTAINERS_CONF": str(configuration)} if configuration else {}
    with root_folder() as (root, volumes):
        options = Options(memory=None, extra=(*volumes, *flags, "--rootfs"))
        inside = (find_tool(command[0]), *command[1:])
        argv = run_argv(str(root), name, options, inside, detached=False)
        try:
            done = run(["podman", *argv], deadline=Deadline.after(TRIAL_LIMIT_S), env=env)
            ended = done.ok
        finally:
            if not ended:
                run(["podman", *remove_argv(name)], env=env, cleanup=True)
    return done


def try_build(engine: Engine) -> str | None:
    """None if buildah runs a step and keeps its image, otherwise its message; cleans up."""
    with root_folder() as (root, volumes), scratch_folder("trial") as folder:
        recipe, written = Path(folder) / "Containerfile", Path(folder) / "id"
        steps = ("FROM scratch", "COPY . /", f"LABEL {LABEL}", f'RUN ["{find_tool("true")}"]')
        recipe.write_text("\n".join(steps) + "\n", encoding="utf-8")
        done = engine.buildah(
            "build", "--network", "host", "--no-cache", *engine.build_flags, *volumes,
            "--security-opt", "label=disable", "--iidfile", str(written),
            "--file", str(recipe), str(root),
            deadline=Deadline.after(TRIAL_LIMIT_S),
        )  # fmt: skip
        if done.ok:
            engine.buildah("rmi", written.read_text(encoding="utf-8").strip(), cleanup=True)
    return None if done.ok else last_line(done)


def try_metering(engine: Engine) -> str:
    """By which means a running container's CPU time is read; EngineError when by none."""
    with root_folder() as (root, volumes), scratch_folder("trial") as folder:
        options = Options(memory=None, extra=(*volumes, "--rootfs"))
        with running(
            engine, str(root), find_tool("sleep"), str(TRIAL_LIMIT_S),
            purpose="doctor", log=Path(folder) / "log", options=options,
        ) as box:  # fmt: skip
            state = box.state()
            try:
                meter = meter_for(state.pid, state.id)
                meter.used_us()
            except (OSError, ValueError, KeyError) as error:
                raise EngineError(f"a container's CPU time: {error}") from error
            return meter.source


def moves_cpus(engine: Engine) -> bool:
    """Whether a running container can be given another CPU; podman before 4.3 cannot."""
    cpus = sorted(os.sched_getaffinity(0))
    if not engine.pins_cpus or len(cpus) < 2:
        return False
    with root_folder() as (root, volumes), scratch_folder("trial") as folder:
        options = Options(memory=None, cpus=(cpus[0],), extra=(*volumes, "--rootfs"))
        with running(
            engine, str(root), find_tool("sleep"), str(TRIAL_LIMIT_S),
            purpose="trial", log=Path(folder) / "log", options=options,
        ) as box:  # fmt: skip
            try:
                box.move((cpus[-1],))
                status = Path(f"/proc/{box.state().pid}/status").read_text(encoding="utf-8")
            except (EngineError, OSError):
                return False
    return allowed_cpus(status) == str(cpus[-1])


def read_inside(configuration: Path | None, *paths: str) -> str:
    """The contents of some files in a container with its own network."""
    return run_trial(configuration, command=("cat", *paths)).stdout


def try_container(configuration: Path | None, *flags: str) -> str | None:
    """None if a container starts and ends well, otherwise podman's message."""
    done = run_trial(configuration, *flags, command=("true",))
    return None if done.ok else last_line(done)


def pins_cpus(configuration: Path | None, cpu: int) -> bool:
    """Whether a container that is pinned to one CPU stays there."""
    done = run_trial(configuration, "--cpuset-cpus", str(cpu), command=("cat", "/proc/self/status"))
    return done.ok and allowed_cpus(done.stdout) == str(cpu)


def limits_memory(configuration: Path | None) -> bool:
    """Whether a container's bound on memory is there to be seen inside."""
    # One of the two files is always missing, so cat's status says nothing.
    done = run_trial(configuration, "--memory", str(MEMORY_BYTES), command=("cat", *MEMORY_FILES))
    return str(MEMORY_BYTES) in done.stdout.split()


def allowed_cpus(status: str) -> str:
    """The CPU list of a /proc/PID/status."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return value.strip()
    return ""
