"""An attributed difference, and its text: the answer first, then what it rests on. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from dsharness.model import Value
from dsresults.compare.comparison_table import Estimate
from dsresults.compare.factor_shares import FactorShares
from dsresults.number_text import milliseconds, percent, significant, times

SERVER = "server"
SERVER_TITLE = "the server build and its libraries, together"
TOGETHER = "both, beyond what each does alone"


class ArmFigures(Value):
    """What one arm cost."""

    name: str
    server: str = Field(description="the row whose server it is")
    parts: dict[str, str] = Field(description="part -> the row that it is of")
    runs: int
    cpu_us_per_op: float | None = Field(description="median")
    cost: float = Field(description="median, in units of the calibrator")
    varies_pct: float = Field(description="standard deviation of the cost's logarithm, as per cent")


class WorkloadShares(Value):
    """One workload's difference, attributed."""

    workload: str
    title: str
    campaign: str
    factors: dict[str, str] = Field(description="factor -> what it is")
    arms: tuple[ArmFigures, ...]
    shares: FactorShares
    meanings: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="factor -> what is known of its step"
    )


class DifferenceShares(Value):
    """The whole answer."""

    fast: str
    slow: str
    settings: str
    workloads: tuple[WorkloadShares, ...]
    impossible: dict[str, str] = Field(
        default_factory=dict, description="arm that cannot be made -> why"
    )
    notes: tuple[str, ...] = Field(default=(), description="what the loads show of both sides")
    command: str = Field(default="", description="continues, or adds runs with a larger --runs")


def told(found: DifferenceShares) -> Iterator[str]:
    """The answer first, then what it rests on."""
    for each in found.workloads:
        yield _answer(found, each)
    for each in found.workloads:
        yield f"\n{each.workload}: {each.title}"
        yield from _shares(each)
        yield from _arms(each)
    if found.impossible:
        yield "\ncannot be made:"
        yield from (f"  {name}: {why}" for name, why in found.impossible.items())
    if found.notes:
        yield "\nwhat the workloads show together:"
        yield from (f"  {note}" for note in found.notes)
    yield f"\nagain, from the stored runs: {found.command}"


def _answer(found: DifferenceShares, each: WorkloadShares) -> str:
    """One sentence."""
    shares = each.shares
    begin = (
        f"{each.workload}: {found.slow} costs {times(shares.total.value)} the CPU time of "
        f"{found.fast} ({_range(shares.total)})"
    )
    if not shares.differs:
        return f"{begin}: no difference to explain"
    if not shares.shares:
        return f"{begin}; none of it can be separated, as no mixed arm can be made"
    if len(each.factors) == 1:
        return f"{begin}; nothing can be separated: all of it is {each.factors[SERVER]}"
    parts = (f"{each.factors[one.factor]} {_factor(one.ratio.value)}" for one in shares.shares)
    order = "" if shares.whole else " (in one order only)"
    return f"{begin}: {', '.join(parts)}{order}"


def _shares(each: WorkloadShares) -> Iterator[str]:
    shares, width = each.shares, max(map(len, [*each.factors.values(), TOGETHER])) + 2
    lines = [
        (each.factors[one.factor], one.ratio, f"{one.percent:6.0f} % of the difference")
        for one in shares.shares
    ]
    lines += [(TOGETHER, one.ratio, "") for one in shares.interactions]
    for title, ratio, part in lines:
        yield f"  {title:{width}}{_spelled(ratio):27}{part}{_unseen(ratio)}".rstrip()
    if shares.differs:
        yield f"  {'unexplained':{width}}{_factor(shares.unexplained)}"
    if shares.shares and not shares.whole:
        orders = " or ".join(", then ".join(order) for order in shares.orders)
        yield f"  Only in the order {orders}: the later share has what both do only together."
    for factor, texts in each.meanings.items():
        yield from (f"  {factor}: {text}" for text in texts)


def _arms(each: WorkloadShares) -> Iterator[str]:
    """A table of what was measured."""
    parts = [factor for factor in each.factors if factor != SERVER]
    heads = [SERVER, *parts, "CPU per operation", "runs", "a run varies by"]
    rows = [[*_cells(arm, parts)] for arm in each.arms]
    widths = [max(map(len, column)) + 2 for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        yield (
            "  "
            + "".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _cells(arm: ArmFigures, parts: list[str]) -> Iterator[str]:
    yield arm.server
    yield from (arm.parts[part] for part in parts)
    yield milliseconds(arm.cpu_us_per_op) if arm.cpu_us_per_op is not None else "-"
    yield str(arm.runs)
    yield percent(arm.varies_pct)


def _unseen(ratio: Estimate) -> str:
    low, high = ratio.interval or (0.0, 1.0)
    return "  (may be none)" if low <= 1 <= high else ""


def _spelled(ratio: Estimate) -> str:
    return f"{_factor(ratio.value)} ({_range(ratio)})"


def _range(ratio: Estimate) -> str:
    low, high = ratio.interval or (ratio.value, ratio.value)
    return f"{significant(low)} to {significant(high)}"


def _factor(value: float) -> str:
    return f"×{significant(value)}"  # noqa: RUF001 - as it is meant
