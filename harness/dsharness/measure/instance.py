"""A served, filled, ready system as a context manager."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from dsharness.containers.container import Container, Options, running
from dsharness.containers.engine import Engine
from dsharness.errors import DiskFullError, DsbisectError
from dsharness.machine.cgroups import CpuMeter, meter_for
from dsharness.machine.host import CpuShares
from dsharness.measure.golden_state import Golden
from dsharness.paths import logs_home
from dsharness.systems import SYSTEMS, Endpoint, System
from dsharness.systems.readiness import (
    answering,
    ended_by_now,
    shared_folder,
    start_error,
    wait_until_ready,
)


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A server that answers."""

    golden: Golden
    container: Container
    endpoint: Endpoint
    meter: CpuMeter

    @property
    def system(self) -> System:
        return SYSTEMS[self.golden.system]

    @property
    def alive(self) -> bool:
        return self.container.running

    @contextmanager
    def needed(self) -> Iterator[None]:
        """A failure in the block because the server ended gets the server's last output."""
        try:
            yield
        except (DsbisectError, OSError) as error:
            if isinstance(error, DiskFullError) or not self.ended_by_now():
                raise
            what = "did not last: it ended after its first answer"
            raise start_error(self.container, self.system, what) from error

    def ended_by_now(self) -> bool:
        """Whether it has ended, after a failure: podman notices an end a moment later."""
        folder = self.endpoint.shared
        return folder is None or ended_by_now(self.container, folder) is not None

    def note_end(self) -> None:
        """Keep the output of a server that ended in the log."""
        start_error(self.container, self.system, "ended")


class Wrapper(Protocol):
    """Runs a server's command inside another program."""

    def command(self, command: tuple[str, ...]) -> tuple[str, ...]: ...

    def options(self, options: Options) -> Options: ...


@contextmanager
def serve(
    engine: Engine,
    golden: Golden,
    cpus: CpuShares,
    *,
    inside: Wrapper | None = None,
    keep: bool = False,
) -> Iterator[Instance]:
    """Start from the golden state, with no network but loopback, and wait for an answer."""
    system = SYSTEMS[golden.system]
    log = (
        logs_home()
        / "serve"
        / f"{golden.image.candidate_id}-{golden.seed.settings.id}-{golden.key}.log"
    )
    with shared_folder() as shared:
        options, command = system.serving(shared), system.serve_command()
        if inside is not None:
            options, command = inside.options(options), inside.command(command)
        confined = replace(options, cpus=cpus.server if cpus.pinned else ())
        with running(
            engine,
            golden.reference,
            *command,
            purpose=f"serve-{golden.image.candidate_id}",
            log=log,
            options=confined,
            keep=keep,
        ) as box:
            endpoint = wait_until_ready(box, shared, system)
            with answering(box, shared, system):
                state = box.state()
                meter = meter_for(state.pid, state.id)
            yield Instance(
                golden=golden,
                container=box,
                endpoint=endpoint,
                meter=meter,
            )
