"""Whether patched packages are slower: the comparison of both sides under each workload.

CPU time decides. What it leaves open after a first look is told by the count of instructions,
unless the times contradict that; else by further runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from dsbisect.compare_study import ComparePlay, Judged, median, usable
from dsbisect.compared_packages import TwoPackages
from dsbisect.comparison_question import STOCK, Compare
from dsbisect.leak_step import leak_step
from dsbisect.study_lab import Lab, Scene, ThisMachine
from dsbuilds.drivers.package_build import repository_of
from dsharness.machine.host import machine_id
from dsharness.measure.metrics import (
    COST,
    CPU,
    FAULTS,
    INSTRUCTIONS,
    MEMORY,
    MEMORY_AT_REST,
    RATE,
)
from dsharness.model import Sample, Workload
from dslab.watcher import Watcher
from dsresults.compare.compared_loads import ComparedLoad, Word, factor_text, told_of
from dsresults.number_text import milliseconds, significant, whole
from dsresults.store import Store
from dsvalidate.check import Check, Figure, Gate, Status
from dsvalidate.step import MEASURED, Step
from dsvalidate.suite import GIVE_MORE, SpeedQuestion

DECIDING = (COST.name, RATE.name)
FIRST_RUNS = 24  # of both sides
MOST_ASKED_PCT = 100.0  # a larger difference is seen as soon
# How far a ratio of two counts strays: 0.3 % for PBKDF2, where almost all instructions are the
# hash's; more where an operation is short.
STRAY = 0.005
FEW_INSTRUCTIONS, FEW_STRAY = 10_000_000, 0.03
RATE_MARGINS = 5  # the rate warns beyond so many
MORE_RESIDENT = 0.1  # of stock's
MORE_FAULTS = 1.0  # an operation
SECONDS = 200.0


def speed_steps(question: SpeedQuestion, *, store: Store, watcher: Watcher) -> tuple[Step, ...]:
    """List one step for each workload, and one for memory that is lost."""
    lab = ThisMachine(
        scene=scene_of(question), engine=question.tools.engine, store=store, watcher=watcher
    )
    return (
        *(workload_step(question, lab, load) for load in question.workloads),
        leak_step(question, play_of(question, lab, FIRST_RUNS)),
    )


def scene_of(question: SpeedQuestion) -> Scene:
    """Return what its comparison is played in: both sides are made."""
    return Scene(
        matrix=question.tools.matrix,
        workloads={load.named: load for load in question.workloads},
        opened={"made": TwoPackages.made(question.sides, question.settings)},
    )


def workload_step(question: SpeedQuestion, lab: Lab, load: Workload) -> Step:
    """Make a workload's step: its checks of speed and of memory come from the same runs."""
    limits = [question.margin_pct, question.max_pairs, machine_id()]
    return Step(
        gate=Gate.PERFORMS,
        name=f"speed-{load.id}",
        title=f"comparing the speed of {load.title}",
        inputs=[*limits, load.model_dump(mode="json")],
        procedures=MEASURED,
        seconds=SECONDS,
        run=partial(speed_checks, question, lab, load),
    )


def play_of(question: SpeedQuestion, lab: Lab, max_runs: int) -> ComparePlay:
    """Return the comparison of both sides, of so many runs under a load at most."""
    packages = TwoPackages.made(question.sides, question.settings)
    study = Compare(
        first=packages.row.id,
        second=STOCK,
        packages=repository_of(question.sides.build),
        settings=question.settings.id,
        margin=min(question.margin_pct, MOST_ASKED_PCT),
        max_runs=max_runs,
    )
    suite = tuple(Judged(load=load, metrics=DECIDING) for load in question.workloads)
    return ComparePlay(study=study, lab=lab, sides=packages.sides, suite=suite)


@dataclass(frozen=True, kw_only=True)
class SpeedAnswer:
    """What a comparison says of one load, for a margin."""

    compared: ComparedLoad
    samples: Sequence[Sample]
    margin_pct: float

    @classmethod
    def of(cls, question: SpeedQuestion, lab: Lab, load: Workload, max_runs: int) -> SpeedAnswer:
        """Ask the comparison."""
        play, judged = play_of(question, lab, max_runs), Judged(load=load, metrics=DECIDING)
        with play.opened((judged,)) as runs:
            compared, samples = play.told(runs, judged)
        return cls(compared=compared, samples=samples, margin_pct=question.margin_pct)

    @property
    def status(self) -> Status:
        """Inconclusive is also what is the same within more than the margin only."""
        boundary = self.compared.boundary
        match self.compared.word:
            case Word.SLOWER:
                beyond = self.compared.effect > 1 + self.margin_pct / 100
                return Status.FAILED if beyond else Status.PASSED
            case Word.FASTER:
                return Status.PASSED
            case Word.SAME if boundary and boundary.smallest_visible_pct is not None:
                seen = boundary.smallest_visible_pct <= self.margin_pct
                return Status.PASSED if seen else Status.INCONCLUSIVE
            case _:
                return Status.INCONCLUSIVE

    @property
    def text(self) -> str:
        """What is found, in words: "slower by more than 2 %, 1.03 times (1.02 to 1.04)"."""
        load, margin = self.compared, f"{self.margin_pct:g} %"
        how = {
            (Word.SLOWER, Status.FAILED): f" by more than {margin},",
            (Word.SLOWER, Status.PASSED): f" by less than {margin},",
        }.get((load.word, self.status), "")
        return f"{load.word}{how}{told_of(load, self.margin_pct)}"

    def allows(self, ratio: float) -> bool:
        """Whether a factor lies within what is left open, and within what is likely."""
        likely = self.compared.boundary.steps if self.compared.boundary else ()
        intervals = (self.compared.interval, *(step.interval for step in likely))
        return all(low <= ratio <= high for low, high in filter(None, intervals))

    def of_side(self, name: str) -> list[Sample]:
        return usable(self.samples, name)


@dataclass(frozen=True, kw_only=True)
class CountedRatio:
    """How many instructions an operation takes, of both sides."""

    stock: float
    patched: float

    @property
    def ratio(self) -> float:
        return self.patched / self.stock

    @property
    def reach(self) -> float:
        """The most that it may be: counts of two servers stray."""
        few = min(self.stock, self.patched) < FEW_INSTRUCTIONS
        return self.ratio + (FEW_STRAY if few else STRAY)

    def status(self, margin_pct: float) -> Status:
        limit = 1 + margin_pct / 100
        if self.reach < limit:
            return Status.PASSED
        return Status.FAILED if 2 * self.ratio - self.reach > limit else Status.INCONCLUSIVE


def counted(
    question: SpeedQuestion, lab: Lab, load: Workload, times: SpeedAnswer
) -> CountedRatio | None:
    """Return what the count of instructions tells, where it does and the times allow it."""
    play, metric = play_of(question, lab, FIRST_RUNS), INSTRUCTIONS.name
    with play.opened((Judged(load=load, metrics=(metric,)),)) as runs:
        names = [name for name in play.sides.names if name not in runs.failures]
        samples = runs.valid(load, names, 1) if len(names) == len(play.sides.names) else []
    stock, patched = (median(usable(samples, name), metric) for name in play.sides.names)
    if not stock or not patched:
        return None
    ratio = CountedRatio(stock=stock, patched=patched)
    tells = ratio.status(question.margin_pct) is not Status.INCONCLUSIVE
    return ratio if tells and times.allows(ratio.ratio) else None


def speed_checks(question: SpeedQuestion, lab: Lab, load: Workload) -> list[Check]:
    """Compare both sides under one workload."""
    question.alone()
    most, counts = 2 * question.max_pairs, None
    times = SpeedAnswer.of(question, lab, load, min(FIRST_RUNS, most))
    if times.status is Status.INCONCLUSIVE and not refusal(question, times):
        counts = counted(question, lab, load, times) if times.compared.runs else None
        if counts is None and most > FIRST_RUNS:
            times = SpeedAnswer.of(question, lab, load, most)
    if fault := refusal(question, times):
        return [fault]
    return [
        speed_check(question, times, counts),
        *rate_checks(times),
        *memory_checks(question, times),
    ]


def refusal(question: SpeedQuestion, times: SpeedAnswer) -> Check | None:
    """Return the check of a side without usable runs: the patch's fault, if undisturbed."""
    load = times.compared
    stock, patched = (question.sides.row.id, question.sides.patched_row.id)
    refused = load.boundary.unmeasured.keys() & {stock, patched} if load.boundary else set()
    if not refused:
        return None
    side = stock if stock in refused else patched
    runs = [sample for sample in times.samples if sample.candidate_id == side and sample.invalid]
    fault = refused == {patched} and not any(sample.disturbed for sample in runs)
    return Gate.PERFORMS.check(
        f"speed-{load.workload_id}",
        Status.FAILED if fault else Status.INCONCLUSIVE,
        f"{load.title}: no usable run of the {'stock' if side == stock else 'patched'} server: "
        + "; ".join(runs[-1].invalid if runs else ()),
        advice="read the log" if fault else GIVE_MORE,
        evidence=(runs[-1].log,) if runs and runs[-1].log else (),
    )


def speed_check(question: SpeedQuestion, times: SpeedAnswer, counts: CountedRatio | None) -> Check:
    """Say which side is slower, and what that rests on."""
    load, status, margin = times.compared, times.status, question.margin_pct
    said = f"{times.text} by CPU time in {load.runs} runs of each"
    most = (load.interval or (1.0, 1.0))[1]
    if counts:
        status, most = counts.status(margin), counts.reach
        word = "slower by more than" if status is Status.FAILED else "not slower by"
        by = f"{significant(counts.ratio)} times by the count of instructions, which decides"
        said = f"{word} {margin:g} %, {by}; {said}"
    advice = {
        Status.FAILED: "find out what costs the time: `dsbisect bisect commits` over the patch's "
        f"commits, or accept it with --margin {math.floor(100 * (most - 1)) + 1}",
        Status.INCONCLUSIVE: GIVE_MORE,
    }
    return Gate.PERFORMS.check(
        f"speed-{load.workload_id}",
        status,
        f"{load.title}: {said}",
        advice=advice.get(status, ""),
        figures=dict(_figures(question, times, counts)),
    )


def _figures(
    question: SpeedQuestion, times: SpeedAnswer, counts: CountedRatio | None
) -> Iterator[tuple[str, Figure]]:
    sides = {"stock": question.sides.row.id, "patched": question.sides.patched_row.id}
    for side, name in sides.items():
        if (cost := median(times.of_side(name), CPU.name)) is not None:
            yield f"CPU of an operation, {side}", milliseconds(cost)
        if (rate := median(times.of_side(name), RATE.name)) is not None:
            yield f"operations a second, {side}", round(rate)
    yield "runs of each", times.compared.runs
    if counts:
        yield "instructions of an operation, stock", whole(counts.stock)
        yield "instructions of an operation, patched", whole(counts.patched)


def rate_checks(times: SpeedAnswer) -> Iterator[Check]:
    """CPU time does not see locks and waiting: the rate does."""
    load, most = times.compared, 1 + RATE_MARGINS * times.margin_pct / 100
    for rate in load.also:
        if (
            times.status is Status.FAILED
            or rate.direction != "slower"
            or (rate.effect or 1) <= most
        ):
            continue
        by_rate = load.model_copy(update={"metric": rate.metric, "boundary": rate})
        yield Gate.PERFORMS.check(
            f"rate-{load.workload_id}",
            Status.WARNED,
            f"{load.title}: {factor_text(by_rate)}, though not by CPU time",
            advice="look for locks and for waiting: the server is idle while clients wait",
        )


def memory_checks(question: SpeedQuestion, times: SpeedAnswer) -> Iterator[Check]:
    """Compare what is resident, and page faults; no check where neither could be read."""
    names = question.sides.patched_row.id, question.sides.row.id
    figures: dict[str, Figure] = {}
    larger: list[str] = []
    for metric in (MEMORY_AT_REST, MEMORY, FAULTS):
        patched, stock = (median(times.of_side(name), metric.name) for name in names)
        if patched is None or stock is None:
            continue
        unit, least = metric.unit, MORE_FAULTS if metric is FAULTS else MORE_RESIDENT * stock
        for side, value in (("patched", patched), ("stock", stock)):
            figures[f"{metric.label}, {side}"] = f"{significant(value)} {unit}"
        if patched - stock > least:
            instead = f"{significant(patched)} {unit} instead of {significant(stock)}"
            larger.append(f"{metric.title} {instead}")
    if figures:
        yield Gate.PERFORMS.check(
            f"memory-{times.compared.workload_id}",
            Status.WARNED if larger else Status.PASSED,
            f"{times.compared.title}: "
            + ("; ".join(larger) or "memory and page faults are as with stock"),
            advice="see whether that is meant",
            figures=figures,
        )
