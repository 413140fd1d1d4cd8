"""A server that answers: one of the lab's own as a context manager, or one that others run.

Its CPU time while something is done is read here, with what the machine did meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from dsharness.containers.container import Container, Options, State, running
from dsharness.containers.engine import Engine
from dsharness.errors import DiskFullError, DsbisectError, InstanceError, PortTakenError
from dsharness.machine.cgroups import (
    TICK_S,
    ProcessTree,
    UsageMeter,
    begun_s,
    meter_for,
    process_tree,
    waited_s,
)
from dsharness.machine.host import (
    Calibrator,
    Clocks,
    CpuShares,
    CpuTicks,
    available_cpus,
    read_ticks,
    share_cpus,
)
from dsharness.measure.gate import Conditions
from dsharness.measure.golden_state import Golden
from dsharness.model import BenchFacts, Procedure, Usage
from dsharness.paths import logs_home
from dsharness.products import notable_versions
from dsharness.progress import Progress
from dsharness.systems import SYSTEMS, Endpoint, Look, System
from dsharness.systems.readiness import (
    FirstAnswer,
    answering,
    ended_by_now,
    first_answer,
    shared_folder,
    start_error,
)
from dsharness.systems.system import Giver, Part, TakenPart

Known = TypeVar("Known")
FIRST_STEP_S = 0.25  # between two readings of a server's usage
MOST_READINGS = 240


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a server took until its first answer, and the steps in which that was read."""

    seconds: float | None = None
    step_s: float = 0.0
    cpu_s: float | None = None
    cpu_step_s: float = 0.0

    @classmethod
    def of(cls, answer: FirstAnswer, begun_s: float | None, meter: UsageMeter | None) -> Start:
        """Make it of what was read at its first answer; its begin is told in ticks."""
        cpu_us = _known(meter.used_us) if meter else None
        return cls(
            seconds=None if begun_s is None else (answer.after_s + answer.by_s) / 2 - begun_s,
            step_s=answer.by_s - answer.after_s + TICK_S,
            cpu_s=None if cpu_us is None else cpu_us / 1e6,
            cpu_step_s=meter.step_us / 1e6 if meter else 0.0,
        )


@dataclass(frozen=True, kw_only=True)
class Home:
    """The container in which the lab itself runs a server."""

    golden: Golden
    container: Container
    shared: Path  # the folder that lab and server share
    meter: UsageMeter
    start: Start = field(default_factory=Start)

    @property
    def system(self) -> System:
        return SYSTEMS[self.golden.system]

    def facts(self, procedure: Procedure) -> BenchFacts:
        return BenchFacts(
            procedure=procedure,
            golden=self.golden.key,
            notable=notable_versions(self.golden.image),
            cpu_meter=self.meter.source,
        )

    def ended(self, what: str) -> InstanceError | PortTakenError:
        """Return an error with the server's last output, which is kept in the log."""
        return start_error(self.container, self.system, what)

    def ended_by_now(self) -> bool:
        """Return whether it has ended, after a failure: podman notices an end a moment later."""
        return ended_by_now(self.container, self.shared) is not None


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A server that answers.

    Without a home it is someone else's. Then its answers are all that can be had: what only its
    machine could tell is None.
    """

    candidate_id: str
    endpoint: Endpoint
    network: str | None  # that a load reaches it from; None: podman's default one
    home: Home | None = None

    @property
    def own(self) -> Home:
        """InstanceError where someone else runs it."""
        if self.home is None:
            raise InstanceError(f"{self.candidate_id} does not run in a container of the lab")
        return self.home

    @property
    def container(self) -> Container:
        return self.own.container

    @property
    def system(self) -> System:
        return self.own.system

    @property
    def alive(self) -> bool:
        """Whether it runs, as far as the lab can see."""
        return self.home is None or self.home.container.running

    def state(self) -> State | None:
        return self.home.container.state() if self.home else None

    def overfilled(self) -> str | None:
        """Return why the lab ended it, where that was for what it wrote."""
        error = self.home.container.overfilled() if self.home else None
        return error.message if error else None

    def processes(self) -> ProcessTree | None:
        """Return None also where it has ended."""
        return _known(partial(process_tree, self.home.meter.pid)) if self.home else None

    def cpu_us(self) -> float | None:
        """Return CPU time so far; None also where it has ended."""
        return _known(self.home.meter.used_us) if self.home else None

    def look(self) -> Look | None:
        """Return None also where it no longer answers, or not as it has to: why is in the log."""
        if self.home is None:
            return None
        try:
            return self.home.system.look(self.endpoint)
        except (InstanceError, OSError) as error:
            self.home.container.note(f"it could not be looked at: {error}")
            return None

    def objections(self, look: Look) -> tuple[str, ...]:
        """Return why it is not what was made."""
        return tuple(self.system.objections(self.own.golden.facts, look.facts))

    @contextmanager
    def needed(self) -> Iterator[None]:
        """A failure in the block because the server ended gets the server's last output."""
        try:
            yield
        except (DsbisectError, OSError) as error:
            if isinstance(error, DiskFullError) or not self.home or not self.home.ended_by_now():
                raise
            raise self.home.ended("did not last: it ended after its first answer") from error

    def note_end(self) -> None:
        """Keep the output of a server in the log, if it has ended by now."""
        if self.home and self.home.ended_by_now():
            self.home.ended("ended")


def _known(read: Callable[[], Known]) -> Known | None:
    with suppress(InstanceError, OSError):
        return read()
    return None


def _meter(state: State) -> UsageMeter:
    return meter_for(state.pid, state.id)


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
            state = box.state()
            begun_at_s, early = _known(partial(begun_s, state.pid)), _known(partial(_meter, state))
            answer = first_answer(box, shared, system)
            start = Start.of(answer, begun_at_s, early)
            with answering(box, shared, system):
                meter = early or _meter(box.state())
            yield Instance(
                candidate_id=golden.image.candidate_id,
                endpoint=answer.endpoint,
                network=f"container:{box.name}",
                home=Home(golden=golden, container=box, shared=shared, meter=meter, start=start),
            )


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Metered(Generic[T]):
    """What some work gave, and what was seen of server and machine meanwhile."""

    given: T
    server_cpu_us: float | None = None
    calibrator_us: float | None = None
    steal_pct: float = 0.0
    waited_s: float | None = None  # that the server's threads had no CPU, all together
    passed: CpuTicks | None = None  # of the server's CPUs
    calibrator_all_us: float = 0.0
    conditions: Conditions = field(default_factory=Conditions)
    usage: Usage | None = None

    def taken_pct(self, load_us: float | None) -> float | None:
        """Return the share of its CPUs that others took, where the load used so much of them."""
        if self.passed is None or self.server_cpu_us is None or load_us is None:
            return None
        return self.passed.taken_pct(self.server_cpu_us + self.calibrator_all_us + load_us)


class UsageReadings:
    """What a server used by each moment at which it was looked at.

    Of a long run every second one goes when they become too many, and they come half as often.
    """

    def __init__(self, meter: UsageMeter) -> None:
        self._meter, self._step_s, self._began = meter, FIRST_STEP_S, time.monotonic()
        self._first_us = meter.used_us()
        self._read: list[tuple[float, float, int]] = []

    def look(self) -> None:
        """Read it, if it is time to."""
        now_s = time.monotonic() - self._began
        if self._read and now_s < self._read[-1][0] + self._step_s:
            return
        with suppress(OSError):  # it has ended, which is noticed elsewhere
            used_us = self._meter.used_us() - self._first_us
            self._read.append((round(now_s, 3), round(used_us), self._meter.resident_kib()))
        if len(self._read) > MOST_READINGS:
            self._read, self._step_s = self._read[::2], self._step_s * 2

    def usage(self) -> Usage | None:
        """Return None where it could not be read."""
        if not self._read:
            return None
        at_s, cpu_us, memory_kib = zip(*self._read, strict=True)
        return Usage(at_s=at_s, cpu_us=cpu_us, memory_kib=memory_kib)


def metered(
    instance: Instance, cpus: CpuShares, paused: Callable[[], bool], work: Callable[[], T]
) -> Metered[T]:
    """Do it. CPU time is read next to it on either side, so that no look of the lab is in it."""
    ticks, clocks = read_ticks(cpus.server), Clocks.read()
    meter = instance.home.meter if instance.home else None
    waits_ns = _known(meter.waits_ns) if meter else None
    readings = _known(partial(UsageReadings, meter)) if meter else None
    awake = readings.look if readings else lambda: None
    cpu_before_us = instance.cpu_us()
    with Calibrator(cpus.server, paused=paused, awake=awake) as calibrator:
        gift = work()
        cpu_after_us = instance.cpu_us()
    later, passed = Clocks.read(), read_ticks(cpus.server) - ticks
    waits_later_ns = _known(meter.waits_ns) if meter else None
    used_us = (
        None if cpu_before_us is None or cpu_after_us is None else cpu_after_us - cpu_before_us
    )
    return Metered(
        given=gift,
        server_cpu_us=used_us,
        calibrator_us=calibrator.cpu_us,
        steal_pct=passed.steal_pct,
        passed=passed,
        calibrator_all_us=calibrator.all_us,
        waited_s=waited_s(waits_ns or {}, waits_later_ns or {}),
        conditions=Conditions(
            gap_s=calibrator.gap_s,
            paused_s=calibrator.paused_s,
            suspended_s=clocks.suspended_s_until(later),
            stepped_s=clocks.stepped_s_until(later),
        ),
        usage=readings.usage() if readings else None,
    )


def part_of(engine: Engine, golden: Golden, part: Part, *, progress: Progress) -> TakenPart:
    """Return a part of a golden state, for another one: its server is asked when that is made."""

    def read() -> tuple[str, ...]:
        system, name = SYSTEMS[golden.system], golden.image.candidate_id
        if not isinstance(system, Giver):
            raise InstanceError(f"{name} has no {part.name} that others could take")
        progress(f"reading {part.title} of {name}")
        cpus = share_cpus(available_cpus(), can_pin=False)
        with serve(engine, golden, cpus) as instance, instance.needed():
            return system.give(instance.endpoint, golden.seed, part)

    return TakenPart(part=part, giver=golden.image.candidate_id, key=golden.key, read=read)
