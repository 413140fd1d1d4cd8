"""A served, seeded, ready directory as a context manager."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dsharness.containers.container import Container, running
from dsharness.containers.engine import Engine
from dsharness.errors import DiskFullError, DsbisectError
from dsharness.machine.cgroups import CpuMeter, meter_for
from dsharness.machine.host import CpuPlan
from dsharness.measure.golden_state import Golden
from dsharness.paths import logs_home
from dsharness.systems import DRIVERS
from dsharness.systems.ldap.directory import Site
from dsharness.systems.readiness import answering, shared_folder, start_error, wait_for_bind


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A directory that answers binds."""

    golden: Golden
    container: Container
    socket: Path
    meter: CpuMeter
    site: Site

    @property
    def alive(self) -> bool:
        return self.container.running

    @contextmanager
    def needed(self) -> Iterator[None]:
        """What fails within the block because the server ended is told in its last words."""
        try:
            yield
        except (DsbisectError, OSError) as error:
            if isinstance(error, DiskFullError) or self.alive:
                raise
            driver = DRIVERS[self.golden.server]
            what = "did not last: it ended after its first answer"
            raise start_error(self.container, driver, what) from error

    def last_words(self) -> str:
        """What a server that ended said, kept in the log."""
        return str(start_error(self.container, DRIVERS[self.golden.server], "ended"))


@contextmanager
def serve(
    engine: Engine, golden: Golden, cpus: CpuPlan, *, keep: bool = False
) -> Iterator[Instance]:
    """Start from the golden state, without any network but loopback, and wait for a bind."""
    driver = DRIVERS[golden.server]
    log = (
        logs_home()
        / "serve"
        / f"{golden.image.candidate_id}-{golden.seed.settings.id}-{golden.key}.log"
    )
    with shared_folder() as shared:
        options = driver.serving(shared)
        confined = replace(
            options,
            cpus=cpus.server if cpus.pinned else (),
            memory=options.memory if engine.limits_memory else None,
        )
        with running(
            engine,
            golden.reference,
            *driver.serve_command(),
            purpose=f"serve-{golden.image.candidate_id}",
            log=log,
            options=confined,
            keep=keep,
        ) as box:
            socket = wait_for_bind(box, shared, driver)
            with answering(box, shared, driver):
                state = box.state()
                meter = meter_for(state.pid, state.id)
            yield Instance(
                golden=golden,
                container=box,
                socket=socket,
                meter=meter,
                site=driver.site,
            )
