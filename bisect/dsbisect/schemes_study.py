"""Every password scheme that rows offer, each measured as settings of its row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import Field

from dsbisect.studies import Schemes
from dsbisect.study_lab import Lab, LabPart, Scene, ThisMachine
from dsharness.errors import CandidateError, InconclusiveError, UsageError
from dsharness.machine.host import available_cpus, share_cpus
from dsharness.measure.instance import serve
from dsharness.model import DirectoryContent, Facts, LdcltWorkload, Settings, Value, Workload
from dsharness.products import notable_versions, product_of
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.system import OfferedScheme, PasswordKeeper
from dsharness.yaml_files.problems import suggestion
from dslab.candidates import RowSupply
from dsresults.explainers.scheme_costs import (
    MeasuredScheme,
    SchemeCost,
    SchemeTable,
    default_scheme,
    scheme_costs,
    unserved,
    users_for,
)

LOOKED_AT = DirectoryContent(number=2)  # of a server that only tells what it offers
DEFAULT = Settings(id="default", title="what the package sets")


class OfferedSchemes(Value):
    """What a row's server offers, and what it has by itself; or why it could not be asked."""

    offered: tuple[OfferedScheme, ...] = ()
    facts: Facts = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    failed: str = ""

    def chosen(self, names: Sequence[str]) -> tuple[OfferedScheme, ...]:
        return tuple(scheme for scheme in self.offered if not names or scheme.name in names)


def refuse_passwordless(study: Schemes, scene: Scene) -> tuple[Workload, ...]:
    """No load is known before a server is asked; UsageError for rows that store no passwords."""
    for name in study.names(scene):
        system = scene.matrix.row(name).system
        if not isinstance(SYSTEMS[system], PasswordKeeper):
            fit = (kind for kind, system in SYSTEMS.items() if isinstance(system, PasswordKeeper))
            raise UsageError(
                f"{name!r} ({system}) stores no passwords",
                hint=f"choose rows with a `system` of {', '.join(fit)}",
            )
    return ()


@dataclass(frozen=True, kw_only=True)
class SchemesPlay:
    """Asks each row's server what it offers, then measures it."""

    study: Schemes
    lab: Lab

    def table(self) -> SchemeTable:
        """The tables of all rows, one after the other."""
        rows = {
            row: self.lab.seen(row, OfferedSchemes, partial(offered_by, row))
            for row in self.study.names(self.lab.scene)
        }
        self._refuse_unknown(rows)
        self.lab.announce(
            [
                f"{row} {scheme.name}"
                for row, offer in rows.items()
                for scheme in offer.chosen(self.study.schemes)
                if not scheme.refused
            ]
        )
        return SchemeTable(lines=tuple(self._lines(rows)))

    def _lines(self, rows: dict[str, OfferedSchemes]) -> Iterator[SchemeCost]:
        for row, offer in rows.items():
            if offer.failed:
                yield unserved(row, offer.failed)
                continue
            schemes = offer.chosen(self.study.schemes)
            measured = [self._measured(row, offer, scheme) for scheme in schemes]
            product = product_of(self.lab.scene.matrix.row(row))
            yield from scheme_costs(row, product, measured, default_scheme(offer.facts))

    def _refuse_unknown(self, rows: dict[str, OfferedSchemes]) -> None:
        """UsageError for a name that none of the servers offers."""
        usable_rows = {row: offer for row, offer in rows.items() if not offer.failed}
        scheme_names = {scheme.name for offer in usable_rows.values() for scheme in offer.offered}
        for name in self.study.schemes if usable_rows else ():
            if name not in scheme_names:
                raise UsageError(
                    f"{', '.join(usable_rows)}: no scheme {name!r} is offered."
                    f"{suggestion(name, scheme_names)}",
                    hint=f"these are: {', '.join(sorted(scheme_names))}",
                )

    def _measured(self, row: str, offer: OfferedSchemes, scheme: OfferedScheme) -> MeasuredScheme:
        """The runs of a scheme that stores passwords; a failure is no finding about it."""
        if scheme.refused:
            return MeasuredScheme(offered=scheme)
        product = product_of(self.lab.scene.matrix.row(row))
        # many more users than a library keeps results for
        users = users_for(product, scheme.name, offer.versions, self.study.users)
        workload = LdcltWorkload(
            id=f"schemes-{users}",
            title=f"binds of {users} users at random",
            users=users,
            distinct_users=users,
            duration_s=1.5,
        )
        settings = Settings(
            id=f"scheme-{scheme.name.lower()}",
            title=f"passwords are stored as {scheme.name}",
            options=dict(scheme.options),
        )
        part = LabPart(rows=(row,), settings=settings)
        try:
            with self.lab.rows(self.study, workload, part=part) as runs:
                runs.refuse_failed()
                samples = tuple(runs.valid(workload, (row,), self.study.runs))
        except (CandidateError, InconclusiveError) as error:
            return MeasuredScheme(offered=scheme, failed=str(error))
        valid = [sample for sample in samples if sample.valid]
        why = "" if valid else "; ".join(why for sample in samples for why in sample.invalid)
        return MeasuredScheme(
            offered=scheme, users=users, samples=samples, failed=why or ("" if valid else "no run")
        )


def offered_by(row: str, machine: ThisMachine) -> OfferedSchemes:
    """Serve the row as its package sets it, and ask; a row that cannot be served is no finding."""

    def show(news: str) -> None:
        machine.observer.preparing(row, news)

    engine, matrix = machine.engine, machine.scene.matrix
    supply = RowSupply(engine=engine, matrix=matrix, relock=machine.relock)
    cpus = share_cpus(available_cpus(), can_pin=engine.pins_cpus)
    try:
        golden = supply.golden(
            row, Seed(content=LOOKED_AT, settings=DEFAULT), show, keep=machine.keep
        )
        show("asking the server which password schemes it offers")
        with serve(engine, golden, cpus, keep=machine.keep) as instance, instance.needed():
            keeper = instance.system
            assert isinstance(keeper, PasswordKeeper)  # noqa: S101 - asked before
            offered = keeper.schemes(instance.container, instance.endpoint)
    except CandidateError as error:
        machine.observer.failed(row, str(error))
        return OfferedSchemes(failed=str(error))
    return OfferedSchemes(
        offered=offered, facts=golden.facts, versions=notable_versions(golden.image)
    )
