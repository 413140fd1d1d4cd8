"""`reproduce`: the matrix's default series, or what was published, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dsbisect.cli.common_options import (
    AsJson,
    Keep,
    MatrixFile,
    Relock,
    ReportFolder,
    StorePlace,
    given_command,
)
from dsbisect.cli.study_command import Circumstances, ask_here
from dsbisect.cli.told_answers import tell_answer
from dsbisect.studies import Rows
from dsharness.errors import UsageError

PUBLISHED = "published"


def reproduce(  # noqa: PLR0913 - each is an option
    *,
    claims: Annotated[
        bool, typer.Option("--claims", help="Test published claims, each with its own experiment.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="ID",
            help="Repeatable: only this claim. Default: all.",
            show_default=False,
        ),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option(
            "--repo",
            help="The product's repository: `culprit` searches its commits.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            "--rows",
            help="`published`: also try the published rows, and say which cannot be had.",
            show_default=False,
        ),
    ] = None,
    matrix: MatrixFile = None,
    store: StorePlace = None,
    output: ReportFolder = None,
    relock: Relock = False,
    keep: Keep = False,
    as_json: AsJson = False,
) -> None:
    """Build, measure and report the matrix's default series, or test published claims.

    With --claims each claim has an experiment and an answer; stored runs count.

    Example: dsbisect reproduce --output /tmp/report

    Example: dsbisect reproduce --claims --only rate-3x --only port-limit
    """
    if claims:
        _claims(
            tuple(only or ()),
            repo=repo,
            rows=rows,
            matrix=matrix,
            store=store,
            output=output,
            relock=relock,
            keep=keep,
            as_json=as_json,
        )
        return
    for option, given in (("--only", only), ("--repo", repo), ("--rows", rows), ("--keep", keep)):
        if given:
            raise UsageError(
                f"{option} belongs to --claims", hint=f"dsbisect reproduce --claims {option} ..."
            )
    _series(matrix=matrix, store=store, output=output, relock=relock, as_json=as_json)


def _series(
    *, matrix: Path | None, store: str | None, output: Path | None, relock: bool, as_json: bool
) -> None:
    from dsbisect.study_lab import Scene
    from dsharness.matrix import load_matrix

    scene = Scene(matrix=load_matrix(matrix))
    defaults = scene.matrix.defaults
    study = Rows(series=defaults.series, workload=defaults.workloads, settings=defaults.settings)
    scene.refuse_impossible(study)
    around = Circumstances(store=store, output=output, relock=relock, as_json=as_json)
    ask_here(study, scene, around)


def _claims(  # noqa: PLR0913 - as given
    only: tuple[str, ...],
    *,
    repo: str | None,
    rows: str | None,
    matrix: Path | None,
    store: str | None,
    output: Path | None,
    relock: bool,
    keep: bool,
    as_json: bool,
) -> None:
    from dsbisect.claims.claims_lab import ClaimsLab
    from dsbisect.claims.claims_study import ClaimsRequest, ClaimsStudy
    from dsbisect.cli.claims_progress import ClaimsProgress
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import load_matrix
    from dsharness.product_folder import main_system
    from dsharness.products.catalog import product_of_system
    from dsharness.products.published_claims import published_claims
    from dsresults.page.page_files import write_answer
    from dsresults.report.report_source import default_folder
    from dsresults.store import Store

    if rows not in {None, PUBLISHED}:
        raise UsageError(f"--rows {rows}: no such rows", hint=f"it takes one word: {PUBLISHED}")
    checked = load_matrix(matrix)
    product = product_of_system(main_system())
    request = ClaimsRequest(
        product=product,
        known=published_claims(product),
        only=only,
        published_rows=rows == PUBLISHED,
    )
    request.claims  # noqa: B018 - an unknown id is reported before anything is started
    engine = detect()
    with Store.open(store) as opened, ClaimsProgress() as watch:
        lab = ClaimsLab(
            matrix=checked,
            engine=engine,
            store=opened,
            observer=watch,
            command=given_command(),
            repository=repo,
            relock=relock,
            keep=keep,
        )
        found = ClaimsStudy(request=request, lab=lab).answer()
    page = write_answer(output or default_folder("claims"), "claims", found)
    tell_answer(found, page, as_json=as_json)
