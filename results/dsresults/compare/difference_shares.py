"""An attributed difference, and its text: the answer first, then what it rests on. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field

from dsharness.model import Value
from dsresults.compare.comparison_table import Estimate
from dsresults.compare.factor_shares import FactorShares
from dsresults.number_text import milliseconds, percent, significant, times
from dsresults.profile_pair import FunctionChange
from dsresults.times_table import TimesRow, times_cells

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


class ChangedSetting(Value):
    """A setting that differs between both servers; empty where one does not have it."""

    name: str
    fast: str
    slow: str


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
    functions: tuple[FunctionChange, ...] = Field(
        default=(), description="whose own CPU time changed most, µs per operation"
    )
    times: tuple[TimesRow, ...] = Field(default=(), description="of the server's own log")
    instructions: tuple[FunctionChange, ...] = Field(
        default=(), description="whose own instructions per operation changed most"
    )
    unprofiled: tuple[str, ...] = Field(default=(), description="what could not be seen, and why")


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
    configuration: tuple[ChangedSetting, ...] = Field(
        default=(), description="settings in force that differ, those that both have first"
    )
    command: str = Field(default="", description="continues, or adds runs with a larger --runs")


def told(found: DifferenceShares) -> Iterator[str]:
    """The answer first, then what it rests on."""
    yield from answers(found)
    for each in found.workloads:
        yield f"\n{each.workload}: {each.title}"
        yield from _shares(each)
        yield from _arms(each)
        yield from _seen(found, each)
    if found.impossible:
        yield "\ncannot be made:"
        yield from (f"  {name}: {why}" for name, why in found.impossible.items())
    if found.notes:
        yield "\nwhat the workloads show together:"
        yield from (f"  {note}" for note in found.notes)
    yield from _settings(found)
    yield f"\nagain, from the stored runs: {found.command}"


def answers(found: DifferenceShares) -> tuple[str, ...]:
    """One sentence for each workload."""
    return tuple(_answer(found, each) for each in found.workloads)


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
        yield f"  {title:{width}}{spelled(ratio):27}{part}{_unseen(ratio)}".rstrip()
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
    yield from _table([heads, *([*_cells(arm, parts)] for arm in each.arms)])


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows whose columns stand under each other; the first has their names."""
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {''.join(cells).rstrip()}"


def _seen(found: DifferenceShares, each: WorkloadShares) -> Iterator[str]:
    """What runs of their own showed of both servers, where they were asked for."""
    sides = [found.fast, found.slow]
    for title, changes in (
        ("own CPU time, µs per operation", each.functions),
        ("own instructions per operation", each.instructions),
    ):
        if changes:
            rows = [
                [change.function, significant(change.before), significant(change.after)]
                for change in changes
            ]
            yield from _table([[title, *sides], *rows])
    if each.times:
        heads = [f"{side} {percentile}" for side in sides for percentile in ("p50", "p99")]
        rows = [list(times_cells(row)) for row in each.times]
        yield from _table([["by the server's log, µs", "", *heads], *rows])
    yield from (f"  not seen: {note}" for note in each.unprofiled)


MOST_SETTINGS = 20
MOST_LETTERS = 60


def _settings(found: DifferenceShares) -> Iterator[str]:
    """Those that both have; of the others, how many there are."""
    if not found.configuration:
        return
    both = [each for each in found.configuration if each.fast and each.slow]
    yield f"\nsettings in force that differ, from {found.fast} to {found.slow}:"
    for each in both[:MOST_SETTINGS]:
        yield f"  {each.name}: {each.fast[:MOST_LETTERS]} to {each.slow[:MOST_LETTERS]}"
    gone = sum(not each.slow for each in found.configuration)
    new = sum(not each.fast for each in found.configuration)
    counts = {
        "more that both have": len(both[MOST_SETTINGS:]),
        f"that only {found.fast} has": gone,
        f"that only {found.slow} has": new,
    }
    more = [f"{number} {which}" for which, number in counts.items() if number]
    if more:
        yield f"  and {', '.join(more)}: --json has all"


def changed_settings(
    fast: Mapping[str, str], slow: Mapping[str, str]
) -> tuple[ChangedSetting, ...]:
    """The settings that differ; an empty value counts as none."""
    changed = (
        ChangedSetting(name=name, fast=fast.get(name, ""), slow=slow.get(name, ""))
        for name in sorted(fast.keys() | slow.keys())
        if fast.get(name, "") != slow.get(name, "")
    )
    return tuple(sorted(changed, key=lambda each: not (each.fast and each.slow)))


def _cells(arm: ArmFigures, parts: list[str]) -> Iterator[str]:
    yield arm.server
    yield from (arm.parts[part] for part in parts)
    yield milliseconds(arm.cpu_us_per_op) if arm.cpu_us_per_op is not None else "-"
    yield str(arm.runs)
    yield percent(arm.varies_pct)


def _unseen(ratio: Estimate) -> str:
    low, high = ratio.interval or (0.0, 1.0)
    return "  (may be none)" if low <= 1 <= high else ""


def spelled(ratio: Estimate) -> str:
    """A factor with its interval."""
    return f"{_factor(ratio.value)} ({_range(ratio)})"


def _range(ratio: Estimate) -> str:
    low, high = ratio.interval or (ratio.value, ratio.value)
    return f"{significant(low)} to {significant(high)}"


def _factor(value: float) -> str:
    return f"×{significant(value)}"  # noqa: RUF001 - as it is meant
