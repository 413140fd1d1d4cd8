"""An attributed difference, and its page: the answer first, then what it rests on. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field

from dsharness.model import Value
from dsresults.compare.comparison_table import Estimate
from dsresults.compare.factor_shares import FactorShares
from dsresults.number_text import counted, milliseconds, percent, significant, times
from dsresults.page.page import (
    Bullets,
    Card,
    Content,
    Fold,
    Listing,
    Page,
    Section,
    Table,
    code,
    or_dash,
)
from dsresults.profile_pair import FunctionChange, ProfilePair, count_changes, function_changes
from dsresults.profile_section import profile_section, times_table
from dsresults.times_table import TimesRow, times_rows

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


class ProfileFigures(Value):
    """What runs of their own show of both servers; they change no share."""

    functions: tuple[FunctionChange, ...] = Field(
        default=(), description="whose own CPU time changed most, µs per operation"
    )
    times: tuple[TimesRow, ...] = Field(default=(), description="of the server's own log")
    instructions: tuple[FunctionChange, ...] = Field(
        default=(), description="whose own instructions per operation changed most"
    )
    unprofiled: tuple[str, ...] = Field(default=(), description="what could not be seen, and why")

    @classmethod
    def of(cls, pair: ProfilePair) -> ProfileFigures:
        notes = (pair.note, pair.times_note, pair.counts_note)
        return cls(
            functions=function_changes(pair),
            times=times_rows(pair.times),
            instructions=count_changes(pair),
            unprofiled=tuple(note for note in notes if note),
        )


class WorkloadShares(ProfileFigures):
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
    configuration: tuple[ChangedSetting, ...] = Field(
        default=(), description="settings in force that differ, those that both have first"
    )
    command: str = Field(default="", description="continues, or adds runs with a larger --runs")

    @property
    def inconclusive(self) -> bool:
        """A difference that nothing explains is an answer, too."""
        return False

    def page(self, profiles: Sequence[ProfilePair] = ()) -> Page:
        """Return it; profiles say more of where time goes than what is kept of them here."""
        title = f"{self.fast} to {self.slow}, explained"
        impossible = [f"{name}: {why}" for name, why in self.impossible.items()]
        return Page(
            title=title,
            about=[f"Settings {self.settings}, compared by CPU time per operation at usual speed"],
            answer=[Card(headline=f"{sentence}.") for sentence in answers(self)],
            parts=(
                *self.notes,
                *(
                    Section(
                        title=(code(workload.workload), f": {workload.title}"),
                        parts=[
                            *_shares(workload),
                            *_arms(workload),
                            *(() if profiles else _seen(self, workload)),
                        ],
                    )
                    for workload in self.workloads
                ),
                *(
                    [Section(title="Cannot be made", parts=[Bullets(items=impossible)])]
                    if impossible
                    else []
                ),
                *([profile_section(profiles)] if profiles else []),
                *_settings(self),
                Section(title="Again, from the stored runs", parts=[Listing(lines=[self.command])]),
            ),
        )


def answers(shares: DifferenceShares) -> tuple[str, ...]:
    """One sentence for each workload."""
    return tuple(_answer(shares, load) for load in shares.workloads)


def _answer(difference: DifferenceShares, load: WorkloadShares) -> str:
    """One sentence."""
    shares = load.shares
    begin = (
        f"{load.workload}: {difference.slow} costs {times(shares.total.value)} the CPU time of "
        f"{difference.fast} ({_range(shares.total)})"
    )
    if not shares.differs:
        return f"{begin}: no difference to explain"
    if not shares.shares:
        return f"{begin}; none of it can be separated, as no mixed arm can be made"
    if len(load.factors) == 1:
        return f"{begin}; nothing can be separated: all of it is {load.factors[SERVER]}"
    parts = (
        f"{load.factors[share.factor]} {_factor(share.ratio.value)}" for share in shares.shares
    )
    order = "" if shares.whole else " (in one order only)"
    return f"{begin}: {', '.join(parts)}{order}"


def _shares(load: WorkloadShares) -> Iterator[Content]:
    shares = load.shares
    rows = [
        (
            load.factors[interaction.factor],
            f"{spelled(interaction.ratio)}{_unseen(interaction.ratio)}",
            f"{interaction.percent:.0f} %",
        )
        for interaction in shares.shares
    ]
    rows += [
        (TOGETHER, f"{spelled(interaction.ratio)}{_unseen(interaction.ratio)}", "")
        for interaction in shares.interactions
    ]
    if shares.differs:
        rows.append(("unexplained", _factor(shares.unexplained), ""))
    rows.append(("the whole difference", spelled(shares.total), ""))
    yield Table(
        kind="changes whole",
        caption="What of the difference comes from what: factors that multiply to the whole, with "
        "intervals of 95 %",
        columns=("factor", "share", "of the difference"),
        rows=rows,
    )
    if shares.shares and not shares.whole:
        orders = " or ".join(", then ".join(order) for order in shares.orders)
        yield f"Only in the order {orders}: the later share has what both do only together."
    for factor, texts in load.meanings.items():
        yield from (f"{factor}: {text}" for text in texts)


def _arms(load: WorkloadShares) -> Iterator[Content]:
    parts = [factor for factor in load.factors if factor != SERVER]
    yield Table(
        kind="changes",
        caption="What was measured: each arm is one row's server, with what the other row stores "
        "where it says so",
        columns=(SERVER, *parts, "CPU per operation", "runs", "a run varies by"),
        rows=[
            (
                arm.server,
                *(arm.parts[part] for part in parts),
                or_dash(arm.cpu_us_per_op, milliseconds),
                str(arm.runs),
                percent(arm.varies_pct),
            )
            for arm in load.arms
        ],
    )


def _seen(shares: DifferenceShares, load: WorkloadShares) -> Iterator[Content]:
    """What runs of their own showed of both servers, where they were asked for."""
    sides = (shares.fast, shares.slow)
    for title, changes in (
        ("own CPU time, µs per operation", load.functions),
        ("own instructions per operation", load.instructions),
    ):
        if changes:
            yield Table(
                kind="changes",
                columns=(title, *sides),
                rows=[
                    (code(change.function), significant(change.before), significant(change.after))
                    for change in changes
                ],
            )
    if load.times:
        yield times_table(sides, load.times)
    yield from (f"Not seen: {why}" for why in load.unprofiled)


MOST_SETTINGS = 20
MOST_LETTERS = 60


def _settings(shares: DifferenceShares) -> Iterator[Content]:
    """Those that both have; of the others how many there are, and behind a click all of them."""
    if not shares.configuration:
        return
    sides = (shares.fast, shares.slow)
    rows = [(code(setting.name), setting.fast, setting.slow) for setting in shares.configuration]
    common = [
        (code(setting.name), setting.fast[:MOST_LETTERS], setting.slow[:MOST_LETTERS])
        for setting in shares.configuration
        if setting.fast and setting.slow
    ]
    counts = {
        "more that both have": len(common[MOST_SETTINGS:]),
        f"that only {shares.fast} has": sum(not setting.slow for setting in shares.configuration),
        f"that only {shares.slow} has": sum(not setting.fast for setting in shares.configuration),
    }
    more = ", ".join(f"{number} {noun}" for noun, number in counts.items() if number)
    yield Section(
        title="Settings in force that differ",
        parts=(
            Table(kind="changes", columns=("setting", *sides), rows=common[:MOST_SETTINGS]),
            *([f"And {more}: --json has all."] if more else []),
            *([_all_settings(rows, sides)] if more else []),
        ),
    )


def _all_settings(rows: Sequence[Sequence[Content]], sides: tuple[str, str]) -> Fold:
    table = Table(
        kind="changes",
        columns=("setting", *sides),
        rows=rows,
        caption="As each server tells them; empty where it has none.",
    )
    return Fold(title=f"All {counted(len(rows), 'setting')}", parts=[table])


def changed_settings(
    fast: Mapping[str, str], slow: Mapping[str, str]
) -> tuple[ChangedSetting, ...]:
    """The settings that differ; an empty value counts as none."""
    changed = (
        ChangedSetting(name=name, fast=fast.get(name, ""), slow=slow.get(name, ""))
        for name in sorted(fast.keys() | slow.keys())
        if fast.get(name, "") != slow.get(name, "")
    )
    return tuple(sorted(changed, key=lambda setting: not (setting.fast and setting.slow)))


def _unseen(ratio: Estimate) -> str:
    low, high = ratio.interval or (0.0, 1.0)
    return ", may be none" if low <= 1 <= high else ""


def spelled(ratio: Estimate) -> str:
    """A factor with its interval."""
    return f"{_factor(ratio.value)} ({_range(ratio)})"


def _range(ratio: Estimate) -> str:
    low, high = ratio.interval or (ratio.value, ratio.value)
    return f"{significant(low)} to {significant(high)}"


def _factor(value: float) -> str:
    return f"×{significant(value)}"  # noqa: RUF001 - as it is meant
