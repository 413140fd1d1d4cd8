"""`build make` and `build list`: a row's server from source; measured against what it replaces."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dsbisect.cli.common_options import (
    AsJson,
    MatrixFile,
    PackageBuilder,
    Relock,
    ReportFolder,
    SettingsId,
    SourceEdits,
    SourcePatches,
    StorePlace,
    WorkloadId,
    build_spec,
    given_command,
)
from dsbisect.cli.study_command import Circumstances, ask_here
from dsbisect.cli.survey import survey
from dsbisect.studies import Rows
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsharness.model import Build, Matrix, Row

# A test compares these with the real drivers; importing those would take half a second.
Driver = Literal["tree", "deb", "rpm"]


app = typer.Typer(
    no_args_is_help=True,
    help="Build from source: make a build, list builds, survey a repository's tags.",
)
app.command("survey")(survey)


@app.command("make")
def make(  # noqa: PLR0913 - each is an option
    row: Annotated[str, typer.Argument(help="The row whose system it is built for.")],
    *,
    source: Annotated[
        str | None,
        typer.Option(
            help="PATH.src.rpm, URL or Koji NVR of an SRPM; an archive; URL@REVISION of a "
            "repository. Default: the source package of the row's distribution."
        ),
    ] = None,
    driver: Annotated[
        Driver | None, typer.Option(help="Default: deb or rpm, as the row; tree for git.")
    ] = None,
    builder: PackageBuilder = None,
    edit: SourceEdits = None,
    patch: SourcePatches = None,
    export: Annotated[
        Path | None, typer.Option(help="Copy packages, patches and provenance to this folder.")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure it against the unchanged row, and report.")
    ] = False,
    workload: WorkloadId = None,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
    output: ReportFolder = None,
    relock: Relock = False,
    as_json: AsJson = False,
) -> None:
    """Build a row's server from source with edits and patches, and install it into an image.

    Example: dsbisect build make debian-13 --edit default-scheme=PBKDF2_SHA256 --measure
    """
    from dsharness.matrix import find_row, find_settings, find_workload, load_matrix

    if measure and export is not None:
        raise UsageError(
            "--export and --measure are two commands",
            hint="give it with --export afterwards: the build that was measured is kept",
        )
    checked = load_matrix(matrix)
    onto = find_row(checked, row)
    workloads = [workload] if workload else list(checked.defaults.workloads)
    for name in workloads:
        find_workload(checked, name)
    find_settings(checked, settings_id)
    spec = build_spec(onto, source, driver, builder, tuple(edit or ()), tuple(patch or ()))
    built = onto.model_copy(update={"id": f"{onto.id}-built", "build": spec, "published": None})

    from dsbisect.study_lab import Scene
    from dsbuilds.build_request import check_rows
    from dsbuilds.built_row import BuiltRowMaker
    from dsharness.containers.engine_probe import detect
    from dsimages.image_set import build_image

    if measure:  # this checks the build, as it does with every row
        around = Circumstances(store=store, output=output, relock=relock, as_json=as_json)
        study = Rows(series=built.id, workload=tuple(workloads), settings=settings_id)
        scene = Scene(matrix=_with_both(checked, onto, built))
        scene.refuse_impossible(study)
        ask_here(study, scene, around, command=given_command())
        return
    check_rows(checked, (built,))
    if export is not None:
        _make_folder(export)
    engine = detect()
    base = build_image(
        engine, checked, onto, relock=relock, on_progress=lambda news: typer.echo(news, err=True)
    )
    making = BuiltRowMaker(
        engine=engine,
        matrix=checked,
        row=built,
        spec=spec,
        base=base,
        progress=lambda news: typer.echo(news, err=True),
    )
    new_build, image = making.make()
    if export is not None:
        _export(new_build, export)
    facts = {**_facts(new_build), "image": image.reference}
    typer.echo(json.dumps(facts, indent=2) if as_json else _text(new_build, image.reference))


@app.command("list")
def show_list(*, as_json: AsJson = False) -> None:
    """List the builds that are kept, and the source of each.

    Example: dsbisect build list --json
    """
    from dsbuilds.build_cache import all_builds

    stored_builds = all_builds()
    if as_json:
        typer.echo(json.dumps([_facts(stored_build) for stored_build in stored_builds], indent=2))
        return
    for stored_build in stored_builds:
        provenance = stored_build.provenance
        patches = (
            f", with {', '.join(p.name for p in provenance.patches)}" if provenance.patches else ""
        )
        notes = "".join(f" ({note})" for note in provenance.notes)
        typer.echo(
            f"{stored_build.key}  {provenance.driver:5} {provenance.built_at}  "
            f"{provenance.source}{patches}{notes}"
        )
    if not stored_builds:
        typer.echo(
            "no build yet: `dsbisect build make ROW` and `dsbisect bisect commits` make some"
        )


def _with_both(matrix: Matrix, row: Row, built: Row) -> Matrix:
    """The matrix with a series of two candidates: the unchanged row, and the built one."""
    from dsharness.model import Series

    series = Series(id=built.id, title=f"{row.id} unchanged, and built", rows=(row.id, built.id))
    return matrix.model_copy(
        update={"rows": (*matrix.rows, built), "series": (*matrix.series, series)}
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"--export {folder}: {error.strerror or error}", hint="name a folder that you may write to"
    )


def _export(new_build: Build, folder: Path) -> None:
    inside = Path(new_build.folder)
    try:
        for part in ("packages", "install"):
            if (inside / part).is_dir():
                shutil.copytree(inside / part, folder, symlinks=True, dirs_exist_ok=True)
        text = json.dumps(new_build.provenance.model_dump(mode="json"), indent=2)
        (folder / "provenance.json").write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritable(folder, error) from error


def _facts(stored_build: Build) -> dict[str, object]:
    return {
        "key": stored_build.key,
        "folder": stored_build.folder,
        "packages": list(stored_build.packages),
        "provenance": stored_build.provenance.model_dump(mode="json"),
    }


def _text(new_build: Build, image: str) -> str:
    where = new_build.provenance
    lines = [
        f"build {new_build.key} by {where.driver} of {where.source}",
        f"  tree {where.tree}, {where.seconds:.0f} s, log {where.log}",
        *(f"  with {patch.title} (sha256 {patch.sha256[:12]})" for patch in where.patches),
        *(f"  {new_build.folder}/packages/{name}" for name in new_build.packages),
        f"  image {image}",
    ]
    return "\n".join(lines)
