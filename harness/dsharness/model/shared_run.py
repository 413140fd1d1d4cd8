"""Machines that share searches, and what they share: a run, as all of them read it."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, JsonValue

from dsharness.model.measured import Procedure
from dsharness.model.rows import Family
from dsharness.model.value import Value


class Abilities(Value):
    """What a machine can do that another one of its class may not."""

    families: tuple[Family, ...] = Field(description="of rows whose base it can make")
    counters: bool = Field(description="the CPU counts a server's instructions here")
    pins_cpus: bool = Field(description="server and load get CPUs of their own")


class FleetMachine(Value):
    """A machine that takes turns of searches that others began."""

    id: str
    name: str = Field(description="for people")
    class_name: str = Field(description="what is equal may measure for one search")
    noise_pct: float | None = Field(default=None, description="of the calibrator, when it came")
    cpus: tuple[int, ...] = ()
    can: Abilities | None = Field(default=None, description="unknown of an older worker")
    drained: bool = Field(default=False, description="gets no new turns")
    since: str


class GivenImage(Value):
    """An image that a machine put into the registry for the others."""

    key: str = Field(description="of all that went into it")
    kind: str = Field(description="image, toolchain, load or build")
    architecture: str
    digest: str = Field(description="the registry has to answer with this and nothing else")
    machine: str = Field(description="id of the one that gave it")
    added_at: str


class RunState(StrEnum):
    """Whether a run still wants machines."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PreparedLab(Value):
    """What the first machine found in a lab; whoever finds something else is left out."""

    procedure: Procedure
    paired: bool
    identities: dict[str, str]
    unmeasurable: dict[str, str]


class Prepared(Value):
    """What was prepared for all machines so far; a study may ask for more."""

    class_name: str
    labs: dict[str, PreparedLab] = Field(default_factory=dict, description="by a lab's name")
    lock: str = Field(default="", description="of its matrix: the others' rows hold the same")
    looks: dict[str, JsonValue] = Field(default_factory=dict, description="what its servers told")


class SharedRun(Value):
    """One command's searches, one after the other, taken by several machines."""

    id: str
    state: RunState = RunState.RUNNING
    request_key: str = Field(description="hash of the request: the same command finds it again")
    started_at: str
    request: dict[str, JsonValue] = Field(description="as its kind of search writes and reads it")
    machines: int = Field(description="as many take turns at most")
    at_least: int = Field(default=1, description="as many must be there before it begins")
    class_name: str = Field(default="", description="that was asked for; empty: the largest")
    unprepared: bool = Field(default=True, description="what it asks next needs another lab")
    preparing: str = Field(default="", description="id of the machine that prepares it first")
    prepared: Prepared | None = None
    took_part: tuple[str, ...] = Field(
        default=(), description="ids of machines that had turns: they have built what others lack"
    )
    left_out: dict[str, str] = Field(default_factory=dict, description="machine's id -> why")
    remaining: int = Field(default=0, description="samples still expected, for the ETA")
    answered: bool = Field(default=False, description="nothing but profiles is left to be taken")
    profiling: str = Field(default="", description="id of the machine that profiles both sides")
    unprofiled: str = Field(default="", description="why profiles that were asked for are missing")
    why: str = Field(default="", description="of a run that failed")

    @property
    def alone(self) -> str | None:
        """Which machine prepares or profiles for all, or none yet; None while turns are taken."""
        if self.answered:
            return self.profiling
        return self.preparing if self.unprepared else None

    @property
    def unmeasurable(self) -> dict[str, str]:
        """What could not be prepared in any of its labs, with the reason."""
        labs = self.prepared.labs.values() if self.prepared else ()
        return {name: why for lab in labs for name, why in lab.unmeasurable.items()}

    def given_to(self, machine: str) -> Self:
        """Return it with that machine; empty: none."""
        return self.model_copy(update={"profiling" if self.answered else "preparing": machine})
