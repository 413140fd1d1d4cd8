"""What every noun of the lab is: frozen, and strict about what it does not know."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64)]
Version = Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.~+:_-]*$", max_length=64)]


class Value(BaseModel):
    """Frozen, strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
