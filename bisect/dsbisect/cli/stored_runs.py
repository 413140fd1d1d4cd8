"""`show history`: what the store knows of a candidate."""

from __future__ import annotations

from typing import Annotated

import typer

from dsbisect.cli.common_options import AsJson, StorePlace
from dsharness.errors import UsageError
from dsharness.plain_text import plain

SHORT = 12  # digits by which a commit is called


def history(
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="A row, or a commit.")],
    *,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Show all that was ever measured of a candidate: runs, workloads, metrics, machines.

    Example: dsbisect show history debian-13 --json
    """
    from dsharness.yaml_files.problems import suggestion
    from dsresults.compare.candidate_history import candidate_history, history_text
    from dsresults.store import Store

    with Store.open(store, create=False) as opened:
        histories = (
            candidate_history(
                name, opened.samples(candidate_id=name), opened.campaigns_without(name)
            )
            for name in (candidate, candidate[:SHORT])
        )
        found = next((history for history in histories if not history.empty), None)
        if found is None:
            boundaries = (campaign.boundary for campaign in opened.campaigns())
            names_known = {name for boundary in boundaries if boundary for name in boundary.line}
            raise UsageError(
                f"nothing was ever measured of {candidate!r} in {opened}."
                f"{suggestion(candidate, names_known)}",
                hint="`dsbisect show record CAMPAIGN` lists candidates",
            )
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        typer.echo("\n".join(map(plain, history_text(found))))
