"""The index of a folder of packages, as installers read it; made in a confined container."""

from __future__ import annotations

import shutil
from pathlib import Path

from dsbisect.validate.script_output import LIBEXEC, script_output
from dsbuilds.drivers.package_build import package_or_index
from dsharness.model import Family
from dsharness.process.command import writing
from dsimages.buildah import Workshop

SCRIPT = LIBEXEC / "index-packages"
LIMIT_S = 300.0


def kind_of(family: Family) -> str:
    """What a family's packages are, and what their names end with."""
    return "deb" if family is Family.APT else "rpm"


def add_index(at: Workshop, tools: str, folder: Path, family: Family) -> None:
    """Write the index next to the packages; PackageError if one of them cannot be read.

    ``tools`` is the image whose programs read them.
    """
    with script_output(
        at, tools, SCRIPT.name, kind_of(family),
        folders={"/packages": folder}, keep=package_or_index, limit_s=LIMIT_S,
        failure="a package cannot be read",
    ) as made, writing(folder):  # fmt: skip
        for path in made.iterdir():
            shutil.move(path, folder / path.name)
