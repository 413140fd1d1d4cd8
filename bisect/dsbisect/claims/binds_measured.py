"""Arms under binds of few and many users: rows whose passwords are stored in several ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dsbisect.claims.claims_lab import DEFAULT, ClaimsLab
from dsbisect.open_campaigns import OpenCampaigns
from dsbisect.rows_study import RowsAsked, row_lab
from dsharness.content_key import content_key
from dsharness.errors import InstanceError
from dsharness.matrix import find_settings
from dsharness.measure.golden_state import Golden
from dsharness.model import (
    DECIDER,
    DirectoryContent,
    LdcltWorkload,
    Matrix,
    Sample,
    Settings,
    UserOrder,
    Workload,
)
from dsharness.package_version import upstream
from dsharness.products import product_of
from dsharness.products.published_claims import Arm, BindsMeasured
from dsharness.progress import Progress
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.system import PasswordTrier, TakenPart, parts_of
from dslab.candidates import ArmSupply, RowSupply
from dsresults.compare.bind_lines import BindFigures, BindLine, points_of
from dsresults.explainers.scheme_costs import StoredHere

MOST_AT_ONCE = 6  # servers; of more arms, those of one row are measured together
SCHEME, STORED = "password-scheme", "stored"  # a setting, and a part of a directory
ONLY_NEEDED = 1.5  # seconds of a run

ArmSamples = dict[str, dict[int, list[Sample]]]


@dataclass(frozen=True, kw_only=True)
class StoredSupply(ArmSupply):
    """Rows, with passwords stored as each arm says."""

    arms: Mapping[str, Arm]

    def seed(self, candidate: str, common: Seed, progress: Progress) -> Seed:
        del progress
        arm = self.arms[candidate]
        if arm.settings is not None or arm.scheme is None or arm.rounds is None:
            return replace(common, settings=arm_settings(arm, self.matrix) or common.settings)
        hashed_part = self._hashed_before(
            arm, arm.scheme, arm.rounds, common.holds(DirectoryContent)
        )
        return Seed(content=common.content, settings=common.settings, taken=(hashed_part,))

    def _hashed_before(
        self, arm: Arm, scheme: str, rounds: int, content: DirectoryContent
    ) -> TakenPart:
        system = SYSTEMS[self.system(arm.name)]
        part = next((candidate for candidate in parts_of(system) if candidate.name == STORED), None)
        if part is None or not isinstance(system, PasswordTrier):
            raise InstanceError(f"{arm.row} stores no passwords that were hashed before")
        return TakenPart(
            part=part,
            giver=f"the lab: {scheme} with {rounds} rounds",
            key=content_key(["hashed before", scheme, rounds]),
            read=partial(
                system.hashed_before, scheme, rounds, min(content.number, content.passwords)
            ),
        )

    def check(self, candidate: str, golden: Golden) -> None:
        if self.arms[candidate].scheme is None:  # edits promise nothing of another scheme
            super().check(candidate, golden)


def arm_settings(arm: Arm, matrix: Matrix) -> Settings | None:
    """Return what an arm sets of its server; None where it is as its package sets it."""
    if arm.settings is not None:
        return find_settings(matrix, arm.settings)
    return scheme_settings(arm.scheme) if arm.scheme else None


def scheme_settings(scheme: str) -> Settings:
    """New passwords are stored by it; the same settings as those of `dsbisect measure schemes`."""
    return Settings(
        id=f"scheme-{scheme.lower()}",
        title=f"passwords are stored as {scheme}",
        options={SCHEME: scheme},
    )


def bind_workload(users: int, of: int) -> LdcltWorkload:
    """Binds of so many distinct users, in a directory of ``of``."""
    return LdcltWorkload(
        id=f"claims-{users}-of-{of}",
        title=f"binds of {users:,} user{'' if users == 1 else 's'} at random",
        users=of,
        distinct_users=users,
        order=UserOrder.REPEAT if users == 1 else UserOrder.RANDOM,
        duration_s=ONLY_NEEDED,
        operations=100,
    )


def measure_binds(lab: ClaimsLab, measured: BindsMeasured) -> BindFigures:
    """The figures of all arms; one that cannot be served says why, and the others count."""
    return BindFigures.merged(
        [_together(lab, arms, measured.users, measured.runs) for arms in groups_of(measured.arms)]
    )


def groups_of(arms: Sequence[Arm]) -> Iterator[tuple[Arm, ...]]:
    """Those that are measured in the same turns."""
    if len(arms) <= MOST_AT_ONCE:
        yield tuple(arms)
        return
    for row in dict.fromkeys(arm.row for arm in arms):
        yield tuple(arm for arm in arms if arm.row == row)


@dataclass(frozen=True, kw_only=True)
class ArmRuns:
    """Runs of arms that were measured next to each other, by arm and by load."""

    samples: Mapping[str, Mapping[str, list[Sample]]]
    failed: Mapping[str, str]  # why an arm could not be served
    campaigns: tuple[str, ...]


def arm_runs(
    lab: ClaimsLab,
    names: Sequence[str],
    loads: Sequence[Workload],
    runs: int,
    *,
    supply: RowSupply | None = None,
) -> ArmRuns:
    """Measure these rows, or what the supply makes of their names, under loads of one tool."""
    rows_asked = RowsAsked(
        matrix=lab.matrix,
        workloads=tuple(loads),
        settings=DEFAULT,
        relock=lab.relock,
        keep=lab.keep,
    )
    samples: dict[str, dict[str, list[Sample]]] = {name: {} for name in names}
    with row_lab(
        rows_asked,
        tuple(names),
        len(loads),
        engine=lab.engine,
        store=lab.store,
        observer=lab.observer,
        duet=False,
        supply=supply,
    ) as opened:
        runs_of_arms = OpenCampaigns(
            settings=DEFAULT.id,
            metric=DECIDER,
            kind="measure",
            lab=opened,
            store=lab.store,
            observer=lab.observer,
        )
        line = tuple(name for name in names if name not in opened.failures)
        for load in loads if line else ():
            for sample in runs_of_arms.whole_turns(load, line, runs, "claims"):
                samples[sample.candidate_id].setdefault(load.id, []).append(sample)
        failed = {name: str(error) for name, error in opened.failures.items()}
    return ArmRuns(samples=samples, failed=failed, campaigns=tuple(runs_of_arms.campaigns))


def _together(lab: ClaimsLab, arms: Sequence[Arm], users: Sequence[int], runs: int) -> BindFigures:
    arms_by_name = {arm.name: arm for arm in arms}
    loads = {number: bind_workload(number, max(users)) for number in users}
    supply = StoredSupply(
        engine=lab.engine, matrix=lab.matrix, relock=lab.relock, arms=arms_by_name
    )
    measured = arm_runs(lab, tuple(arms_by_name), tuple(loads.values()), runs, supply=supply)
    samples: ArmSamples = {
        name: {number: of_arm[load.id] for number, load in loads.items() if load.id in of_arm}
        for name, of_arm in measured.samples.items()
    }
    all_samples = [
        sample for of_arm in samples.values() for group in of_arm.values() for sample in group
    ]
    return BindFigures(
        lines=tuple(
            _line(lab, arm, samples[name], measured.failed.get(name, ""))
            for name, arm in arms_by_name.items()
        ),
        connections=next(iter(loads.values())).threads,
        server_cpus=max((_server_cpus(sample) for sample in all_samples), default=0),
        campaigns=measured.campaigns,
    )


def _line(lab: ClaimsLab, arm: Arm, samples: Mapping[int, list[Sample]], failed: str) -> BindLine:
    product = product_of(lab.matrix.row(arm.row))
    first = next((sample for group in samples.values() for sample in group if sample.valid), None)
    versions = first.bench.notable if first and first.bench else {}
    stored = StoredHere.of(product, first.facts, versions) if first else None
    line = BindLine(
        arm=arm.name,
        title=str(arm),
        row=arm.row,
        asked=arm.scheme or "",
        version=f"{product} {upstream(versions[product])}" if product in versions else "",
        stored=_stored_text(arm, stored),
        points=points_of(samples),
        failed=failed,
    )
    if stored is None:
        return line
    return line.model_copy(update=stored.model_dump(exclude={"text"}))


def _stored_text(arm: Arm, stored: StoredHere | None) -> str:
    """As read back; a value that does not spell its scheme (`crypt`) as it was asked for."""
    if stored is None:
        return ""
    return arm.scheme if arm.scheme and not stored.rounds else stored.text


def _server_cpus(sample: Sample) -> int:
    cpus = sample.machine.facts.get("server_cpus")
    return len(cpus) if isinstance(cpus, list | tuple) else 0
