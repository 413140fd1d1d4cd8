"""The index of a folder of packages, as installers read it; made in a confined container."""

from __future__ import annotations

import shutil
from pathlib import Path

from dsbuilds.drivers.package_build import package_or_index
from dsbuilds.failure_reason import cause_of
from dsbuilds.sandbox.build_output import copy_output
from dsbuilds.sandbox.sandbox import Limits
from dsbuilds.sandbox.script import confined_run, work_folder
from dsharness.errors import PackageError
from dsharness.model import Family
from dsharness.process.command import writing
from dsimages.buildah import Workshop

SCRIPT = Path(__file__).parent / "libexec" / "index-packages"
LIMITS = Limits(time_s=300.0)


def suffix_of(family: Family) -> str:
    """What the names of a family's packages end with."""
    return ".deb" if family is Family.APT else ".rpm"


def add_index(at: Workshop, tools: str, folder: Path, family: Family) -> None:
    """Write the index next to the packages; PackageError if one of them cannot be read.

    ``tools`` is the image whose programs read them.
    """
    kind = suffix_of(family).removeprefix(".")
    with work_folder() as work:
        build = work / "build"
        build.mkdir()
        output = confined_run(
            at, tools, SCRIPT, kind,
            build=build, volumes=((folder, "/packages", "ro"),), limits=LIMITS,
        )  # fmt: skip
        if output is not None:
            raise PackageError(
                f"a package cannot be read: {cause_of(output)}",
                hint="the log names the package",
                log=at.log,
            )
        made = work / "index"
        copy_output(build, "out", target=made, keep=package_or_index)
        with writing(folder):
            for path in made.iterdir():
                shutil.move(path, folder / path.name)
