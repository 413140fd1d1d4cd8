"""What a script of the lab makes of packages: run confined, in the image that has the tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dsbuilds.failure_reason import cause_of
from dsbuilds.sandbox.build_output import Keep, copy_output
from dsbuilds.sandbox.sandbox import Limits
from dsbuilds.sandbox.script import confined_run, work_folder
from dsharness.errors import PackageError
from dsimages.buildah import Workshop

LIBEXEC = Path(__file__).parent / "libexec"


@contextmanager
def script_output(
    at: Workshop,
    image: str,
    script: str,
    *args: str,
    folders: dict[str, Path],
    keep: Keep,
    limit_s: float,
    failure: str = "",
) -> Iterator[Path]:
    """The folder that it leaves; place -> folder of ``folders`` is mounted read-only."""
    with work_folder() as work:
        build = work / "build"
        build.mkdir()
        said = confined_run(
            at, image, LIBEXEC / script, *args,
            build=build, volumes=tuple((path, place, "ro") for place, path in folders.items()),
            limits=Limits(time_s=limit_s),
        )  # fmt: skip
        if said is not None:
            raise PackageError(
                f"{failure or f'{script} ended with an error'}: {cause_of(said)}",
                hint="the log has all that it said; are the packages whole?",
                log=at.log,
            )
        copy_output(build, "out", target=work / "out", keep=keep)
        yield work / "out"
