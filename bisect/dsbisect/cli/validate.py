"""`validate`: may a patched package be shipped; `validate verify` checks who says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dsbisect.cli.common_options import (
    AsJson,
    MatrixFile,
    PackageBuilder,
    SettingsId,
    SourceEdits,
    SourcePatches,
    StorePlace,
    build_spec,
    given_command,
    writable,
)
from dsbisect.program import NOT_TO_BE_SHIPPED
from dsharness.errors import ExitCode

if TYPE_CHECKING:
    from dsvalidate.attestation import Predicate

PackageDriver = Literal["deb", "rpm"]


def validate(  # noqa: PLR0913 - each is an option
    *,
    row: Annotated[str, typer.Option("--row", help="The row whose packages are to be replaced.")],
    edit: SourceEdits = None,
    patch: SourcePatches = None,
    package: Annotated[
        list[Path] | None,
        typer.Option("--package", help="A package as it is, instead of building one. Repeatable."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="An SRPM. Default: the source package of the row's distribution."),
    ] = None,
    driver: Annotated[
        PackageDriver | None, typer.Option(help="Default: deb or rpm, as the row.")
    ] = None,
    builder: PackageBuilder = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", help="The workloads to pass, by id. Default: the matrix's."),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            "--margin", metavar="PCT", min=1.0, help="Slower by less than this is not worse."
        ),
    ] = 2.0,
    max_runs: Annotated[
        int,
        typer.Option("--max-runs", min=8, help="Measure each workload in at most N pairs of runs."),
    ] = 60,
    accept_weaker: Annotated[
        bool,
        typer.Option("--accept-weaker", help="Let weaker password hashing pass, with a warning."),
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="Sign the answer with this private ed25519 key (PEM)."),
    ] = None,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            callback=writable,
            help="Folder for the answer. Default: runs/TIME-ROW in the user's data folder.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell whether a patched package may be shipped: 0 yes, 1 no, 20 not known yet.

    Builds it, upgrades to it, uses it, measures it, and says what it does to security. The folder
    gets report.html, summary.md, report.json, junit.xml, the packages, and with --key
    attestation.json. Run the same command again to resume.

    Example: dsbisect validate --row debian-13 --edit rust-rounds=10000 --accept-weaker

    Example: dsbisect validate --row debian-13 --patch fix.patch --key key.pem
    """
    from dsharness.matrix import find_row, find_settings, load_matrix
    from dsvalidate.validation import ValidateRequest, check_request, workloads_for

    checked = load_matrix(matrix)
    chosen_row = find_row(checked, row)
    spec = build_spec(chosen_row, source, driver, builder, tuple(edit or ()), tuple(patch or ()))
    builds = bool(edit or patch or source or driver or builder)
    request = ValidateRequest(
        matrix=checked,
        row=chosen_row,
        spec=spec if builds else None,
        packages=tuple(package or ()),
        workloads=workloads_for(checked, chosen_row, profile),
        settings=find_settings(checked, settings_id),
        margin_pct=margin,
        max_pairs=max_runs,
        accept_weaker=accept_weaker,
    )
    check_request(request)

    from functools import partial

    from dsbisect.cli.search_progress import ValidationProgress
    from dsbisect.speed_gate import speed_steps
    from dsharness.containers.engine_probe import detect
    from dsresults.report import default_folder
    from dsresults.store import Store
    from dsvalidate.answer_files import write_answer
    from dsvalidate.attestation import private_key
    from dsvalidate.validation import validate as run
    from dsvalidate.validation_page import answer_text

    signing = private_key(key) if key else None  # a wrong key is told now, not after the work
    engine = detect()
    with Store.open(store) as opened, ValidationProgress() as watch:
        validated = run(
            request,
            engine=engine,
            store=opened,
            listener=watch,
            command=given_command(),
            speed_steps=partial(speed_steps, store=opened, observer=watch),
        )
    validation = validated.validation
    folder = output or default_folder(f"{validation.row}-validated")
    write_answer(folder, validated, signing)
    page = folder / "report.html"
    text = validation.model_dump_json(indent=2) if as_json else f"{answer_text(validation)}\n{page}"
    typer.echo(text)
    code = {"ship": 0, "do not ship": NOT_TO_BE_SHIPPED}.get(
        validation.answer, ExitCode.INCONCLUSIVE
    )
    raise typer.Exit(code)


def verify(
    attestation: Annotated[Path, typer.Argument(help="attestation.json of a validation.")],
    packages: Annotated[list[Path], typer.Argument(help="The packages that it should be about.")],
    *,
    key: Annotated[Path, typer.Option("--key", help="The public ed25519 key (PEM) of who signed.")],
    packages_only: Annotated[
        bool,
        typer.Option("--packages-only", help="Look at no other file of the answer's folder."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that packages are those of a signed validation, and what it said.

    All packages that were validated, and the report and evidence next to the attestation.

    Example: dsbisect validate verify attestation.json packages/*.deb --key key.pub
    """
    from dsvalidate.attestation import verified

    statement = verified(attestation, key, packages, packages_only=packages_only)
    if as_json:
        typer.echo(statement.model_dump_json(indent=2, by_alias=True, exclude_none=True))
    else:
        _tell(statement.predicate, packages_only=packages_only)
    if statement.predicate.result == "FAILED":
        raise typer.Exit(NOT_TO_BE_SHIPPED)


def _tell(result: Predicate, *, packages_only: bool) -> None:
    from dsharness.plain_text import plain

    annotations = result.configuration[0].annotations or {}
    files = len(result.configuration)
    typer.echo(f"signed with this key, and about these packages: {result.result}")
    weaker = "; weaker password hashing accepted" if annotations["accept_weaker"] else ""
    lines = (
        f"validated: {annotations['change']} on {annotations['row']}, {annotations['started_at']}",
        (
            f"asked: {', '.join(annotations['workloads'])}; settings {annotations['settings']}; "
            f"slower by less than {annotations['margin_pct']} % is not worse{weaker}"
        ),
        f"files: {files} of report and evidence "
        + ("were not looked at" if packages_only else "as they were signed"),
    )
    for line in lines:
        typer.echo(f"  {plain(line)}")
    for word, names in (
        ("failed", result.failedTests),
        ("warned", result.warnedTests),
        ("passed", result.passedTests),
    ):
        if names:
            typer.echo(f"  {word}: {', '.join(names)}")
