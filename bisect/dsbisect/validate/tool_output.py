"""What a script of the lab says of packages: run confined, its output read as untrusted text."""

from __future__ import annotations

from pathlib import Path

from dsbisect.validate.trial import Trial
from dsbuilds.failure_reason import cause_of
from dsbuilds.sandbox.build_output import copy_output, plain_file
from dsbuilds.sandbox.sandbox import Limits
from dsbuilds.sandbox.script import confined_run, work_folder
from dsharness.errors import PackageError
from dsharness.plain_text import plain

LIBEXEC = Path(__file__).parent / "libexec"
MOST_CHARACTERS = 4 << 20  # of one file
LIMIT_S = 900.0


def tool_output(
    trial: Trial, script: str, *args: str, folders: dict[str, Path], limit_s: float = LIMIT_S
) -> dict[str, str]:
    """File name -> text of all that the script left; ``folders`` are mounted read-only."""
    at = trial.at
    with work_folder() as work:
        build = work / "build"
        build.mkdir()
        said = confined_run(
            at, trial.tools.reference, LIBEXEC / script, *args,
            build=build, volumes=tuple((path, place, "ro") for place, path in folders.items()),
            limits=Limits(time_s=limit_s),
        )  # fmt: skip
        if said is not None:
            raise PackageError(
                f"{script} ended with an error: {cause_of(said)}",
                hint="the log has all that it said; are the packages whole?",
                log=at.log,
            )
        copy_output(build, "out", target=work / "out", keep=plain_file)
        return {path.name: _text(path) for path in sorted((work / "out").iterdir())}


def _text(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return plain(stream.read(MOST_CHARACTERS))
