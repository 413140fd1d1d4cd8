"""A difference between two rows, attributed to what can be taken from one and given to the other.

An arm is one row's server with some parts as the other row's server holds them. Nothing here knows
what a part is: the kind of server says which it has, and its explainers what they mean.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import Field

from dsbisect.difference_question import Explain
from dsbisect.mixed_arms import MixedArm, arms_of, parts_for
from dsbisect.open_campaigns import whole_turns
from dsbisect.study_lab import Lab, Scene, ThisMachine, lab_key
from dsharness.errors import PartRefusedError, UsageError
from dsharness.measure.metrics import COST, CPU, INSTRUCTIONS
from dsharness.model import Campaign, Image, Sample, Value, Workload
from dsharness.systems import SYSTEMS
from dsharness.systems.system import Part, parts_of
from dslab.candidates import system_of
from dslab.inspections import LabInspections
from dslab.lab_conditions import refuse_shares
from dslab.laboratory import Laboratory
from dslab.step_profiles import stored_pair
from dsresults.compare.comparison_table import ComparisonTable, ratios
from dsresults.compare.difference_shares import (
    SERVER,
    SERVER_TITLE,
    ArmFigures,
    ChangedSetting,
    DifferenceShares,
    ProfileFigures,
    WorkloadShares,
    changed_settings,
)
from dsresults.compare.factor_shares import State, factor_shares
from dsresults.explainers import explainers_of
from dsresults.reasons.explanation import library_changes
from dsresults.reasons.reason import CostChange, StepPlace
from dsresults.report import report_data
from dsresults.store import Store


def common_parts(study: Explain, scene: Scene) -> tuple[Part, ...]:
    """The parts that each of the two could take; UsageError where they cannot be compared."""
    if study.fast == study.slow:
        raise UsageError(
            f"FAST and SLOW are both {study.fast}: a difference lies between two rows",
            hint=f"`dsbisect doctor --noise --row {study.fast}` measures one row against itself",
        )
    fast_system, slow_system = (system_of(scene.matrix.row(name)) for name in study.names(scene))
    if fast_system is not slow_system:
        raise UsageError(
            f"two kinds of system: {study.fast} is {fast_system}, "
            f"{study.slow} is {slow_system}, and neither could take a part of the other",
            hint="choose two rows of one kind: `dsbisect list rows` has all",
        )
    return parts_of(SYSTEMS[fast_system])


def explained_loads(study: Explain, scene: Scene) -> tuple[Workload, ...]:
    """The workloads of which each is attributed by itself; UsageError where that cannot be."""
    common_parts(study, scene)
    systems = (scene.matrix.row(name).system for name in study.names(scene))
    loads = scene.chosen_workloads(study.workload, systems)
    refuse_shares(loads)
    return loads


def arms_under(study: Explain, scene: Scene, load: Workload) -> dict[State, MixedArm]:
    """Every arm that could tell something of this load."""
    parts = parts_for(load, common_parts(study, scene))
    return arms_of(study.fast, study.slow, parts)


def named_arms(study: Explain, scene: Scene) -> dict[str, MixedArm]:
    """Every arm of all loads, by its name."""
    loads = study.loads(scene)
    return {arm.name: arm for load in loads for arm in arms_under(study, scene, load).values()}


SERVERS = "servers"


class ServersSeen(Value):
    """What servers told before they were measured."""

    refused: dict[str, str] = Field(description="arm whose server cannot use what it got -> why")
    configuration: tuple[ChangedSetting, ...] = Field(description="settings that differ")


def servers_seen(study: Explain, laboratory: Laboratory) -> ServersSeen:
    """Which arms refused what they got, and how the rows are set; any other failure is raised."""
    for error in laboratory.failures.values():
        if not isinstance(error, PartRefusedError):
            raise error
    inspections = LabInspections(lab=laboratory)
    settings = (inspections.configuration(row) for row in (study.fast, study.slow))
    return ServersSeen(
        refused={name: error.message for name, error in laboratory.failures.items()},
        configuration=changed_settings(*settings),
    )


@dataclass(frozen=True, kw_only=True)
class MeasuredArms:
    """The arms of one workload that could be made, and their runs."""

    workload: Workload
    arms: Mapping[State, MixedArm]
    samples: Sequence[Sample]

    @property
    def campaign(self) -> str:
        return self.samples[0].campaign_id


def play_explain(study: Explain, lab: Lab) -> DifferenceShares:
    """Measure every arm that can be made, and attribute."""
    loads = study.loads(lab.scene)
    key = lab_key(loads[0])
    series = f"{study.fast}..{study.slow}"
    with lab.rows(study, *loads) as runs:
        servers = lab.seen(
            SERVERS, ServersSeen, lambda machine: servers_seen(study, machine.laboratory(key))
        )
        measured: list[MeasuredArms] = []
        for load in loads:
            every_arm = arms_under(study, lab.scene, load).items()
            arms = {state: arm for state, arm in every_arm if arm.name not in servers.refused}
            names = [arm.name for arm in arms.values()]
            samples = runs.whole_turns(load, names, study.runs, series)
            measured.append(MeasuredArms(workload=load, arms=arms, samples=samples))
        figures = [
            lab.seen(
                f"profiles of {measurement.workload.named}",
                ProfileFigures,
                partial(profile_figures, study, key, measurement),
            )
            if study.profile
            else ProfileFigures()
            for measurement in measured
        ]
    return _answer(study, lab, servers, measured, figures)


def profile_figures(
    study: Explain, key: str, measured: MeasuredArms, machine: ThisMachine
) -> ProfileFigures:
    """What runs of their own show of both rows: what is stored, else what this lab can tell."""
    pair = stored_pair(
        measured.campaign,
        (study.fast, study.slow),
        measured.workload,
        LabInspections(lab=machine.laboratory(key)),
        machine.store,
        machine.observer,
        metric=INSTRUCTIONS.name,
    )
    return ProfileFigures.of(pair)


def _answer(
    study: Explain,
    lab: Lab,
    servers: ServersSeen,
    measured: Sequence[MeasuredArms],
    figures: Sequence[ProfileFigures],
) -> DifferenceShares:
    campaigns = lab.store.get_all(Campaign, [measurement.campaign for measurement in measured])
    samples = [sample for measurement in measured for sample in measurement.samples]
    data = report_data(lab.scene.matrix, campaigns, samples, _images(measured, lab.store))
    tables = [section.comparison for section in data.sections]
    parts = common_parts(study, lab.scene)
    titles = {part.name: part.title for part in parts} | {SERVER: SERVER_TITLE}
    return DifferenceShares(
        fast=study.fast,
        slow=study.slow,
        settings=study.settings,
        command=study.command,
        workloads=tuple(
            _attributed(measurement, titles, tables, profiled)
            for measurement, profiled in zip(measured, figures, strict=True)
        ),
        impossible=servers.refused,
        notes=tuple(dict.fromkeys(note for table in tables for note in _notes(table))),
        configuration=servers.configuration,
    )


def _images(measured: Iterable[MeasuredArms], store: Store) -> dict[str, Image]:
    """Return the image of each arm that was measured, by the arm's name."""
    arms = {s.candidate_id: s.image_key for measurement in measured for s in measurement.samples}
    images = {image.key: image for image in store.find(Image, of=tuple(arms.values()))}
    return {
        name: images[key].model_copy(update={"candidate_id": name})
        for name, key in arms.items()
        if key in images
    }


def _attributed(
    measured: MeasuredArms,
    titles: Mapping[str, str],
    tables: Iterable[ComparisonTable],
    figures: ProfileFigures,
) -> WorkloadShares:
    arms, campaign = measured.arms, measured.campaign
    turns = whole_turns([arm.name for arm in arms.values()], measured.samples, COST)
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
            share.factor: tuple(_meaning(share.factor, arms, table, campaign, measured.samples))
            for share in shares.shares
        },
        **dict(figures),
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
