"""`explain`: what of a difference between two rows comes from which factor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import (
    AsJson,
    Keep,
    MatrixFile,
    Relock,
    SettingsId,
    StorePlace,
    WorkloadIds,
    given_command,
)

if TYPE_CHECKING:
    from dsbisect.explain_study import ArmFigures, DifferenceShares, WorkloadShares
    from dsresults.compare.comparison_table import Estimate
    from dsresults.compare.factor_shares import FactorShares


def explain(
    fast: Annotated[str, typer.Argument(help="The row to start from.", show_default=False)],
    slow: Annotated[str, typer.Argument(help="The row that differs.", show_default=False)],
    *,
    workload: WorkloadIds = None,
    runs: Annotated[
        int, typer.Option("--runs", min=3, max=1000, help="Of each arm that shall count.")
    ] = 8,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
    relock: Relock = False,
    keep: Keep = False,
    as_json: AsJson = False,
) -> None:
    """Attribute a difference between two rows to what can be changed alone.

    Each arm is one row's server, with what the other one stores where both can hold it. All are
    measured in turn; stored runs count, and a larger --runs adds to them.

    Example: dsbisect explain debian-12 debian-13 --workload bind-one --runs 8
    """
    from dsbisect.cli.search_progress import Watch
    from dsbisect.explain_study import ExplainRequest, check_rows_differ, explain_difference
    from dsbuilds.build_request import check_rows
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_row, find_settings, find_workload, load_matrix
    from dslab.lab_conditions import default_workloads
    from dsresults.store import Store

    checked = load_matrix(matrix)
    rows = find_row(checked, fast), find_row(checked, slow)
    workloads = tuple(find_workload(checked, name) for name in workload or ())
    request = ExplainRequest(
        matrix=checked,
        workloads=workloads or default_workloads(checked, [row.system for row in rows]),
        settings=find_settings(checked, settings_id),
        fast=fast,
        slow=slow,
        runs=runs,
        relock=relock,
        keep=keep,
        command=given_command(),
    )
    check_rows_differ(request)
    check_rows(checked, rows)
    engine = detect()
    with Store.open(store) as opened, Watch() as watch:
        found = explain_difference(request, engine, opened, watch)
    typer.echo(found.model_dump_json(indent=2) if as_json else "\n".join(told(found)))


def told(found: DifferenceShares) -> Iterator[str]:
    """The answer first, then what it rests on."""
    for each in found.workloads:
        yield _answer(found, each)
    for each in found.workloads:
        yield ""
        yield from _details(each)
    if found.impossible:
        yield ""
        yield "cannot be made:"
        yield from (f"  {name}: {why}" for name, why in found.impossible.items())
    if found.notes:
        yield ""
        yield "what the workloads show together:"
        yield from (f"  {note}" for note in found.notes)
    yield ""
    yield f"again, or with more runs: {found.command}"


def _answer(found: DifferenceShares, each: WorkloadShares) -> str:
    """One sentence."""
    shares = each.shares
    begin = f"{each.workload}: {found.slow} costs {_times(shares.total)} that of {found.fast}"
    if not shares.differs:
        return f"{begin}, which may be none at all: no difference to explain"
    if len(each.factors) == 1:
        return f"{begin}; under this load nothing can be separated from {only(each)}"
    if not shares.shares:
        return f"{begin}; no mixed arm can be made, so nothing can be separated"
    named = (f"{each.factors[s.factor]} ×{_number(s.ratio.value)}" for s in shares.shares)
    return f"{begin}: {' and '.join(named)}{_order_words(shares)}"


def only(each: WorkloadShares) -> str:
    """The title of its only factor."""
    return next(iter(each.factors.values()))


def _order_words(shares: FactorShares) -> str:
    return "" if shares.whole else f" (in {shares.orders} of {shares.all_orders} orders)"
