"""What each password scheme of a row stores and costs, and how that stands to a recommendation.

Every figure is measured, with one exception that is marked: what a bind would cost with as much
work as is recommended.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import Field

from dsharness.measure.metrics import COST, CPU
from dsharness.model import Facts, Sample, Value
from dsharness.model.stored_password import StoredPassword, stored_in
from dsharness.package_version import upstream
from dsharness.products import product_ids
from dsharness.systems.system import OfferedScheme
from dsresults.explainers.password_explainer import Least, Recommended, hashing_of, spelled
from dsresults.number_text import milliseconds, significant, whole
from dsresults.page.page import Card, Page, Section, Table

ROOM = 10  # times as many users as results are kept: so a tenth of the binds finds one
CANNOT, UNREAD = "cannot store", "not measured"  # instead of how it stores


def default_scheme(facts: Facts) -> str:
    """How a server stores passwords by itself; nothing where it does not say so."""
    stored = stored_in(facts)
    return stored.scheme if stored else ""


def users_for(product: str, scheme: str, versions: Mapping[str, str], fewest: int) -> int:
    """So many users that hardly any bind finds a result that a library has kept."""
    return max(fewest, ROOM * hashing_of(product).kept(scheme, versions))


class StoredHere(Value):
    """How a server stores passwords, and what its library keeps of their hashes."""

    text: str
    scheme: str
    rounds: int | None = None
    keeps: int = 0
    library: str = Field(default="", description="that keeps them, with its version")

    @classmethod
    def of(cls, product: str, facts: Facts, versions: Mapping[str, str]) -> Self | None:
        """None where the server does not say it."""
        stored = stored_in(facts)
        if stored is None:
            return None
        hashing = hashing_of(product)
        keepers = (
            f"{library.title} {upstream(versions[name])}"
            for name, library in hashing.libraries.items()
            if stored.scheme in library.schemes and library.keeps and name in versions
        )
        return cls(
            text=str(spelled(stored)),
            scheme=stored.scheme,
            rounds=stored.rounds,
            keeps=hashing.kept(stored.scheme, versions),
            library=next(keepers, ""),
        )


@dataclass(frozen=True, kw_only=True)
class MeasuredScheme:
    """A scheme that was offered, and its runs; or why there are none."""

    offered: OfferedScheme
    users: int = 0
    samples: tuple[Sample, ...] = ()
    failed: str = ""

    @property
    def valid(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.valid]

    @property
    def stored(self) -> StoredPassword | None:
        return stored_in(self.valid[0].facts) if self.valid else None

    def values(self, metric: str) -> list[float]:
        values = (sample.value(metric) for sample in self.valid)
        return [value for value in values if value is not None]


class SchemeCost(Value):
    """One line of the table; what was not measured is None."""

    row: str
    scheme: str
    default: bool = False
    stored_as: str
    rounds: int | None = None
    memory_kib: int | None = None
    users: int = 0
    runs: int = 0
    cpu_ms: float | None = None  # of a bind, the median
    cpu_ms_range: tuple[float, float] | None = None
    per_cpu_s: float | None = None  # binds that one CPU can check in a second
    of_default: float | None = None  # times the default scheme's cost, by the calibrator
    accepted: bool | None = None  # by the recommendation; None: it says nothing
    verdict: str = ""
    recommended_ms: float | None = None  # computed: with as much work as is recommended
    failed: str = ""  # why it is not known: nothing of the scheme

    @property
    def cost(self) -> str:
        """`39.1 ms (38.2 to 40.0)`."""
        if self.cpu_ms is None or self.cpu_ms_range is None:
            return "-"
        low, high = map(significant, self.cpu_ms_range)
        return f"{significant(self.cpu_ms)} ms ({low} to {high})"


HOW = "CPU of a bind: median and range of the runs. binds/s: on one CPU. ÷ default: calibrated."


class SchemeTable(Value):
    """The schemes of all rows."""

    lines: tuple[SchemeCost, ...]

    @property
    def inconclusive(self) -> bool:
        """Whether something is not known."""
        return any(line.failed for line in self.lines)

    def page(self) -> Page:
        rows = dict.fromkeys(line.row for line in self.lines)
        recommendations = (hashing_of(name).recommended for name in product_ids())
        sources = dict.fromkeys(
            f"{source.title}, as of {source.date}: {source.address}"
            for source in recommendations
            if source
        )  # products share it
        return Page(
            title="Password schemes",
            about=(f"of {', '.join(rows)}: what is stored, and what a bind costs",),
            answer=tuple(Card(headline=self._answer(row)) for row in rows),
            parts=(
                *(Section(title=row, parts=(self._table(row),)) for row in rows),
                HOW,
                *sources,
            ),
        )

    def _answer(self, row: str) -> str:
        lines = [line for line in self.lines if line.row == row]
        default = next((line for line in lines if line.default), None)
        if default is None:
            failed = next((line.failed for line in lines if line.failed), "its default is unknown")
            return f"{row}: {failed}"
        return f"{row}: {default.scheme} by default, {default.stored_as}, a bind {default.cost}"

    def _table(self, row: str) -> Table:
        return Table(
            columns=("scheme", "stored as", "CPU of a bind", "binds/s", "÷ default", "OWASP"),
            rows=[
                (
                    line.scheme + (" (default)" if line.default else ""),
                    line.stored_as,
                    line.cost,
                    whole(line.per_cpu_s) if line.per_cpu_s else "-",
                    significant(line.of_default) if line.of_default else "-",
                    line.failed or line.verdict,
                )
                for line in self.lines
                if line.row == row
            ],
        )


def unserved(row: str, why: str) -> SchemeCost:
    """The only line of a row whose server could not be asked."""
    return SchemeCost(row=row, scheme="", stored_as=UNREAD, failed=why)


def scheme_costs(
    row: str, product: str, measured: Sequence[MeasuredScheme], default: str
) -> tuple[SchemeCost, ...]:
    """The table of a row: the default scheme first, then from cheap to dear."""
    recommended = hashing_of(product).recommended
    bare_us = _bare_us(measured)
    reference = next((scheme for scheme in measured if scheme.offered.name == default), None)
    base = _median(reference.values(COST.name)) if reference else None
    lines = (
        _line(row, scheme, recommended, bare_us, base, default=scheme.offered.name == default)
        for scheme in measured
    )
    return tuple(sorted(lines, key=lambda line: (not line.default, line.cpu_ms or 1e9)))


def _line(
    row: str,
    measured_scheme: MeasuredScheme,
    recommended: Recommended | None,
    bare_us: float,
    base: float | None,
    *,
    default: bool,
) -> SchemeCost:
    stored, costs = measured_scheme.stored, measured_scheme.values(CPU.name)
    line_of_scheme = SchemeCost(
        row=row, scheme=measured_scheme.offered.name, default=default, stored_as=CANNOT
    )
    if measured_scheme.offered.refused:
        return line_of_scheme.model_copy(update={"verdict": measured_scheme.offered.refused})
    if not costs or stored is None:
        return line_of_scheme.model_copy(
            update={"stored_as": UNREAD, "failed": measured_scheme.failed or "no valid run"}
        )
    cpu_us, cost = statistics.median(costs), _median(measured_scheme.values(COST.name))
    judged = _judged(measured_scheme.offered, stored, recommended)
    needed = _needed_us(judged, stored, cpu_us, bare_us)
    return line_of_scheme.model_copy(
        update={
            "stored_as": str(spelled(stored)),
            "rounds": stored.rounds,
            "memory_kib": stored.memory_kib,
            "users": measured_scheme.users,
            "runs": len(costs),
            "cpu_ms": cpu_us / 1000,
            "cpu_ms_range": (min(costs) / 1000, max(costs) / 1000),
            "per_cpu_s": 1e6 / cpu_us if cpu_us else None,
            "of_default": cost / base if cost and base else None,
            "accepted": judged.accepted,
            "verdict": judged.words + _computed(needed, judged.least),
            "recommended_ms": needed and needed / 1000,
        }
    )


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """What the recommendation says of what is stored."""

    accepted: bool | None
    words: str
    least: Least | None = None  # that is not reached


def _judged(
    offered: OfferedScheme, stored: StoredPassword, recommended: Recommended | None
) -> _Judged:
    if offered.readable:
        return _Judged(accepted=False, words="can be read back: never acceptable")
    if recommended is None:
        return _Judged(accepted=None, words="no recommendation is known")
    if offered.name in recommended.fast:
        return _Judged(accepted=False, words="a fast hash: not acceptable")
    least = recommended.of(offered.name)
    if not least:
        return _Judged(accepted=None, words=f"not named by {recommended.by}")
    only = f", {least[0].only} only" if least[0].only else ""
    held_minimum = next((minimum for minimum in least if minimum.held_by(stored)), None)
    if held_minimum:
        return _Judged(accepted=True, words=f"at least {held_minimum} of {held_minimum.hash}{only}")
    first = least[0]
    return _Judged(accepted=False, words=f"below {first} of {first.hash}{only}", least=first)


def _needed_us(
    judged: _Judged, stored: StoredPassword, cpu_us: float, bare_us: float
) -> float | None:
    """The cost of the rounds that are missing, at what those measured cost."""
    least = judged.least
    if least is None or not stored.rounds:
        return None
    memory = (least.memory_kib or 1) / (stored.memory_kib or 1) if least.memory_kib else 1.0
    return bare_us + max(0.0, cpu_us - bare_us) * memory * least.rounds / stored.rounds


def _computed(needed_us: float | None, least: Least | None) -> str:
    return f"; about {milliseconds(needed_us)} at {least} (computed)" if needed_us else ""


def _bare_us(measured: Iterable[MeasuredScheme]) -> float:
    """What a bind costs without a hash of many rounds: the cheapest of those that have none."""
    medians = (
        _median(scheme.values(CPU.name))
        for scheme in measured
        if scheme.stored and not scheme.stored.rounds
    )
    return min((median for median in medians if median is not None), default=0.0)


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
