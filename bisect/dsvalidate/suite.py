"""What a validation has to know of one product's server; all else in a gate is the same for all.

The server runs in a container of its own, where a step starts it, stops it and looks at it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from dsharness.containers.container import Container, running
from dsharness.model import Image, Settings, SystemName, Workload
from dsharness.paths import logs_home
from dsharness.systems import System
from dsharness.systems.readiness import shared_folder, wait_until_ready
from dsharness.systems.system import Endpoint
from dsvalidate.check import Check
from dsvalidate.step import Step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools

Volumes = tuple[tuple[Path, str, str], ...]


@dataclass(frozen=True, kw_only=True)
class ServiceBox:
    """A container with a server that is not started yet, and what it shares with the lab."""

    box: Container
    shared: Path
    began_at: float  # of the epoch: what was written before is the image's


@dataclass(frozen=True, kw_only=True)
class Service(ServiceBox):
    """A server that is not started yet when a step gets it."""

    tools: StepTools
    system: System
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
        made_options = system.making(shared)
        options = replace(
            made_options,
            network=network,
            user=user,
            volumes=(*made_options.volumes, *volumes),
            capabilities=tuple(sorted({*made_options.capabilities, *capabilities})),
        )
        began_at = time.time()
        log = logs_home() / "validate" / f"{tools.name}-{purpose}.log"
        box = stack.enter_context(
            running(
                tools.engine,
                reference,
                *system.idle_command(),
                purpose=f"validate-{purpose}",
                options=options,
                log=log,
            )
        )
        yield ServiceBox(box=box, shared=shared, began_at=began_at)


GIVE_MORE = (
    "give --max-runs a larger number, or free the machine of other work; it goes on from here"
)


@dataclass(frozen=True, kw_only=True)
class SpeedQuestion:
    """Two sides, the workloads that they are compared under, and how sure it has to be."""

    sides: Sides
    tools: StepTools
    workloads: tuple[Workload, ...]
    settings: Settings
    margin_pct: float  # what is slower by less is not worse
    max_pairs: int  # of runs of each workload
    alone: Callable[[], object]  # returns when nothing else of the validation is at work


SpeedSteps = Callable[[SpeedQuestion], Sequence[Step]]  # how the workloads are compared


class Suite(Protocol):
    """The server of a product's packages, and what it must do."""

    system: ClassVar[SystemName]  # that serves the rows whose packages it can take
    prepare: ClassVar[str]  # a script: what the server's own unit would do before its start

    @property
    def served(self) -> Serve[Service]:
        """Run a container of an image, in which an instance is, or will be made."""
        ...

    def filled(self, tools: StepTools, image: Image) -> str:
        """Return the image with a filled instance, stopped: found, or made now."""
        ...

    def upgraded(self, sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
        """Upgrade a filled stock server, and use it; the image that is left is kept."""
        ...

    def upgraded_image(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder
    ) -> str | None:
        """Return what the upgrade left, made again if it is gone; None where it left nothing."""
        ...

    def downgraded(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder
    ) -> Sequence[Check]:
        """Go back to stock, and say what no longer works; nothing here fails a validation."""
        ...

    def works(self, sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> tuple[Step, ...]:
        """List what users do with the server."""
        ...

    def performs(self, question: SpeedQuestion, evidence: EvidenceFolder) -> tuple[Step, ...]:
        """List what is measured of it but the workloads."""
        ...

    def safe(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder, *, accept_weaker: bool
    ) -> tuple[Step, ...]:
        """List what is compared of its security but the inventory of its system."""
        ...
