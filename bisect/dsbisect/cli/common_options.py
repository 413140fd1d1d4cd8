"""Options that several commands share, what they ask for, and the command as the user gave it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dsharness.errors import UsageError
from dsharness.plain_text import without_credentials

if TYPE_CHECKING:
    from dsharness.model import BuildSpec, Row


def given_command() -> str:
    """The command line as a shell takes it, without passwords."""
    return without_credentials(shlex.join(["dsbisect", *sys.argv[1:]]))


MatrixFile = Annotated[
    Path | None,
    typer.Option(
        "--matrix",
        help="The matrix to use. Default: $DSBISECT_MATRIX, ./matrix.yaml, the embedded one.",
        show_default=False,
    ),
]
OutsideMatrix = Annotated[
    Path | None,
    typer.Option(
        "--matrix",
        help="The matrix to use. Default: $DSBISECT_MATRIX, the embedded one; never ./matrix.yaml, "
        "which may be the commit's.",
        show_default=False,
    ),
]


def _readable_place(place: str | None) -> str | None:
    """An address that is none is said before anything is fetched or asked."""
    if place is not None and "://" in place:
        from dsresults.store.location import locate

        locate(place)
    return place


StorePlace = Annotated[
    str | None,
    typer.Option(
        "--store",
        callback=_readable_place,
        help="Database file or SQLAlchemy URL. Default: $DSBISECT_STORE, or a file in the user's "
        "data folder.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
SettingsId = Annotated[str, typer.Option("--settings", help="Settings of the server, by id.")]
Keep = Annotated[
    bool,
    typer.Option("--keep", help="Keep the containers, to look into them; `clean` removes them."),
]
Relock = Annotated[
    bool, typer.Option("--relock", help="Accept packages that differ from matrix.lock.")
]


def writable(folder: Path | None) -> Path | None:
    """What is measured for hours must not end with a folder that cannot be written to."""
    if folder is not None:
        from dsresults.page.page_files import check_folder

        check_folder(folder)
    return folder


ReportFolder = Annotated[
    Path | None,
    typer.Option(
        "--output",
        callback=writable,
        help="Folder for the report. Default: runs/TIME-SERIES in the user's data folder.",
    ),
]
Toolchain = Annotated[
    str | None,
    typer.Option("--toolchain", help="Build everything with this toolchain of the matrix."),
]
SuiteLoads = Annotated[
    tuple[str, ...],
    typer.Option(
        "--workload",
        help="Repeatable: only this load, or a YAML file with one; W@N: with N users. Default: the "
        "matrix's suite, as far as the servers can answer it.",
    ),
]
SuiteMetric = Annotated[
    str | None,
    typer.Option(
        "--metric", help="That every --workload is judged by. Default: those of the suite."
    ),
]
Edits = Annotated[
    list[str] | None,
    typer.Option(
        "--edit", help="Change every source by a named edit, e.g. default-scheme=SSHA512."
    ),
]
Patches = Annotated[
    list[Path] | None, typer.Option("--patch", help="Apply a patch file to every source.")
]
WorkloadId = Annotated[
    str | None,
    typer.Option(
        "--workload",
        help="Workload to run, or a YAML file with one; W@N: with N users. Default: the matrix's.",
    ),
]
_WORKLOADS = typer.Option(
    "--workload",
    help="Repeatable: a workload, or a YAML file with one; W@N: with N users. Default: the "
    "matrix's that fit.",
    show_default=False,
)
WorkloadIds = Annotated[list[str] | None, _WORKLOADS]
WorkloadNames = Annotated[tuple[str, ...], _WORKLOADS]  # of a study
# A test compares it with the real edits; importing those would take half a second.
EDIT_HELP = (
    "Change the source by a named edit: "
    "default-scheme=PBKDF2_SHA256, rust-rounds=10000, c-rounds=2048"
)
SourceEdits = Annotated[list[str] | None, typer.Option("--edit", help=EDIT_HELP)]
SourcePatches = Annotated[
    list[Path] | None, typer.Option("--patch", help="Apply a patch file, -p1.")
]


DEFAULT_METRIC = "cost"  # the same as in the model: a test compares them
MetricName = Annotated[
    str,
    typer.Option("--metric", help="What decides: `dsbisect list metrics` has all."),
]
Level = Annotated[
    float, typer.Option("--certainty", help="How sure the answer must be: a probability below 1.")
]
MaxRuns = Annotated[int, typer.Option("--max-runs", help="Stop after N runs.")]
MaxBuilds = Annotated[
    int | None,
    typer.Option(
        "--max-builds", help="Build and measure at most N candidates.", show_default=False
    ),
]
MaxHours = Annotated[
    float | None,
    typer.Option("--max-hours", help="Stop after N hours.", show_default=False),
]
Smallest = Annotated[
    float | None,
    typer.Option(
        "--smallest",
        metavar="PCT",
        help='Ignore smaller differences; "no difference" waits until this one would have been '
        "seen. Default: what the noise allows, and 10 % would have been seen, in 40 runs of each "
        "end at most.",
        show_default=False,
    ),
]
Expected = Annotated[
    float | None,
    typer.Option(
        "--expected",
        metavar="PCT",
        help="A difference that was reported: stops early if it does not reproduce.",
        show_default=False,
    ),
]
Inside = Annotated[
    int,
    typer.Option(
        "--inside", metavar="K", help='Measure K places inside before saying "no difference".'
    ),
]
FindLoad = Annotated[
    bool,
    typer.Option(
        "--find-load",
        help="Compare both ends under the suite first, and search with the load that shows soonest "
        "what differs. Of commits this is so unless a --workload is named.",
    ),
]
EveryStep = Annotated[bool, typer.Option("--all", help="Keep searching for a second step.")]
Profiled = Annotated[
    bool,
    typer.Option(
        "--profile", help="Also say where both sides spend their time, by perf and the log."
    ),
]
EventLines = Annotated[
    bool,
    typer.Option("--events", help="Print progress as JSON lines on standard error."),
]


PackageBuilder = Annotated[
    Literal["container", "mock"] | None,
    typer.Option("--builder", help="Of the rpm driver: what runs rpmbuild. Default: container."),
]


def in_clone() -> bool:
    """True in a folder of a git checkout."""
    here = Path.cwd()
    return any((folder / ".git").exists() for folder in (here, *here.parents))


def outside(repo: str) -> bool:
    """True outside the repository: inside it, files belong to the commit that is checked out."""
    path = Path(repo).expanduser()
    return not path.is_dir() or not Path.cwd().is_relative_to(path.resolve())


def build_spec(
    row: Row,
    source: str | None,
    driver: str | None,
    builder: str | None,
    edits: tuple[str, ...],
    patches: tuple[Path, ...],
) -> BuildSpec:
    """What the options of a build ask for, for a row; UsageError for a wrong edit or patch."""
    from dsbuilds.build_request import check_changes, source_named
    from dsharness.model import BuildSpec, DriverName, Family, RpmBuilder

    check_changes(edits, patches)
    named = source_named(source)
    usual = DriverName.DEB if row.family is Family.APT else DriverName.RPM
    by_packages = builder is not None or named.kind not in {"git", "tarball"}
    fitting = usual if by_packages else DriverName.TREE
    chosen_driver = DriverName(driver) if driver else fitting
    files = tuple(str(path.absolute()) for path in patches)
    return BuildSpec(
        driver=chosen_driver,
        builder=RpmBuilder(builder or RpmBuilder.CONTAINER),
        onto=row.id,
        source=named,
        edits=edits,
        patches=files,
    )


MACHINES = "4"


def _number_of_machines(number: str | None) -> str | None:
    """It is looked at before anything is fetched or asked."""
    from dsmany.fleet import MachineCount

    if number is not None:
        MachineCount.read(number)
    return number


def _named_database(on: str | None) -> str | None:
    """It is looked at before anything is fetched: an empty $DSBISECT_ON is not this machine."""
    if on is not None:
        refuse_database(on)
    return on


MeasuredOn = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="URL",
        callback=_named_database,
        help="Have it measured by the workers of this PostgreSQL (`dsbisect machines worker`).",
    ),
]
MachineNumber = Annotated[
    str | None,
    typer.Option(
        "--machines",
        metavar="N|A..B",
        callback=_number_of_machines,
        help="With --on: at most N machines, or at most B from when A are there. Default: 4.",
        show_default=False,
    ),
]
MachineClass = Annotated[
    str, typer.Option("--class", help="With --on: machines of this class. Default: the most.")
]
Refs = Annotated[
    str,
    typer.Option(
        "--refs",
        metavar="URL",
        help="With --on: a bare repository for the commits. Default: machines read the original.",
    ),
]


def refuse(
    why: str, options_given: Mapping[str, object], hint: str = "`--help` tells what is for what"
) -> None:
    """UsageError for the first of these that was given."""
    for name, value in options_given.items():
        if value:
            raise UsageError(f"{name} {why}", hint=hint)


def refuse_unread(
    on: str | None, machines: str | None, class_name: str, refs: str | None = None
) -> None:
    """UsageError for what only ``--on`` reads."""
    options_given = {"--machines": machines, "--class": class_name, "--refs": refs}
    if on is None:
        refuse("without --on: nobody reads it", options_given, hint="--on URL, or leave it out")


def refuse_database(on: str) -> None:
    """UsageError for one that machines cannot share, or a password that `ps` shows to everybody."""
    from dsmany.job_queue import shared_place

    if not on:
        raise UsageError("no database was named", hint="--on postgresql://USER@HOST/DATABASE")
    place = shared_place(on)
    if place.secrets and any(on in word for word in sys.argv[1:]):
        raise UsageError(
            f"--on {place}: every user of this machine can read a password in a command (`ps`)",
            hint="put it into ~/.pgpass, or the whole address into $DSBISECT_ON",
        )
