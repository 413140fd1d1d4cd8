"""Every password scheme that rows offer, each measured as settings of its row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dsbisect.rows_study import MeasureRequest, measure_row
from dsharness.containers.engine import Engine
from dsharness.errors import CandidateError, InconclusiveError, UsageError
from dsharness.machine.host import available_cpus, share_cpus
from dsharness.measure.golden_state import Golden, golden_state
from dsharness.measure.instance import Instance, serve
from dsharness.model import DirectoryContent, Image, LdcltWorkload, Matrix, Row, Settings
from dsharness.products import notable_versions, product_of
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.system import OfferedScheme, password_keeper
from dsharness.yaml_files.problems import suggestion
from dslab.candidates import RowSupply
from dslab.watcher import Watcher
from dsresults.explainers.scheme_costs import (
    UNREAD,
    MeasuredScheme,
    SchemeCost,
    default_scheme,
    scheme_costs,
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
            if password_keeper(SYSTEMS[row.system]) is None:
                raise UsageError(
                    f"{row.id!r} ({row.system}) stores no passwords",
                    hint="choose rows of 389-ds or OpenLDAP: `dsbisect matrix show` lists them",
                )


@dataclass(frozen=True, kw_only=True)
class RowSchemes:
    """What a row's server offers, and how it stores passwords by itself."""

    row: Row
    image: Image
    offered: tuple[OfferedScheme, ...]
    default: str

    @property
    def product(self) -> str:
        return product_of(self.row)

    def workload(self, scheme: OfferedScheme, fewest: int) -> LdcltWorkload:
        """Binds at random, of more users than any library keeps results for."""
        versions = notable_versions(self.image)
        users = users_for(self.product, scheme.name, versions, fewest)
        return LdcltWorkload(
            id=f"schemes-{users}", title=f"binds of {users} users at random",
            users=users, distinct_users=users, duration_s=1.5,
        )  # fmt: skip


def measure_schemes(
    request: SchemesRequest, engine: Engine, store: Store, watcher: Watcher
) -> list[SchemeCost]:
    """All tables, one after the other; what was measured before is taken from the store."""
    looked = [_look(request, row, engine, watcher) for row in request.rows]
    served = [each for each in looked if isinstance(each, RowSchemes)]
    plan = _plan(request.schemes, served)
    watcher.begin([f"{each.row.id} {s.name}" for each, s in plan if not s.refused], len(plan))
    lines = [each for each in looked if isinstance(each, SchemeCost)]
    for each in served:
        measured = [
            _measured(request, each, scheme, engine, store, watcher)
            for one, scheme in plan
            if one is each
        ]
        lines += scheme_costs(each.row.id, each.product, measured, each.default)
    return lines


def _plan(
    names: Sequence[str], served: Sequence[RowSchemes]
) -> list[tuple[RowSchemes, OfferedScheme]]:
    """Those that were asked for; UsageError for one that none of the servers offers."""
    known = {scheme.name for each in served for scheme in each.offered}
    for name in names if served else ():
        if name not in known:
            rows = ", ".join(each.row.id for each in served)
            raise UsageError(
                f"{rows}: no scheme {name!r} is offered.{suggestion(name, known)}",
                hint=f"these are: {', '.join(sorted(known))}",
            )
    return [
        (each, scheme)
        for each in served
        for scheme in each.offered
        if not names or scheme.name in names
    ]


def _look(
    request: SchemesRequest, row: Row, engine: Engine, watcher: Watcher
) -> RowSchemes | SchemeCost:
    """What the running server offers; a row that cannot be served is a line that says why."""
    try:
        with _served(request, row, engine, watcher) as instance:
            keeper, golden = password_keeper(instance.system), instance.own.golden
            watcher.preparing(row.id, "asking the server which password schemes it offers")
            with instance.needed():
                found = keeper.schemes(instance.container, instance.endpoint) if keeper else ()
    except CandidateError as error:
        watcher.failed(row.id, str(error))
        return SchemeCost(row=row.id, scheme="", stored_as=UNREAD, failed=str(error))
    return RowSchemes(
        row=row, image=golden.image, offered=found, default=default_scheme(golden.facts)
    )


@contextmanager
def _served(
    request: SchemesRequest, row: Row, engine: Engine, watcher: Watcher
) -> Iterator[Instance]:
    """The row's server as the package sets it, with hardly any users."""

    def show(what: str) -> None:
        watcher.preparing(row.id, what)

    supply = RowSupply(engine=engine, matrix=request.matrix, relock=request.relock)
    golden: Golden = golden_state(
        engine, supply.image(row.id, show), supply.system(row.id),
        Seed(content=LOOKED_AT, settings=DEFAULT), progress=show, keep=request.keep,
    )  # fmt: skip
    supply.check(row.id, golden)
    cpus = share_cpus(available_cpus(), can_pin=engine.pins_cpus)
    with serve(engine, golden, cpus, keep=request.keep) as instance:
        yield instance


def _measured(
    request: SchemesRequest,
    of: RowSchemes,
    scheme: OfferedScheme,
    engine: Engine,
    store: Store,
    watcher: Watcher,
) -> MeasuredScheme:
    """The runs of a scheme that stores passwords; a failure is no finding about it."""
    if scheme.refused:
        return MeasuredScheme(offered=scheme)
    workload = of.workload(scheme, request.users)
    watcher.preparing(of.row.id, f"scheme {scheme.name}, {workload.title}")
    asked = MeasureRequest(
        matrix=request.matrix,
        workloads=(workload,),
        settings=Settings(
            id=f"scheme-{scheme.name.lower()}",
            title=f"passwords are stored as {scheme.name}",
            options=dict(scheme.options),
        ),
        row=of.row.id,
        samples=request.runs,
        reuse=True,
        relock=request.relock,
        keep=request.keep,
    )
    try:
        taken = tuple(measure_row(asked, engine, store, watcher))
    except (CandidateError, InconclusiveError) as error:
        return MeasuredScheme(offered=scheme, failed=str(error))
    invalid = "; ".join(why for sample in taken for why in sample.invalid)
    return MeasuredScheme(offered=scheme, users=workload.users, samples=taken, failed=invalid)
