"""What every noun of the lab is: frozen, and strict about what it does not know."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dsharness.errors import MatrixError
from dsharness.plain_text import without_credentials

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64)]
Version = Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.~+:_-]*$", max_length=64)]

# What is recorded or shown, and may hold a URL.
Shown = Annotated[str, AfterValidator(without_credentials)]


# A number of what was measured: what is stored may come from an import, or another machine.
MOST = 1e18
Count = Annotated[int, Field(ge=0, le=int(MOST))]
Amount = Annotated[float, Field(ge=0, le=MOST)]
Finite = Annotated[float, Field(ge=-MOST, le=MOST)]
Ratio = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=-1e-9, le=1 + 1e-9)]  # sums are rounded


class Value(BaseModel):
    """Frozen, strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


URL = r"(https?|file)://[A-Za-z0-9._~:/@%+$?=&,-]+"

PackageName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+_-]{0,127}$")]
PackageVersion = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+~:_^-]{0,127}$")]
ModuleStream = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(:[A-Za-z0-9._-]+)?$")]
Nvr = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*-[A-Za-z0-9._+~^]+-[A-Za-z0-9._+~^]+$")
]
Url = Annotated[str, Field(pattern=f"^{URL}$")]
ImageName = Annotated[
    str, Field(pattern=r"^[a-z0-9][A-Za-z0-9._:/-]*$", description="without a digest")
]
ImageDigest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
SuiteName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
AptSource = Annotated[
    str,
    Field(
        pattern=rf"^deb (\[[a-z0-9=,./_ -]+\] )?{URL}( [A-Za-z0-9._/-]+)+$",
        description="a one-line apt source: deb [OPTIONS] URL SUITE COMPONENT...",
    ),
]


def checked(form: TypeAdapter[str], word: str, where: str) -> str:
    """A word from outside the matrix (of an environment, of a container), if it has the form."""
    try:
        return form.validate_python(word)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise MatrixError(
            f"{where}: {word!r}: {reason}", hint="correct it where it is set"
        ) from error
