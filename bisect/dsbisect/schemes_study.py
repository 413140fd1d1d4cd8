"""Every password scheme that rows offer, each measured as settings of its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsbisect.rows_study import MeasureRequest, measure_row
from dsharness.containers.engine import Engine
from dsharness.errors import CandidateError, InconclusiveError, UsageError
from dsharness.machine.host import available_cpus, share_cpus
from dsharness.measure.golden_state import Golden
from dsharness.measure.instance import serve
from dsharness.model import DirectoryContent, LdcltWorkload, Matrix, Row, Settings
from dsharness.products import notable_versions, product_of
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.system import OfferedScheme, PasswordKeeper
from dsharness.yaml_files.problems import suggestion
from dslab.candidates import RowSupply
from dslab.watcher import Watcher
from dsresults.explainers.scheme_costs import (
    MeasuredScheme,
    SchemeCost,
    default_scheme,
    scheme_costs,
    unserved,
    users_for,
)
from dsresults.store import Store

LOOKED_AT = DirectoryContent(number=2)  # of a server that only tells what it offers
DEFAULT = Settings(id="default", title="what the package sets")


@dataclass(frozen=True, kw_only=True)
class SchemesRequest:
    """Whose schemes to measure, how often, and with how many users at least."""

    matrix: Matrix
    rows: tuple[Row, ...]
    runs: int
    users: int
    schemes: tuple[str, ...] = ()  # none: all that are offered
    relock: bool = False
    keep: bool = False

    def __post_init__(self) -> None:
        """Refuse rows that store no passwords."""
        for row in self.rows:
            if not isinstance(SYSTEMS[row.system], PasswordKeeper):
                fit = (name for name, other in SYSTEMS.items() if isinstance(other, PasswordKeeper))
                raise UsageError(
                    f"{row.id!r} ({row.system}) stores no passwords",
                    hint=f"choose rows with a `system` of {', '.join(fit)}",
                )


@dataclass(frozen=True, kw_only=True)
class RowSchemes:
    """What a row's server offers, and what it has by itself; or why it could not be asked."""

    row: Row
    golden: Golden | None = None
    offered: tuple[OfferedScheme, ...] = ()
    failed: str = ""

    def chosen(self, names: Sequence[str]) -> tuple[OfferedScheme, ...]:
        return tuple(each for each in self.offered if not names or each.name in names)

    def workload(self, scheme: OfferedScheme, fewest: int) -> LdcltWorkload:
        """Binds at random, of many more users than a library keeps results for."""
        versions = notable_versions(self.golden.image) if self.golden else {}
        users = users_for(product_of(self.row), scheme.name, versions, fewest)
        return LdcltWorkload(
            id=f"schemes-{users}", title=f"binds of {users} users at random",
            users=users, distinct_users=users, duration_s=1.5,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SchemesStudy:
    """Asks each row's server what it offers, then measures it; what is stored is taken as it is."""

    request: SchemesRequest
    engine: Engine
    store: Store
    watcher: Watcher

    def lines(self) -> list[SchemeCost]:
        """Return the tables of all rows, one after the other."""
        rows = [self._asked(row) for row in self.request.rows]
        self._refuse_unknown(rows)
        names = self.request.schemes
        plan = [
            f"{each.row.id} {scheme.name}"
            for each in rows
            for scheme in each.chosen(names)
            if not scheme.refused
        ]
        self.watcher.begin(plan, len(plan))
        lines: list[SchemeCost] = []
        for each in rows:
            if each.golden is None:
                lines.append(unserved(each.row.id, each.failed))
                continue
            measured = [self._measured(each, scheme) for scheme in each.chosen(names)]
            default = default_scheme(each.golden.facts)
            lines += scheme_costs(each.row.id, product_of(each.row), measured, default)
        return lines

    def _asked(self, row: Row) -> RowSchemes:
        """Serve the row as its package sets it; a row that cannot be served is no finding."""

        def show(what: str) -> None:
            self.watcher.preparing(row.id, what)

        asked, engine = self.request, self.engine
        supply = RowSupply(engine=engine, matrix=asked.matrix, relock=asked.relock)
        cpus = share_cpus(available_cpus(), can_pin=engine.pins_cpus)
        try:
            seed = Seed(content=LOOKED_AT, settings=DEFAULT)
            golden = supply.golden(row.id, seed, show, keep=asked.keep)
            show("asking the server which password schemes it offers")
            with serve(engine, golden, cpus, keep=asked.keep) as instance, instance.needed():
                keeper = instance.system
                found = (
                    keeper.schemes(instance.container, instance.endpoint)
                    if isinstance(keeper, PasswordKeeper)
                    else ()
                )
        except CandidateError as error:
            self.watcher.failed(row.id, str(error))
            return RowSchemes(row=row, failed=str(error))
        return RowSchemes(row=row, golden=golden, offered=found)

    def _refuse_unknown(self, rows: Sequence[RowSchemes]) -> None:
        """UsageError for a name that none of the servers offers."""
        asked = [each for each in rows if each.golden]
        known = {scheme.name for each in asked for scheme in each.offered}
        for name in self.request.schemes if asked else ():
            if name not in known:
                raise UsageError(
                    f"{', '.join(each.row.id for each in asked)}: no scheme {name!r} is offered."
                    f"{suggestion(name, known)}",
                    hint=f"these are: {', '.join(sorted(known))}",
                )

    def _measured(self, of: RowSchemes, scheme: OfferedScheme) -> MeasuredScheme:
        """The runs of a scheme that stores passwords; a failure is no finding about it."""
        if scheme.refused:
            return MeasuredScheme(offered=scheme)
        asked, workload = self.request, of.workload(scheme, self.request.users)
        self.watcher.preparing(of.row.id, f"scheme {scheme.name}, {workload.title}")
        row = MeasureRequest(
            matrix=asked.matrix,
            workloads=(workload,),
            settings=Settings(
                id=f"scheme-{scheme.name.lower()}",
                title=f"passwords are stored as {scheme.name}",
                options=dict(scheme.options),
            ),
            row=of.row.id,
            samples=asked.runs,
            reuse=True,
            relock=asked.relock,
            keep=asked.keep,
        )
        try:
            taken = tuple(measure_row(row, self.engine, self.store, self.watcher))
        except (CandidateError, InconclusiveError) as error:
            return MeasuredScheme(offered=scheme, failed=str(error))
        invalid = "; ".join(why for sample in taken for why in sample.invalid)
        return MeasuredScheme(offered=scheme, users=workload.users, samples=taken, failed=invalid)
