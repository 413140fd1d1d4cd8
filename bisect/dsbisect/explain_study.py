"""A difference between two rows, attributed to what can be taken from one and given to the other.

An arm is one row's server with some parts as the other row's server holds them. Nothing here knows
what a part is: the kind of server says which it has, and its explainers what they mean.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dsbisect.mixed_arms import MixedArm, MixedSupply, arms_of, parts_for
from dsbisect.rows_study import RowsAsked, row_lab
from dsharness.containers.engine import Engine
from dsharness.errors import InconclusiveError, PartRefusedError, UsageError
from dsharness.measure.metrics import COST, CPU, INSTRUCTIONS
from dsharness.measure.profiler import check_profiler
from dsharness.model import Campaign, Finding, Image, Sample, Workload
from dsharness.systems import SYSTEMS
from dsharness.systems.system import Part, parts_of
from dslab.campaign_loop import CampaignOrder
from dslab.candidates import system_of
from dslab.laboratory import Laboratory
from dslab.step_profiles import stored_pair
from dslab.watcher import Watcher
from dslab.witnesses import LabWitnesses
from dsresults.compare.comparison_table import ComparisonTable, ratios
from dsresults.compare.difference_shares import (
    SERVER,
    SERVER_TITLE,
    ArmFigures,
    DifferenceShares,
    WorkloadShares,
    changed_settings,
)
from dsresults.compare.factor_shares import State, factor_shares
from dsresults.explainers import explainers_of
from dsresults.profile_pair import ProfilePair, count_changes, function_changes, stored_profiles
from dsresults.reasons.explanation import library_changes
from dsresults.reasons.reason import CostChange, StepPlace
from dsresults.report import report_data
from dsresults.store import Store
from dsresults.times_table import times_rows
from dssearch.planner import Rounds
from dssearch.question import History, Question


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(RowsAsked):
    """Which two rows differ, and how many runs of each arm shall count."""

    fast: str
    slow: str
    runs: int
    command: str = ""  # that asked


def common_parts(request: ExplainRequest) -> tuple[Part, ...]:
    """The parts that each of the two could take; UsageError where they cannot be compared."""
    if request.fast == request.slow:
        raise UsageError(
            f"FAST and SLOW are both {request.fast}: a difference lies between two rows",
            hint=f"`dsbisect doctor --noise --row {request.fast}` measures one row against itself",
        )
    fast_system, slow_system = (
        system_of(request.matrix.row(name)) for name in (request.fast, request.slow)
    )
    if fast_system is not slow_system:
        raise UsageError(
            f"two kinds of system: {request.fast} is {fast_system}, "
            f"{request.slow} is {slow_system}, and neither could take a part of the other",
            hint="choose two rows of one kind: `dsbisect list rows` has all",
        )
    return parts_of(SYSTEMS[fast_system])


@dataclass(frozen=True, kw_only=True)
class MeasuredArms:
    """The arms of one workload that could be made, and the campaign that measured them."""

    workload: Workload
    arms: Mapping[State, MixedArm]
    campaign: Campaign


def explain_difference(
    request: ExplainRequest, engine: Engine, store: Store, watcher: Watcher
) -> DifferenceShares:
    """Measure every arm that can be made, and attribute; what was interrupted continues."""
    parts = common_parts(request)
    if request.profile:
        check_profiler()
    arms_by_workload = [
        (workload, arms_of(request.fast, request.slow, parts_for(workload, parts)))
        for workload in request.workloads
    ]
    named = {arm.name: arm for _, arms in arms_by_workload for arm in arms.values()}
    supply = MixedSupply(engine=engine, matrix=request.matrix, relock=request.relock, arms=named)
    rows = (request.fast, request.slow)
    with row_lab(
        request,
        rows,
        len(arms_by_workload),
        engine=engine,
        store=store,
        watcher=watcher,
        duet=len(named) == len(rows),
        supply=supply,
    ) as lab:
        impossible = _impossible(lab)
        measured = []
        for workload, arms in arms_by_workload:
            possible = {state: arm for state, arm in arms.items() if arm.name not in impossible}
            campaign = _campaign(request, workload, possible, lab, store, watcher)
            measured.append(MeasuredArms(workload=workload, arms=possible, campaign=campaign))
        images = {name: golden.image for name, golden in lab.goldens.items()}
        witnesses = LabWitnesses(lab=lab)
        settings = changed_settings(*(witnesses.configuration(row) for row in rows))
        pairs = _profiled(request, measured, witnesses, store, watcher)
    difference = _answer(request, parts, measured, impossible, images, store)
    shown_pairs = {pair.campaign_id: _shown(pair) for pair in pairs}
    difference = difference.model_copy(
        update={
            "configuration": settings,
            "workloads": tuple(
                workload.model_copy(update=shown_pairs.get(workload.campaign, {}))
                for workload in difference.workloads
            ),
        }
    )
    _keep(difference, store)
    return difference


def _profiled(
    request: ExplainRequest,
    measured: Sequence[MeasuredArms],
    witnesses: LabWitnesses,
    store: Store,
    watcher: Watcher,
) -> tuple[ProfilePair, ...]:
    """Both rows under each workload: what is known, else what this lab can tell."""
    if not request.profile:
        return stored_profiles(store, (measurement.campaign.id for measurement in measured))
    rows = (request.fast, request.slow)
    return tuple(
        stored_pair(
            measurement.campaign.id,
            rows,
            measurement.workload,
            witnesses,
            store,
            watcher,
            metric=INSTRUCTIONS.name,
        )
        for measurement in measured
    )


def _shown(pair: ProfilePair) -> dict[str, object]:
    """What of a pair stands in the answer."""
    notes = (pair.note, pair.times_note, pair.counts_note)
    return {
        "functions": function_changes(pair),
        "times": times_rows(pair.times),
        "instructions": count_changes(pair),
        "unprofiled": tuple(note for note in notes if note),
    }


def _impossible(lab: Laboratory) -> dict[str, str]:
    """Arms whose server cannot use what it was given; any other failure is raised."""
    for error in lab.failures.values():
        if not isinstance(error, PartRefusedError):
            raise error
    return {name: error.message for name, error in lab.failures.items()}


def _answer(
    request: ExplainRequest,
    parts: Iterable[Part],
    measured: Sequence[MeasuredArms],
    impossible: Mapping[str, str],
    images: Mapping[str, Image],
    store: Store,
) -> DifferenceShares:
    """From what is stored, whoever measured it."""
    campaigns = [measurement.campaign for measurement in measured]
    samples, _ = store.measured_in(campaigns)
    data = report_data(request.matrix, campaigns, samples, images)
    tables = [section.comparison for section in data.sections]
    titles = {part.name: part.title for part in parts} | {SERVER: SERVER_TITLE}
    return DifferenceShares(
        fast=request.fast,
        slow=request.slow,
        settings=request.settings.id,
        command=request.command,
        workloads=tuple(
            _attributed(measurement, titles, samples, tables) for measurement in measured
        ),
        impossible=dict(impossible),
        notes=tuple(dict.fromkeys(note for table in tables for note in _notes(table))),
    )


def _campaign(
    request: ExplainRequest,
    workload: Workload,
    arms: Mapping[State, MixedArm],
    lab: Laboratory,
    store: Store,
    watcher: Watcher,
) -> Campaign:
    """All arms in each turn, until so many turns are whole."""
    line = tuple(arm.name for arm in arms.values())
    order = CampaignOrder(
        question=Question(
            series_id=f"{request.fast}..{request.slow}",
            line=line,
            workload_id=workload.id,
            settings_id=request.settings.id,
            metric=request.metric,
        ),
        workload=workload,
        search=rounds_of(line, request.runs),
        lab=lab,
        store=store,
        kind="measure",
    )
    return order.run(watcher)


def rounds_of(line: Sequence[str], number: int) -> Rounds:
    """Turns until so many have a valid run of each arm; its campaign stays open for more."""

    def missing(history: History) -> int:
        for name, why in history.failed.items():
            if name in line:
                raise InconclusiveError(
                    f"{name} cannot be measured: {why}",
                    hint="remove the cause; the same command continues from the stored runs",
                )
        runs = [sample for name in line for sample in history.of(name)]
        return number - len(whole_turns(line, runs))

    return Rounds(missing=missing, open_end=True)


def whole_turns(line: Sequence[str], samples: Iterable[Sample]) -> list[dict[str, Sample]]:
    """The turns in which each arm has a run that counts, on one machine."""
    turns: dict[tuple[int, str], dict[str, Sample]] = {}
    for sample in samples:
        if sample.valid and COST.slowness(sample) and sample.candidate_id in line:
            turns.setdefault((sample.turn, sample.machine.id), {})[sample.candidate_id] = sample
    return [turn for turn in turns.values() if len(turn) == len(line)]


def _attributed(
    measured: MeasuredArms,
    titles: Mapping[str, str],
    samples: Iterable[Sample],
    tables: Iterable[ComparisonTable],
) -> WorkloadShares:
    arms, campaign = measured.arms, measured.campaign.id
    own_samples = [sample for sample in samples if sample.campaign_id == campaign]
    turns = whole_turns([arm.name for arm in arms.values()], own_samples)
    factors = [name for name in titles if name in max(arms, key=len)]
    shares = factor_shares(
        factors, [{state: _log(turn[arm.name]) for state, arm in arms.items()} for turn in turns]
    )
    table = next(t for t in tables if campaign in {column.campaign_id for column in t.columns})
    return WorkloadShares(
        workload=measured.workload.named,
        title=measured.workload.title,
        campaign=campaign,
        factors={factor: titles[factor] for factor in factors},
        arms=tuple(_figures(arm, factors, [t[arm.name] for t in turns]) for arm in arms.values()),
        shares=shares,
        meanings={
            share.factor: tuple(_meaning(share.factor, arms, table, campaign, own_samples))
            for share in shares.shares
        },
    )


def _log(sample: Sample) -> float:
    return math.log(COST.slowness(sample) or math.nan)


def _figures(arm: MixedArm, factors: Iterable[str], runs: Sequence[Sample]) -> ArmFigures:
    parts_taken = {part.name for part in arm.taken}
    parts = (factor for factor in factors if factor != SERVER)
    cpu = [value for run in runs if (value := run.value(CPU.name)) is not None]
    logs = [_log(run) for run in runs]
    return ArmFigures(
        name=arm.name,
        server=arm.row,
        parts={part: arm.other if part in parts_taken else arm.row for part in parts},
        runs=len(runs),
        cpu_us_per_op=statistics.median(cpu) if cpu else None,
        cost=math.exp(statistics.median(logs)),
        varies_pct=100 * statistics.stdev(logs),
    )


def _meaning(
    factor: str,
    arms: Mapping[State, MixedArm],
    table: ComparisonTable,
    campaign: str,
    samples: Sequence[Sample],
) -> Iterable[str]:
    """What the product's explainers say of the step that changes this factor alone.

    The rest is as on the slow side, if such an arm was made.
    """
    before = max((s for s in arms if s | {factor} in arms.keys() - {s}), key=len)
    names = arms[before].name, arms[before | {factor}].name
    column = next(column for column in table.columns if column.campaign_id == campaign)
    first_samples, second_samples = (
        [s for s in samples if s.candidate_id == name] for name in names
    )
    change = CostChange(
        column=column,
        before=column.observed_of(names[0]),
        after=column.observed_of(names[1]),
        ratio=ratios(COST, {names[1]: second_samples}, first_samples)[names[1]],
        boundary=True,
    )
    place = StepPlace(comparison=table, before=names[0], after=names[1], changes=(change,))
    for explainer in explainers_of({table.candidate(name).product for name in names}):
        reasons_of = explainer.of_server if factor == SERVER else explainer.of_step
        yield from (reason.text for reason in reasons_of(place))
    if factor == SERVER:
        yield from (reason.text for reason in library_changes(place))


def _notes(table: ComparisonTable) -> Iterable[str]:
    """What the loads together show of each arm."""
    for explainer in explainers_of({candidate.product for candidate in table.candidates}):
        yield from (reason.text for reason in explainer.of_loads(table))


def _keep(difference: DifferenceShares, store: Store) -> None:
    """As a finding, unless the same stored runs gave the same answer before."""
    answer = "; ".join(
        f"{workload.workload}: {workload.shares.total.value:.3g} times the cost"
        for workload in difference.workloads
    )
    finding = Finding.now(
        "explanation",
        difference,
        title=f"{difference.fast} to {difference.slow}, explained",
        answer=answer,
    )
    if all(
        stored_finding.value != finding.value for stored_finding in store.findings("explanation")
    ):
        store.put(finding)
