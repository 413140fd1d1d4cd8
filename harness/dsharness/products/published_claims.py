"""Published claims as data: what was said, what is measured for it, and what counts as reproduced.

A measurement serves several claims. How each one is judged says nothing of how it was measured.
"""

# A kind is one word, which pyright takes for what could be set.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field, PositiveFloat, PositiveInt

from dsharness.errors import MatrixError, UsageError
from dsharness.model import Value
from dsharness.model.of_products import OneOf
from dsharness.model.value import Identifier
from dsharness.product_folder import ProductFolder, product_folders
from dsharness.products.catalog import file_of_product, product_file, product_ids
from dsharness.yaml_files.problems import suggestion

FILE = "claims.yaml"


class Arm(Value):
    """A row's server, as its package sets it or with passwords stored in another way."""

    row: Identifier
    scheme: str | None = Field(default=None, description="that new passwords are stored by")
    rounds: PositiveInt | None = Field(
        default=None, description="of that scheme, in passwords that were hashed before"
    )
    settings: Identifier | None = Field(default=None, description="of the matrix, for its server")

    @property
    def name(self) -> str:
        scheme = (self.scheme or "").lower().replace("_", ".")
        parts = (self.row, scheme, self.rounds, self.settings)
        return "-".join(str(part) for part in parts if part)

    def __str__(self) -> str:
        rounds = f", {self.rounds:,} rounds" if self.rounds else ""
        server = f"{self.row} ({self.settings})" if self.settings else self.row
        return f"{server} with {self.scheme}{rounds}" if self.scheme else server


class MeasurementBase(Value):
    """What an experiment measures, told apart by its ``kind``."""

    if TYPE_CHECKING:

        @property
        def kind(self) -> str: ...

    minutes: PositiveFloat


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment that only one product needs, one of its folder's ``experiments``."""

    asked: type[MeasurementBase]
    title: str
    measure: Callable[[Any, Any], Any]  # of the lab of claims and what is asked: figures


class BindsMeasured(MeasurementBase):
    """Binds of so many distinct users at random, by ldclt."""

    kind: Literal["binds"]
    arms: tuple[Arm, ...] = Field(min_length=1)
    users: tuple[PositiveInt, ...] = Field(min_length=1)
    runs: PositiveInt = 2


class StoredTried(MeasurementBase):
    """Passwords are set, schemes changed, and what is stored is read back."""

    kind: Literal["stored"]
    rows: tuple[Identifier, ...] = Field(min_length=1)
    scheme: str = Field(description="that the default is changed to")
    rounds_scheme: str = Field(description="whose rounds are read and set")
    rounds_tried: tuple[PositiveInt, ...]


class PortsTried(MeasurementBase):
    """Connections from one address and from several, until no port is left."""

    kind: Literal["ports"]
    row: Identifier
    ports: PositiveInt = Field(description="that the container's clients may use")
    addresses: PositiveInt = 3


class CulpritSearched(MeasurementBase):
    """A search over commits with a repository; without, two rows explained."""

    kind: Literal["culprit"]
    good: str
    bad: str
    workload: Identifier
    fast: Identifier
    slow: Identifier
    runs: PositiveInt = 3


class ToolsCompared(MeasurementBase):
    """One server under ldclt, and under Locust with so many workers."""

    kind: Literal["tools"]
    arm: Arm
    workers: tuple[PositiveInt, ...]
    users: PositiveInt
    seconds: PositiveInt


def experiments_of(folder: ProductFolder) -> tuple[Experiment, ...]:
    return cast("tuple[Experiment, ...]", folder.part("experiments") or ())


def experiments() -> dict[type[MeasurementBase], Experiment]:
    """Those of all products, by what is asked."""
    experiments = (
        experiment for folder in product_folders().values() for experiment in experiments_of(folder)
    )
    return {experiment.asked: experiment for experiment in experiments}


Measurement = Annotated[
    MeasurementBase,
    OneOf(
        "kind",
        lambda folder: (experiment.asked for experiment in experiments_of(folder)),
        BindsMeasured,
        StoredTried,
        PortsTried,
        CulpritSearched,
        ToolsCompared,
    ),
]


class Slower(Value):
    """The second of each pair is so many times slower, by rate, by mean time or by CPU time."""

    how: Literal["slower"]
    pairs: tuple[tuple[str, str], ...] = Field(min_length=1, description="names of arms")
    by: Literal["rate", "time", "cpu"] = "rate"
    at_least: PositiveFloat


class FirstSlower(Value):
    """Along the line the first arm that costs so many times more is the expected one."""

    how: Literal["first slower"]
    line: tuple[str, ...] = Field(min_length=2)
    expected: str
    at_least: PositiveFloat


class Busy(Value):
    """The server uses that share of its CPUs."""

    how: Literal["busy"]
    arms: tuple[str, ...] = Field(min_length=1)
    at_least: PositiveFloat


class SameHash(Value):
    """Where systems store the same, the dearest costs at most so many times the cheapest."""

    how: Literal["same hash"]
    at_most: PositiveFloat


class CostOrder(Value):
    """Of each pair of schemes the second costs at least so many times the first."""

    how: Literal["cost order"]
    rows: tuple[Identifier, ...] = Field(min_length=1)
    pairs: tuple[tuple[str, str, PositiveFloat], ...] = Field(min_length=1)


class Reaches(Value):
    """An arm answers so many binds a second."""

    how: Literal["reaches"]
    arm: str
    users: PositiveInt
    at_least: PositiveFloat


class KeepsOld(Value):
    """After a change of the default scheme a password is stored as before, also after a bind."""

    how: Literal["keeps old"]


class MixesSchemes(Value):
    """Two users with different schemes can bind."""

    how: Literal["mixes schemes"]


class SetsRounds(Value):
    """Rounds can be set from the least to the most, and are what is usual without."""

    how: Literal["sets rounds"]
    least: PositiveInt
    most: PositiveInt
    usual: PositiveInt


class PortLimit(Value):
    """Connections stop at the number of ports for each address; ports come back after a time."""

    how: Literal["port limit"]
    ports: PositiveInt = Field(description="that the published figure counts with")
    waits_s: PositiveFloat = Field(description="until a port can be used again, as published")


class EndsByReset(Value):
    """The server leaves ports waiting, and one that resets would not."""

    how: Literal["ends by reset"]


class NamesCommit(Value):
    """The search names one of these commits; without it, stored passwords carry that share."""

    how: Literal["names commit"]
    commits: tuple[str, ...] = Field(min_length=1)
    at_least_pct: PositiveFloat


class ToolLimit(Value):
    """With the fewest workers the tool stays so many times below ldclt."""

    how: Literal["tool limit"]
    at_least: PositiveFloat


class Ratios(Value):
    """What an experiment divides is everywhere at least, or at most, so many times."""

    how: Literal["ratios"]
    at_least: PositiveFloat | None = None
    at_most: PositiveFloat | None = None

    def holds(self, ratio: float) -> bool:
        """Return whether one of them is within."""
        return (self.at_least is None or ratio >= self.at_least) and (
            self.at_most is None or ratio <= self.at_most
        )


Judged = Annotated[
    Slower
    | FirstSlower
    | Busy
    | SameHash
    | CostOrder
    | Reaches
    | KeepsOld
    | MixesSchemes
    | SetsRounds
    | PortLimit
    | EndsByReset
    | NamesCommit
    | ToolLimit
    | Ratios,
    Field(discriminator="how"),
]


class PublishedClaim(Value):
    """One published result."""

    id: Identifier
    source: Identifier = Field(description="of the matrix's sources")
    text: str
    theirs: str = Field(description="their figure, in a few words")
    measured: tuple[Identifier, ...] = Field(default=(), description="measurements it rests on")
    judged: Judged | None = None
    why_not: str = Field(
        default="",
        description="it cannot be tested here: why; what is measured then is only near to it",
    )
    note: str = Field(default="", description="what is known beyond what is measured")
    elsewhere: str = Field(default="", description="the command that tests it, or more of it")


class PublishedClaims(Value):
    """All claims about a product, and what is measured for them."""

    measurements: dict[Identifier, Measurement]
    claims: tuple[PublishedClaim, ...] = Field(min_length=1)

    def chosen(self, ids: tuple[str, ...]) -> tuple[PublishedClaim, ...]:
        """These, in the file's order; all without ids; UsageError for an unknown one."""
        claim_ids = [claim.id for claim in self.claims]
        for name in ids:
            if name not in claim_ids:
                raise UsageError(
                    f"no claim {name!r}.{suggestion(name, claim_ids)}",
                    hint=f"there are: {', '.join(claim_ids)}",
                )
        return tuple(claim for claim in self.claims if not ids or claim.id in ids)

    def needed(self, claims: tuple[PublishedClaim, ...]) -> dict[str, Measurement]:
        """What has to be measured for these, in the file's order."""
        measurement_names = {name for claim in claims for name in claim.measured}
        return {
            name: measurement
            for name, measurement in self.measurements.items()
            if name in measurement_names
        }


@cache
def published_claims(name: str, folder: Path | None = None) -> PublishedClaims:
    """The claims about a product; MatrixError where it has none."""
    published = product_file(name, FILE, PublishedClaims, folder)
    if published is None:
        with_claims = [
            product_id
            for product_id in product_ids(folder)
            if file_of_product(product_id, FILE, folder)
        ]
        raise MatrixError(
            f"no claims about {name} are known", hint=f"of these they are: {', '.join(with_claims)}"
        )
    return published
