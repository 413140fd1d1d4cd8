"""What every noun of the lab is: frozen, and strict about what it does not know."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dsharness.credentials import without_credentials

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64)]
Version = Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.~+:_-]*$", max_length=64)]

# What is recorded or shown, and may hold a URL.
Shown = Annotated[str, AfterValidator(without_credentials)]


class Value(BaseModel):
    """Frozen, strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
