"""A product's server in a container of its own, that a step starts, stops and looks at."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from dsharness.containers.container import Container, running
from dsharness.paths import logs_home
from dsharness.systems import System
from dsharness.systems.readiness import shared_folder, wait_until_ready
from dsharness.systems.system import Endpoint
from dsvalidate.step_tools import StepTools

Volumes = tuple[tuple[Path, str, str], ...]


@dataclass(frozen=True, kw_only=True)
class ServiceBox:
    """A container with a server that is not started yet, and what it shares with the lab."""

    box: Container
    shared: Path
    began_at: float  # of the epoch: what was written before is the image's


@dataclass(frozen=True, kw_only=True)
class Service:
    """A server that is not started yet when a step gets it."""

    tools: StepTools
    system: System
    box: Container
    shared: Path
    began_at: float  # of the epoch: what was written before is the image's
    pid_file: str  # inside the container

    def start(self) -> Endpoint:
        """Return when it answers; InstanceError with its last words when it does not."""
        self.system.start(self.box)
        return self.ready()

    def ready(self) -> Endpoint:
        return wait_until_ready(self.box, self.shared, self.system)

    def stop(self) -> None:
        self.system.stop(self.box)


S_co = TypeVar("S_co", bound=Service, covariant=True)


class Serve(Protocol[S_co]):
    """Start a container of an image, in which an instance is, or will be made."""

    def __call__(
        self,
        tools: StepTools,
        reference: str,
        *,
        purpose: str,
        volumes: Volumes = (),
        capabilities: tuple[str, ...] = (),
    ) -> AbstractContextManager[S_co]: ...


@contextmanager
def service_box(
    tools: StepTools,
    reference: str,
    system: System,
    *,
    purpose: str,
    volumes: Volumes = (),
    capabilities: tuple[str, ...] = (),
    network: str = "none",
    user: str | None = None,
) -> Iterator[ServiceBox]:
    """Run a container of an image as the driver makes states in one; ``user`` None is root."""
    with contextlib.ExitStack() as stack:
        shared = stack.enter_context(shared_folder())
        made = system.making(shared)
        options = replace(
            made, network=network, user=user, volumes=(*made.volumes, *volumes),
            capabilities=tuple(sorted({*made.capabilities, *capabilities})),
        )  # fmt: skip
        began_at = time.time()
        log = logs_home() / "validate" / f"{tools.name}-{purpose}.log"
        box = stack.enter_context(
            running(
                tools.engine, reference, *system.idle_command(),
                purpose=f"validate-{purpose}", options=options, log=log,
            )
        )  # fmt: skip
        yield ServiceBox(box=box, shared=shared, began_at=began_at)
