"""What most servers have in common: one program, started next to another in the lab's container."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container, Options
from dsharness.containers.engine import last_line
from dsharness.errors import InstanceError
from dsharness.model import Facts
from dsharness.progress import Progress
from dsharness.systems.readiness import start_aside, stop_aside
from dsharness.systems.system import SHARED_FOLDER, Endpoint, Seed

# The rule of the container's own network instead of a capability, for ports below 1024.
LOW_PORTS = ("--sysctl", "net.ipv4.ip_unprivileged_port_start=0")


MOST_BYTES = 64 << 10  # of what a server says of itself


@dataclass(frozen=True, kw_only=True)
class InBox(Endpoint):
    """A server that the lab made: it is looked at inside its own container."""

    box: Container


def box_of(endpoint: Endpoint) -> Container:
    """Its container; InstanceError for a server of someone else."""
    if not isinstance(endpoint, InBox):
        raise InstanceError("the server tells of itself only inside its own container")
    return endpoint.box


def answer_of(endpoint: Endpoint, *command: str, silent: str) -> str:
    """Return what a command inside its container prints; InstanceError says who is silent."""
    done = box_of(endpoint).execute(*command, keep_bytes=MOST_BYTES)
    if not done.ok:
        raise InstanceError(f"{silent}: {last_line(done)}")
    return done.stdout


class BoxedServer(ABC):
    """The part of a ``System`` that is the same for servers of one program and one user."""

    user: ClassVar[str]  # whose process it is: it needs no privilege at any time
    pid_file: ClassVar[str]
    grave: ClassVar[re.Pattern[str]]  # what it says before it gives up
    options: ClassVar[frozenset[str]] = frozenset()
    offers: ClassVar[frozenset[str]] = frozenset()

    def making(self, shared: Path) -> Options:
        return self.serving(shared)

    def serving(self, shared: Path) -> Options:
        return Options(user=self.user, memory="2g", volumes=((shared, SHARED_FOLDER, "rw"),))

    def idle_command(self) -> tuple[str, ...]:
        return ("sleep", "infinity")

    @abstractmethod
    def serve_command(self) -> tuple[str, ...]: ...

    def start(self, box: Container) -> None:
        start_aside(box, *self.serve_command())

    def stop(self, box: Container) -> None:
        stop_aside(box, self.pid_file)

    def fill(self, endpoint: Endpoint, seed: Seed, progress: Progress) -> None:
        """Nothing is left to do where ``create`` made all of it."""
        del endpoint, seed, progress

    def fill_stopped(self, box: Container, seed: Seed, progress: Progress) -> None:
        """Nothing is left to do where it was filled before."""
        del box, seed, progress

    def objections(self, expected: Facts, seen: Facts) -> Iterator[str]:
        """Each fact that is another one now."""
        for name in sorted({*expected, *seen}):
            made, now = expected.get(name, "unknown"), seen.get(name, "unknown")
            if made != now:
                yield f"{name} is {now}, not {made}"

    def reason(self, lines: Sequence[str]) -> str | None:
        return next((line for line in reversed(lines) if self.grave.search(line)), None)
