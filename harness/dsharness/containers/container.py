"""A container as a context manager: started, used, always removed."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from dsharness.containers.disk_watch import DiskWatch, disk_watch
from dsharness.containers.engine import LABEL, Engine, last_line
from dsharness.containers.ownership import KEPT, OWNER, PREFIX, owner_tag, remove
from dsharness.errors import DeadlineError, DsbisectError, EngineError, ImageError, InstanceError
from dsharness.plain_text import plain
from dsharness.process.command import MOST_FILE_BYTES, Completed, append_log
from dsharness.process.deadline import Deadline

# Podman's own statuses; any other is that of the command inside.
PODMAN_FAILED = 125
NO_COMMAND = (126, 127)
# What a runtime says of a command that an image cannot run; all else is the runtime's own fault.
LACKS = re.compile(r"not found|no such file|exec format|permission denied", re.IGNORECASE)
NO_NETWORK = re.compile(r"netavark|\bcni\b|network|net namespace", re.IGNORECASE)
IDLE = ("sleep", "infinity")
START_LIMIT_S = 120.0
ASK_LIMIT_S = 5.0
EXEC_LIMIT_S = 300.0
PROCESSES = 4096
DISK_BYTES = 8 << 30
PRINTED_BYTES = 16 << 20  # of its main command's output, which the engine keeps on the host
TAIL_BYTES = 1 << 18
TAIL_LIMIT_S = 60.0
# Of tar's format: where a header has the kind and the size of what follows it.
TAR_BLOCK, TAR_SIZE, TAR_KIND = 512, 124, 156
TAR_FILE, TAR_ABOUT = (b"0", b"\0"), (b"x", b"g")
KILLED = 128 + signal.SIGKILL


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a container is confined. The defaults are those of a measured server."""

    network: str | None = "none"  # None: podman's default one
    user: str | None = None
    cpus: tuple[int, ...] = ()
    memory: str | None = "4g"  # None: as much as there is
    processes: int | None = None  # None: PROCESSES, where the engine limits anything
    shm: str | None = None
    disk_bytes: int | None = DISK_BYTES  # None: what it may write is watched elsewhere
    capabilities: tuple[str, ...] = ()
    volumes: tuple[tuple[Path, str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    init: bool = True
    extra: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class State:
    """A container at one moment; ``pid`` is the host's id of its first process."""

    id: str
    pid: int
    running: bool
    paused: bool = False
    killed: bool = False  # by a signal from outside, or it was removed; not for want of memory


@dataclass(frozen=True, kw_only=True)
class Container:
    """A running container of the lab."""

    engine: Engine
    name: str
    log: Path
    disk: DiskWatch | None = field(default=None, compare=False)

    def execute(
        self,
        *command: str,
        user: str | None = None,
        stdin: str | None = None,
        limit_s: float = EXEC_LIMIT_S,
        keep_bytes: int | None = None,
        behind: tuple[str, ...] = (),
        on_line: Callable[[str], None] | None = None,
        into: Path | None = None,
        into_bytes: int = MOST_FILE_BYTES,
    ) -> Completed:
        """Run a command inside; a failing command is the caller's to judge.

        ``keep_bytes`` bounds what is kept of a command that may say anything. ``behind`` are the
        words of a program of this machine that starts it. ``on_line`` gets each line as it comes,
        ``into`` all of standard output unchanged, and no more than ``into_bytes``.
        """
        flags = [*(["--user", user] if user else []), *(["--interactive"] if stdin else [])]
        result = self.engine.podman(
            "exec",
            *flags,
            self.name,
            *command,
            stdin=stdin,
            deadline=Deadline.after(limit_s),
            log=self.log,
            keep_bytes=keep_bytes,
            behind=behind,
            on_line=on_line,
            into=into,
            into_bytes=into_bytes,
        )
        if into is not None and result.overflowed:
            self._end_flood(into_bytes)
        return result

    def _end_flood(self, most_bytes: int) -> None:
        """End it with the command that wrote too much: that outlives the podman that started it."""
        if self.disk is not None:
            self.disk.flood_bytes = most_bytes
        self.engine.podman("kill", self.name, cleanup=True)

    def must(
        self, *command: str, what: str, stdin: str | None = None, limit_s: float = EXEC_LIMIT_S
    ) -> str:
        """Run a command that has to succeed; the error names ``what`` was being done."""
        result = self.execute(*command, stdin=stdin, limit_s=limit_s)
        if not result.ok and (error := self.overfilled()):
            raise error
        if result.timed_out:
            raise DeadlineError(f"{what}: {command[0]} timed out", log=self.log)
        if not result.ok:
            engines = result.status == PODMAN_FAILED and not self._executes()
            kind = EngineError if engines else InstanceError
            raise kind(f"{what}: {last_line(result)}", log=self.log)
        return result.stdout

    def overfilled(self) -> InstanceError | None:
        """Return the error that it was ended for what it wrote; None if it was not."""
        if self.disk is None or self.disk.why is None:
            return None
        error = InstanceError(f"the container was ended: {self.disk.why}", log=self.log)
        error.killed = not self.disk.own_fault
        return error

    def _executes(self) -> bool:
        """Whether podman starts commands inside: one that a package brought may end with 125 too.

        Nothing inside can have a name that is made up now, so podman itself has to say so.
        """
        return self.execute(fresh_name("none"), limit_s=ASK_LIMIT_S).status in NO_COMMAND

    def start(self, *command: str) -> None:
        """Leave a command running inside."""
        self.engine.must("exec", "--detach", self.name, *command, log=self.log)

    @property
    def running(self) -> bool:
        return self.state().running

    def state(self) -> State:
        """Return what podman knows of it; a removed container is one that does not run."""
        result = self.engine.podman("container", "inspect", "--format", "json", self.name)
        if not result.ok:
            return State(id="", pid=0, running=False, killed=True)
        facts, own = json.loads(result.stdout)[0], self.disk is not None and self.disk.own_fault
        state = facts["State"]
        return State(
            id=facts["Id"],
            pid=state["Pid"],
            running=state["Running"] or state.get("Paused", False),
            paused=state.get("Paused", False),
            killed=state.get("ExitCode") == KILLED
            and not state.get("OOMKilled", False)
            and not own,
        )

    def neighbour(self) -> Container:
        """The container whose network namespace it is in; itself unless that is another one's."""
        form = ("--format", "{{.HostConfig.NetworkMode}}")
        mode = self.engine.podman("container", "inspect", *form, self.name).stdout.strip()
        kind, _, name = mode.partition(":")
        return replace(self, name=name) if kind == "container" and name else self

    def move(self, cpus: tuple[int, ...]) -> None:
        """Let its processes run on these CPUs only; one that has ended has none to move."""
        cpu_list = ",".join(map(str, cpus))
        try:
            self.engine.must("update", "--cpuset-cpus", cpu_list, self.name, log=self.log)
        except EngineError:
            if self.running:
                raise

    def note(self, text: str) -> None:
        """Add something worth keeping to the container's log."""
        append_log(self.log, text)

    def output(self, lines: int = 400) -> str:
        """Return the last lines that the container's main command printed."""
        result = self.engine.podman("logs", "--tail", str(lines), self.name, keep_bytes=TAIL_BYTES)
        return result.stdout + result.stderr

    def tail(self, path: str, lines: int = 40) -> str:
        """The end of a file inside, also when the container has ended; empty if there is none."""
        # The measured program wrote it: it may contain anything, of any size.
        result = self.engine.podman(
            "cp",
            f"{self.name}:{path}",
            "-",
            deadline=Deadline.after(TAIL_LIMIT_S),
            keep_bytes=TAIL_BYTES,
        )
        text = plain(_file_in(result.stdout).rstrip("\0").replace("\0", "")) if result.ok else ""
        return "\n".join(text.splitlines()[-lines:])

    def commit(self, reference: str, labels: dict[str, str]) -> None:
        """Keep the container's file system as an image."""
        if error := self.overfilled():
            raise error
        changes = [
            part for key, value in labels.items() for part in ("--change", f"LABEL {key}={value}")
        ]
        self.engine.must(
            "commit", "--quiet", "--format", "oci", *changes, self.name, reference, log=self.log
        )


def _file_in(archive: str) -> str:
    """Return the content of the one regular file of a tar archive that was decoded as text."""
    blocks, position = archive.encode(errors="replace"), 0
    while blocks[position + TAR_KIND : position + TAR_KIND + 1] in TAR_ABOUT:
        size = re.match(rb"[0-7]{1,11}", blocks[position + TAR_SIZE : position + TAR_SIZE + 11])
        position += TAR_BLOCK + -(-int(size[0] if size else b"0", 8) // TAR_BLOCK) * TAR_BLOCK
    if blocks[position + TAR_KIND : position + TAR_KIND + 1] not in TAR_FILE:
        return ""
    return blocks[position + TAR_BLOCK :].decode(errors="replace")


def run_argv(
    image: str, name: str, options: Options, command: tuple[str, ...], *, detached: bool = True
) -> list[str]:
    """Return the arguments of ``podman run``, the only one; pure, so that a test can read them."""
    flags: list[str] = ["run", "--detach" if detached else "--rm", "--name", name]
    flags += ["--label", LABEL, "--label", f"{OWNER}={owner_tag(os.getpid())}"]
    flags += ["--network", options.network] if options.network else []
    flags += ["--security-opt", "no-new-privileges", "--security-opt", "label=disable"]
    flags += ["--cap-drop", "all", "--pull", "never", "--log-opt", f"max-size={PRINTED_BYTES}b"]
    for capability in options.capabilities:
        flags += ["--cap-add", capability]
    flags += ["--init"] if options.init else []
    flags += ["--user", options.user] if options.user else []
    flags += ["--cpuset-cpus", ",".join(map(str, options.cpus))] if options.cpus else []
    flags += ["--memory", options.memory] if options.memory else []
    flags += ["--pids-limit", str(options.processes)] if options.processes else []
    flags += ["--shm-size", options.shm] if options.shm else []
    for source, target, mode in options.volumes:
        flags += ["--volume", f"{source}:{target}:{mode}"]
    for key, value in options.labels:
        flags += ["--label", f"{key}={value}"]
    for key, value in options.environment:
        flags += ["--env", f"{key}={value}"]
    return [*flags, *options.extra, image, *command]


def fresh_name(purpose: str) -> str:
    """Return a container's name, by which `dsbisect clean` recognises it as the lab's."""
    return f"{PREFIX}{purpose}-{secrets.token_hex(4)}"


def finished(
    engine: Engine, image: str, *command: str, purpose: str, limit_s: float, options: Options
) -> Completed:
    """Run a container to its end; it is removed, also when it is cut short."""
    name, has_ended = fresh_name(purpose), False
    labelled = _labelled(engine, options, keep=False)
    try:
        result = engine.podman(
            *run_argv(image, name, labelled, command, detached=False),
            deadline=Deadline.after(limit_s),
        )
        has_ended = result.ok
    finally:
        if not has_ended:
            remove(engine, name)
    return result


def _labelled(engine: Engine, options: Options, *, keep: bool) -> Options:
    """Return the options with the limits that this engine keeps; others would only be claimed."""
    return replace(
        options,
        labels=(*options.labels, (KEPT, str(int(keep)))),
        memory=options.memory if engine.limits_memory else None,
        processes=options.processes or (PROCESSES if engine.limits_memory else None),
    )


@contextmanager
def running(
    engine: Engine,
    image: str,
    *command: str,
    purpose: str,
    log: Path,
    options: Options | None = None,
    keep: bool = False,
) -> Iterator[Container]:
    """Start a container and remove it at the end, even when the start fails half-way.

    Without a command it does nothing until it is asked to execute one.
    """
    name = fresh_name(purpose)
    given_options = options or Options()
    labelled = _labelled(engine, given_options, keep=keep)
    try:
        result = engine.podman(
            *run_argv(image, name, labelled, command or IDLE),
            deadline=Deadline.of_work(START_LIMIT_S),
            log=log,
        )
        if not result.ok:
            raise _start_error(image, given_options.network, result, log)
        box = Container(engine=engine, name=name, log=log)
        if given_options.disk_bytes is None:
            yield box
            return
        with disk_watch(engine, name, given_options.disk_bytes) as disk:
            yield replace(box, disk=disk)
    finally:
        if not keep:
            remove(engine, name)


def _start_error(image: str, network: str | None, result: Completed, log: Path) -> DsbisectError:
    last = last_line(result)
    if "image not known" in last or "no such image" in last.lower():
        return ImageError(
            f"image {image} is not here: {last}",
            hint="`dsbisect image build` makes it again",
            log=log,
        )
    if network != "none" and NO_NETWORK.search(last):
        return EngineError(
            f"a container of {image} did not start on {network or 'the default network'}: {last}",
            hint="another --network may work: host, container:NAME or one of `podman network ls`",
            log=log,
        )
    if result.status in NO_COMMAND and LACKS.search(last):
        return InstanceError(
            f"a container of {image} did not start: {last}",
            hint="the image lacks the command, or a library that it needs",
            log=log,
        )
    return EngineError(
        f"a container of {image} did not start: {last}",
        hint="`dsbisect doctor --fresh` probes the container engine again",
        log=log,
    )
