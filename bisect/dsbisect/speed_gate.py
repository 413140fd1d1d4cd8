"""Whether patched packages are slower: the comparison of both sides under each workload.

CPU time decides. What it leaves open after a first look is told by the count of instructions,
unless the times contradict that; else by further runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from dsbisect.compare_study import ComparePlay, Judged, median, usable
from dsbisect.compared_packages import TwoPackages
from dsbisect.comparison_question import STOCK, Compare
from dsbisect.leak_step import leak_step
from dsbisect.study_lab import Lab, Scene, ThisMachine
from dsbuilds.drivers.package_build import repository_of
from dsharness.errors import CandidateError
from dsharness.machine.host import machine_id
from dsharness.measure.metrics import COST, CPU, FAULTS, INSTRUCTIONS, MEMORY, MEMORY_AT_REST, RATE
from dsharness.model import Boundary, Sample, Workload
from dslab.observer import Observer
from dsresults.compare.compared_loads import ComparedLoad, Word, factor_text, told_of
from dsresults.number_text import figure, significant
from dsresults.store import Store
from dsvalidate.check import Check, Gate, Status
from dsvalidate.step import MEASURED, Step
from dsvalidate.suite import GIVE_MORE, SpeedQuestion

# The first one decides; the others can only warn: CPU time sees no locks and no waiting.
METRICS = tuple(metric.name for metric in (COST, RATE, MEMORY_AT_REST, MEMORY, FAULTS))
FIRST_RUNS = 24  # of both sides
MOST_ASKED_PCT = 100.0  # a larger difference is seen as soon
RATE_MARGINS = 5
MORE_RESIDENT_PCT = 10.0
MORE_FAULTS = 1.0  # an operation
# How far a ratio of two counts strays: 0.3 % for PBKDF2, where almost all instructions are the
# hash's; more where an operation is short.
STRAY, FEW_STRAY, FEW_INSTRUCTIONS = 0.005, 0.03, 10_000_000
SECONDS = 200.0


def speed_steps(question: SpeedQuestion, *, store: Store, observer: Observer) -> tuple[Step, ...]:
    """List one step for each workload, and one for memory that is lost."""
    engine, scene = question.tools.engine, scene_of(question)
    lab = ThisMachine(scene=scene, engine=engine, store=store, observer=observer)
    limits = [question.margin_pct, question.max_pairs, machine_id()]
    steps = (
        Step(
            gate=Gate.PERFORMS,
            name=f"speed-{load.id}",
            title=f"comparing the speed of {load.title}",
            inputs=[*limits, load.model_dump(mode="json")],
            procedures=MEASURED,
            seconds=SECONDS,
            run=partial(speed_checks, question, lab, load),
        )
        for load in question.workloads
    )
    return (*steps, leak_step(question, play_of(question, lab, FIRST_RUNS)))


def scene_of(question: SpeedQuestion) -> Scene:
    """Return what its comparison is played in: both sides are made."""
    return Scene(
        matrix=question.tools.matrix,
        workloads={load.named: load for load in question.workloads},
        opened={"made": TwoPackages.made(question.sides, question.settings)},
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
    suite = tuple(Judged(load=load, metrics=METRICS) for load in question.workloads)
    return ComparePlay(study=study, lab=lab, sides=packages.sides, suite=suite)


@dataclass(frozen=True, kw_only=True)
class SpeedAnswer:
    """What a comparison says of one load, for a margin."""

    compared: ComparedLoad
    samples: Sequence[Sample]
    margin_pct: float

    @property
    def refused(self) -> Sequence[Sample]:
        """Return the runs of a patched side that alone gives no usable ones."""
        stock, patched = self.boundary.line if self.boundary else ("", "")
        failed = self.boundary.unmeasured if self.boundary else {}
        runs = [sample for sample in self.samples if sample.candidate_id == patched]
        return runs if patched in failed and stock not in failed else ()

    @property
    def boundary(self) -> Boundary | None:
        return self.compared.boundary

    @property
    def status(self) -> Status:
        """A disturbed run is no fault of the patch, and "the same" has to be within the margin."""
        word, boundary = self.compared.word, self.boundary
        seen = (boundary and boundary.smallest_visible_pct) or math.inf
        if word is Word.SLOWER and self.compared.effect > 1 + self.margin_pct / 100:
            return Status.FAILED
        if self.refused and not any(sample.disturbed for sample in self.refused):
            return Status.FAILED
        open_ = word is Word.UNKNOWN or (word is Word.SAME and seen > self.margin_pct)
        return Status.INCONCLUSIVE if open_ else Status.PASSED

    @property
    def text(self) -> str:
        """``slower by more than 2 %, 1.03 times (1.02 to 1.04)``."""
        load = self.compared
        if load.word is Word.UNKNOWN:
            unmeasured = self.boundary.unmeasured if self.boundary else {"": load.why}
            return "; ".join((load.word, *unmeasured.values()))
        beyond = "more" if self.status is Status.FAILED else "less"
        margin = f" by {beyond} than {self.margin_pct:g} %,"
        slower = load.word is Word.SLOWER
        return f"{load.word}{margin if slower else ''}{told_of(load, self.margin_pct)}"

    def allows(self, ratio: float) -> bool:
        """Whether a factor lies within what is left open, and within what is likely."""
        likely = self.boundary.steps if self.boundary else ()
        intervals = (self.compared.interval, *(step.interval for step in likely))
        return all(low <= ratio <= high for low, high in filter(None, intervals))


def speed_answer(question: SpeedQuestion, lab: Lab, load: Workload, max_runs: int) -> SpeedAnswer:
    """Ask the comparison of one load."""
    play, judged = play_of(question, lab, max_runs), Judged(load=load, metrics=METRICS)
    with play.opened((judged,)) as runs:
        compared, samples = play.told(runs, judged)
    return SpeedAnswer(compared=compared, samples=samples, margin_pct=question.margin_pct)


def instruction_ratio(question: SpeedQuestion, lab: Lab, load: Workload) -> tuple[float, Status]:
    """Return by what factor instructions are more, and what that says; 1 where it is unknown."""
    play, metric = play_of(question, lab, FIRST_RUNS), INSTRUCTIONS.name
    samples: Sequence[Sample] = ()
    with (
        suppress(CandidateError),  # a server that cannot be counted is no reason to refuse it
        play.opened((Judged(load=load, metrics=(metric,)),)) as runs,
    ):
        samples = () if runs.failures else runs.valid(load, play.sides.names, 1)
    stock, patched = (median(usable(samples, name), metric) for name in play.sides.names)
    if not stock or not patched:
        return 1.0, Status.INCONCLUSIVE
    ratio, limit = patched / stock, 1 + question.margin_pct / 100
    stray = STRAY if min(stock, patched) > FEW_INSTRUCTIONS else FEW_STRAY
    if ratio + stray < limit:
        return ratio, Status.PASSED
    return ratio, Status.FAILED if ratio - stray > limit else Status.INCONCLUSIVE


def speed_checks(question: SpeedQuestion, lab: Lab, load: Workload) -> list[Check]:
    """Compare both sides under one workload."""
    question.alone()
    most, count = 2 * question.max_pairs, ""
    times = speed_answer(question, lab, load, min(FIRST_RUNS, most))
    status = times.status
    if status is Status.INCONCLUSIVE and times.compared.runs:
        ratio, by_count = instruction_ratio(question, lab, load)
        if by_count is not Status.INCONCLUSIVE and times.allows(ratio):
            status = by_count
            how = "slower by more than" if status is Status.FAILED else "not slower by"
            count = f"{how} {times.margin_pct:g} %: {significant(ratio)} times the instructions; "
    if status is Status.INCONCLUSIVE and most > FIRST_RUNS:
        times = speed_answer(question, lab, load, most)
        status = times.status
    return [speed_check(times, status, count), *warning_checks(times)]


def speed_check(times: SpeedAnswer, status: Status, count: str) -> Check:
    """Say which side is slower, and what that rests on."""
    load, refused = times.compared, times.refused
    accepted = math.floor(100 * ((load.interval or (1.0, 1.0))[1] - 1)) + 1
    advice = {
        Status.FAILED: "find out what costs the time: `dsbisect bisect commits` over the patch's "
        f"commits, or accept it with --margin {accepted}",
        Status.INCONCLUSIVE: GIVE_MORE,
    }
    return Gate.PERFORMS.check(
        f"speed-{load.workload_id}",
        status,
        f"{load.title}: {count}{times.text} by CPU time in {load.runs} runs of each",
        advice="read the log" if refused and status is Status.FAILED else advice.get(status, ""),
        figures={
            f"CPU of an operation, {side}": figure(CPU, value)
            for side, value in (("stock", load.before), ("patched", load.after))
            if value is not None
        },
        details=(times.boundary.summary,) if times.boundary else (),
        evidence=[sample.log for sample in refused[-1:] if sample.log],
    )


def warning_checks(times: SpeedAnswer) -> Iterator[Check]:
    """Yield what other metrics of the same runs show."""
    for boundary in times.compared.also:
        alone = {"metric": boundary.metric, "boundary": boundary, "also": ()}
        load = times.compared.model_copy(update=alone)
        by_rate = boundary.metric == RATE.name
        most_pct = RATE_MARGINS * times.margin_pct if by_rate else MORE_RESIDENT_PCT
        more = load.slower_beyond(most_pct)
        if counts := boundary.counts:
            more = counts.after - counts.before > MORE_FAULTS
        if more and not (by_rate and times.status is Status.FAILED):
            yield Gate.PERFORMS.check(
                f"{boundary.metric}-{load.workload_id}",
                Status.WARNED,
                f"{load.title}: it {factor_text(load)}",
                advice="look for locks and for waiting: the server is idle while clients wait"
                if by_rate
                else "see whether that is meant",
            )
