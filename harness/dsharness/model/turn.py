"""The turn: candidates that are measured next to each other, once. The unit of work."""

from __future__ import annotations

import uuid
from enum import StrEnum

from pydantic import Field

from dsharness.model.measured import WayName
from dsharness.model.value import Value
from dsharness.model.workload import Workload

NAMESPACE = uuid.UUID("67428f35-4824-572f-aa93-f1fe960b9996")  # of no other program


class TurnState(StrEnum):
    """How far a turn came; samples of one that was given up do not count."""

    PLANNED = "planned"
    DONE = "done"
    FAILED = "failed"  # a candidate cannot be served
    GIVEN_UP = "given up"  # it was interrupted, and is taken again as the next attempt


class Turn(Value):
    """Its id, and those of its samples, follow from what it is: taken twice, it is stored once."""

    campaign_id: str
    number: int = Field(description="of its campaign's turns, in order")
    attempt: int = Field(default=1, description="at this number")
    candidates: tuple[str, ...] = Field(description="in the order in which they begin")
    workload: Workload
    way: WayName = "in turn"
    machine: str = Field(default="", description="id of the machine that takes it")
    state: TurnState = TurnState.PLANNED
    refused: dict[str, str] = Field(
        default_factory=dict, description="candidate that cannot be measured -> why"
    )

    @property
    def id(self) -> str:
        return str(uuid.uuid5(NAMESPACE, f"{self.campaign_id}/{self.number}/{self.attempt}"))

    def sample_id(self, candidate: str) -> str:
        return str(uuid.uuid5(uuid.UUID(self.id), candidate))

    def ended(self, state: TurnState, refused: dict[str, str] | None = None) -> Turn:
        return self.model_copy(update={"state": state, "refused": refused or {}})
